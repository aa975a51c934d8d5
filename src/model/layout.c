/* Binding tensors to roles: see layout.h. Tensor names: ggml docs/gguf.md, "Standardized tensor
 * names". */
#include "model/layout.h"

#include <stdio.h>

enum { MATRICES_A_LAYER = 7 };

static size_t vector_bytes(int32_t n)
{
    return arena_size((size_t)n * sizeof(float));
}

size_t model_layout_bytes(const model_shape *s)
{
    int32_t n_q = s->n_heads * s->head_dim, n_kv = s->n_heads_kv * s->head_dim;
    size_t vectors = 2 * vector_bytes(s->n_embd) + vector_bytes(n_q) + 2 * vector_bytes(n_kv);
    size_t per_layer = vectors + MATRICES_A_LAYER * sizeof(weight) + sizeof(layer_layout);
    return (size_t)s->n_layers * per_layer + 2 * sizeof(weight) + vector_bytes(s->n_embd) +
           (size_t)s->n_rot * sizeof(double) + 8 * ARENA_ALIGN;
}

static drey_status find(const gguf *g, const char *name, int64_t d0, int64_t d1,
                        const gguf_tensor **out, drey_error *err)
{
    const gguf_tensor *t = gguf_find_tensor(g, name);
    if (!t)
        FAIL(err, DREY_ERR_FORMAT,
             "tensor %s is missing; the file is incomplete or of another architecture", name);
    if (t->dims[0] != d0 || t->dims[1] != d1 || t->dims[2] != 1 || t->dims[3] != 1)
        FAIL(err, DREY_ERR_FORMAT,
             "tensor %s has shape [%lld, %lld] instead of [%lld, %lld]; the file is broken", name,
             (long long)t->dims[0], (long long)t->dims[1], (long long)d0, (long long)d1);
    *out = t;
    return DREY_OK;
}

typedef struct binder {
    model_layout *l;
    const gguf *g;
    const kernel_table *kernels;
    arena *a;
    int32_t layer;
    drey_error *err;
} binder;

static drey_status bind_matrix(binder *b, const char *role, int64_t rows, int64_t k, weight **out)
{
    char name[64];
    const gguf_tensor *t;
    snprintf(name, sizeof name, "blk.%d.%s.weight", b->layer, role);
    TRY(find(b->g, name, k, rows, &t, b->err));
    *out = &b->l->matrix[b->l->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

static drey_status bind_vocabulary(binder *b, const char *name, weight **out)
{
    const gguf_tensor *t;
    TRY(find(b->g, name, b->l->shape.n_embd, b->l->shape.n_vocab, &t, b->err));
    *out = &b->l->matrix[b->l->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

/* In front of the pass's matrices: its rows are looked up, all of it is never multiplied. */
static drey_status bind_embedding(binder *b)
{
    TRY(bind_vocabulary(b, "token_embd.weight", &b->l->embedding));
    b->l->embedding->in_pass = false;
    b->l->n_looked_up = 1;
    return DREY_OK;
}

static drey_status bind_norm(binder *b, const char *role, float **out)
{
    char name[64];
    const gguf_tensor *t;
    snprintf(name, sizeof name, "blk.%d.%s.weight", b->layer, role);
    *out = arena_take(b->a, (size_t)b->l->shape.n_embd * sizeof(float));
    return find(b->g, name, b->l->shape.n_embd, 1, &t, b->err);
}

static drey_status bind_bias(binder *b, const char *role, int32_t n, float **out)
{
    char name[64];
    const gguf_tensor *t;
    snprintf(name, sizeof name, "blk.%d.%s.bias", b->layer, role);
    if (!gguf_find_tensor(b->g, name))
        return DREY_OK;
    *out = arena_take(b->a, (size_t)n * sizeof(float));
    return find(b->g, name, n, 1, &t, b->err);
}

static drey_status bind_layer(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    int32_t n_q = s->n_heads * s->head_dim, n_kv = s->n_heads_kv * s->head_dim;
    TRY(bind_norm(b, "attn_norm", &y->attn_norm));
    TRY(bind_matrix(b, "attn_q", n_q, s->n_embd, &y->q));
    TRY(bind_matrix(b, "attn_k", n_kv, s->n_embd, &y->k));
    TRY(bind_matrix(b, "attn_v", n_kv, s->n_embd, &y->v));
    TRY(bind_bias(b, "attn_q", n_q, &y->q_bias));
    TRY(bind_bias(b, "attn_k", n_kv, &y->k_bias));
    TRY(bind_bias(b, "attn_v", n_kv, &y->v_bias));
    TRY(bind_matrix(b, "attn_output", s->n_embd, n_q, &y->o));
    TRY(bind_norm(b, "ffn_norm", &y->ffn_norm));
    TRY(bind_matrix(b, "ffn_gate", s->n_ff, s->n_embd, &y->gate));
    TRY(bind_matrix(b, "ffn_up", s->n_ff, s->n_embd, &y->up));
    return bind_matrix(b, "ffn_down", s->n_embd, s->n_ff, &y->down);
}

drey_status model_layout_init(model_layout *l, const gguf *g, const kernel_table *kernels, arena *a,
                              drey_error *err)
{
    *l = (model_layout){0};
    TRY(model_shape_read(&l->shape, g, err));
    const model_shape *s = &l->shape;
    binder b = {.l = l, .g = g, .kernels = kernels, .a = a, .err = err};
    l->layer = arena_take(a, (size_t)s->n_layers * sizeof *l->layer);
    l->matrix = arena_take(a, ((size_t)s->n_layers * MATRICES_A_LAYER + 2) * sizeof *l->matrix);
    l->final_norm = arena_take(a, (size_t)s->n_embd * sizeof(float));
    l->rope_frequency = arena_take(a, (size_t)s->n_rot / 2 * sizeof(double));
    const gguf_tensor *t;
    l->tied = gguf_find_tensor(g, "output.weight") == NULL;
    if (!l->tied)
        TRY(bind_embedding(&b));
    for (b.layer = 0; b.layer < s->n_layers; b.layer++)
        TRY(bind_layer(&b, &l->layer[b.layer]));
    if (gguf_find_tensor(g, "rope_freqs.weight"))
        TRY(find(g, "rope_freqs.weight", s->n_rot / 2, 1, &t, err));
    TRY(find(g, "output_norm.weight", s->n_embd, 1, &t, err));
    TRY(bind_vocabulary(&b, l->tied ? "token_embd.weight" : "output.weight", &l->head));
    if (l->tied)
        l->embedding = l->head;
    return DREY_OK;
}

static drey_status read_named(const gguf *g, weights *w, int32_t layer, const char *role,
                              float *out, drey_error *err)
{
    char name[64];
    if (!out)
        return DREY_OK;
    snprintf(name, sizeof name, "blk.%d.%s", layer, role);
    return weights_read_vector(w, gguf_find_tensor(g, name), out, err);
}

drey_status model_layout_read(model_layout *l, const gguf *g, weights *w, drey_error *err)
{
    for (int32_t i = 0; i < l->shape.n_layers; i++) {
        layer_layout *y = &l->layer[i];
        TRY(read_named(g, w, i, "attn_norm.weight", y->attn_norm, err));
        TRY(read_named(g, w, i, "ffn_norm.weight", y->ffn_norm, err));
        TRY(read_named(g, w, i, "attn_q.bias", y->q_bias, err));
        TRY(read_named(g, w, i, "attn_k.bias", y->k_bias, err));
        TRY(read_named(g, w, i, "attn_v.bias", y->v_bias, err));
    }
    TRY(weights_read_vector(w, gguf_find_tensor(g, "output_norm.weight"), l->final_norm, err));
    float factors[512];
    const gguf_tensor *t = gguf_find_tensor(g, "rope_freqs.weight");
    if (t)
        TRY(weights_read_vector(w, t, factors, err));
    for (int32_t i = 0; t && i < l->shape.n_rot / 2; i++)
        if (!(factors[i] >= 1e-6f && factors[i] <= 1e6f))
            FAIL(err, DREY_ERR_FORMAT, "tensor rope_freqs.weight holds %g; the file is broken",
                 (double)factors[i]);
    l->rope_scale = rope_frequencies(&l->shape, t ? factors : NULL, l->rope_frequency);
    return DREY_OK;
}
