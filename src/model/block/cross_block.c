/* Attention of a decoder's rows to an encoder's output, and what makes that output: see block.h. */
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "state/kv.h"

static void cross_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->encdec.cross_norm, NULL, from, to);
}

static void add_query_bias(model_pass *p, const program_step *s, int32_t from, int32_t to,
                           int32_t thread)
{
    (void)thread;
    const model_shape *shape = &p->r->layout->shape;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->add(p->r->ws->q + i * pass_q_ld(p), layer_of(p, s)->encdec.cross_q_bias,
                           (int64_t)shape->n_heads * shape->head_dim);
}

static drey_status attend_output(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return block_attend(p, true, err);
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, s, SUM_CROSS, from, to);
}

static void write(program_writer *w)
{
    const layer_encdec *y = &w->layout->layer[w->layer].encdec;
    const model_shape *s = &w->layout->shape;
    write_rows(w, cross_norm);
    write_reads(w, BUFFER_Y, s->n_embd);
    write_product(w, &(written_product){y->cross_q, BUFFER_Q}, 1);
    if (y->cross_q_bias)
        write_rows(w, add_query_bias);
    write_mix(w, attend_output);
    write_reads(w, BUFFER_ATT, (int64_t)s->n_heads * s->head_dim);
    write_product(w, &(written_product){y->cross_o, BUFFER_Y}, 1);
    write_rows(w, add);
}

const block_class cross_block = {"cross", write};
