/* Reading, changing and writing tensors: see tensor_fill.h. */
#include "convert/tensor_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "common/size_text.h"
#include "gguf/types.h"
#include "kernel/kernel.h"

static const int64_t piece_bytes = 1 << 20;

/* ---- Numbers ---- */

static void decode(const kernel_table *kernels, number_type type, float *out, const uint8_t *in,
                   int64_t n)
{
    if (type == NUMBER_F32) {
        memcpy(out, in, (size_t)n * sizeof *out);
    } else if (type == NUMBER_F16) {
        kernels->from_f16(out, (const uint16_t *)(const void *)in, n);
    } else {
        const uint16_t *halves = (const uint16_t *)(const void *)in;
        for (int64_t i = 0; i < n; i++)
            out[i] = bf16_to_f32(halves[i]);
    }
}

/* Rounded to nearest even. */
static uint16_t f32_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Scale, and 32 numbers in units of it, rounded half away from zero. */
static void encode_q8_0(uint8_t *out, const float *x)
{
    enum { BLOCK = 32 };
    float most = 0;
    for (int i = 0; i < BLOCK; i++)
        most = max_f32(most, fabsf(x[i]));
    float scale = most / 127, per_scale = scale > 1e-37f ? 1 / scale : 0;
    uint16_t half = f32_to_f16(scale);
    memcpy(out, &half, sizeof half);
    for (int i = 0; i < BLOCK; i++)
        out[2 + i] = (uint8_t)(int8_t)roundf(x[i] * per_scale);
}

static bool all_within(const float *x, int64_t n, float most)
{
    bool good = true;
    for (int64_t i = 0; i < n; i++)
        good &= fabsf(x[i]) <= most; /* false for what is no number */
    return good;
}

/* Writes n numbers in a type: F32, F16, BF16, or Q8_0, whose blocks divide n. False: one of them is
 * none, or too large for the type. */
static bool numbers_encode(uint32_t type, uint8_t *out, const float *x, int64_t n)
{
    const float most_f16 = 65519, most_f32 = 3.3e38f, most_q8_0 = 127 * most_f16;
    if (!all_within(x, n, type == TYPE_F16 ? most_f16 : type == TYPE_Q8_0 ? most_q8_0 : most_f32))
        return false;
    if (type == TYPE_F32)
        memcpy(out, x, (size_t)n * sizeof *x);
    else if (type == TYPE_F16)
        kernel_select(NULL)->to_f16((uint16_t *)(void *)out, x, n);
    else if (type == TYPE_BF16)
        for (int64_t i = 0; i < n; i++) {
            uint16_t half = f32_to_bf16(x[i]);
            memcpy(out + 2 * i, &half, sizeof half);
        }
    else
        for (int64_t i = 0; i < n; i += 32, out += 34)
            encode_q8_0(out, x + i);
    return true;
}

/* ---- Memory ---- */

static drey_status grow(void **memory, size_t *has, uint64_t n_bytes, drey_error *err)
{
    if (n_bytes <= *has)
        return DREY_OK;
    free(*memory);
    *has = 0;
    *memory = malloc(n_bytes);
    if (!*memory)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %s of a tensor", SIZE_TEXT(n_bytes));
    *has = (size_t)n_bytes;
    return DREY_OK;
}

static drey_status grow_all(tensor_filler *f, uint64_t raw, uint64_t rows, uint64_t out,
                            drey_error *err)
{
    TRY(grow((void **)&f->raw, &f->raw_bytes, raw, err));
    TRY(grow((void **)&f->rows, &f->rows_bytes, rows * sizeof(float), err));
    return grow((void **)&f->out, &f->out_bytes, out, err);
}

void tensor_filler_free(tensor_filler *f)
{
    free(f->raw);
    free(f->rows);
    free(f->out);
    f->raw = f->out = NULL;
    f->rows = NULL;
}

/* ---- A tensor ---- */

static drey_status put(tensor_filler *f, const made_tensor *t, gguf_sink *sink, const void *bytes,
                       uint64_t n_bytes, drey_error *err)
{
    if (f->go_on && !f->go_on(f->user))
        FAIL(err, DREY_ERR_CANCELLED, "stopped in tensor %s", t->name);
    TRY(gguf_sink_put(sink, bytes, n_bytes, err));
    f->done += n_bytes;
    if (f->progress)
        f->progress(f->user, f->done, f->total);
    return DREY_OK;
}

/* n numbers of f->rows, which become f->out. */
static drey_status put_rows(tensor_filler *f, const made_tensor *t, gguf_sink *sink, int64_t n,
                            drey_error *err)
{
    const type_traits *type = type_find(t->type);
    for (int64_t i = 0; t->added != 0 && i < n; i++)
        f->rows[i] += t->added;
    for (int64_t i = 0; t->decays && i < n; i++)
        f->rows[i] = -(float)exp_f64((double)f->rows[i]);
    if (!numbers_encode(t->type, f->out, f->rows, n))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tensor %s has a number that %s cannot hold, or that is "
             "none; take the type bf16, or fetch the model again",
             t->name, type->name);
    return put(f, t, sink, f->out, (uint64_t)type_row_bytes(type, n), err);
}

/* Heads with halves of n_rows / 2 rows become pairs: row 2 i + j was row j n_rows / 2 + i. */
static void pair_rows(uint8_t *out, const uint8_t *in, int64_t n_rows, int64_t row_bytes)
{
    for (int64_t i = 0; i < n_rows; i++)
        memcpy(out + i * row_bytes, in + (i % 2 * (n_rows / 2) + i / 2) * row_bytes,
               (size_t)row_bytes);
}

typedef struct piece_shape {
    int64_t n_rows, n_columns;
    int64_t step; /* rows at a time */
    bool copied;  /* bytes stay as they are */
} piece_shape;

static bool is_copied(const made_tensor *t, const safetensor *from)
{
    bool same = (from->type == NUMBER_F16 && t->type == TYPE_F16) ||
                (from->type == NUMBER_BF16 && t->type == TYPE_BF16);
    return same && t->n_heads == 0 && t->added == 0 && !t->decays && !t->orders_columns;
}

static piece_shape shape_of(const made_tensor *t, const safetensor *from)
{
    piece_shape s = {.n_rows = from->dims[0],
                     .n_columns = from->n_dims > 1 ? from->dims[from->n_dims - 1] : 1};
    s.copied = is_copied(t, from);
    int64_t rows = max_i64(1, piece_bytes / (4 * s.n_columns));
    if (from->n_dims == 1 && t->n_heads == 0) {
        s.n_columns = s.n_rows;
        s.n_rows = rows = 1;
    }
    s.step = t->n_heads > 0 ? s.n_rows / t->n_heads : min_i64(rows, s.n_rows);
    return s;
}

static drey_status fill_piece(tensor_filler *f, const made_tensor *t, const tensor_piece *piece,
                              gguf_sink *sink, drey_error *err)
{
    const safetensor *from = piece->from;
    const kernel_table *kernels = kernel_select(NULL);
    const piece_shape s = shape_of(t, from);
    const int64_t row_bytes = s.n_columns * (int64_t)number_bytes(from->type);
    const uint64_t n = (uint64_t)(s.step * s.n_columns);
    TRY(grow_all(f, (uint64_t)(s.step * row_bytes) * (t->n_heads > 0 ? 2 : 1), n, n * 4, err));
    for (int64_t row = t->n_skipped; row < s.n_rows; row += s.step) {
        int64_t n_rows = min_i64(s.step, s.n_rows - row);
        uint8_t *raw = f->raw;
        TRY(folder_read(f->folder, piece->part, from->offset + (uint64_t)(row * row_bytes),
                        (size_t)(n_rows * row_bytes), raw, err));
        if (s.copied) {
            TRY(put(f, t, sink, raw, (uint64_t)(n_rows * row_bytes), err));
            continue;
        }
        if (t->n_heads > 0) {
            raw += n_rows * row_bytes;
            pair_rows(raw, f->raw, n_rows, row_bytes);
        }
        decode(kernels, from->type, f->rows, raw, n_rows * s.n_columns);
        TRY(put_rows(f, t, sink, n_rows * s.n_columns, err));
    }
    return DREY_OK;
}

/* The folder has groups of [columns][rows]. */
static drey_status fill_turned(tensor_filler *f, const made_tensor *t, const tensor_piece *piece,
                               gguf_sink *sink, drey_error *err)
{
    const safetensor *from = piece->from;
    const kernel_table *kernels = kernel_select(NULL);
    const row_slice s = t->slice;
    const size_t number = number_bytes(from->type);
    const uint64_t n_bytes = from->n_bytes / (uint64_t)s.n_groups;
    TRY(grow_all(f, n_bytes + (uint64_t)s.n_columns * number, (uint64_t)s.n_columns,
                 (uint64_t)s.n_columns * 4, err));
    uint8_t *row = f->raw + n_bytes;
    for (int64_t g = 0; g < s.n_groups; g++) {
        TRY(folder_read(f->folder, piece->part, from->offset + (uint64_t)g * n_bytes, n_bytes,
                        f->raw, err));
        for (int64_t r = s.first; r < s.first + s.n * s.step; r += s.step) {
            for (int64_t c = 0; c < s.n_columns; c++)
                memcpy(row + (size_t)c * number, f->raw + (size_t)(c * s.group_rows + r) * number,
                       number);
            decode(kernels, from->type, f->rows, row, s.n_columns);
            TRY(put_rows(f, t, sink, s.n_columns, err));
        }
    }
    return DREY_OK;
}

/* ---- Rows of groups ---- */

/* Rows [row, row + n) of those that a slice takes of group g: out gets them one after the other,
 * and has room for n * step. */
static drey_status read_taken(const tensor_filler *f, const tensor_piece *piece, const row_slice *s,
                              int64_t row_bytes, int64_t g, int64_t row, int64_t n, uint8_t *out,
                              drey_error *err)
{
    int64_t first = g * s->group_rows + s->first + row * s->step;
    TRY(folder_read(f->folder, piece->part, piece->from->offset + (uint64_t)(first * row_bytes),
                    (size_t)(((n - 1) * s->step + 1) * row_bytes), out, err));
    for (int64_t i = 1; i < n && s->step > 1; i++)
        memmove(out + i * row_bytes, out + i * s->step * row_bytes, (size_t)row_bytes);
    return DREY_OK;
}

static int64_t rows_at_once(const row_slice *s)
{
    return min_i64(s->n, max_i64(1, piece_bytes / (4 * s->n_columns * s->step)));
}

static drey_status fill_slice(tensor_filler *f, const made_tensor *t, const tensor_piece *piece,
                              gguf_sink *sink, drey_error *err)
{
    const safetensor *from = piece->from;
    const row_slice *s = &t->slice;
    const int64_t row_bytes = s->n_columns * (int64_t)number_bytes(from->type);
    const int64_t most = rows_at_once(s);
    const uint64_t n = (uint64_t)(most * s->n_columns);
    TRY(grow_all(f, (uint64_t)(most * s->step * row_bytes), n, n * 4, err));
    for (int64_t g = 0; g < s->n_groups; g++)
        for (int64_t row = 0; row < s->n; row += most) {
            int64_t n_rows = min_i64(most, s->n - row);
            TRY(read_taken(f, piece, s, row_bytes, g, row, n_rows, f->raw, err));
            if (is_copied(t, from)) {
                TRY(put(f, t, sink, f->raw, (uint64_t)(n_rows * row_bytes), err));
                continue;
            }
            decode(kernel_select(NULL), from->type, f->rows, f->raw, n_rows * s->n_columns);
            TRY(put_rows(f, t, sink, n_rows * s->n_columns, err));
        }
    return DREY_OK;
}

/* ---- Rows in another order ---- */

/* Rows [row, row + n) of the file, those of the folder's that are neighbours at once. */
static drey_status read_ordered(const tensor_filler *f, const made_tensor *t,
                                const tensor_piece *piece, int64_t row_bytes, int64_t row,
                                int64_t n, drey_error *err)
{
    const int64_t *rows = t->order.rows + row;
    for (int64_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && rows[i + run] == rows[i] + run;)
            run++;
        TRY(folder_read(f->folder, piece->part,
                        piece->from->offset + (uint64_t)(rows[i] * row_bytes),
                        (size_t)(run * row_bytes), f->raw + i * row_bytes, err));
    }
    return DREY_OK;
}

/* Numbers of each row of f->rows change places; row has room for one. */
static void order_columns(const made_tensor *t, float *rows, float *row, int64_t n_rows)
{
    for (int64_t r = 0; r < n_rows; r++) {
        float *to = rows + r * t->order.n;
        memcpy(row, to, (size_t)t->order.n * sizeof *row);
        for (int64_t i = 0; i < t->order.n; i++)
            to[i] = row[t->order.rows[i]];
    }
}

static drey_status fill_ordered(tensor_filler *f, const made_tensor *t, const tensor_piece *piece,
                                gguf_sink *sink, drey_error *err)
{
    const safetensor *from = piece->from;
    const int64_t n_columns = t->n_dims > 1 ? t->dims[0] : 1;
    const int64_t n_rows = t->n_dims > 1 ? t->dims[1] : t->dims[0];
    const int64_t row_bytes = n_columns * (int64_t)number_bytes(from->type);
    const int64_t most = min_i64(n_rows, max_i64(1, piece_bytes / (4 * n_columns)));
    TRY(grow_all(f, (uint64_t)(most * row_bytes), (uint64_t)((most + 1) * n_columns),
                 (uint64_t)(most * n_columns) * 4, err));
    for (int64_t row = 0; row < n_rows; row += most) {
        const int64_t n = min_i64(most, n_rows - row);
        if (t->orders_columns)
            TRY(folder_read(f->folder, piece->part, from->offset + (uint64_t)(row * row_bytes),
                            (size_t)(n * row_bytes), f->raw, err));
        else
            TRY(read_ordered(f, t, piece, row_bytes, row, n, err));
        if (is_copied(t, from)) {
            TRY(put(f, t, sink, f->raw, (uint64_t)(n * row_bytes), err));
            continue;
        }
        decode(kernel_select(NULL), from->type, f->rows, f->raw, n * n_columns);
        if (t->orders_columns)
            order_columns(t, f->rows, f->rows + most * n_columns, n);
        TRY(put_rows(f, t, sink, n * n_columns, err));
    }
    return DREY_OK;
}

/* A block of the file's MXFP4: the scale, and in byte i numbers i and i + 16, where the folder has
 * 2 i and 2 i + 1. False: the scale is none. */
static bool pack_block(uint8_t out[17], const uint8_t in[16], uint8_t scale)
{
    enum { NO_SCALE = 255 };
    out[0] = scale;
    for (int i = 0; i < 16; i++) {
        int shift = i % 2 * 4;
        out[1 + i] = (uint8_t)((in[i / 2] >> shift & 15) | (in[8 + i / 2] >> shift & 15) << 4);
    }
    return scale != NO_SCALE;
}

static drey_status fill_packed(tensor_filler *f, const made_tensor *t, gguf_sink *sink,
                               drey_error *err)
{
    const tensor_piece *blocks = &f->plan->pieces[t->first_piece], *scales = blocks + 1;
    const row_slice *s = &t->slice;
    const int64_t row_blocks = s->n_columns / 32, most = rows_at_once(s);
    const uint64_t n_most = (uint64_t)(most * s->step * row_blocks);
    TRY(grow_all(f, n_most * (16 + 1), 0, n_most * 17, err));
    uint8_t *scale = f->raw + n_most * 16;
    for (int64_t g = 0; g < s->n_groups; g++)
        for (int64_t row = 0; row < s->n; row += most) {
            int64_t n_rows = min_i64(most, s->n - row), n = n_rows * row_blocks;
            TRY(read_taken(f, blocks, s, row_blocks * 16, g, row, n_rows, f->raw, err));
            TRY(read_taken(f, scales, s, row_blocks, g, row, n_rows, scale, err));
            for (int64_t i = 0; i < n; i++)
                if (!pack_block(f->out + 17 * i, f->raw + 16 * i, scale[i]))
                    FAIL(err, DREY_ERR_FORMAT,
                         "tensor %s has a scale that is none; fetch the model again",
                         scales->from->name);
            TRY(put(f, t, sink, f->out, (uint64_t)n * 17, err));
        }
    return DREY_OK;
}

drey_status tensor_fill(void *user, uint64_t i, gguf_sink *sink, drey_error *err)
{
    tensor_filler *f = user;
    const made_tensor *t = &f->plan->tensors[i];
    if (t->values)
        return put(f, t, sink, t->values, t->n_bytes, err);
    if (t->packed)
        return fill_packed(f, t, sink, err);
    for (int64_t p = 0; p < t->n_pieces; p++) {
        const tensor_piece *piece = &f->plan->pieces[t->first_piece + p];
        TRY(t->order.rows           ? fill_ordered(f, t, piece, sink, err)
            : t->turned             ? fill_turned(f, t, piece, sink, err)
            : t->slice.n_groups > 0 ? fill_slice(f, t, piece, sink, err)
                                    : fill_piece(f, t, piece, sink, err));
    }
    return DREY_OK;
}
