/* Finding tensors: see binder.h. Tensor names: ggml docs/gguf.md, "Standardized tensor names". */
#include "model/binder.h"
#include "gguf/gguf.h"
#include "weights/experts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *binder_half(const binder *b)
{
    const model_shape *s = &b->layout->shape;
    return shape_encodes(s) ? "enc." : shape_reads(s) ? "dec." : "";
}

/* The present layer's number in the file. */
static int32_t block_of(const binder *b)
{
    return b->layout->shape.taps.mtp_block + b->layer;
}

const char *binder_name(const binder *b, char out[64], const char *role)
{
    snprintf(out, 64, "%sblk.%d.%s", binder_half(b), block_of(b), role);
    return out;
}

bool binder_has(const binder *b, const char *role)
{
    return gguf_find_tensor(b->g, binder_name(b, (char[64]){0}, role)) != NULL;
}

drey_status binder_number(const binder *b, const char *name, float *out)
{
    const gguf_key *key = gguf_find_key(b->g, name);
    const uint64_t i = key && key->n_items > 1 ? (uint64_t)block_of(b) : 0;
    const gguf_kind kind = key && key->kind == GGUF_ARRAY ? key->item_kind : GGUF_F32;
    if (key && i >= key->n_items && shape_is_mtp(&b->layout->shape)) {
        *out = 0; /* the list is of the layers in front of the block alone */
        return DREY_OK;
    }
    if (!key || i >= key->n_items || kind == GGUF_STRING ||
        (key->kind != GGUF_ARRAY && !gguf_key_is(key, GGUF_WANT_NUMBER)))
        FAIL(b->err, DREY_ERR_FORMAT, "key %s has no number for layer %d; the file is broken", name,
             block_of(b));
    *out = (float)gguf_item_number(key, i);
    return DREY_OK;
}

drey_status binder_number_if(const binder *b, const char *suffix, float *out)
{
    char key[96];
    arch_key(b->layout->shape.arch, suffix, key);
    return gguf_find_key(b->g, key) ? binder_number(b, key, out) : DREY_OK;
}

/* bytes of dimensions in a file that may hold any number. */
enum { DIMS_TEXT = 96 };

static const char *dims_text(char out[DIMS_TEXT], const int64_t dims[3])
{
    int n = snprintf(out, DIMS_TEXT, "[%lld, %lld", (long long)dims[0], (long long)dims[1]);
    if (dims[2] != 1)
        n += snprintf(out + n, DIMS_TEXT - (size_t)n, ", %lld", (long long)dims[2]);
    snprintf(out + n, DIMS_TEXT - (size_t)n, "]");
    return out;
}

drey_status binder_find(const binder *b, const char *name, const int64_t dims[3],
                        const gguf_tensor **out)
{
    const gguf_tensor *t = gguf_find_tensor(b->g, name);
    if (!t)
        FAIL(b->err, DREY_ERR_FORMAT,
             "tensor %s is missing; the file is incomplete or of another architecture", name);
    if (memcmp(t->dims, dims, 3 * sizeof *dims) != 0 || t->dims[3] != 1) {
        char has[DIMS_TEXT], wants[DIMS_TEXT];
        FAIL(b->err, DREY_ERR_FORMAT, "tensor %s has shape %s instead of %s; the file is broken",
             name, dims_text(has, t->dims), dims_text(wants, dims));
    }
    b->bound[t - gguf_tensor_at(b->g, 0)] = true;
    *out = t;
    return DREY_OK;
}

/* The next matrix, of a tensor; counting, there is none yet. */
static drey_status add_matrix(binder *b, const gguf_tensor *t, weight **out)
{
    *out = &b->layout->matrix[b->layout->n_matrices++];
    return weight_describe(*out, t, b->kernels, b->err);
}

static drey_status count_matrix(binder *b)
{
    b->layout->n_matrices++;
    return DREY_OK;
}

/* Binds a matrix's scale: NAME.scale next to NAME.weight, of one number; others are a block's. */
static drey_status bind_scale(binder *b, const char *matrix, weight *to)
{
    char name[64];
    float *scale;
    const size_t n = strlen(matrix) - strlen(".weight");
    snprintf(name, sizeof name, "%.*s.scale", (int)n, matrix);
    const gguf_tensor *t = gguf_find_tensor(b->g, name);
    if (!t || t->dims[0] != 1)
        return DREY_OK;
    TRY(bind_whole_vectors(b, name, 1, 1, &scale));
    if (b->arena)
        to->scale = scale;
    return DREY_OK;
}

drey_status bind_whole(binder *b, const char *name, int64_t k, int64_t rows, weight **out)
{
    const gguf_tensor *t;
    if (!b->arena)
        return count_matrix(b);
    TRY(binder_find(b, name, (int64_t[3]){k, rows, 1}, &t));
    return add_matrix(b, t, out);
}

drey_status bind_matrix(binder *b, const char *role, int64_t rows, int64_t k, weight **out)
{
    char name[64];
    TRY(bind_whole(b, binder_name(b, name, role), k, rows, out));
    return bind_scale(b, name, *out);
}

drey_status bind_rows(binder *b, const char *of, int64_t of_rows, int64_t first, int64_t rows,
                      int64_t k, const char *role, weight **out)
{
    char name[64];
    return bind_rows_of(b, binder_name(b, name, of), of_rows, first, rows, k, role, out);
}

drey_status bind_rows_of(binder *b, const char *name, int64_t of_rows, int64_t first, int64_t rows,
                         int64_t k, const char *role, weight **out)
{
    const gguf_tensor *whole;
    b->n_bytes += arena_size(sizeof *whole);
    if (!b->arena) {
        TRY(bind_scale(b, name, NULL));
        return count_matrix(b);
    }
    TRY(binder_find(b, name, (int64_t[3]){k, of_rows, 1}, &whole));
    gguf_tensor *t = arena_take(b->arena, sizeof *t);
    uint64_t row_bytes = whole->n_bytes / (uint64_t)whole->dims[1];
    *t = *whole;
    binder_name(b, t->name, role);
    t->dims[1] = rows;
    t->offset += (uint64_t)first * row_bytes;
    t->n_bytes = (uint64_t)rows * row_bytes;
    TRY(add_matrix(b, t, out));
    return bind_scale(b, name, *out);
}

void bind_room(binder *b, int64_t n, float **out)
{
    static float nothing;
    b->n_bytes += arena_size((size_t)n * sizeof(float));
    *out = b->arena ? arena_take(b->arena, (size_t)n * sizeof(float)) : &nothing;
}

static void bind_equal(binder *b, float number, int64_t n, float **out)
{
    bind_room(b, n, out);
    for (int64_t i = 0; b->arena && i < n; i++)
        (*out)[i] = number;
}

void bind_zeros(binder *b, int64_t n, float **out)
{
    bind_equal(b, 0.0f, n, out);
}

void bind_ones(binder *b, int64_t n, float **out)
{
    bind_equal(b, 1.0f, n, out);
}

void *bind_own(binder *b, layer_layout *y, size_t n_bytes)
{
    assert(n_bytes <= sizeof b->own);
    b->n_bytes += arena_size(n_bytes);
    y->own = b->arena ? arena_take(b->arena, n_bytes) : b->own;
    return y->own;
}

drey_status bind_whole_vectors(binder *b, const char *name, int64_t n, int64_t rows, float **out)
{
    const gguf_tensor *t;
    model_layout *l = b->layout;
    bind_room(b, n * rows, out);
    if (b->arena) {
        TRY(binder_find(b, name, (int64_t[3]){n, rows, 1}, &t));
        l->vector[l->n_vectors] = (layout_vector){t, *out, b->layer, false};
    }
    l->n_vectors++;
    return DREY_OK;
}

drey_status bind_vectors(binder *b, const char *role, int64_t n, int64_t rows, float **out)
{
    return bind_whole_vectors(b, binder_name(b, (char[64]){0}, role), n, rows, out);
}

drey_status bind_turned(binder *b, const char *role, int64_t n, int64_t rows, float **out)
{
    TRY(bind_vectors(b, role, n, rows, out));
    if (b->arena)
        b->layout->vector[b->layout->n_vectors - 1].turned = true;
    return DREY_OK;
}

drey_status bind_vector(binder *b, const char *role, int64_t n, float **out)
{
    return bind_vectors(b, role, n, 1, out);
}

drey_status bind_vector_if(binder *b, const char *role, int64_t n, float **out)
{
    return binder_has(b, role) ? bind_vector(b, role, n, out) : DREY_OK;
}

drey_status bind_experts_of(binder *b, expert_layer *of, int32_t matrix, int32_t n,
                            const char *role, int64_t k, int64_t rows)
{
    const gguf_tensor *t;
    if (!b->arena)
        return count_matrix(b);
    const int64_t dims[3] = {k, n * rows, b->layout->shape.experts.router.n_experts};
    TRY(binder_find(b, binder_name(b, (char[64]){0}, role), dims, &t));
    return expert_matrices_describe(of, matrix, n, &b->layout->matrix[b->layout->n_matrices++], t,
                                    b->kernels, b->err);
}

drey_status bind_looked_up(binder *b, const char *name, int64_t k, int64_t rows)
{
    const gguf_tensor *t;
    b->n_bytes += arena_size(sizeof(weight));
    if (!b->arena)
        return DREY_OK;
    b->layout->looked_up = arena_take(b->arena, sizeof(weight));
    TRY(binder_find(b, name, (int64_t[3]){k, rows, 1}, &t));
    return weight_describe(b->layout->looked_up, t, b->kernels, b->err);
}
