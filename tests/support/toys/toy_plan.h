/* The plan of a toy's tensors, for the files that make it: toy.c, and one for each kind of layer
 * that needs more than a few lines. */
#pragma once

#include "support/toy.h"

enum { max_plans = 4096 };

/* A tensor to be written: matrices are noisy blocks, the others F32 around `centre`. */
typedef struct tensor_plan {
    char name[64];
    uint32_t type;
    int64_t dims[3]; /* 1 from n_dims on */
    uint32_t n_dims;
    float centre, deviation;
    int64_t n_usual; /* numbers after the first so many are enormous; 0: none */
    int32_t part;
} tensor_plan;

typedef struct model_plan {
    const toy_options *options;
    tensor_plan tensors[max_plans];
    int32_t n_tensors, n_matrices;
    int64_t n_vocab;
} model_plan;

/* "blk.LAYER.WHAT" in out, which is returned. */
const char *layer_name(char out[64], int32_t layer, const char *what);
/* Returns the weight of matrices that write to the residual stream: each further layer weighs
 * less. */
float layer_weight(const toy_options *o, int32_t layer);
/* A matrix [n_rows][n_columns] whose product with a row of deviation 1 has deviation gain. */
void add_matrix(model_plan *m, const char *name, int64_t n_columns, int64_t n_rows, float gain);
/* The same for each of n experts or heads, in one tensor; 0: as add_matrix. */
void add_matrices_of(model_plan *m, const char *name, int64_t n_columns, int64_t n_rows, int32_t n,
                     float gain);
/* n floats around a centre. */
void add_vector(model_plan *m, const char *name, int64_t n, float centre, float deviation);
/* A table of floats with a row for each of n things. */
void add_table(model_plan *m, const char *name, int64_t n_columns, int64_t n, float deviation);

/* ---- Gated delta nets (toy_delta.c) ---- */

bool toy_has_delta(const toy_options *o, int32_t layer);
void plan_delta(model_plan *m, int32_t layer);
/* Returns the number of keys written. */
uint64_t put_delta_keys(gguf_writer *w, const toy_options *o);

/* ---- Hyper connections and n-grams (toy_hyper.c) ---- */

/* Plans them, which stand for norms; false: the toy has none. */
bool plan_hyper(model_plan *m);
/* Returns the number of keys written. */
uint64_t put_hyper_keys(gguf_writer *w, const toy_options *o);

/* ---- State spaces (toy_mamba.c) ---- */

bool toy_has_mamba(const toy_options *o, int32_t layer);
void plan_mamba(model_plan *m, int32_t layer);
/* Returns the number of keys written. */
uint64_t put_mamba_keys(gguf_writer *w, const toy_options *o);

/* ---- Latent attention (toy_latent.c) ---- */

void plan_latent(model_plan *m, int32_t layer);
/* Returns the number of keys written. */
uint64_t put_latent_keys(gguf_writer *w, const toy_options *o);

/* ---- Kinds of layers (toy_kinds.c) ---- */

/* The layer sees all. */
bool toy_sees_all(const toy_options *o, int32_t layer);
/* Returns whether it reads another one's keys and values. */
bool toy_shares(const toy_options *o, int32_t layer);
/* Plans what a layer has after its feed-forward part, and the norms of that part and of experts. */
void plan_layer_end(model_plan *m, int32_t layer, bool experts);
/* Plans embeddings by layer. */
void plan_embeddings(model_plan *m);
/* Returns the number of keys written. */
uint64_t put_kind_keys(gguf_writer *w, const toy_options *o, int32_t head_dim);
