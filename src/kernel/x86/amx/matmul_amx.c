/* The amx tier's matrix kernels for many tokens; for few it has those of avx512. */
#include "kernel/tiers.h"

#include "kernel/x86/amx/amx.h"
#include "os/cpu_tuning.h"

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
    if (m < TOKEN_TILE) {
        memset(out->x[first], 0, TOKEN_TILE * sizeof out->x[0]);
        memset(out->d + first, 0, TOKEN_TILE * sizeof out->d[0]);
        memset(out->sum + first, 0, TOKEN_TILE * sizeof out->sum[0]);
    }
    if (m == 0)
        return;
    rows_from_words(out->x[first], sizeof out->x[0], tile, m);
    memcpy(out->d + first, tile + ACT_32_D * m, (size_t)m * 4);
    memcpy(out->sum + first, tile + ACT_32_SUM * m, (size_t)m * 4);
}

static void rows_256(tokens_256 *out, const uint8_t *tile, int32_t first, int32_t m)
{
    if (m < TOKEN_TILE) {
        memset(out->d + first, 0, TOKEN_TILE * sizeof out->d[0]);
        memset(out->sums[first], 0, TOKEN_TILE * sizeof out->sums[0]);
    }
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

/* Arranges without sums, for types that have no minima. */
static void arrange_256(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    rows_256(acts, tile, first, m);
}

/* A token's sums over 32 weights, pairs of int16 m words apart, as eight bytes each: amx.h. */
INLINE void sums_32_store(uint8_t *out, const uint8_t *pairs, int32_t m)
{
    const __m512i six_copies = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, -128, -128, 8, 8, 8, 8, 8, 8, -128, -128));
    const ptrdiff_t next = (ptrdiff_t)m * 4;
    __m128i pair =
        _mm_setr_epi32((int32_t)load_u32(pairs), (int32_t)load_u32(pairs + next),
                       (int32_t)load_u32(pairs + 2 * next), (int32_t)load_u32(pairs + 3 * next));
    __m512i sum = _mm512_cvtepi16_epi64(pair);
    __m512i fourth = _mm512_srai_epi64(sum, 2);
    __m512i c = _mm512_and_si512(sum, _mm512_set1_epi64(3));
    /* About a seventh of a fourth of the sum, so that b is as small. */
    __m512i a = _mm512_srai_epi64(_mm512_add_epi64(fourth, _mm512_slli_epi64(fourth, 3)), 6);
    __m512i six = _mm512_slli_epi64(_mm512_add_epi64(a, _mm512_slli_epi64(a, 1)), 1);
    __m512i b = _mm512_and_si512(_mm512_sub_epi64(fourth, six), _mm512_set1_epi64(255));
    __m512i bytes = _mm512_or_si512(_mm512_slli_epi64(b, 48), _mm512_slli_epi64(c, 56));
    store_line(out, _mm512_or_si512(bytes, _mm512_shuffle_epi8(a, six_copies)));
}

static void arrange_256_sums(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    tokens_256 *out = acts;
    rows_256(out, tile, first, m);
    for (int32_t t = 0; t < m; t++)
        sums_32_store(out->sums[first + t], tile + ACT_256_PAIRS * m + t * 4, m);
}

/* The same with the sums over 16 weights, -32 times which are there. */
static void arrange_256_fine(void *acts, const uint8_t *tile, int32_t first, int32_t m)
{
    tokens_256 *out = acts;
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(order, _mm512_set1_epi32(m));
    rows_256(out, tile, first, m);
    for (int32_t t = 0; t < m; t++) {
        const uint8_t *sum16 = tile + ACT_256_SUM16 * m + t * 4;
        __m512i sum = _mm512_sub_epi32(_mm512_setzero_si512(),
                                       _mm512_srai_epi32(_mm512_i32gather_epi32(at, sum16, 4), 5));
        __m512i a = _mm512_and_si512(_mm512_srai_epi32(sum, 4), _mm512_set1_epi32(255));
        __m512i b = _mm512_slli_epi32(_mm512_and_si512(sum, _mm512_set1_epi32(15)), 8);
        store_line(out->sums[first + t], _mm512_or_si512(a, b));
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

INLINE void multiply_32(int32_t *c, const void *acts, const step_weights *w, int32_t part)
{
    const uint8_t *x = ((const tokens_32 *)acts)[part].x[0], *b = w->planes + part * TILE_BYTES;
    if (part % 2 == 0) {
        MULTIPLY_32(c, part, x, b, 0, 1, 4)
    } else {
        MULTIPLY_32(c, part, x, b, 2, 3, 5)
    }
}

/* C of half `half` is tile C0 + half, from c + half * 256 on. */
#define STORE_HALVES(c, C0, C1)                                                                    \
    TILE_STORE(C0, c, 64);                                                                         \
    TILE_STORE(C1, (c) + TILE_TOKENS * HALF_ROWS, 64);

/* Minima times sums, before the planes. */
INLINE void multiply_minima(int32_t *c, const tokens_256 *acts, const step_weights *w)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_LOAD(4, acts->sums, 64);
    TILE_LOAD(5, w->minima[0], 64);
    TILE_DOT_UNSIGNED(0, 4, 5);
    TILE_LOAD(6, w->minima[1], 64);
    TILE_DOT_UNSIGNED(1, 4, 6);
    STORE_HALVES(c + C_MINIMA, 0, 1)
}

/* Super-blocks with two planes: C of [plane][half] are tiles 0 .. 3. */
#define DEFINE_MULTIPLY_TWO(name, has_min, TILE_DOT_0, TILE_DOT_1)                                 \
    INLINE void name(int32_t *c, const void *acts, const step_weights *w, int32_t part)            \
    {                                                                                              \
        const uint8_t *x = ((const tokens_256 *)acts)->x[part][0];                                 \
        const uint8_t *b = w->planes + part * 4 * TILE_BYTES;                                      \
        if (has_min && part == 0)                                                                  \
            multiply_minima(c, acts, w);                                                           \
        if (part == 0) {                                                                           \
            TILE_ZERO(0);                                                                          \
            TILE_ZERO(1);                                                                          \
            TILE_ZERO(2);                                                                          \
            TILE_ZERO(3);                                                                          \
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
            STORE_HALVES(c, 0, 1)                                                                  \
            STORE_HALVES(c + 2 * TILE_TOKENS * HALF_ROWS, 2, 3)                                    \
        }                                                                                          \
    }

DEFINE_MULTIPLY_TWO(multiply_digits, true, TILE_DOT_UNSIGNED, TILE_DOT_UNSIGNED)
DEFINE_MULTIPLY_TWO(multiply_bytes, false, TILE_DOT_UNSIGNED, TILE_DOT_SIGNED)

/* Super-blocks with one plane: C of both halves are tiles 0 and 1. */
#define DEFINE_MULTIPLY_ONE(name, has_min, TILE_DOT)                                               \
    INLINE void name(int32_t *c, const void *acts, const step_weights *w, int32_t part)            \
    {                                                                                              \
        const uint8_t *x = ((const tokens_256 *)acts)->x[part][0];                                 \
        const uint8_t *b = w->planes + part * 4 * TILE_BYTES;                                      \
        if (has_min && part == 0)                                                                  \
            multiply_minima(c, acts, w);                                                           \
        if (part == 0) {                                                                           \
            TILE_ZERO(0);                                                                          \
            TILE_ZERO(1);                                                                          \
        }                                                                                          \
        TILE_LOAD(4, x, 64);                                                                       \
        TILE_LOAD(5, b, 64);                                                                       \
        TILE_DOT(0, 4, 5);                                                                         \
        TILE_LOAD(6, b + TILE_BYTES, 64);                                                          \
        TILE_DOT(1, 4, 6);                                                                         \
        if (part == STEP_PARTS - 1) {                                                              \
            STORE_HALVES(c, 0, 1)                                                                  \
        }                                                                                          \
    }

DEFINE_MULTIPLY_ONE(multiply_fine, true, TILE_DOT_UNSIGNED)
DEFINE_MULTIPLY_ONE(multiply_negated, false, TILE_DOT_SIGNED)

/* ---- The float end, tokens first .. last - 1 of a job: the contract's order (kernel.h) ---- */

INLINE __m512 add_scaled(__m512 sum, __m512 factor, __m512 dx, __m512i i)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(factor, dx), _mm512_cvtepi32_ps(i), sum);
}

/* Loads first what does not change with the token: stores to the sums could change it, as far as
 * the compiler knows. */
INLINE void finish_32_parts(const tile_job *job, int32_t first, const int32_t n_parts,
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
    UNROLL
    for (int32_t t = first; t < first + PART_TOKENS; t++) {
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
    INLINE void name(const tile_job *job, int32_t first)                                           \
    {                                                                                              \
        switch (job->n_parts) {                                                                    \
        case 1:                                                                                    \
            finish_32_parts(job, first, 1, has_min);                                               \
            return;                                                                                \
        case 2:                                                                                    \
            finish_32_parts(job, first, 2, has_min);                                               \
            return;                                                                                \
        case 3:                                                                                    \
            finish_32_parts(job, first, 3, has_min);                                               \
            return;                                                                                \
        default:                                                                                   \
            finish_32_parts(job, first, STEP_PARTS, has_min);                                      \
        }                                                                                          \
    }

DEFINE_FINISH_32(finish_32_plain, false)
DEFINE_FINISH_32(finish_32_min, true)

/* Ways to make the integer of a super-block from the C of its planes. */
typedef enum fold { FOLD_DIGITS, FOLD_BYTES, FOLD_ONE, FOLD_NEGATED } fold;

/* c: a vector of the first plane. */
INLINE __m512i folded(const int32_t *c, const fold how)
{
    __m512i c0 = load_line(c), zero = _mm512_setzero_si512();
    if (how == FOLD_ONE || how == FOLD_NEGATED)
        return how == FOLD_ONE ? c0 : _mm512_sub_epi32(zero, c0);
    __m512i c1 = load_line(c + 2 * TILE_TOKENS * HALF_ROWS);
    return _mm512_add_epi32(c0, _mm512_slli_epi32(c1, how == FOLD_DIGITS ? 3 : 8));
}

INLINE void finish_256(const tile_job *job, int32_t first, const fold how, const bool has_min)
{
    const tokens_256 *acts = job->acts;
    const step_weights *w = job->weights;
    __m512 dw[2], mw[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        dw[half] = _mm512_loadu_ps(w->d[0][half]);
        if (has_min)
            mw[half] = _mm512_loadu_ps(w->m[0][half]);
    }
    UNROLL
    for (int32_t t = first; t < first + PART_TOKENS; t++) {
        float *sum = job->sums + t * GROUP_ROWS;
        __m512 dx = _mm512_set1_ps(acts->d[t]);
        UNROLL
        for (int half = 0; half < 2; half++) {
            const int32_t *c = job->c + (half * TILE_TOKENS + t) * HALF_ROWS;
            __m512 acc = _mm512_loadu_ps(sum + half * HALF_ROWS);
            acc = add_scaled(acc, dw[half], dx, folded(c, how));
            if (has_min)
                acc = _mm512_fnmadd_ps(_mm512_mul_ps(mw[half], dx),
                                       _mm512_cvtepi32_ps(load_line(c + C_MINIMA)), acc);
            _mm512_storeu_ps(sum + half * HALF_ROWS, acc);
        }
    }
}

#define DEFINE_FINISH_256(name, how, has_min)                                                      \
    INLINE void name(const tile_job *job, int32_t first)                                           \
    {                                                                                              \
        finish_256(job, first, how, has_min);                                                      \
    }

DEFINE_FINISH_256(finish_digits, FOLD_DIGITS, true)
DEFINE_FINISH_256(finish_bytes, FOLD_BYTES, false)
DEFINE_FINISH_256(finish_negated, FOLD_NEGATED, false)
DEFINE_FINISH_256(finish_fine, FOLD_ONE, true)

/* ---- A job ---- */

/* After each part a quarter of the finish of the job before, and some of the fetching. All in one
 * function, unrolled: with calls between, a unit took a fifth longer. */
INLINE void job_run(const tile_job *job, const tile_job *before, line_fetch *fetch,
                    tile_multiply *multiply, tile_finish *finish)
{
    UNROLL
    for (int32_t part = 0; part < STEP_PARTS; part++) {
        if (part < job->n_parts)
            multiply(job->c, job->acts, job->weights, part);
        for (int32_t i = 0; i < fetch->n_lines; i++, fetch->next += 64)
            _mm_prefetch((const char *)fetch->next, _MM_HINT_T1);
        if (before)
            finish(before, part * PART_TOKENS);
    }
}

#define DEFINE_JOB(name, multiply, finish)                                                         \
    static void name(const tile_job *job, const tile_job *before, line_fetch *fetch)               \
    {                                                                                              \
        job_run(job, before, fetch, multiply, finish);                                             \
    }

DEFINE_JOB(job_32_plain, multiply_32, finish_32_plain)
DEFINE_JOB(job_32_min, multiply_32, finish_32_min)
DEFINE_JOB(job_digits, multiply_digits, finish_digits)
DEFINE_JOB(job_bytes, multiply_bytes, finish_bytes)
DEFINE_JOB(job_fine, multiply_fine, finish_fine)
DEFINE_JOB(job_negated, multiply_negated, finish_negated)

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

#define DEFINE_DOT_AMX(TYPE, name, config, arrange, multiply, way)                                 \
    static const amx_type type_##name = {                                                          \
        TYPE_##TYPE, &(config), arrange, build_##name##_amx, multiply, finish_##way, job_##way,    \
    };                                                                                             \
    static void dot_##name##_amx(float *y, int64_t ldy, const void *groups, int32_t n_groups,      \
                                 const void *acts, int32_t n, int64_t k, void *scratch)            \
    {                                                                                              \
        dot_amx(&type_##name, y, ldy, groups, n_groups, acts, n, k, scratch);                      \
    }

DEFINE_DOT_AMX(Q4_0, q4_0, config_32, arrange_32, multiply_32, 32_plain)
DEFINE_DOT_AMX(Q4_1, q4_1, config_32, arrange_32, multiply_32, 32_min)
DEFINE_DOT_AMX(Q5_0, q5_0, config_32, arrange_32, multiply_32, 32_plain)
DEFINE_DOT_AMX(Q5_1, q5_1, config_32, arrange_32, multiply_32, 32_min)
DEFINE_DOT_AMX(Q8_0, q8_0, config_32, arrange_32, multiply_32, 32_plain)
DEFINE_DOT_AMX(IQ4_NL, iq4_nl, config_32, arrange_32, multiply_32, 32_plain)
DEFINE_DOT_AMX(MXFP4, mxfp4, config_32, arrange_32, multiply_32, 32_plain)
DEFINE_DOT_AMX(Q2_K, q2_k, config_256, arrange_256_fine, multiply_fine, fine)
DEFINE_DOT_AMX(Q3_K, q3_k, config_256, arrange_256, multiply_negated, negated)
DEFINE_DOT_AMX(Q4_K, q4_k, config_256, arrange_256_sums, multiply_digits, digits)
DEFINE_DOT_AMX(Q5_K, q5_k, config_256, arrange_256_sums, multiply_digits, digits)
DEFINE_DOT_AMX(Q6_K, q6_k, config_256, arrange_256, multiply_bytes, bytes)
DEFINE_DOT_AMX(IQ4_XS, iq4_xs, config_256, arrange_256, multiply_bytes, bytes)

/* Blocks of 64 stay with avx512: 16 weights per scale would fill a quarter of a tile. */
#define DEFINE_CODED_AMX(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                     \
    static void build_##name##_amx(step_weights *w, const uint8_t *block, int32_t n_parts)         \
    {                                                                                              \
        (void)n_parts;                                                                             \
        build_coded_amx(w, TYPE_##TYPE, sub_k, block);                                             \
    }                                                                                              \
    DEFINE_DOT_AMX(TYPE, name, config_256, arrange_256, multiply_bytes, bytes)
CODED_TYPES_256(DEFINE_CODED_AMX, )

static const amx_type *const types[TYPE_LIMIT] = {
#define TYPE_AT(TYPE, name, act, block_k, block_bytes) [TYPE_##TYPE] = &type_##name,
    KERNEL_INTEGER_TYPES(TYPE_AT) CODED_TYPES_256(CODED_COLUMNS, TYPE_AT)
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
    table->matmul[TYPE_##TYPE].many_groups = MANY_GROUPS;                                          \
    table->matmul[TYPE_##TYPE].many_from = table->shape & SHAPE_EARLY ? EARLY_FROM : TILES_FROM;
    KERNEL_INTEGER_TYPES(SET_TYPE)
    CODED_TYPES_256(CODED_COLUMNS, SET_TYPE)
#undef SET_TYPE
}
