/* What several blocks do: see block.h. */
#include "model/block/block.h"

#include "model/pass_steps.h"

const block_class *const *layer_blocks(const model_layout *l, int32_t layer)
{
    static const block_class *const dense[] = {&attention_block, &feed_forward_block, NULL};
    static const block_class *const mixture[] = {&attention_block, &experts_block, NULL};
    static const block_class *const reading[] = {&attention_block, &cross_block,
                                                 &feed_forward_block, NULL};
    if (shape_reads(&l->shape))
        return reading;
    return l->layer[layer].experts.of ? mixture : dense;
}

void block_norm(model_pass *p, const float *norm, const float *bias, int32_t from, int32_t to)
{
    workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        pass_norm(p->r, ws->y + i * pass_embd_ld(p), ws->x + i * pass_embd_ld(p), norm, bias);
}

void block_add(const model_pass *p, const program_step *at, int32_t sum, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    const model_shape *s = &p->r->layout->shape;
    const layer_layout *l = layer_of(p, at);
    const layer_encdec *e = &l->encdec;
    const float *bias = (float *const[]){l->o_bias, e->cross_o_bias, l->down_bias}[sum];
    const float *norm = (float *const[]){l->post_norm.attn, NULL, l->post_norm.ffn}[sum];
    int64_t n = s->n_embd;
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p), *y = p->r->ws->y + i * pass_embd_ld(p);
        if (bias)
            kernels->add(y, bias, n);
        if (norm)
            kernels->rmsnorm(y, y, norm, n, s->norm_eps);
        pass_scale(y, s->residual_scale, n);
        kernels->add(x, y, n);
        if (e->sum_norm[sum])
            pass_norm(p->r, x, x, e->sum_norm[sum], e->sum_bias[sum]);
    }
}

void block_norm_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->ffn_norm, layer_of(p, s)->ffn_norm_bias, from, to);
}

void block_add_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, s, SUM_FFN, from, to);
}
