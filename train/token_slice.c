/* See token_slice.h. */
#include "train/token_slice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "os/file.h"
#include "weights/gather_rows.h"
#include "weights/weights.h"

size_t token_slice_bytes(int32_t n_vocab)
{
    size_t n = (size_t)n_vocab;
    return arena_size(n * sizeof(int64_t)) + arena_size(n * sizeof(bool)) +
           2 * arena_size(n * sizeof(int32_t));
}

void token_slice_init(token_slice *s, int32_t n_vocab, arena *a)
{
    size_t n = (size_t)n_vocab;
    *s = (token_slice){.n_vocab = n_vocab};
    s->learnt = arena_take(a, n * sizeof *s->learnt);
    s->there = arena_take(a, n * sizeof *s->there);
    s->place = arena_take(a, n * sizeof *s->place);
    s->id = arena_take(a, n * sizeof *s->id);
}

static int32_t more_often_than(const token_slice *s, int64_t count)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_vocab; i++)
        n += s->learnt[i] > count;
    return n;
}

static void enter(token_slice *s, int32_t id)
{
    s->place[id] = s->n_rows;
    s->id[s->n_rows++] = id;
}

void token_slice_choose(token_slice *s, int32_t n_ids)
{
    /* The least count with at most as many tokens above it as there is room for. */
    int64_t low = 0, high = 0;
    assert(n_ids >= 1 && n_ids <= s->n_vocab);
    for (int32_t i = 0; i < s->n_vocab; i++)
        high = max_i64(high, s->learnt[i]);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (more_often_than(s, middle) <= n_ids)
            high = middle;
        else
            low = middle + 1;
    }
    int32_t left = n_ids - more_often_than(s, low);
    s->n_ids = n_ids;
    s->n_rows = 0;
    memset(s->place, -1, (size_t)s->n_vocab * sizeof *s->place);
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (s->learnt[i] > low || (s->learnt[i] == low && left-- > 0))
            enter(s, i);
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (s->place[i] < 0 && s->there[i])
            enter(s, i);
}

/* ---- Rows ---- */

/* Reads rows [from, to) of the slice, rising by id. */
static drey_status read_places(const weight *matrix, const token_slice *s,
                               const kernel_table *kernels, const file *f, const char *path,
                               int32_t from, int32_t to, uint16_t *out, drey_error *err)
{
    enum { AT_ONCE = 4 * GROUP_ROWS };
    const int64_t k = matrix->form.k;
    const size_t group_bytes = matrix->residency.group_bytes;
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

drey_status token_slice_read(const token_slice *s, const gguf *g, const gguf_tensor *tensor,
                             const kernel_table *kernels, uint16_t *out, drey_error *err)
{
    const char *path = gguf_shard_path(g, tensor->part);
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
