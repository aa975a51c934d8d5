/* A product of up to PRODUCTS_MAX matrices with the same activations, or of experts with each its
 * own, which can be left and continued: see product.c for its states. One at a time in a model's
 * weights. */
#pragma once

#include "drey/drey_model.h"
#include "kernel/kernel.h"
#include "os/cpu_tuning.h"
#include "weights/weights.h"

typedef struct arena arena;
typedef struct pool pool;
typedef struct unit_set unit_set;
typedef struct weight weight;
typedef struct weights weights;

/* y[t * ldy + row] = matrix row . activation row t. y has room for n_groups * GROUP_ROWS numbers
 * per row. */
typedef struct product {
    weight *matrix;
    float *y;
    int64_t ldy;
} product;

/* Bytes of activations from one head's to the next one's (matrix_form.n_heads). */
static inline size_t product_head_bytes(act_kind kind, int32_t n, int64_t k)
{
    return (act_bytes(kind, n, k) + 63) / 64 * 64;
}

typedef enum product_state {
    PRODUCT_DONE,
    PRODUCT_STARVED, /* nothing that is left has arrived */
    PRODUCT_PAUSED   /* the time given to it is over */
} product_state;

/* Product with an expert, whose matrix is in a slot, or on its way to it (experts.h). */
typedef struct expert_product {
    product p;         /* product with a matrix that is `resident` */
    void *const *acts; /* [ACT_KINDS], borrowed until the product is done */
    int32_t n;         /* rows, at least one */
    int64_t seq;       /* number of its first piece; all pieces were appended; -1: it is there */
} expert_product;

/* Memory of the state of a product, and taking it; the arena's owner checks the arena. */
size_t product_job_bytes(int32_t most_products, int32_t n_threads, const unit_set *us);
product_job *product_job_make(weights *w, arena *a);

/* Begins, between weights_pass_begin and _end, the next matrices in the order of a pass, n
 * activation rows; acts[kind]: their quantised form in each kind that one of the matrices needs,
 * borrowed until the product is done. n = 0: only loads what is pinned (acts may be NULL). */
void product_begin(weights *w, const product *products, int32_t n_products,
                   void *const acts[ACT_KINDS], int32_t n);
/* The same for up to weights.most_products matrices of experts, those that are on their way in the
 * order of their pieces. */
void product_begin_experts(weights *w, const expert_product *products, int32_t n_products);
/* Computes on all threads of the pool what is in memory and what has arrived. Never waits for the
 * disk. Returns at once after until_ns (clock_ns; 0: no such time), a claim's length late at most.
 * DREY_ERR_IO: a read has failed, and the product is over. */
drey_status product_run(weights *w, pool *p, int64_t until_ns, product_state *state,
                        drey_error *err);
/* True if product_run would find something to do. */
bool product_ready(weights *w);
/* Blocks until product_ready. */
void product_wait(weights *w);
/* Runs and waits until it is done. */
drey_status product_finish(weights *w, pool *p, drey_error *err);
/* A whole product with a matrix that is pinned, out of the order of a pass: once the weights are
 * loaded, at any time at which no product is open. */
void product_run_aside(weights *w, pool *p, const product *aside, void *const acts[ACT_KINDS],
                       int32_t n);
/* Gives up what is left of an open product, if there is one. */
void product_leave(weights *w);
