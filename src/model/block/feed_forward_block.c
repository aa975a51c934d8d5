/* Two products with an activation between them: see block.h. */
#include "model/block/block.h"
#include "model/pass_steps.h"

void block_activate(model_pass *p, const program_step *s, int32_t from, int32_t to, int64_t k_from,
                    int64_t k_to)
{
    const kernel_table *kernels = p->r->kernels;
    const layer_layout *y = layer_of(p, s);
    const float *gate_bias = y->gate ? y->gate_bias : y->up_bias;
    int64_t n = k_to - k_from;
    for (int32_t i = from; i < to; i++) {
        float *gate = p->r->ws->gate + i * pass_ff_ld(p) + k_from;
        float *up = y->gate ? p->r->ws->up + i * pass_ff_ld(p) + k_from : NULL;
        if (gate_bias)
            kernels->add(gate, gate_bias + k_from, n);
        if (up && y->up_bias)
            kernels->add(up, y->up_bias + k_from, n);
        pass_activate(p->r, gate, up, n);
    }
}

static void write(program_writer *w)
{
    const layer_layout *y = &w->layout->layer[w->layer];
    const written_product up = {y->up, y->gate ? BUFFER_UP : BUFFER_GATE};
    write_rows(w, block_norm_ffn);
    write_reads(w, BUFFER_Y, w->layout->shape.n_embd);
    write_product(w, (written_product[]){{y->gate, BUFFER_GATE}, up}, 2);
    write_columns(w, block_activate);
    write_reads(w, BUFFER_GATE, y->down->form.k);
    write_product(w, &(written_product){y->down, BUFFER_Y}, 1);
    write_rows(w, block_add_ffn);
}

const block_class feed_forward_block = {"feed-forward", write};
