/* Two products with an activation between them: see block.h. */
#include "base/fmath.h"
#include "common/num.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

bool block_has_gate(const binder *b)
{
    ffn_kind kind = b->layout->shape.arch->ffn;
    if (kind == FFN_RELU)
        return binder_has(b, "ffn_gate.weight");
    return kind == FFN_SWIGLU || kind == FFN_SWIGLU_CUT || kind == FFN_GEGLU;
}

/* Files have what softplus makes the factors of. */
static drey_status read_xielu(const binder *b, act_numbers *out)
{
    float p = 0, n = 0;
    TRY(binder_number(b, "xielu.alpha_p", &p));
    TRY(binder_number(b, "xielu.alpha_n", &n));
    TRY(binder_number(b, "xielu.beta", &out->xielu.b));
    TRY(binder_number(b, "xielu.eps", &out->xielu.eps));
    out->xielu.p = (float)log_f64(1 + exp_f64((double)p));
    out->xielu.n = (float)((double)out->xielu.b + log_f64(1 + exp_f64((double)n)));
    return DREY_OK;
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    feed_forward_tensors *t = &y->ffn;
    const bool gate = block_has_gate(b);
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
    if (s->arch->keys & KEYS_CLAMPS)
        TRY(binder_number_if(b, "swiglu_clamp_shexp", &t->act.limit));
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
