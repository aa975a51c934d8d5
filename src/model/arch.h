/* Architectures as data: what distinguishes one decoder-only model from another, and the shapes
 * that a file states. Adding an architecture is an entry in arch.c's table (ARCHITECTURE.md says
 * how). */
#ifndef DREY_MODEL_ARCH_H
#define DREY_MODEL_ARCH_H

#include "gguf/gguf.h"

typedef struct arch {
    const char *name; /* general.architecture, and the prefix of its keys */
    bool rope_neox;   /* rotate halves (i, i + n/2); else neighbours (2 i, 2 i + 1) */
} arch;

const arch *arch_find(gguf_string name);
/* The names, for messages, "llama, qwen2" and so on, written to out, which is returned. */
const char *arch_names(char *out, size_t capacity);

typedef enum rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_YARN } rope_scaling;

/* Letters used beside tensors: D n_embd, H n_heads, K n_heads_kv, S head_dim, F n_ff, V n_vocab. */
typedef struct model_shape {
    const arch *arch;
    int32_t n_layers, n_embd, n_heads, n_heads_kv, head_dim, n_ff, n_vocab;
    int32_t n_rot; /* rotated numbers of a head, even */
    int32_t n_context_train;
    float norm_eps;
    double rope_base;
    rope_scaling scaling;
    double rope_factor;      /* how much longer than the original context */
    double rope_attn_factor; /* YaRN */
    int32_t rope_original_context;
} model_shape;

/* Reads and checks the shape keys; n_vocab comes from the embedding tensor. */
drey_status model_shape_read(model_shape *s, const gguf *g, drey_error *err);

/* Angle per position of each of the n_rot / 2 pairs; factors: rope_freqs [n_rot / 2] or NULL.
 * Returns what cosines and sines are multiplied with (YaRN's attention scale, else 1). */
double rope_frequencies(const model_shape *s, const float *factors, double *out);

#endif
