/* Comparing a device's attention with the plain C kernels': see check_attention.h. */
#include "unit/opencl/check_attention.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/opencl/check_vectors.h"

/* Two key heads: of the first one blocks [0, cut) are folded and the others give partial results;
 * of the second one all are folded. */
enum { HEADS = 2, N_PIECES = 3 };

typedef struct vectors {
    attention_shape shape;
    int32_t pairs, ld, positions;
    size_t head_bytes;
    uint8_t *keys, *values; /* [HEADS][head_bytes] */
    float *q, *out[2];      /* [n_rows][ld]; the processor's, and the device's */
    float *partials[2];     /* [HEADS][partials_floats] */
    size_t out_floats, partials_floats;
    int32_t n_prefix[CHECK_ROWS], n_path[CHECK_ROWS];
    void *scratch;
} vectors;

static bool vectors_make(vectors *v, const attention_shape *s)
{
    assert(s->n_rows <= CHECK_ROWS && s->head_dim <= CHECK_DIM);
    *v = (vectors){.shape = *s,
                   .pairs = s->n_rows * s->n_q,
                   .ld = HEADS * s->n_q * s->head_dim + s->gap,
                   .positions = s->n_blocks * ATTEND_BLOCK};
    v->head_bytes = kv_head_bytes(s->format, v->positions, s->head_dim);
    v->out_floats = (size_t)s->n_rows * (size_t)v->ld;
    v->partials_floats = attend_partials_floats(v->pairs, s->head_dim, s->n_blocks);
    v->keys = check_take(HEADS * v->head_bytes);
    v->values = check_take(HEADS * v->head_bytes);
    v->q = check_take(v->out_floats * sizeof(float));
    v->scratch = check_take(attend_scratch_bytes(s->head_dim, s->head_dim, false));
    bool good = v->keys && v->values && v->q && v->scratch;
    for (int i = 0; i < 2; i++) {
        v->out[i] = check_take(v->out_floats * sizeof(float));
        v->partials[i] = check_take(HEADS * v->partials_floats * sizeof(float));
        good = good && v->out[i] && v->partials[i];
    }
    for (int32_t row = 0; row < s->n_rows; row++)
        v->n_prefix[row] = v->positions;
    return good;
}

static void vectors_free(vectors *v)
{
    free(v->keys);
    free(v->values);
    free(v->q);
    free(v->scratch);
    for (int i = 0; i < 2; i++) {
        free(v->out[i]);
        free(v->partials[i]);
    }
}

/* The first head's values have all sizes, down to those whose products are denormal; the second
 * one's are 1 where the dimension is the position's number, so that a block's sums are its
 * exponentials. Keys are larger in some blocks than in others: exponents reach from 0 to beyond
 * what exp is 0 for. */
static void vectors_fill(vectors *v, uint64_t *seed)
{
    static const int key_exponents[] = {0, 3, -6, 5, 1, -20};
    static const int value_exponents[] = {0, -14, 6, -120, -24};
    const kernel_table *ref = kernel_select_shape("ref", 0);
    const int32_t dim = v->shape.head_dim;
    for (size_t i = 0; i < v->out_floats; i++)
        v->q[i] = ldexpf(check_float(seed), 1 - (int)(i / (size_t)dim % 3));
    for (int32_t slot = 0; slot < HEADS * v->positions; slot++) {
        const int32_t head = slot / v->positions, at = slot % v->positions;
        float key[CHECK_DIM], value[CHECK_DIM];
        for (int32_t i = 0; i < dim; i++) {
            key[i] = ldexpf(check_float(seed), key_exponents[at / ATTEND_BLOCK % 6]);
            value[i] = ldexpf(check_float(seed), value_exponents[at % 5]);
            if (head > 0)
                value[i] = i == at % dim ? 1 : 0;
        }
        uint8_t *keys = v->keys + (size_t)head * v->head_bytes;
        uint8_t *values = v->values + (size_t)head * v->head_bytes;
        kv_store_key(ref, v->shape.format, keys, at, key, dim, v->scratch);
        kv_store_value(ref, v->shape.format, values, at, value, dim, v->scratch);
    }
}

/* side: 0, the processor's results, 1, the device's. */
static void pieces_make(const vectors *v, int side, device_piece piece[N_PIECES])
{
    const attention_shape *s = &v->shape;
    const int32_t head[N_PIECES] = {0, 0, 1}, from[N_PIECES] = {0, s->cut, 0},
                  to[N_PIECES] = {s->cut, s->n_blocks, s->n_blocks};
    for (int i = 0; i < N_PIECES; i++) {
        const int64_t width = (int64_t)head[i] * s->n_q * s->head_dim;
        piece[i] =
            (device_piece){.a = {.kernels = kernel_select_shape("ref", 0),
                                 .format = s->format,
                                 .k_dim = s->head_dim,
                                 .v_dim = s->head_dim,
                                 .n_q = s->n_q,
                                 .n_rows = s->n_rows,
                                 .scale = 0.125f,
                                 .keys = v->keys + (size_t)head[i] * v->head_bytes,
                                 .values = v->values + (size_t)head[i] * v->head_bytes,
                                 .n_prefix = v->n_prefix,
                                 .n_path = v->n_path,
                                 .q = v->q + width,
                                 .out = v->out[side] + width,
                                 .q_ld = v->ld,
                                 .out_ld = v->ld},
                           .last = v->pairs,
                           .n_first_range = head[i] ? s->n_blocks : s->cut,
                           .from = from[i],
                           .to = to[i],
                           .partials = v->partials[side] + (size_t)head[i] * v->partials_floats};
    }
}

static bool same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* The pairs' values in a part [m, l: padded][a] of partials. */
static bool same_part(const vectors *v, const float *a, const float *b, bool sums)
{
    const int32_t dim = v->shape.head_dim;
    const size_t n = (size_t)v->pairs, padded = attend_partials_floats(v->pairs, dim, 0) / 2;
    return same(a, b, n) && same(a + padded, b + padded, n) &&
           (!sums || same(a + 2 * padded, b + 2 * padded, n * (size_t)dim));
}

static bool same_results(const vectors *v)
{
    const attention_shape *s = &v->shape;
    const size_t header = attend_partials_floats(v->pairs, s->head_dim, 0),
                 each = attend_partials_floats(v->pairs, s->head_dim, 1) - header;
    bool good = same(v->out[0], v->out[1], v->out_floats);
    for (size_t head = 0; head < HEADS; head++) {
        const float *want = v->partials[0] + head * v->partials_floats,
                    *got = v->partials[1] + head * v->partials_floats;
        good = good && same_part(v, want, got, false);
        for (size_t i = 0; head == 0 && i < (size_t)(s->n_blocks - s->cut); i++)
            good = good && same_part(v, want + header + i * each, got + header + i * each, true);
    }
    return good;
}

static drey_status vectors_run(vectors *v, check_attend_fn *run, void *user, const char *name,
                               drey_error *err)
{
    device_piece piece[N_PIECES];
    for (int i = 0; i < 2; i++)
        memset(v->out[i], 0xff, v->out_floats * sizeof(float));
    pieces_make(v, 0, piece);
    for (int i = 0; i < N_PIECES; i++)
        attend_range(&piece[i].a, piece[i].first, piece[i].last, piece[i].n_first_range,
                     piece[i].from, piece[i].to, piece[i].partials, v->scratch);
    pieces_make(v, 1, piece);
    memset(v->partials[1], 0xff, HEADS * v->partials_floats * sizeof(float));
    TRY(run(user, &(check_pieces){v->keys, v->values, HEADS * v->head_bytes, piece, N_PIECES},
            err));
    if (!same_results(v))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s computes attention with other bits than the processor: its texts would differ",
             name);
    return DREY_OK;
}

drey_status check_attention_of(const attention_shape *shape, uint64_t *seed, check_attend_fn *run,
                               void *user, const char *name, drey_error *err)
{
    drey_status status;
    vectors v;
    if (vectors_make(&v, shape)) {
        vectors_fill(&v, seed);
        status = vectors_run(&v, run, user, name, err);
    } else {
        status = error_set(err, DREY_ERR_MEMORY, "no memory for the test of %s", name);
    }
    vectors_free(&v);
    return status;
}

drey_status check_attention(check_attend_fn *run, void *user, const char *name, drey_error *err)
{
    static const kv_format formats[] = {KV_F16, KV_Q8_0, KV_F32};
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 3; i++) {
        const attention_shape shape = {
            .format = formats[i], .head_dim = 64, .n_rows = 3, .n_q = 2, .n_blocks = 7, .cut = 4};
        TRY(check_attention_of(&shape, &seed, run, user, name, err));
    }
    return DREY_OK;
}
