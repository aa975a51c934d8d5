/* Forms of attention that some architectures have: see block.h. */
#include <string.h>

#include "base/fmath.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

/* ---- Norms of heads ---- */

/* Norms without weights, of layers that rotate. */
static drey_status bind_unit_norms(binder *b, attention_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = layer_attention(s, b->layer);
    enum { WITHOUT = 128 }; /* experts of the Llama 4 that has no such norms */
    if (a->rope == ROPE_OF_NONE || s->experts.router.n_experts == WITHOUT)
        return DREY_OK;
    bind_ones(b, a->head_dim, &t->head_norm.q);
    t->head_norm.k = t->head_norm.q;
    t->head_norm.rotated = true;
    return DREY_OK;
}

/* A norm for each head, in files that have them. */
static drey_status bind_own_norms(binder *b, attention_tensors *t)
{
    if (!binder_has(b, "attn_q_norm.weight"))
        return DREY_OK;
    const attention_shape *a = layer_attention(&b->layout->shape, b->layer);
    t->head_norm.own = true;
    TRY(bind_vectors(b, "attn_q_norm.weight", a->head_dim, a->n_heads, &t->head_norm.q));
    return bind_vectors(b, "attn_k_norm.weight", a->head_dim, a->n_heads_kv, &t->head_norm.k);
}

drey_status block_bind_head_norms(binder *b, attention_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = layer_attention(s, b->layer);
    const bool wide = s->arch->wide_norms;
    if (s->arch->layer_norm)
        bind_zeros(b, a->head_dim, &t->head_norm.no_bias);
    if (shape_has_form(s, FORM_UNIT_NORMS))
        return bind_unit_norms(b, t);
    if (shape_has_form(s, FORM_OWN_NORMS))
        return bind_own_norms(b, t);
    if (!wide && !s->arch->head_norms)
        return DREY_OK;
    if (shape_has_form(s, FORM_OPTIONAL_NORMS) && !binder_has(b, "attn_q_norm.weight"))
        return DREY_OK;
    t->head_norm.rotated = shape_has_form(s, FORM_ROTATED_NORMS);
    TRY(bind_vector(b, "attn_q_norm.weight", wide ? attention_queries(a) : a->head_dim,
                    &t->head_norm.q));
    if (s->layer[b->layer].kv_before > 0)
        return DREY_OK;
    if (shape_has_form(s, FORM_UNIT_VALUES))
        bind_ones(b, a->v_dim, &t->head_norm.v);
    return bind_vector(b, "attn_k_norm.weight", wide ? attention_keys(a) : a->head_dim,
                       &t->head_norm.k);
}

void block_norm_heads(const model_pass *p, const attention_tensors *t, float *x, const float *norm,
                      int32_t n_heads, int32_t head_dim)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    const int32_t all = n_heads * head_dim, n = s->arch->wide_norms ? all : head_dim;
    for (int32_t at = 0; norm && at < all; at += n, norm += t->head_norm.own ? n : 0)
        if (t->head_norm.no_bias)
            kernels->layernorm(x + at, x + at, norm, t->head_norm.no_bias, n, s->norm_eps);
        else
            kernels->rmsnorm(x + at, x + at, norm, n, s->norm_eps);
}

/* ---- Gates ---- */

/* A matrix of a gate for each head, or for each number of what attention gives: its rows say it. */
drey_status block_bind_gate(binder *b, attention_tensors *t)
{
    static const char role[] = "attn_gate.weight";
    const model_shape *s = &b->layout->shape;
    if (!(shape_has_form(s, FORM_GATED)))
        return DREY_OK;
    const attention_shape *a = layer_attention(s, b->layer);
    const gguf_tensor *tensor = gguf_find_tensor(b->g, binder_name(b, (char[64]){0}, role));
    const bool of_heads = tensor && tensor->dims[1] == a->n_heads;
    return bind_matrix(b, role, of_heads ? a->n_heads : attention_out(a), s->n_embd, &t->gate);
}

void block_take_queries(model_pass *p, const program_step *s, int32_t from, int32_t to,
                        int32_t thread)
{
    (void)thread;
    const attention_shape *a = layer_attention(&p->r->layout->shape, s->layer);
    const int64_t n = a->head_dim;
    for (int32_t i = from; i < to; i++)
        for (int32_t h = 0; h < a->n_heads; h++)
            memcpy(block_row(p, s, ATTEND_Q, i) + h * n,
                   block_row(p, s, ATTEND_GATE, i) + 2 * h * n, (size_t)n * sizeof(float));
}

/* ln(1 + exp(x)), from where that is x on as x. */
static float softplus(float x)
{
    return x > 20 ? x : (float)log_f64(1 + exp_f64((double)x));
}

/* x [n] times the function of one gate, or of as many. */
static void gate_numbers(const model_pass *p, float *x, const float *gate, int64_t n, bool one)
{
    const bool softens = p->r->layout->shape.arch->forms & FORM_GATED_SOFTPLUS;
    if (one)
        pass_scale(x, softens ? softplus(*gate) : 1 / (1 + exp_f32(-*gate)), n);
    else if (softens)
        for (int64_t i = 0; i < n; i++)
            x[i] *= softplus(gate[i]);
    else
        p->r->kernels->gate(x, x, gate, n);
}

void block_gate_attended(model_pass *p, const program_step *s, int32_t from, int32_t to,
                         int32_t thread)
{
    (void)thread;
    const attention_shape *a = layer_attention(&p->r->layout->shape, s->layer);
    const weight *gate = layer_of(p, s)->attention.gate;
    const int64_t n = a->v_dim;
    const bool one = gate && gate->form.n_rows == a->n_heads;
    const int64_t step = !gate ? 2 * a->head_dim : one ? 1 : n;
    for (int32_t i = from; i < to; i++) {
        float *x = block_row(p, s, ATTEND_OUT, i);
        const float *of = block_row(p, s, ATTEND_GATE, i) + (gate ? 0 : a->head_dim);
        for (int32_t h = 0; h < a->n_heads; h++)
            gate_numbers(p, x + h * n, of + h * step, n, one);
    }
}
