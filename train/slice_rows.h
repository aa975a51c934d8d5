/* Rows of a matrix of the target that belong to the places of a slice, in half precision. */
#pragma once

#include "gguf/gguf.h"
#include "kernel/kernel.h"
#include "train/token_slice.h"

/* out: [s->n_rows][tensor->dims[0]]. DREY_ERR_IO, DREY_ERR_FORMAT, DREY_ERR_MEMORY. */
drey_status slice_rows_read(const gguf *g, const gguf_tensor *tensor, const token_slice *s,
                            const kernel_table *kernels, uint16_t *out, drey_error *err);
