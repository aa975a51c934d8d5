/* The amx tier's matrix kernels for many tokens; for few it has those of avx512. */
#include "kernel/tiers.h"

#include "kernel/x86/amx/amx.h"

/* ---- Activations into A tiles ---- */

/* Words of m <= 8 tokens, [8][m][4], as rows of tokens, row_bytes apart. */
static void rows_from_words(uint8_t *rows, int32_t row_bytes, const uint8_t *words, int32_t m)
{
    if (m != TOKEN_TILE) {
        for (int32_t t = 0; t < m; t++)
            for (int32_t i = 0; i < 8; i++)
                memcpy(rows + t * row_bytes + i * 4, words + (i * m + t) * 4, 4);
        return;
    }
    /* 4 x 4 words for 128 bits, then the halves of rows side by side. */
    const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i last = _mm512_add_epi64(first, _mm512_set1_epi64(4));
    __m512i v[4], by_four[2][2]; /* [tokens 0..3, 4..7][words 0..3, 4..7] */
    for (int i = 0; i < 4; i++)
        v[i] = load_line(words + i * 64);
    for (int i = 0; i < 2; i++) {
        by_four[0][i] = _mm512_permutex2var_epi32(v[2 * i], low, v[2 * i + 1]);
        by_four[1][i] = _mm512_permutex2var_epi32(v[2 * i], high, v[2 * i + 1]);
    }
    for (int t = 0; t < TOKEN_TILE; t += 2) {
        __m512i two =
            _mm512_permutex2var_epi64(by_four[t / 4][0], t % 4 ? last : first, by_four[t / 4][1]);
        _mm256_storeu_si256((__m256i *)(void *)(rows + t * row_bytes), _mm512_castsi512_si256(two));
        _mm256_storeu_si256((__m256i *)(void *)(rows + (t + 1) * row_bytes),
                            _mm512_extracti64x4_epi64(two, 1));
    }
}

/* A quantised tile of m rows (0: none; fewer than 8: the rest are zeros) becomes rows
 * first .. first + 7 of a tile of 16. */
static void arrange_32(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    tokens_32 *out = acts;
    if (m < TOKEN_TILE)
        memset(out->x[first], 0, TOKEN_TILE * sizeof out->x[0]);
    if (m == 0)
        return;
    rows_from_words(out->x[first], sizeof out->x[0], tile, m);
    memcpy(out->d + first, tile + ACT_32_D * m, (size_t)m * 4);
    memcpy(out->sum + first, tile + ACT_32_SUM * m, (size_t)m * 4);
}

static void rows_256(tokens_256 *out, const uint8_t *tile, int32_t first, int32_t m)
{
    for (int32_t part = 0; part < STEP_PARTS; part++) {
        if (m < TOKEN_TILE)
            memset(out->x[part][first], 0, TOKEN_TILE * sizeof out->x[0][0]);
        for (int32_t i = 0; i < 2 && m > 0; i++)
            rows_from_words(out->x[part][first] + i * 32, sizeof out->x[0][0],
                            tile + (part * 2 + i) * 8 * m * 4, m);
    }
    if (m > 0)
        memcpy(out->d + first, tile + ACT_256_D * m, (size_t)m * 4);
}

/* With the sums over 32 weights. */
static void arrange_256(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    tokens_256 *out = acts;
    rows_256(out, tile, first, m);
    for (int32_t p = 0; p < 4 && m > 0; p++)
        memcpy(out->sums[p] + first, tile + (ACT_256_PAIRS + p * 4) * m, (size_t)m * 4);
}

/* With the sums over 16 weights. */
static void arrange_256_fine(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    tokens_256 *out = acts;
    rows_256(out, tile, first, m);
    const uint8_t *sum16 = tile + ACT_256_SUM16 * m; /* -32 times the sums, [16][m] */
    for (int32_t p = 0; p < MIN_PAIRS; p++)
        for (int32_t t = 0; t < m; t++) {
            const uint8_t *low = sum16 + ((p / 2 * 4 + p % 2) * m + t) * 4;
            int32_t a = (int32_t)load_u32(low) / -32, b = (int32_t)load_u32(low + 8 * m) / -32;
            out->sums[p][first + t] = ((uint32_t)a & 0xffff) | (uint32_t)b << 16;
        }
}

/* ---- Products: c as in tile_job ---- */

/* Blocks of 32: C is emptied after each. Tiles change with the part, so that none waits. */
#define MULTIPLY_32(c, part, x, b, C0, C1, A)                                                      \
    TILE_ZERO(C0);                                                                                 \
    TILE_ZERO(C1);                                                                                 \
    TILE_LOAD(A, x, 32);                                                                           \
    TILE_LOAD(6, b, 64);                                                                           \
    TILE_DOT_SIGNED(C0, A, 6);                                                                     \
    TILE_LOAD(7, (b) + TILE_BYTES / 2, 64);                                                        \
    TILE_DOT_SIGNED(C1, A, 7);                                                                     \
    TILE_STORE(C0, (c) + (part)*2 * TILE_TOKENS * HALF_ROWS, 64);                                  \
    TILE_STORE(C1, (c) + ((part)*2 + 1) * TILE_TOKENS * HALF_ROWS, 64);

static void multiply_32(int32_t *c, const void *acts, const step_weights *w, int32_t part)
{
    const uint8_t *x = ((const tokens_32 *)acts)[part].x[0], *b = w->planes + part * TILE_BYTES;
    if (part % 2 == 0) {
        MULTIPLY_32(c, part, x, b, 0, 1, 4)
    } else {
        MULTIPLY_32(c, part, x, b, 2, 3, 5)
    }
}

#define CLEAR_C                                                                                    \
    TILE_ZERO(0);                                                                                  \
    TILE_ZERO(1);                                                                                  \
    TILE_ZERO(2);                                                                                  \
    TILE_ZERO(3);

#define STORE_C(c)                                                                                 \
    TILE_STORE(0, c, 64);                                                                          \
    TILE_STORE(1, (c) + TILE_TOKENS * HALF_ROWS, 64);                                              \
    TILE_STORE(2, (c) + 2 * TILE_TOKENS * HALF_ROWS, 64);                                          \
    TILE_STORE(3, (c) + 3 * TILE_TOKENS * HALF_ROWS, 64);

/* Super-blocks with two planes: C of [plane][half] are tiles 0 .. 3. */
#define DEFINE_MULTIPLY_TWO(name, TILE_DOT_0, TILE_DOT_1)                                          \
    static void name(int32_t *c, const void *acts, const step_weights *w, int32_t part)            \
    {                                                                                              \
        const uint8_t *x = ((const tokens_256 *)acts)->x[part][0];                                 \
        const uint8_t *b = w->planes + part * 4 * TILE_BYTES;                                      \
        if (part == 0) {                                                                           \
            CLEAR_C                                                                                \
        }                                                                                          \
        TILE_LOAD(4, x, 64);                                                                       \
        TILE_LOAD(5, b, 64);                                                                       \
        TILE_DOT_0(0, 4, 5);                                                                       \
        TILE_LOAD(6, b + TILE_BYTES, 64);                                                          \
        TILE_DOT_0(1, 4, 6);                                                                       \
        TILE_LOAD(7, b + 2 * TILE_BYTES, 64);                                                      \
        TILE_DOT_1(2, 4, 7);                                                                       \
        TILE_LOAD(5, b + 3 * TILE_BYTES, 64);                                                      \
        TILE_DOT_1(3, 4, 5);                                                                       \
        if (part == STEP_PARTS - 1) {                                                              \
            STORE_C(c)                                                                             \
        }                                                                                          \
    }

DEFINE_MULTIPLY_TWO(multiply_digits, TILE_DOT_UNSIGNED, TILE_DOT_UNSIGNED)
DEFINE_MULTIPLY_TWO(multiply_bytes, TILE_DOT_UNSIGNED, TILE_DOT_SIGNED)

/* Super-blocks with one plane: even parts add to tiles 0 and 1, odd ones to 2 and 3. */
#define DEFINE_MULTIPLY_ONE(name, TILE_DOT)                                                        \
    static void name(int32_t *c, const void *acts, const step_weights *w, int32_t part)            \
    {                                                                                              \
        const uint8_t *x = ((const tokens_256 *)acts)->x[part][0];                                 \
        const uint8_t *b = w->planes + part * 4 * TILE_BYTES;                                      \
        if (part == 0) {                                                                           \
            CLEAR_C                                                                                \
        }                                                                                          \
        TILE_LOAD(4, x, 64);                                                                       \
        if (part % 2 == 0) {                                                                       \
            TILE_LOAD(5, b, 64);                                                                   \
            TILE_DOT(0, 4, 5);                                                                     \
            TILE_LOAD(6, b + TILE_BYTES, 64);                                                      \
            TILE_DOT(1, 4, 6);                                                                     \
        } else {                                                                                   \
            TILE_LOAD(7, b, 64);                                                                   \
            TILE_DOT(2, 4, 7);                                                                     \
            TILE_LOAD(6, b + TILE_BYTES, 64);                                                      \
            TILE_DOT(3, 4, 6);                                                                     \
        }                                                                                          \
        if (part == STEP_PARTS - 1) {                                                              \
            STORE_C(c)                                                                             \
        }                                                                                          \
    }

DEFINE_MULTIPLY_ONE(multiply_unsigned, TILE_DOT_UNSIGNED)
DEFINE_MULTIPLY_ONE(multiply_signed, TILE_DOT_SIGNED)

/* ---- The float end, tokens first .. last - 1 of a job: the contract's order (kernel.h) ---- */

INLINE __m512 add_scaled(__m512 sum, __m512 factor, __m512 dx, __m512i i)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(factor, dx), _mm512_cvtepi32_ps(i), sum);
}

/* What does not change with the token is loaded first: stores to the sums could change it, as far
 * as the compiler knows. */
INLINE void finish_32_parts(const tile_job *job, int32_t first, int32_t last, const int32_t n_parts,
                            const bool has_min)
{
    const tokens_32 *acts = job->acts;
    __m512 dw[STEP_PARTS][2], mw[STEP_PARTS][2];
    UNROLL
    for (int32_t part = 0; part < n_parts; part++)
        for (int half = 0; half < 2; half++) {
            dw[part][half] = _mm512_loadu_ps(job->weights->d[part][half]);
            if (has_min)
                mw[part][half] = _mm512_loadu_ps(job->weights->m[part][half]);
        }
    for (int32_t t = first; t < last; t++) {
        float *sum = job->sums + t * GROUP_ROWS;
        __m512 acc[2] = {_mm512_loadu_ps(sum), _mm512_loadu_ps(sum + HALF_ROWS)};
        UNROLL
        for (int32_t part = 0; part < n_parts; part++) {
            const int32_t *c = job->c + (part * 2 * TILE_TOKENS + t) * HALF_ROWS;
            __m512 dx = _mm512_set1_ps(acts[part].d[t]);
            __m512i x = _mm512_set1_epi32(acts[part].sum[t]);
            UNROLL
            for (int half = 0; half < 2; half++) {
                acc[half] = add_scaled(acc[half], dw[part][half], dx,
                                       load_line(c + half * TILE_TOKENS * HALF_ROWS));
                if (has_min)
                    acc[half] = add_scaled(acc[half], mw[part][half], dx, x);
            }
        }
        _mm512_storeu_ps(sum, acc[0]);
        _mm512_storeu_ps(sum + HALF_ROWS, acc[1]);
    }
}

#define DEFINE_FINISH_32(name, has_min)                                                            \
    static void name(const tile_job *job, int32_t first, int32_t last)                             \
    {                                                                                              \
        switch (job->n_parts) {                                                                    \
        case 1:                                                                                    \
            finish_32_parts(job, first, last, 1, has_min);                                         \
            return;                                                                                \
        case 2:                                                                                    \
            finish_32_parts(job, first, last, 2, has_min);                                         \
            return;                                                                                \
        case 3:                                                                                    \
            finish_32_parts(job, first, last, 3, has_min);                                         \
            return;                                                                                \
        default:                                                                                   \
            finish_32_parts(job, first, last, STEP_PARTS, has_min);                                \
        }                                                                                          \
    }

DEFINE_FINISH_32(finish_32_plain, false)
DEFINE_FINISH_32(finish_32_min, true)

/* How the two C of a super-block make its integer. */
typedef enum fold { FOLD_DIGITS, FOLD_BYTES, FOLD_SUM, FOLD_NEGATED } fold;

INLINE __m512i folded(__m512i c0, __m512i c1, const fold how)
{
    if (how == FOLD_DIGITS)
        return _mm512_add_epi32(c0, _mm512_slli_epi32(c1, 3));
    if (how == FOLD_BYTES)
        return _mm512_add_epi32(c0, _mm512_slli_epi32(c1, 8));
    __m512i sum = _mm512_add_epi32(c0, c1);
    return how == FOLD_NEGATED ? _mm512_sub_epi32(_mm512_setzero_si512(), sum) : sum;
}

/* Both halves of a token share what is broadcast: loads bind. */
INLINE void finish_256(const tile_job *job, int32_t first, int32_t last, const fold how,
                       const int n_pairs)
{
    const tokens_256 *acts = job->acts;
    const step_weights *w = job->weights;
    __m512 dw[2], mw[2];
    __m512i min[2][MIN_PAIRS];
    UNROLL
    for (int half = 0; half < 2; half++) {
        dw[half] = _mm512_loadu_ps(w->d[0][half]);
        if (n_pairs)
            mw[half] = _mm512_loadu_ps(w->m[0][half]);
        UNROLL
        for (int p = 0; p < n_pairs; p++)
            min[half][p] = load_line(w->min_pairs[half][p]);
    }
    for (int32_t t = first; t < last; t++) {
        float *sum = job->sums + t * GROUP_ROWS;
        const int32_t *c = job->c + t * HALF_ROWS;
        __m512 dx = _mm512_set1_ps(acts->d[t]);
        __m512i j[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        UNROLL
        for (int p = 0; p < n_pairs; p++) {
            __m512i x = _mm512_set1_epi32((int32_t)acts->sums[p][t]);
            j[0] = _mm512_dpwssd_epi32(j[0], min[0][p], x);
            j[1] = _mm512_dpwssd_epi32(j[1], min[1][p], x);
        }
        UNROLL
        for (int half = 0; half < 2; half++) {
            __m512i i = folded(load_line(c + half * TILE_TOKENS * HALF_ROWS),
                               load_line(c + (2 + half) * TILE_TOKENS * HALF_ROWS), how);
            __m512 acc = add_scaled(_mm512_loadu_ps(sum + half * HALF_ROWS), dw[half], dx, i);
            if (n_pairs)
                acc =
                    _mm512_fnmadd_ps(_mm512_mul_ps(mw[half], dx), _mm512_cvtepi32_ps(j[half]), acc);
            _mm512_storeu_ps(sum + half * HALF_ROWS, acc);
        }
    }
}

#define DEFINE_FINISH_256(name, how, n_pairs)                                                      \
    static void name(const tile_job *job, int32_t first, int32_t last)                             \
    {                                                                                              \
        finish_256(job, first, last, how, n_pairs);                                                \
    }

DEFINE_FINISH_256(finish_digits, FOLD_DIGITS, 4)
DEFINE_FINISH_256(finish_bytes, FOLD_BYTES, 0)
DEFINE_FINISH_256(finish_negated, FOLD_NEGATED, 0)
DEFINE_FINISH_256(finish_fine, FOLD_SUM, MIN_PAIRS)

/* ---- Types ---- */

/* C, A and B of whole tiles. */
static const tile_config config_256 = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

/* C in tiles 0 .. 3; A, 32 k, in 4 and 5; B in 6 and 7. */
static const tile_config config_32 = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 32, 32, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 8, 8},
};

#define DEFINE_DOT_AMX(TYPE, name, config, arrange, multiply, finish)                              \
    static const amx_type type_##name = {                                                          \
        TYPE_##TYPE, &(config), arrange, build_##name##_amx, multiply, finish,                     \
    };                                                                                             \
    static void dot_##name##_amx(float *y, int64_t ldy, const void *groups, int32_t n_groups,      \
                                 const void *acts, int32_t n, int64_t k, void *scratch)            \
    {                                                                                              \
        dot_amx(&type_##name, y, ldy, groups, n_groups, acts, n, k, scratch);                      \
    }

DEFINE_DOT_AMX(Q4_0, q4_0, config_32, arrange_32, multiply_32, finish_32_plain)
DEFINE_DOT_AMX(Q4_1, q4_1, config_32, arrange_32, multiply_32, finish_32_min)
DEFINE_DOT_AMX(Q5_0, q5_0, config_32, arrange_32, multiply_32, finish_32_plain)
DEFINE_DOT_AMX(Q5_1, q5_1, config_32, arrange_32, multiply_32, finish_32_min)
DEFINE_DOT_AMX(Q8_0, q8_0, config_32, arrange_32, multiply_32, finish_32_plain)
DEFINE_DOT_AMX(IQ4_NL, iq4_nl, config_32, arrange_32, multiply_32, finish_32_plain)
DEFINE_DOT_AMX(MXFP4, mxfp4, config_32, arrange_32, multiply_32, finish_32_plain)
DEFINE_DOT_AMX(Q2_K, q2_k, config_256, arrange_256_fine, multiply_unsigned, finish_fine)
DEFINE_DOT_AMX(Q3_K, q3_k, config_256, arrange_256, multiply_signed, finish_negated)
DEFINE_DOT_AMX(Q4_K, q4_k, config_256, arrange_256, multiply_digits, finish_digits)
DEFINE_DOT_AMX(Q5_K, q5_k, config_256, arrange_256, multiply_digits, finish_digits)
DEFINE_DOT_AMX(Q6_K, q6_k, config_256, arrange_256, multiply_bytes, finish_bytes)
DEFINE_DOT_AMX(IQ4_XS, iq4_xs, config_256, arrange_256, multiply_bytes, finish_bytes)

static const amx_type *const types[TYPE_LIMIT] = {
#define TYPE_AT(TYPE, name, act, block_k, block_bytes) [TYPE_##TYPE] = &type_##name,
    KERNEL_INTEGER_TYPES(TYPE_AT)
#undef TYPE_AT
};

static const char *part_amx(tensor_type type, int32_t part, int64_t rounds, void *scratch)
{
    return types[type] ? dot_part_amx(types[type], part, rounds, scratch) : NULL;
}

void amx_matmul_init(kernel_table *table)
{
    table->dot_part = part_amx;
    limits_amx_set(table);
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].dot_many = dot_##name##_amx;                                        \
    table->matmul[TYPE_##TYPE].many_from = table->shape & SHAPE_EARLY ? EARLY_FROM : TILES_FROM;
    KERNEL_INTEGER_TYPES(SET_TYPE)
#undef SET_TYPE
}
