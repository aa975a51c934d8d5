/* Binding tensors to roles: see layout.h. Tensor names: ggml docs/gguf.md, "Standardized tensor
 * names". */
#include "model/layout.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"

enum {
    MATRICES_PER_LAYER = 11,
    MATRICES_PER_READER = 2,
    MATRICES_AROUND = 3,
    PARTS_PER_LAYER = 5,
    VECTORS_AROUND = 6 /* positions, the head's bias, norms of embeddings and at the end */
};

/* Distances from here on are in the last bucket, in every T5 model (no file states it). */
enum { BUCKETS_END = 128 };

/* How many numbers a vector has. */
typedef enum vector_length {
    LENGTH_D,
    LENGTH_Q,
    LENGTH_KV,
    LENGTH_QKV,
    LENGTH_HEAD,
    LENGTH_FF,
    LENGTH_HEADS,
    LENGTH_BUCKETS,
    LENGTH_EXPERTS,
    LENGTH_EXPERTS_FF, /* of each expert, */
    LENGTH_EXPERTS_D   /* the same */
} vector_length;

/* When a layer has a vector. */
typedef enum vector_need {
    NEED_BEFORE, /* products read what is normed */
    NEED_TOKENS, /* the same, where rows are tokens, */
    NEED_TAPS,   /* or states of a target */
    NEED_OLD,    /* the same, where the file has it by this name */
    NEED_FFN,    /* the same, by its usual name, */
    NEED_POST,   /* or by the one that others use for a norm of what attention adds */
    NEED_MEAN,   /* as NEED_BEFORE, where norms take the mean off */
    NEED_HEAD_NORMS,
    NEED_WIDE_NORMS,
    NEED_POST_NORMS,
    NEED_SINKS,
    NEED_READS,         /* as NEED_BEFORE, of a decoder that reads an encoder's output */
    NEED_SUMS,          /* what is normed are sums, */
    NEED_CROSS,         /* the same, of a decoder that reads an encoder's output */
    NEED_ENCDEC,        /* of a model with an encoder, where the file has it */
    NEED_BUCKETS,       /* of the first layer with buckets, and where the file has it */
    NEED_NONE,          /* where the file has it */
    NEED_EXPERTS,       /* the same, of layers with experts */
    NEED_EXPERT_BIASES, /* the same; of some architectures always */
    NEED_GATE,          /* the same, next to a gate */
    NEED_SPLIT,         /* the same, where Q, K and V are three matrices */
    NEED_FUSED          /* or where one matrix is the three */
} vector_need;

/* The vectors that a layer may have. */
typedef struct vector_role {
    const char *name; /* after "blk.N." */
    size_t member;    /* of layer_layout */
    vector_length length;
    vector_need need;
} vector_role;

#define SUM_MEMBER(what, sum)                                                                      \
    (offsetof(layer_layout, encdec.sum_##what) + (size_t)(sum) * sizeof(float *))

static const vector_role roles[] = {
    {"attn_norm.weight", offsetof(layer_layout, attn_norm), LENGTH_D, NEED_TOKENS},
    {"attn_norm.weight", offsetof(layer_layout, token_norm), LENGTH_D, NEED_TAPS},
    {"attn_norm_2.weight", offsetof(layer_layout, attn_norm), LENGTH_D, NEED_TAPS},
    {"hidden_norm.weight", offsetof(layer_layout, attn_norm), LENGTH_D, NEED_OLD},
    {"ffn_norm.weight", offsetof(layer_layout, ffn_norm), LENGTH_D, NEED_FFN},
    {"post_attention_norm.weight", offsetof(layer_layout, ffn_norm), LENGTH_D, NEED_POST},
    {"attn_norm.bias", offsetof(layer_layout, attn_norm_bias), LENGTH_D, NEED_MEAN},
    {"ffn_norm.bias", offsetof(layer_layout, ffn_norm_bias), LENGTH_D, NEED_MEAN},
    {"attn_norm.weight", SUM_MEMBER(norm, SUM_ATTN), LENGTH_D, NEED_SUMS},
    {"attn_norm.bias", SUM_MEMBER(bias, SUM_ATTN), LENGTH_D, NEED_SUMS},
    {"cross_attn_norm.weight", SUM_MEMBER(norm, SUM_CROSS), LENGTH_D, NEED_CROSS},
    {"cross_attn_norm.bias", SUM_MEMBER(bias, SUM_CROSS), LENGTH_D, NEED_CROSS},
    {"ffn_norm.weight", SUM_MEMBER(norm, SUM_FFN), LENGTH_D, NEED_SUMS},
    {"ffn_norm.bias", SUM_MEMBER(bias, SUM_FFN), LENGTH_D, NEED_SUMS},
    {"post_attention_norm.weight", offsetof(layer_layout, post_norm.attn), LENGTH_D,
     NEED_POST_NORMS},
    {"post_ffw_norm.weight", offsetof(layer_layout, post_norm.ffn), LENGTH_D, NEED_POST_NORMS},
    {"attn_q_norm.weight", offsetof(layer_layout, head_norm.q), LENGTH_HEAD, NEED_HEAD_NORMS},
    {"attn_k_norm.weight", offsetof(layer_layout, head_norm.k), LENGTH_HEAD, NEED_HEAD_NORMS},
    {"attn_q_norm.weight", offsetof(layer_layout, head_norm.q), LENGTH_Q, NEED_WIDE_NORMS},
    {"attn_k_norm.weight", offsetof(layer_layout, head_norm.k), LENGTH_KV, NEED_WIDE_NORMS},
    {"cross_attn_norm.weight", offsetof(layer_layout, encdec.cross_norm), LENGTH_D, NEED_READS},
    {"attn_rel_b.weight", offsetof(layer_layout, encdec.buckets), LENGTH_BUCKETS, NEED_BUCKETS},
    {"attn_qkv.bias", offsetof(layer_layout, q_bias), LENGTH_QKV, NEED_FUSED},
    {"attn_q.bias", offsetof(layer_layout, q_bias), LENGTH_Q, NEED_SPLIT},
    {"attn_k.bias", offsetof(layer_layout, k_bias), LENGTH_KV, NEED_SPLIT},
    {"attn_v.bias", offsetof(layer_layout, v_bias), LENGTH_KV, NEED_SPLIT},
    {"attn_output.bias", offsetof(layer_layout, o_bias), LENGTH_D, NEED_NONE},
    {"attn_o.bias", offsetof(layer_layout, o_bias), LENGTH_D, NEED_ENCDEC},
    {"cross_attn_q.bias", offsetof(layer_layout, encdec.cross_q_bias), LENGTH_Q, NEED_ENCDEC},
    {"cross_attn_o.bias", offsetof(layer_layout, encdec.cross_o_bias), LENGTH_D, NEED_ENCDEC},
    {"ffn_gate.bias", offsetof(layer_layout, gate_bias), LENGTH_FF, NEED_GATE},
    {"ffn_up.bias", offsetof(layer_layout, up_bias), LENGTH_FF, NEED_NONE},
    {"ffn_down.bias", offsetof(layer_layout, down_bias), LENGTH_D, NEED_NONE},
    {"exp_probs_b.bias", offsetof(layer_layout, experts.choice_bias), LENGTH_EXPERTS, NEED_EXPERTS},
    {"ffn_gate_inp_shexp.weight", offsetof(layer_layout, experts.shared_gate), LENGTH_D,
     NEED_EXPERTS},
    {"ffn_gate_inp.bias", offsetof(layer_layout, experts.router_bias), LENGTH_EXPERTS,
     NEED_EXPERT_BIASES},
    {"ffn_gate_exps.bias", offsetof(layer_layout, experts.gate_bias), LENGTH_EXPERTS_FF,
     NEED_EXPERT_BIASES},
    {"ffn_up_exps.bias", offsetof(layer_layout, experts.up_bias), LENGTH_EXPERTS_FF,
     NEED_EXPERT_BIASES},
    {"ffn_down_exps.bias", offsetof(layer_layout, experts.down_bias), LENGTH_EXPERTS_D,
     NEED_EXPERT_BIASES},
    {"attn_sinks.weight", offsetof(layer_layout, positions.sinks), LENGTH_HEADS, NEED_SINKS},
};

enum { N_ROLES = sizeof roles / sizeof *roles };

/* What is in front of names in files of models with an encoder. */
static const char *part_prefix(const model_shape *s)
{
    return shape_encodes(s) ? "enc." : shape_reads(s) ? "dec." : "";
}

static const char *layer_tensor(const model_shape *s, char out[64], int32_t layer, const char *name)
{
    snprintf(out, 64, "%sblk.%d.%s", part_prefix(s), layer, name);
    return out;
}

static int64_t length_of(const model_shape *s, vector_length length)
{
    switch (length) {
    case LENGTH_Q:
        return (int64_t)s->n_heads * s->head_dim;
    case LENGTH_KV:
        return (int64_t)s->n_heads_kv * s->head_dim;
    case LENGTH_QKV:
        return length_of(s, LENGTH_Q) + 2 * length_of(s, LENGTH_KV);
    case LENGTH_HEAD:
        return s->head_dim;
    case LENGTH_FF:
        return s->n_ff;
    case LENGTH_BUCKETS:
        return (int64_t)s->n_heads * s->encoder.n_buckets;
    case LENGTH_HEADS:
        return s->n_heads;
    case LENGTH_EXPERTS:
        return s->experts.router.n_experts;
    case LENGTH_EXPERTS_FF:
        return s->experts.n_ff;
    default:
        return s->n_embd;
    }
}

/* How many such vectors a tensor has, one after the other. */
static int64_t rows_of(const model_shape *s, vector_length length)
{
    bool each = length == LENGTH_EXPERTS_FF || length == LENGTH_EXPERTS_D;
    return each ? s->experts.router.n_experts : 1;
}

static bool has_tensor(const model_shape *s, const gguf *g, int32_t layer, const char *tensor)
{
    char name[64];
    return gguf_find_tensor(g, layer_tensor(s, name, layer, tensor)) != NULL;
}

static bool has_gate(const model_shape *s, const gguf *g, int32_t layer)
{
    ffn_kind kind = s->arch->ffn;
    return kind == FFN_RELU ? has_tensor(s, g, layer, "ffn_gate.weight")
                            : kind != FFN_GELU && kind != FFN_ERF;
}

/* Whether a layer of this shape and file has it. One that has to be there is looked for. */
static bool has_vector(const model_shape *s, const gguf *g, int32_t layer, const vector_role *role)
{
    bool taps = s->taps.n > 0, before = !s->arch->norms_sums;
    switch (role->need) {
    case NEED_BEFORE:
        return before;
    case NEED_TOKENS:
        return before && !taps;
    case NEED_TAPS:
        return taps && !(role->member == offsetof(layer_layout, attn_norm) &&
                         has_tensor(s, g, layer, "hidden_norm.weight"));
    case NEED_OLD:
        return taps && has_tensor(s, g, layer, role->name);
    case NEED_FFN:
    case NEED_POST:
        return before && s->arch->post_is_ffn_norm == (role->need == NEED_POST);
    case NEED_SINKS:
        return s->arch->sinks;
    case NEED_EXPERT_BIASES:
        return layer_has_experts(s, layer) &&
               (s->arch->expert_biases || has_tensor(s, g, layer, role->name));
    case NEED_NONE:
        return has_tensor(s, g, layer, role->name);
    case NEED_GATE:
        return has_tensor(s, g, layer, role->name) && has_gate(s, g, layer);
    case NEED_SPLIT:
    case NEED_FUSED:
        return has_tensor(s, g, layer, role->name) &&
               has_tensor(s, g, layer, "attn_qkv.weight") == (role->need == NEED_FUSED);
    case NEED_MEAN:
        return before && s->arch->layer_norm;
    case NEED_HEAD_NORMS:
        return s->arch->head_norms;
    case NEED_WIDE_NORMS:
        return s->arch->wide_norms;
    case NEED_EXPERTS:
        return layer_has_experts(s, layer) && has_tensor(s, g, layer, role->name);
    case NEED_POST_NORMS:
        return s->arch->post_norms;
    case NEED_READS:
        return before && shape_reads(s);
    case NEED_SUMS:
        return !before;
    case NEED_CROSS:
        return !before && shape_reads(s);
    case NEED_ENCDEC:
        return s->encoder.n_layers > 0 && has_tensor(s, g, layer, role->name);
    case NEED_BUCKETS:
        return s->encoder.n_buckets > 0 && (layer == 0 || has_tensor(s, g, layer, role->name));
    }
    return false;
}

static size_t vector_bytes(int64_t n)
{
    return arena_size((size_t)n * sizeof(float));
}

/* Of attend_bias; 0: layers have none. */
static int32_t bias_ld(const model_shape *s)
{
    return s->encoder.n_buckets == 0 ? 0 : shape_encodes(s) ? 2 * BUCKETS_END + 1 : BUCKETS_END + 1;
}

/* Of all numbers of the head's product. */
static bool has_head_bias(const model_shape *s, const gguf *g)
{
    return shape_reads(s) && gguf_find_tensor(g, "output.bias");
}

static size_t n_expert_layers(const model_shape *s)
{
    return s->experts.router.n_experts > 0 ? (size_t)s->n_layers : 0;
}

static size_t n_vectors_most(const model_shape *s)
{
    return (size_t)s->n_layers * N_ROLES + 2 * (size_t)s->encoder.n_readers + VECTORS_AROUND;
}

size_t model_layout_bytes(const model_shape *s, const gguf *g)
{
    size_t n = (size_t)s->n_layers, n_readers = (size_t)s->encoder.n_readers;
    size_t vectors =
        4 * vector_bytes(s->n_embd) + 2 * n_readers * vector_bytes(length_of(s, LENGTH_KV));
    if (has_head_bias(s, g))
        vectors += vector_bytes(s->n_vocab);
    if (s->arch->rope == ROPE_NONE)
        vectors += vector_bytes((int64_t)s->n_context_train * s->n_embd);
    for (int32_t layer = 0; layer < s->n_layers; layer++)
        for (int32_t i = 0; i < N_ROLES; i++)
            if (has_vector(s, g, layer, &roles[i]))
                vectors +=
                    vector_bytes(length_of(s, roles[i].length) * rows_of(s, roles[i].length));
    /* A table of biases for each tensor of them. */
    vectors += n * vector_bytes((int64_t)s->n_heads * bias_ld(s));
    size_t readers = n_readers * (MATRICES_PER_READER * sizeof(weight) + sizeof(reader_layout));
    size_t parts = n * PARTS_PER_LAYER * arena_size(sizeof(gguf_tensor));
    return n * (MATRICES_PER_LAYER * sizeof(weight) + sizeof(layer_layout)) +
           arena_size(n_expert_layers(s) * sizeof(expert_layer)) +
           MATRICES_AROUND * sizeof(weight) + readers + parts +
           n_vectors_most(s) * sizeof(layout_vector) + vectors + gguf_n_tensors(g) +
           (size_t)(s->n_ropes * s->n_rot) * sizeof(double) +
           program_bytes(s->n_layers, s->encoder.n_readers) + 8 * ARENA_ALIGN;
}

typedef struct binder {
    model_layout *l;
    const gguf *g;
    const kernel_table *kernels;
    arena *a;
    bool *bound; /* [gguf_n_tensors]: it has a role */
    int32_t layer;
    drey_error *err;
} binder;

/* Of a file that may hold any number. */
enum { DIMS_TEXT = 96 };

static const char *dims_text(char out[DIMS_TEXT], const int64_t dims[3])
{
    int n = snprintf(out, DIMS_TEXT, "[%lld, %lld", (long long)dims[0], (long long)dims[1]);
    if (dims[2] != 1)
        n += snprintf(out + n, DIMS_TEXT - (size_t)n, ", %lld", (long long)dims[2]);
    snprintf(out + n, DIMS_TEXT - (size_t)n, "]");
    return out;
}

static drey_status find_deep(const binder *b, const char *name, const int64_t dims[3],
                             const gguf_tensor **out)
{
    const gguf_tensor *t = gguf_find_tensor(b->g, name);
    if (!t)
        FAIL(b->err, DREY_ERR_FORMAT,
             "tensor %s is missing; the file is incomplete or of another architecture", name);
    if (memcmp(t->dims, dims, 3 * sizeof *dims) != 0 || t->dims[3] != 1) {
        char has[DIMS_TEXT], wants[DIMS_TEXT];
        FAIL(b->err, DREY_ERR_FORMAT, "tensor %s has shape %s instead of %s; the file is broken",
             name, dims_text(has, t->dims), dims_text(wants, dims));
    }
    b->bound[t - gguf_tensor_at(b->g, 0)] = true;
    *out = t;
    return DREY_OK;
}

static drey_status find(const binder *b, const char *name, int64_t d0, int64_t d1,
                        const gguf_tensor **out)
{
    return find_deep(b, name, (int64_t[3]){d0, d1, 1}, out);
}

static drey_status bind_matrix(binder *b, const char *role, int64_t rows, int64_t k, weight **out)
{
    char name[64];
    const gguf_tensor *t;
    TRY(find(b, layer_tensor(&b->l->shape, name, b->layer, role), k, rows, &t));
    *out = &b->l->matrix[b->l->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

/* Rows of a tensor that holds several matrices, as a separate tensor by the usual name. */
static drey_status bind_rows(binder *b, const gguf_tensor *of, int64_t first, int64_t rows,
                             const char *name, weight **out)
{
    gguf_tensor *t = arena_take(b->a, sizeof *t);
    uint64_t row_bytes = of->n_bytes / (uint64_t)of->dims[1];
    *t = *of;
    layer_tensor(&b->l->shape, t->name, b->layer, name);
    t->dims[1] = rows;
    t->offset += (uint64_t)first * row_bytes;
    t->n_bytes = (uint64_t)rows * row_bytes;
    *out = &b->l->matrix[b->l->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

static drey_status bind_qkv(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    int64_t n_q = length_of(s, LENGTH_Q), n_kv = length_of(s, LENGTH_KV), all = n_q + 2 * n_kv;
    int64_t k = s->taps.n ? 2 * s->n_embd : s->n_embd;
    if (!has_tensor(s, b->g, b->layer, "attn_qkv.weight")) {
        TRY(bind_matrix(b, "attn_q.weight", n_q, k, &y->q));
        TRY(bind_matrix(b, "attn_k.weight", n_kv, k, &y->k));
        return bind_matrix(b, "attn_v.weight", n_kv, k, &y->v);
    }
    char name[64];
    const gguf_tensor *t;
    TRY(find(b, layer_tensor(s, name, b->layer, "attn_qkv.weight"), k, all, &t));
    TRY(bind_rows(b, t, 0, n_q, "attn_q.weight", &y->q));
    TRY(bind_rows(b, t, n_q, n_kv, "attn_k.weight", &y->k));
    return bind_rows(b, t, n_q + n_kv, n_kv, "attn_v.weight", &y->v);
}

/* Feed-forward matrices of n_ff by these names. */
static drey_status bind_gated(binder *b, layer_layout *y, int32_t n_ff, const char *const name[3])
{
    const model_shape *s = &b->l->shape;
    if (name[0])
        TRY(bind_matrix(b, name[0], n_ff, s->n_embd, &y->gate));
    TRY(bind_matrix(b, name[1], n_ff, s->n_embd, &y->up));
    return bind_matrix(b, name[2], s->n_embd, n_ff, &y->down);
}

static drey_status bind_dense(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    char name[64];
    const gguf_tensor *t;
    if (!s->arch->gate_in_up)
        return bind_gated(
            b, y, s->n_ff,
            (const char *const[3]){has_gate(s, b->g, b->layer) ? "ffn_gate.weight" : NULL,
                                   "ffn_up.weight", "ffn_down.weight"});
    TRY(find(b, layer_tensor(s, name, b->layer, "ffn_up.weight"), s->n_embd, 2 * s->n_ff, &t));
    TRY(bind_rows(b, t, 0, s->n_ff, "ffn_gate.weight", &y->gate));
    TRY(bind_rows(b, t, s->n_ff, s->n_ff, "ffn_up.weight", &y->up));
    return bind_matrix(b, "ffn_down.weight", s->n_embd, s->n_ff, &y->down);
}

static drey_status bind_experts(binder *b, layer_layout *y)
{
    static const char *const shared[3] = {"ffn_gate_shexp.weight", "ffn_up_shexp.weight",
                                          "ffn_down_shexp.weight"};
    const model_shape *s = &b->l->shape;
    const expert_shape *e = &s->experts;
    TRY(bind_matrix(b, "ffn_gate_inp.weight", e->router.n_experts, s->n_embd, &y->experts.router));
    if (e->n_ff_shared > 0)
        TRY(bind_gated(b, y, e->n_ff_shared, shared));
    return DREY_OK;
}

/* n neighbouring matrices of each expert, which one tensor has. */
static drey_status bind_slot(binder *b, layer_layout *y, int32_t matrix, int32_t n,
                             const char *role, int64_t k, int64_t rows)
{
    char name[64];
    const gguf_tensor *t;
    TRY(find_deep(b, layer_tensor(&b->l->shape, name, b->layer, role),
                  (int64_t[3]){k, n * rows, b->l->shape.experts.router.n_experts}, &t));
    return expert_matrices_describe(y->experts.of, matrix, n, &b->l->matrix[b->l->n_matrices++], t,
                                    b->kernels, b->err);
}

/* The matrices of experts, which are in no pass. */
static drey_status bind_slots(binder *b, layer_layout *y)
{
    static const char *const names[EXPERT_MATRICES] = {"ffn_gate_exps.weight", "ffn_up_exps.weight",
                                                       "ffn_down_exps.weight"};
    const model_shape *s = &b->l->shape;
    int32_t n_ff = s->experts.n_ff;
    if (!layer_has_experts(s, b->layer))
        return DREY_OK;
    y->experts.of = &b->l->experts[b->layer];
    y->experts.of->n_experts = s->experts.router.n_experts;
    bool fused = has_tensor(s, b->g, b->layer, "ffn_gate_up_exps.weight");
    if (fused)
        TRY(bind_slot(b, y, EXPERT_GATE, 2, "ffn_gate_up_exps.weight", s->n_embd, n_ff));
    for (int32_t i = fused ? EXPERT_DOWN : EXPERT_GATE; i < EXPERT_MATRICES; i++) {
        bool down = i == EXPERT_DOWN;
        TRY(bind_slot(b, y, i, 1, names[i], down ? n_ff : s->n_embd, down ? s->n_embd : n_ff));
    }
    return DREY_OK;
}

static drey_status bind_ffn(binder *b, layer_layout *y)
{
    return layer_has_experts(&b->l->shape, b->layer) ? bind_experts(b, y) : bind_dense(b, y);
}

static drey_status bind_cross(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    int64_t n_q = length_of(s, LENGTH_Q);
    TRY(bind_matrix(b, "cross_attn_q.weight", n_q, s->n_embd, &y->encdec.cross_q));
    return bind_matrix(b, "cross_attn_o.weight", s->n_embd, n_q, &y->encdec.cross_o);
}

static drey_status bind_whole(binder *b, const char *name, int64_t k, int64_t rows, weight **out)
{
    const gguf_tensor *t;
    TRY(find(b, name, k, rows, &t));
    *out = &b->l->matrix[b->l->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

/* In front of the pass's matrices: its rows are looked up, all of it is never multiplied. */
static drey_status bind_embedding(binder *b)
{
    const model_shape *s = &b->l->shape;
    TRY(bind_whole(b, "token_embd.weight", s->n_embd, s->n_vocab, &b->l->embedding));
    b->l->embedding->stays.in_pass = false;
    b->l->n_looked_up = 1;
    return DREY_OK;
}

static drey_status bind_vectors_of(binder *b, const char *name, int64_t n, int64_t rows,
                                   float **out)
{
    const gguf_tensor *t;
    TRY(find(b, name, n, rows, &t));
    *out = arena_take(b->a, (size_t)(n * rows) * sizeof(float));
    b->l->vector[b->l->n_vectors++] = (layout_vector){t, *out, b->layer};
    return DREY_OK;
}

static drey_status bind_vector(binder *b, const char *name, int64_t n, float **out)
{
    return bind_vectors_of(b, name, n, 1, out);
}

/* The biases of a layer's buckets, and their table by distance, which is filled later. */
static drey_status bind_buckets(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    char name[64];
    layer_tensor(s, name, b->layer, "attn_rel_b.weight");
    if (!gguf_find_tensor(b->g, name))
        FAIL(b->err, DREY_ERR_FORMAT,
             "tensor %s is missing, which has the biases of relative positions; convert the model "
             "again",
             name);
    TRY(bind_vectors_of(b, name, s->n_heads, s->encoder.n_buckets, &y->encdec.buckets));
    int32_t ld = bias_ld(s);
    y->encdec.by_distance = arena_take(b->a, (size_t)(s->n_heads * ld) * sizeof(float));
    y->encdec.bias = (attend_bias){.of = y->encdec.by_distance,
                                   .ld = ld,
                                   .n_after = shape_encodes(s) ? BUCKETS_END : 0,
                                   .n_before = BUCKETS_END};
    return DREY_OK;
}

static drey_status bind_vectors(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    for (int32_t i = 0; i < N_ROLES; i++) {
        char name[64];
        float **out = (float **)(void *)((char *)y + roles[i].member);
        if (!has_vector(s, b->g, b->layer, &roles[i]))
            continue;
        if (roles[i].need == NEED_BUCKETS)
            TRY(bind_buckets(b, y));
        else
            TRY(bind_vectors_of(b, layer_tensor(s, name, b->layer, roles[i].name),
                                length_of(s, roles[i].length), rows_of(s, roles[i].length), out));
    }
    if (y->q_bias && has_tensor(s, b->g, b->layer, "attn_qkv.weight")) {
        y->k_bias = y->q_bias + length_of(s, LENGTH_Q);
        y->v_bias = y->k_bias + length_of(s, LENGTH_KV);
    }
    return DREY_OK;
}

static drey_status bind_layer(binder *b, layer_layout *y)
{
    const model_shape *s = &b->l->shape;
    bool local = layer_is_local(s, b->layer);
    y->positions.window = local ? s->window : 0;
    y->positions.rope = local && s->n_ropes > 1 ? ROPE_OF_LOCAL : ROPE_OF_ALL;
    y->first = &b->l->matrix[b->l->n_matrices];
    TRY(bind_qkv(b, y));
    const char *out = s->encoder.n_layers > 0 ? "attn_o.weight" : "attn_output.weight";
    TRY(bind_matrix(b, out, s->n_embd, length_of(s, LENGTH_Q), &y->o));
    if (shape_reads(s))
        TRY(bind_cross(b, y));
    TRY(bind_ffn(b, y));
    TRY(bind_vectors(b, y));
    if (y->encdec.bias.of == NULL)
        y->encdec.bias = b->l->layer[0].encdec.bias;
    return DREY_OK;
}

/* The tensor belongs to the other half of a model with an encoder, or to none: what T5's
 * cross-attention has as buckets is used by no implementation. */
static bool is_elsewhere(const model_shape *s, const char *name)
{
    if (s->encoder.n_layers == 0)
        return false;
    bool of_encoder = strncmp(name, "enc.", 4) == 0 || strstr(name, ".cross_attn_k.") ||
                      strstr(name, ".cross_attn_v.");
    return of_encoder != shape_encodes(s) || strstr(name, ".cross_attn_rel_b.");
}

/* Frequencies of the rotation, which follow from its base, as older files have them for each layer;
 * and blocks for multi-token prediction. */
static bool is_needless(const binder *b, const char *name)
{
    static const char *const endings[] = {".inv_freq", ".attn_rot_embd", ".attn_rot_embd.weight"};
    const model_shape *s = &b->l->shape;
    const int32_t n_mtp = arch_mtp_blocks(s->arch, b->g);
    const size_t n = strlen(name);
    char *end;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (n > strlen(endings[i]) && strcmp(name + n - strlen(endings[i]), endings[i]) == 0)
            return true;
    if (n_mtp == 0 || strncmp(name, "blk.", 4) != 0)
        return false;
    long block = strtol(name + 4, &end, 10);
    return *end == '.' && block >= s->n_layers && block < (long)s->n_layers + n_mtp;
}

/* A tensor that is not used would be a wrong text without a message. */
static drey_status refuse_unbound(const binder *b)
{
    for (uint64_t i = 0; i < gguf_n_tensors(b->g); i++)
        if (!b->bound[i] && !is_elsewhere(&b->l->shape, gguf_tensor_at(b->g, i)->name) &&
            !is_needless(b, gguf_tensor_at(b->g, i)->name))
            FAIL(b->err, DREY_ERR_UNSUPPORTED,
                 "tensor %s is not supported by drey for architecture %s: a text computed without "
                 "it would be wrong",
                 gguf_tensor_at(b->g, i)->name, b->l->shape.arch->name);
    return DREY_OK;
}

/* What a layer after a target has besides a layer: d2t is read by the drafter. */
static drey_status bind_taps(binder *b)
{
    const model_shape *s = &b->l->shape;
    const gguf_tensor *t;
    TRY(bind_whole(b, "fc.weight", tapped_numbers(s), s->n_embd, &b->l->fuse));
    if (s->taps.n_ids == s->n_vocab && !gguf_find_tensor(b->g, "d2t"))
        return DREY_OK;
    TRY(find(b, "d2t", s->taps.n_ids, 1, &t));
    if (t->type != TYPE_I64)
        FAIL(b->err, DREY_ERR_FORMAT, "tensor d2t has to be of type I64; the file is broken");
    return DREY_OK;
}

/* A norm outside of the layers, of a name after the part's. */
static drey_status bind_norm(binder *b, const char *what, float **norm, float **bias)
{
    const model_shape *s = &b->l->shape;
    char name[64];
    snprintf(name, sizeof name, "%s%s.weight", part_prefix(s), what);
    TRY(bind_vector(b, name, s->n_embd, norm));
    snprintf(name, sizeof name, "%s%s.bias", part_prefix(s), what);
    return s->arch->layer_norm ? bind_vector(b, name, s->n_embd, bias) : DREY_OK;
}

/* Vectors in front of the layers and after them. */
static drey_status bind_ends(binder *b)
{
    model_layout *l = b->l;
    const model_shape *s = &l->shape;
    char name[64];
    snprintf(name, sizeof name, "%sposition_embd.weight", part_prefix(s));
    if (s->arch->rope == ROPE_NONE)
        TRY(bind_vectors_of(b, name, s->n_embd, s->n_context_train, &l->positions));
    if (s->arch->norms_sums)
        return bind_norm(b, "token_embd_norm", &l->embd_norm, &l->embd_norm_bias);
    return bind_norm(b, "output_norm", &l->final_norm, &l->final_norm_bias);
}

static drey_status bind_model(binder *b)
{
    model_layout *l = b->l;
    const model_shape *s = &l->shape;
    const gguf *g = b->g;
    const gguf_tensor *t;
    l->tied = gguf_find_tensor(g, "output.weight") == NULL;
    if (!l->tied && !(s->taps.n && !gguf_find_tensor(g, "token_embd.weight")))
        TRY(bind_embedding(b));
    if (s->taps.n)
        TRY(bind_taps(b));
    for (b->layer = 0; b->layer < s->n_layers; b->layer++)
        TRY(bind_slots(b, &l->layer[b->layer]));
    for (b->layer = 0; b->layer < s->n_layers; b->layer++)
        TRY(bind_layer(b, &l->layer[b->layer]));
    if (s->n_rot > 0 && gguf_find_tensor(g, "rope_freqs.weight"))
        TRY(find(b, "rope_freqs.weight", s->n_rot / 2, 1, &t));
    if (s->longrope) {
        TRY(find(b, "rope_factors_short.weight", s->n_rot / 2, 1, &t));
        TRY(find(b, "rope_factors_long.weight", s->n_rot / 2, 1, &t));
    }
    TRY(bind_ends(b));
    if (has_head_bias(s, g))
        TRY(bind_vector(b, "output.bias", s->n_vocab, &l->head_bias));
    TRY(bind_whole(b, l->tied ? "token_embd.weight" : "output.weight", s->n_embd, l->n_logits,
                   &l->head));
    if (l->tied)
        l->embedding = l->head;
    return refuse_unbound(b);
}

/* In the order of a pass: the layers, then what each of the decoder's layers reads. */
static drey_status bind_encoder(binder *b)
{
    model_layout *l = b->l;
    const model_shape *s = &l->shape;
    int64_t n_kv = length_of(s, LENGTH_KV);
    TRY(bind_embedding(b));
    for (b->layer = 0; b->layer < s->n_layers; b->layer++)
        TRY(bind_layer(b, &l->layer[b->layer]));
    TRY(bind_ends(b));
    for (int32_t i = 0; i < s->encoder.n_readers; i++) {
        char name[64];
        reader_layout *reader = &l->readers[i];
        weight **const of[] = {&reader->k, &reader->v};
        float **const bias[] = {&reader->k_bias, &reader->v_bias};
        for (int32_t j = 0; j < 2; j++) {
            snprintf(name, sizeof name, "dec.blk.%d.cross_attn_%c.weight", i, j ? 'v' : 'k');
            TRY(bind_whole(b, name, s->n_embd, n_kv, of[j]));
            snprintf(name, sizeof name, "dec.blk.%d.cross_attn_%c.bias", i, j ? 'v' : 'k');
            if (gguf_find_tensor(b->g, name))
                TRY(bind_vector(b, name, n_kv, bias[j]));
        }
    }
    l->head = &l->matrix[l->n_matrices - 1];
    return refuse_unbound(b);
}

static drey_status layout_init(model_layout *l, const model_shape *shape, const gguf *g,
                               const kernel_table *kernels, arena *a, drey_error *err)
{
    *l = (model_layout){.shape = *shape};
    const model_shape *s = &l->shape;
    size_t n_readers = (size_t)s->encoder.n_readers;
    l->n_logits = s->taps.n ? s->taps.n_ids : s->n_vocab;
    binder b = {.l = l, .g = g, .kernels = kernels, .a = a, .err = err};
    size_t n_layers = (size_t)s->n_layers;
    b.bound = arena_take(a, gguf_n_tensors(g) * sizeof *b.bound);
    l->layer = arena_take(a, n_layers * sizeof *l->layer);
    l->matrix = arena_take(
        a, (n_layers * MATRICES_PER_LAYER + n_readers * MATRICES_PER_READER + MATRICES_AROUND) *
               sizeof *l->matrix);
    l->readers = arena_take(a, n_readers * sizeof *l->readers);
    if (n_expert_layers(s) > 0)
        l->experts = arena_take(a, n_expert_layers(s) * sizeof *l->experts);
    l->vector = arena_take(a, n_vectors_most(s) * sizeof *l->vector);
    for (int32_t i = 0; i < s->n_ropes; i++)
        l->rope_frequency[i] = arena_take(a, (size_t)s->n_rot / 2 * sizeof(double));
    program_init(&l->program, s->n_layers, s->encoder.n_readers, a);
    TRY(error_in_file(err, gguf_part_path(g, 0),
                      shape_encodes(s) ? bind_encoder(&b) : bind_model(&b)));
    program_write(&l->program, l);
    return DREY_OK;
}

drey_status model_layout_init(model_layout *l, const gguf *g, const kernel_table *kernels, arena *a,
                              drey_error *err)
{
    model_shape shape;
    TRY(model_shape_read(&shape, g, err));
    return layout_init(l, &shape, g, kernels, a, err);
}

drey_status encoder_layout_init(model_layout *l, const model_shape *decoder, const gguf *g,
                                const kernel_table *kernels, arena *a, drey_error *err)
{
    model_shape shape = shape_of_encoder(decoder);
    return layout_init(l, &shape, g, kernels, a, err);
}

const gguf_tensor *model_head_tensor(const gguf *g)
{
    const gguf_tensor *own = gguf_find_tensor(g, "output.weight");
    return own ? own : gguf_find_tensor(g, "token_embd.weight");
}

void model_layout_slice(model_layout *l, int32_t n_ids, int32_t room)
{
    weight_cut(l->head, n_ids);
    l->n_logits = n_ids + room;
}

static void keep_vectors(model_layout *l, int32_t first, int32_t end, bool inner)
{
    int32_t n = 0, none = l->shape.n_layers;
    for (int32_t i = 0; i < l->n_vectors; i++) {
        int32_t layer = l->vector[i].layer;
        if ((layer >= first && layer < end) || (layer == none && !inner))
            l->vector[n++] = l->vector[i];
    }
    l->n_vectors = n;
}

/* Moves what stays of the matrices in front of a pass's to where those of the first layer begin: of
 * experts those of layers [first, end), and the embedding. Returns the first of them. */
static weight *move_looked_up(model_layout *l, int32_t first, int32_t end, bool inner)
{
    weight *to = l->layer[first].first;
    const weight *from = NULL;
    for (int32_t i = (end - first) * EXPERT_MATRICES - 1; l->experts && i >= 0; i--) {
        expert_layer *layer = &l->experts[first + i / EXPERT_MATRICES];
        expert_matrix *m = &layer->matrix[i % EXPERT_MATRICES];
        if (layer->n_experts == 0)
            continue;
        if (m->all != from) { /* gate and up may be in one */
            from = m->all;
            *--to = *from;
        }
        m->all = to;
    }
    if (!inner && !l->tied) {
        *--to = *l->embedding;
        l->embedding = to;
    }
    return to;
}

/* A mixture's first layers may have none. */
static void keep_experts(model_layout *l, int32_t first, int32_t n)
{
    expert_shape *e = &l->shape.experts;
    bool any = l->experts && experts_layers(l->experts + first, n) > 0;
    l->experts = any ? l->experts + first : NULL;
    e->n_dense = max_i32(e->n_dense - first, 0);
}

void model_layout_keep(model_layout *l, int32_t first, int32_t n, bool inner)
{
    int32_t end = first + n;
    weight *after = end < l->shape.n_layers ? l->layer[end].first : l->head;
    assert(first >= 0 && n >= inner && end <= l->shape.n_layers);
    assert(inner || first == 0);
    keep_vectors(l, first, end, inner);
    l->matrix = move_looked_up(l, first, end, inner);
    if (!inner) { /* the head comes after the last layer that stays */
        if (after != l->head)
            *after = *l->head;
        l->embedding = l->tied ? after : l->embedding;
        l->head = after++;
    } else {
        l->head = after - 1;
        l->embedding = NULL;
        l->n_looked_up = 0;
        l->tied = false;
        l->n_logits = GROUP_ROWS; /* nobody asks for them */
        l->inner = true;
    }
    l->n_matrices = (int32_t)(after - l->matrix);
    keep_experts(l, first, n);
    l->layer += first;
    l->shape.n_layers = n;
    program_write(&l->program, l);
}

size_t model_layout_view_bytes(const model_layout *of)
{
    return arena_size((size_t)of->shape.n_layers * sizeof(layer_layout));
}

void model_layout_view(model_layout *view, const model_layout *of, weight *matrix, arena *a)
{
    size_t n_layers = (size_t)of->shape.n_layers;
    *view = *of;
    view->matrix = matrix;
    view->embedding = matrix + (of->embedding - of->matrix);
    view->head = matrix + (of->head - of->matrix);
    view->layer = arena_take(a, n_layers * sizeof *view->layer);
    memcpy(view->layer, of->layer, n_layers * sizeof *view->layer);
    for (size_t i = 0; i < n_layers; i++) {
        layer_layout *y = &view->layer[i];
        weight **const role[] = {&y->first,
                                 &y->q,
                                 &y->k,
                                 &y->v,
                                 &y->o,
                                 &y->gate,
                                 &y->up,
                                 &y->down,
                                 &y->encdec.cross_q,
                                 &y->encdec.cross_o};
        for (size_t j = 0; j < sizeof role / sizeof *role; j++)
            *role[j] = *role[j] ? matrix + (*role[j] - of->matrix) : NULL;
    }
}

static drey_status read_vector(const layout_vector *v, const gguf *g, weights *w, drey_error *err)
{
    TRY(weights_read_vector(w, v->tensor, v->numbers, err));
    for (int64_t i = 0; i < v->tensor->dims[0] * v->tensor->dims[1]; i++)
        if (!isfinite(v->numbers[i]))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s: tensor %s holds numbers that are not finite: the file is damaged, fetch it "
                 "again",
                 SHOWN_PATH(gguf_part_path(g, v->tensor->part)), v->tensor->name);
    return DREY_OK;
}

/* The bucket of a distance d >= 0 of n buckets: the first half are distances, the others are wider
 * the further away. (Raffel et al. 2020, 2.1, with the numbers of their code.) */
static int32_t bucket_of(int32_t d, int32_t n)
{
    const double rounding = 1e-6; /* at a power of two the quotient is a whole number */
    int32_t exact = n / 2;
    if (d < exact)
        return d;
    double wide = log_f64((double)d / exact) / log_f64((double)BUCKETS_END / exact);
    return min_i32(exact + (int32_t)(wide * (n - exact) + rounding), n - 1);
}

/* A layer's biases by distance. In an encoder what comes after a row has the second half of the
 * buckets. */
static void fill_bias(const model_shape *s, const layer_layout *y)
{
    const attend_bias *bias = &y->encdec.bias;
    int32_t n = shape_encodes(s) ? s->encoder.n_buckets / 2 : s->encoder.n_buckets;
    for (int32_t head = 0; head < s->n_heads; head++)
        for (int32_t d = -bias->n_after; d <= bias->n_before; d++) {
            int32_t bucket = d < 0 ? n + bucket_of(-d, n) : bucket_of(d, n);
            y->encdec.by_distance[head * bias->ld + bias->n_after + d] =
                y->encdec.buckets[bucket * s->n_heads + head];
        }
}

drey_status model_layout_read(model_layout *l, const gguf *g, weights *w, drey_error *err)
{
    for (int32_t i = 0; i < l->n_vectors; i++)
        TRY(read_vector(&l->vector[i], g, w, err));
    for (int32_t i = 0; i < l->shape.n_layers; i++)
        if (l->layer[i].encdec.buckets)
            fill_bias(&l->shape, &l->layer[i]);
    float factors[512];
    const char *name = l->shape.longrope ? "rope_factors_short.weight" : "rope_freqs.weight";
    const gguf_tensor *t = l->shape.n_rot > 0 ? gguf_find_tensor(g, name) : NULL;
    if (t)
        TRY(weights_read_vector(w, t, factors, err));
    for (int32_t i = 0; t && i < l->shape.n_rot / 2; i++)
        if (!(factors[i] >= 1e-6f && factors[i] <= 1e6f))
            FAIL(err, DREY_ERR_FORMAT, "%s: tensor %s holds %g; the file is broken",
                 SHOWN_PATH(gguf_part_path(g, t->part)), name, (double)factors[i]);
    for (int32_t i = 0; i < l->shape.n_ropes; i++)
        l->rope_scale[i] = rope_frequencies(&l->shape, &l->shape.rope[i], t ? factors : NULL,
                                            l->rope_frequency[i]);
    return DREY_OK;
}
