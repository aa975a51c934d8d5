/* Steps of a pass: made once for a layout, the same for every pass.
 *
 *   rows [fuse] embed | begin 0 | steps of the layer's blocks | end 0 | begin 1 | ... | end | head
 *
 * The blocks of a layer (block/block.h) write its steps. Those between two products are functions;
 * rows are independent in all but the mixes. The last step before a product says what the product
 * reads, which is quantised as its matrices want it.
 *
 * Between the end of a layer and the begin of the next one the caller may look into the pass, stop
 * it or drop groups of it (pass.h). Who takes over a part of a pass takes the steps between two
 * such places. */
#pragma once

#include "base/arena.h"
#include "common/error.h"
#include "model/workspace.h"
#include "weights/weights.h"

typedef struct model_pass model_pass;
typedef struct model_layout model_layout;
typedef struct program_step program_step;

typedef enum step_kind {
    STEP_ROWS,        /* rows one by one, in tiles; steps that follow each other share a walk */
    STEP_COLUMNS,     /* the same, where threads may also share the numbers of a single tile */
    STEP_MIX,         /* all rows at once: shares its work itself, may fail, may open a product */
    STEP_PRODUCT,     /* matrices times what was quantised last */
    STEP_BEGIN_LAYER, /* deferred rows join */
    STEP_END_LAYER,   /* the layer is complete */
    STEP_END
} step_kind;

typedef void step_rows_fn(model_pass *p, const program_step *s, int32_t from, int32_t to,
                          int32_t thread);
typedef void step_columns_fn(model_pass *p, const program_step *s, int32_t from, int32_t to,
                             int64_t k_from, int64_t k_to);
typedef drey_status step_mix_fn(model_pass *p, const program_step *s, drey_error *err);

struct program_step {
    step_kind kind;
    int32_t layer;
    int32_t first_buffer; /* added to the numbers of the block's own buffers (workspace.h) */
    union {
        step_rows_fn *rows;
        step_columns_fn *columns;
        step_mix_fn *mix;
        struct {
            struct {
                int32_t matrix; /* index in model_layout.matrix */
                int32_t to;     /* a buffer of the workspace, as `from` is */
            } of[PRODUCTS_MAX];
            int32_t n;
        } product;
    };
    /* Set in the last step before products: they read k numbers of `from`. 0: there are none. */
    struct {
        int32_t from;
        int64_t k;
        int32_t last; /* the step with the last of these products */
        /* heads that have k numbers each, head_ld apart, and their own rows of these products'
         * matrices; 0: all rows read the same */
        int32_t n_heads, head_ld;
    } reads;
};

typedef struct program {
    program_step *step; /* [n], the last one being STEP_END */
    int32_t n, most;
    int32_t *begin;    /* [n_layers + 1]: where layers begin, and what follows them */
    block_list blocks; /* blocks of all layers that the model has had */
} program;

/* Memory of a program of so many layers, and as many readers of an encoder's output. */
size_t program_bytes(int32_t n_layers, int32_t n_readers);
void program_init(program *p, int32_t n_layers, int32_t n_readers, arena *a);
/* Writes the steps of a layout whose tensors are bound. */
void program_write(program *p, const model_layout *l);

/* ---- For blocks: each adds a step. Buffers have their numbers of workspace.h ---- */

typedef struct program_writer {
    program *program;
    const model_layout *layout;
    int32_t layer;
    int32_t first_buffer;
    program_step *reading; /* step to whose `reads` the next products are added */
} program_writer;

/* The steps that follow use the buffers of that block, which the layout has. */
void write_as(program_writer *w, const block_class *block);
void write_rows(program_writer *w, step_rows_fn *rows);
void write_columns(program_writer *w, step_columns_fn *columns);
void write_mix(program_writer *w, step_mix_fn *mix);
/* The step that was written last prepares k numbers of a buffer for the products that follow. */
void write_reads(program_writer *w, int32_t from, int64_t k);
/* The same of matrices by heads (matrix_form.n_heads). */
void write_reads_by_heads(program_writer *w, int32_t from, int64_t k, int32_t n_heads,
                          int32_t head_ld);
/* A product of one to PRODUCTS_MAX matrices; those that are NULL are left out. */
typedef struct written_product {
    const weight *matrix;
    int32_t to;
} written_product;
void write_product(program_writer *w, const written_product *products, int32_t n);
