/* See slice_rows.h. */
#include "train/slice_rows.h"

#include <stdlib.h>

#include "common/num.h"
#include "os/file.h"
#include "weights/weights.h"

/* Of places [from, to), rising by id. */
static drey_status read_places(const weight *matrix, const token_slice *s,
                               const kernel_table *kernels, const file *f, const char *path,
                               int32_t from, int32_t to, uint16_t *out, drey_error *err)
{
    enum { AT_ONCE = 4 * GROUP_ROWS };
    const int64_t k = matrix->form.k;
    const size_t group_bytes = matrix->stays.group_bytes;
    uint8_t *packed = malloc((size_t)gathered_groups(min_i32(to - from, AT_ONCE)) * group_bytes);
    float *row = malloc((size_t)k * sizeof *row);
    drey_status status =
        packed && row ? DREY_OK : error_set(err, DREY_ERR_MEMORY, "no memory for rows of a matrix");
    for (int32_t at = from, n; at < to && status == DREY_OK; at += n) {
        n = min_i32(to - at, AT_ONCE);
        status = gather_rows(matrix, f, path, s->id + at, n, packed, err);
        for (int32_t i = 0; i < n && status == DREY_OK; i++) {
            matrix->form.kernel->unpack_row(row, packed + (size_t)(i / GROUP_ROWS) * group_bytes,
                                            i % GROUP_ROWS, k);
            kernels->to_f16(out + (at + i) * k, row, k);
        }
    }
    free(packed);
    free(row);
    return status;
}

drey_status slice_rows_read(const gguf *g, const gguf_tensor *tensor, const token_slice *s,
                            const kernel_table *kernels, uint16_t *out, drey_error *err)
{
    const char *path = gguf_part_path(g, tensor->part);
    weight matrix;
    file f;
    TRY(weight_describe(&matrix, tensor, kernels, err));
    TRY(file_open(&f, path, true, err));
    drey_status status = file_check(&f, path, gguf_part_stamp(g, tensor->part), err);
    if (status == DREY_OK)
        status = read_places(&matrix, s, kernels, &f, path, 0, s->n_ids, out, err);
    if (status == DREY_OK)
        status = read_places(&matrix, s, kernels, &f, path, s->n_ids, s->n_rows, out, err);
    file_close(&f);
    return status;
}
