/* Two products with an activation between them: see block.h. */
#include "base/fmath.h"
#include "common/num.h"
#include "gguf/gguf.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

static bool has_gate(const binder *b)
{
    ffn_kind kind = b->layout->shape.arch->ffn;
    if (kind == FFN_RELU)
        return binder_has(b, "ffn_gate.weight");
    return kind == FFN_SWIGLU || kind == FFN_SWIGLU_CUT || kind == FFN_GEGLU;
}

/* A number of the layer: the key has one for each, or one for all. */
static drey_status read_own(const binder *b, const char *name, double *out)
{
    const gguf_key *key = gguf_find_key(b->g, name);
    const uint64_t i = key && key->n_items > 1 ? (uint64_t)b->layer : 0;
    const gguf_kind kind = key && key->kind == GGUF_ARRAY ? key->item_kind : GGUF_F32;
    if (!key || i >= key->n_items || kind == GGUF_STRING ||
        (key->kind != GGUF_ARRAY && !gguf_key_is(key, GGUF_WANT_NUMBER)))
        FAIL(b->err, DREY_ERR_FORMAT, "key %s has no number for layer %d; the file is broken", name,
             b->layer);
    *out = gguf_item_number(key, i);
    return DREY_OK;
}

/* Files have what softplus makes the factors of. */
static drey_status read_xielu(const binder *b, act_numbers *out)
{
    double p, n, beta, eps;
    TRY(read_own(b, "xielu.alpha_p", &p));
    TRY(read_own(b, "xielu.alpha_n", &n));
    TRY(read_own(b, "xielu.beta", &beta));
    TRY(read_own(b, "xielu.eps", &eps));
    out->xielu.p = (float)log_f64(1 + exp_f64(p));
    out->xielu.n = (float)(beta + log_f64(1 + exp_f64(n)));
    out->xielu.b = (float)beta;
    out->xielu.eps = (float)eps;
    return DREY_OK;
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    feed_forward_tensors *t = &y->ffn;
    const bool gate = has_gate(b);
    const int64_t d = s->n_embd, n = s->layer[b->layer].n_ff;
    if (s->arch->gate_in_up) {
        TRY(bind_rows(b, "ffn_up.weight", 2 * n, 0, n, d, "ffn_gate.weight", &t->gate));
        TRY(bind_rows(b, "ffn_up.weight", 2 * n, n, n, d, "ffn_up.weight", &t->up));
    } else {
        if (gate)
            TRY(bind_matrix(b, "ffn_gate.weight", n, d, &t->gate));
        TRY(bind_matrix(b, "ffn_up.weight", n, d, &t->up));
    }
    TRY(bind_matrix(b, "ffn_down.weight", d, n, &t->down));
    if (gate)
        TRY(bind_vector_if(b, "ffn_gate.bias", n, &t->gate_bias));
    TRY(bind_vector_if(b, "ffn_up.bias", n, &t->up_bias));
    if (s->arch->ffn == FFN_XIELU)
        TRY(read_xielu(b, &t->act));
    return block_bind_ffn(b, y);
}

void block_activate(model_pass *p, const program_step *s, int32_t from, int32_t to, int64_t k_from,
                    int64_t k_to)
{
    const kernel_table *kernels = p->r->kernels;
    const feed_forward_tensors *y = &layer_of(p, s)->ffn;
    const float *gate_bias = y->gate ? y->gate_bias : y->up_bias;
    int64_t n = k_to - k_from;
    for (int32_t i = from; i < to; i++) {
        float *gate = block_row(p, s, FFN_GATE, i) + k_from;
        float *up = y->gate ? block_row(p, s, FFN_UP, i) + k_from : NULL;
        if (gate_bias)
            kernels->add(gate, gate_bias + k_from, n);
        if (up && y->up_bias)
            kernels->add(up, y->up_bias + k_from, n);
        pass_activate(p->r, &y->act, gate, up, n);
    }
}

static void write(program_writer *w)
{
    const feed_forward_tensors *y = &w->layout->layer[w->layer].ffn;
    const written_product up = {y->up, y->gate ? FFN_UP : FFN_GATE};
    block_write_ffn_norm(w);
    write_product(w, (written_product[]){{y->gate, FFN_GATE}, up}, 2);
    write_columns(w, block_activate);
    write_reads(w, FFN_GATE, y->down->form.k);
    write_product(w, &(written_product){y->down, BUFFER_Y}, 1);
    write_rows(w, block_add_ffn);
}

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    const int32_t n_ff = shape_widest_ff(s);
    need_rows(n, FFN_GATE, n->n_rows, n_ff);
    need_rows(n, FFN_UP, n->n_rows, n_ff);
    need_acts(n, n->n_rows, max_i64(n_ff, s->n_embd), 1);
}

const block_class feed_forward_block = {
    .name = "feed-forward", .bind = bind, .write = write, .needs = needs};
