/* Attention of a decoder's rows to an encoder's output: see block.h. It follows attention in its
 * layer and uses its buffers. */
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = layer_attention(s, b->layer);
    cross_tensors *t = &y->cross;
    TRY(bind_matrix(b, "cross_attn_q.weight", attention_queries(a), s->n_embd, &t->q));
    TRY(bind_matrix(b, "cross_attn_o.weight", s->n_embd, attention_out(a), &t->o));
    if (!s->arch->norms_sums)
        TRY(bind_vector(b, "cross_attn_norm.weight", s->n_embd, &t->norm));
    TRY(bind_vector_if(b, "cross_attn_q.bias", attention_queries(a), &t->q_bias));
    TRY(bind_vector_if(b, "cross_attn_o.bias", s->n_embd, &t->added.bias));
    return block_bind_sums(b, "cross_attn_norm", &t->added);
}

static void cross_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->cross.norm, NULL, from, to);
}

static void add_query_bias(model_pass *p, const program_step *s, int32_t from, int32_t to,
                           int32_t thread)
{
    (void)thread;
    const attention_shape *a = layer_attention(&p->r->layout->shape, s->layer);
    for (int32_t i = from; i < to; i++)
        p->r->kernels->add(block_row(p, s, ATTEND_Q, i), layer_of(p, s)->cross.q_bias,
                           attention_queries(a));
}

static drey_status attend_output(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return block_attend(p, true, err);
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &layer_of(p, s)->cross.added, from, to);
}

static void write(program_writer *w)
{
    const cross_tensors *y = &w->layout->layer[w->layer].cross;
    const model_shape *s = &w->layout->shape;
    write_as(w, &attention_block);
    write_rows(w, cross_norm);
    write_reads(w, BUFFER_Y, s->n_embd);
    write_product(w, &(written_product){y->q, ATTEND_Q}, 1);
    if (y->q_bias)
        write_rows(w, add_query_bias);
    write_mix(w, attend_output);
    write_reads(w, ATTEND_OUT, attention_out(layer_attention(s, w->layer)));
    write_product(w, &(written_product){y->o, BUFFER_Y}, 1);
    write_rows(w, add);
}

const block_class cross_block = {.name = "cross", .bind = bind, .write = write};
