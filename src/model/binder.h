/* Finding a model's tensors for those who need them, block by block (block/block.h).
 *
 * A tensor is looked for by name and must have the shape that its role has. Matrices are listed in
 * the order in which they are bound, which is that of a pass. All functions walk twice over a
 * model: without an arena they only count what will be needed. Those that return DREY_ERR_FORMAT or
 * DREY_ERR_UNSUPPORTED name the tensor. */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "model/layout.h"

typedef struct binder {
    model_layout *layout;
    const gguf *g;
    const kernel_table *kernels;
    arena *arena; /* NULL: counts */
    bool *bound;  /* [gguf_n_tensors]: it has a role */
    int32_t layer;
    size_t n_bytes;      /* bytes of vectors, parts of tensors and blocks' own, counted */
    max_align_t own[32]; /* memory of a block, while it counts */
    drey_error *err;
} binder;

/* "blk.N.ROLE" of the present layer, with what the half of a model with an encoder has in front. */
const char *binder_name(const binder *b, char out[64], const char *role);
/* The prefix of names in files of models with an encoder: "enc.", "dec." or nothing. */
const char *binder_half(const binder *b);
bool binder_has(const binder *b, const char *role);
/* Reads a number of the present layer: the key has one for each, or one for all. */
drey_status binder_number(const binder *b, const char *key, float *out);
/* The same under the architecture's prefix, if there is one. */
drey_status binder_number_if(const binder *b, const char *suffix, float *out);
/* Finds a tensor of this name and shape. */
drey_status binder_find(const binder *b, const char *name, const int64_t dims[3],
                        const gguf_tensor **out);

/* ---- Of the present layer ---- */

/* A matrix [rows][k], with its scale if the file has one. */
drey_status bind_matrix(binder *b, const char *role, int64_t rows, int64_t k, weight **out);
/* Rows [first, first + rows) of a tensor [of_rows][k], as a matrix by another role's name. */
drey_status bind_rows(binder *b, const char *of, int64_t of_rows, int64_t first, int64_t rows,
                      int64_t k, const char *role, weight **out);
/* The same of a tensor that belongs to no layer. */
drey_status bind_rows_of(binder *b, const char *whole, int64_t of_rows, int64_t first, int64_t rows,
                         int64_t k, const char *role, weight **out);
/* A matrix [rows][k] of each head, whose results begin y_ld apart. */
drey_status bind_heads(binder *b, const char *role, int32_t n_heads, int64_t rows, int64_t k,
                       int32_t y_ld, weight **out);
/* Numbers [rows][n], one after the other, which model_layout_read reads. */
drey_status bind_vectors(binder *b, const char *role, int64_t n, int64_t rows, float **out);
drey_status bind_vector(binder *b, const char *role, int64_t n, float **out);
/* The same as numbers [n][rows]. */
drey_status bind_turned(binder *b, const char *role, int64_t n, int64_t rows, float **out);
/* A matrix [rows][k] of any type as floats. */
drey_status bind_floats(binder *b, const char *role, int64_t k, int64_t rows, float **out);
/* A vector where the file has it. */
drey_status bind_vector_if(binder *b, const char *role, int64_t n, float **out);
/* Room for n numbers that come from elsewhere. */
void bind_room(binder *b, int64_t n, float **out);
/* n numbers of 0; of 1. */
void bind_zeros(binder *b, int64_t n, float **out);
void bind_ones(binder *b, int64_t n, float **out);
/* Memory of a block's own tensors: layer_layout.own. */
void *bind_own(binder *b, layer_layout *y, size_t n_bytes);
/* n neighbouring matrices [rows][k] of each of the layer's experts, which one tensor has. */
drey_status bind_experts_of(binder *b, expert_layer *of, int32_t matrix, int32_t n,
                            const char *role, int64_t k, int64_t rows);

/* ---- Of none ---- */

drey_status bind_whole(binder *b, const char *name, int64_t k, int64_t rows, weight **out);
drey_status bind_whole_vectors(binder *b, const char *name, int64_t n, int64_t rows, float **out);
/* model_layout.looked_up: a matrix [rows][k] that stays on the disk. */
drey_status bind_looked_up(binder *b, const char *name, int64_t k, int64_t rows);
