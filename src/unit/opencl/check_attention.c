/* Comparing a device's attention with the plain C kernels': see check_attention.h. */
#include "unit/opencl/check_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/opencl/check_vectors.h"

/* Two key heads after N positions: of the first one blocks [0, CUT) are folded and the others give
 * partial results; of the second one all are folded. */
enum {
    HEADS = 2,
    ROWS = 3,
    N_Q = 2,
    DIM = 64,
    PAIRS = ROWS * N_Q,
    WIDTH = HEADS * N_Q * DIM,
    BLOCKS = 7,
    CUT = 4,
    POSITIONS = BLOCKS * ATTEND_BLOCK,
    N_PIECES = 3
};

typedef struct vectors {
    kv_format format;
    size_t head_bytes;
    uint8_t *keys, *values; /* [HEADS][head_bytes] */
    float *q, *out[2];      /* [ROWS][WIDTH]; the processor's, and the device's */
    float *partials[2];     /* [HEADS][partials_floats] */
    size_t partials_floats;
    int32_t n_prefix[ROWS], n_path[ROWS];
    void *scratch;
} vectors;

static bool vectors_make(vectors *v, kv_format format)
{
    const size_t floats = (size_t)ROWS * WIDTH * sizeof(float);
    *v = (vectors){.format = format, .head_bytes = kv_head_bytes(format, POSITIONS, DIM)};
    v->partials_floats = attend_partials_floats(PAIRS, DIM, BLOCKS);
    v->keys = check_take(HEADS * v->head_bytes);
    v->values = check_take(HEADS * v->head_bytes);
    v->q = check_take(floats);
    v->scratch = check_take(attend_scratch_bytes(DIM));
    bool good = v->keys && v->values && v->q && v->scratch;
    for (int i = 0; i < 2; i++) {
        v->out[i] = check_take(floats);
        v->partials[i] = check_take(HEADS * v->partials_floats * sizeof(float));
        good = good && v->out[i] && v->partials[i];
    }
    for (int32_t row = 0; row < ROWS; row++) {
        v->n_prefix[row] = POSITIONS;
        v->n_path[row] = 0;
    }
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
    for (int32_t i = 0; i < ROWS * WIDTH; i++)
        v->q[i] = ldexpf(check_float(seed), 1 - i / DIM % 3);
    for (int32_t slot = 0; slot < HEADS * POSITIONS; slot++) {
        const int32_t head = slot / POSITIONS, at = slot % POSITIONS;
        float key[DIM], value[DIM];
        for (int32_t i = 0; i < DIM; i++) {
            key[i] = ldexpf(check_float(seed), key_exponents[at / ATTEND_BLOCK % 6]);
            value[i] = ldexpf(check_float(seed), value_exponents[at % 5]);
            if (head > 0)
                value[i] = i == at % DIM ? 1 : 0;
        }
        uint8_t *keys = v->keys + (size_t)head * v->head_bytes;
        uint8_t *values = v->values + (size_t)head * v->head_bytes;
        kv_store_key(ref, v->format, keys, at, key, DIM, v->scratch);
        kv_store_value(ref, v->format, values, at, value, DIM, v->scratch);
    }
}

/* side: 0, the processor's results, 1, the device's. */
static void pieces_make(const vectors *v, int side, device_piece piece[N_PIECES])
{
    static const int32_t head[N_PIECES] = {0, 0, 1}, from[N_PIECES] = {0, CUT, 0},
                         to[N_PIECES] = {CUT, BLOCKS, BLOCKS};
    for (int i = 0; i < N_PIECES; i++) {
        const int64_t width = (int64_t)head[i] * N_Q * DIM;
        piece[i] =
            (device_piece){.a = {.kernels = kernel_select_shape("ref", 0),
                                 .format = v->format,
                                 .head_dim = DIM,
                                 .n_q = N_Q,
                                 .n_rows = ROWS,
                                 .scale = 0.125f,
                                 .keys = v->keys + (size_t)head[i] * v->head_bytes,
                                 .values = v->values + (size_t)head[i] * v->head_bytes,
                                 .n_prefix = v->n_prefix,
                                 .n_path = v->n_path,
                                 .q = v->q + width,
                                 .out = v->out[side] + width,
                                 .ld = WIDTH},
                           .last = PAIRS,
                           .n_first_range = head[i] ? BLOCKS : CUT,
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
static bool same_part(const float *a, const float *b, bool sums)
{
    const size_t padded = attend_partials_floats(PAIRS, DIM, 0) / 2;
    return same(a, b, PAIRS) && same(a + padded, b + padded, PAIRS) &&
           (!sums || same(a + 2 * padded, b + 2 * padded, (size_t)PAIRS * DIM));
}

static bool same_results(const vectors *v)
{
    const size_t header = attend_partials_floats(PAIRS, DIM, 0),
                 each = attend_partials_floats(PAIRS, DIM, 1) - header;
    bool good = same(v->out[0], v->out[1], (size_t)ROWS * WIDTH);
    for (size_t head = 0; head < HEADS; head++) {
        const float *want = v->partials[0] + head * v->partials_floats,
                    *got = v->partials[1] + head * v->partials_floats;
        good = good && same_part(want, got, false);
        for (size_t i = 0; head == 0 && i < BLOCKS - CUT; i++)
            good = good && same_part(want + header + i * each, got + header + i * each, true);
    }
    return good;
}

static drey_status vectors_run(vectors *v, check_attend_fn *run, void *user, const char *name,
                               drey_error *err)
{
    device_piece piece[N_PIECES];
    pieces_make(v, 0, piece);
    for (int i = 0; i < N_PIECES; i++)
        attend_range(&piece[i].a, piece[i].first, piece[i].last, piece[i].n_first_range,
                     piece[i].from, piece[i].to, piece[i].partials, v->scratch);
    pieces_make(v, 1, piece);
    memset(v->out[1], 0xff, (size_t)ROWS * WIDTH * sizeof(float));
    memset(v->partials[1], 0xff, HEADS * v->partials_floats * sizeof(float));
    TRY(run(user, &(check_pieces){v->keys, v->values, HEADS * v->head_bytes, piece, N_PIECES},
            err));
    if (!same_results(v))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s computes attention with other bits than the processor: its texts would differ",
             name);
    return DREY_OK;
}

drey_status check_attention(check_attend_fn *run, void *user, const char *name, drey_error *err)
{
    static const kv_format formats[] = {KV_F16, KV_Q8_0, KV_F32};
    drey_status status = DREY_OK;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 3 && status == DREY_OK; i++) {
        vectors v;
        if (vectors_make(&v, formats[i])) {
            vectors_fill(&v, &seed);
            status = vectors_run(&v, run, user, name, err);
        } else {
            status = error_set(err, DREY_ERR_MEMORY, "no memory for the test of %s", name);
        }
        vectors_free(&v);
    }
    return status;
}
