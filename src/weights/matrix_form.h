/* Form of a matrix: its tensor, its kernel, its shape. residency.h says what of it stays in memory,
 * weights.h where its reads are. */
#pragma once

#include "drey/drey_model.h"
#include "gguf/gguf.h"
#include "kernel/planes.h"

typedef struct gguf_tensor gguf_tensor;
typedef struct residency residency;

typedef struct matrix_form {
    const gguf_tensor *tensor;   /* borrowed from the gguf */
    const matmul_kernel *kernel; /* borrowed from the kernel table, as that is */
    const kernel_table *kernels;
    int64_t n_rows, k; /* [n_rows][k] */
    int64_t row_bytes; /* in the file */
    /* Equal runs of its rows, whole groups, that each multiply with activations of their own
     * (product_head_bytes apart), and whose results begin head_ld apart; 0: it is one. */
    int32_t n_heads, head_ld;
    const plane_layout *planes; /* NULL: it is not split */
    plane_means means;          /* values that replace planes that are not there */
} matrix_form;

/* Fills both without touching memory: nothing stays. DREY_ERR_UNSUPPORTED: no kernel. */
drey_status matrix_describe(matrix_form *m, residency *r, const gguf_tensor *t,
                            const kernel_table *kernels, drey_error *err);
/* Forgets all rows but the first n_rows (a multiple of GROUP_ROWS). */
void matrix_cut(matrix_form *m, residency *r, int64_t n_rows);
/* Splits it into planes; false: its type cannot be split, or it is split already. */
bool matrix_split(matrix_form *m, residency *r);
void matrix_join(matrix_form *m, residency *r); /* undoes that */
/* Groups come packed from a sidecar, or as rows of the model's file. */
void matrix_read_packed(const matrix_form *m, residency *r, bool packed);

/* Blocks of so many groups. */
static inline int32_t matrix_blocks(const matrix_form *m, int32_t n_groups)
{
    return (int32_t)(m->k / layout_find(m->tensor->type)->block_k) * n_groups;
}
/* DREY_ERR_FORMAT: it holds numbers that are not finite. path: the file that it is in. */
drey_status matrix_refuse(const matrix_form *m, const char *path, drey_error *err);
