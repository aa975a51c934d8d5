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

typedef struct made_tensor {
    char name[64];
    uint32_t type;
    int32_t n_dims;
    int64_t dims[3]; /* the row length first */
    uint64_t n_bytes;
    int64_t first_piece, n_pieces; /* range of tensor_plan.pieces; 0: values */
    int32_t n_heads;               /* rows change places within each of so many; 0: they stay */
    float added;                   /* to each number */
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
} tensor_plan;

/* Every tensor of the folder has its place, or is known to be of no use; else DREY_ERR_UNSUPPORTED
 * names it. type: of matrices; a matrix whose rows it does not divide becomes F16. factors:
 * borrowed as long as the plan. */
drey_status tensor_plan_make(tensor_plan *p, const family *a, const hub_folder *f, uint32_t type,
                             const rope_factors factors[MOST_ROPE_FACTORS], drey_error *err);
/* Accepts one that is all zero. */
void tensor_plan_free(tensor_plan *p);
