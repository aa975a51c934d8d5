/* Tensors of the file that is made, and the tensors of the folder from which each is made. */
#pragma once

#include "convert/family.h"

/* Rows of a tensor of the folder. */
typedef struct tensor_piece {
    const safetensor *from;
    int32_t part;
} tensor_piece;

/* Rows of a tensor of the folder that is [n_groups][group_rows][n_columns], or of a turned one
 * [n_groups][n_columns][group_rows]: of each group n, every step'th from `first` on. */
typedef struct row_slice {
    int64_t n_groups, group_rows, n_columns;
    int64_t first, step, n;
} row_slice;

/* Rows of a tensor of the folder in the order of the file's. */
typedef struct row_order {
    int64_t *rows; /* [n]; NULL: they stay */
    int64_t n;
} row_order;

/* The order `which` (tensor_names.h) of a tensor of n_rows, or columns, named for a message; the
 * caller frees out->rows. DREY_ERR_FORMAT: they are not those of the heads that config.json has. */
drey_status row_order_make(row_order *out, const family *a, const hub_folder *f, int which,
                           int64_t n_rows, const char *name, drey_error *err);

typedef struct made_tensor {
    char name[64];
    uint32_t type;
    int32_t n_dims;
    int64_t dims[3]; /* the row length first */
    uint64_t n_bytes;
    int64_t first_piece, n_pieces; /* range of tensor_plan.pieces; 0: values */
    int32_t n_heads;               /* rows change places within each of so many; 0: they stay */
    float added;                   /* to each number */
    bool decays;                   /* each number x becomes -exp(x) */
    row_order order;               /* their order, or that of columns */
    bool orders_columns;           /* columns change places */
    int32_t n_skipped;             /* rows in front that the folder has and the file has not */
    bool turned;                   /* the folder has it as [columns][rows] */
    bool packed;                   /* MXFP4: the first piece are blocks, the second their scales */
    row_slice slice;               /* n_groups 0: pieces are taken as they are */
    const float *values;           /* [dims[0]]; borrowed */
} made_tensor;

typedef struct tensor_plan {
    made_tensor *tensors; /* [n] */
    tensor_piece *pieces; /* [n_pieces] */
    int64_t n, n_pieces, capacity, piece_capacity;
    int64_t n_left_out; /* tensors of the folder that have no part in a text: images, sounds */
} tensor_plan;

/* Every tensor of the folder has its place, or is known to be of no use; else DREY_ERR_UNSUPPORTED
 * names it. type: of matrices; a matrix whose rows it does not divide becomes F16. factors:
 * borrowed as long as the plan. */
drey_status tensor_plan_make(tensor_plan *p, const family *a, const hub_folder *f, uint32_t type,
                             const rope_factors factors[MOST_ROPE_FACTORS], drey_error *err);
/* Accepts one that is all zero. */
void tensor_plan_free(tensor_plan *p);
/* NULL: no tensor of that name is planned. */
const made_tensor *tensor_plan_find(const tensor_plan *p, const char *name);

/* Keys that say what the planned tensors are: heads and widths that differ from layer to layer,
 * layers that are mixtures, the width of a shared expert, numbers of activations
 * (expert_keys.c). */
drey_status layer_keys(const family *a, const hub_folder *f, const tensor_plan *p, new_gguf *g,
                       drey_error *err);
