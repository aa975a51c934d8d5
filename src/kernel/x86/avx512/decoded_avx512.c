/* Products of decoded weights, coded types: a half of the rows at a time, whose words meet all tokens
 * of a tile. Words are unsigned, and a sum starts at -128 times that of its activations. */
#include "kernel/decoded.h"
#include "kernel/x86/avx512/tile_avx512.h"
#include "kernel/x86/x86.h"
#include "os/cpu_tuning.h"

enum { OFFSET = 128 };

/* part[m] = the products of n_words words. */
INLINE void words_multiply(const int m, __m512i part[TOKEN_TILE], const int n_words,
                           const uint8_t *q, const uint8_t *x)
{
    UNROLL
    for (int c = 0; c < n_words; c++) {
        __m512i w = load_line(q + c * HALF_BYTES);
        UNROLL
        for (int t = 0; t < m; t++)
            part[t] = _mm512_dpbusd_epi32(part[t], w, broadcast_word(x + (c * m + t) * 4));
    }
}

/* One super-block. The activations carry -32 * sum(x) over 16. */
INLINE void half_256(const int m, const int n_subs, float *sums, const decoded_step *w, int half,
                     const uint8_t *acts)
{
    const int n_words = STEP_WORDS / n_subs;
    const uint8_t *sum16 = acts + ACT_256_SUM16 * m;
    __m512i products[TOKEN_TILE];
    UNROLL
    for (int t = 0; t < m; t++)
        products[t] = _mm512_setzero_si512();
    ROLLED
    for (int s = 0; s < n_subs; s++) {
        __m512i part[TOKEN_TILE];
        UNROLL
        for (int t = 0; t < m; t++) {
            part[t] = broadcast_word(sum16 + t * 4);
            if (n_subs == 8)
                part[t] = _mm512_add_epi32(part[t], broadcast_word(sum16 + (m + t) * 4));
            part[t] = _mm512_slli_epi32(part[t], 2);
        }
        words_multiply(m, part, n_words, w->words[half][s * n_words], acts + s * n_words * m * 4);
        __m512i scale = load_line((const uint8_t *)(w->scale[s] + half * HALF_ROWS));
        UNROLL
        for (int t = 0; t < m; t++)
            products[t] = add_product(products[t], part[t], scale);
        sum16 += 16 / n_subs * m * 4;
    }
    __m512 dw = _mm512_loadu_ps(w->d[0] + half * HALF_ROWS);
    UNROLL
    for (int t = 0; t < m; t++)
        finish_256(sums, acts, m, t, half, dw, dw, products[t], products[t], false);
}

/* Blocks of 64, of two blocks of activations each. */
INLINE void half_fine(const int m, float *sums, const decoded_step *w, int half,
                      const uint8_t *acts, int32_t n_blocks)
{
    ROLLED
    for (int s = 0; s < n_blocks * 4; s++) {
        const uint8_t *block = acts + s / 2 * ACT_Q8_32_BYTES * m, *x = block + s % 2 * 16 * m;
        __m512i part[TOKEN_TILE];
        UNROLL
        for (int t = 0; t < m; t++) {
            __m512i sum = _mm512_setzero_si512();
            UNROLL
            for (int c = 0; c < 4; c++)
                sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1),
                                          broadcast_word(x + (c * m + t) * 4));
            part[t] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 7));
        }
        words_multiply(m, part, 4, w->words[half][s * 4], x);
        __m512 fine = _mm512_loadu_ps(w->fine[s] + half * HALF_ROWS);
        UNROLL
        for (int t = 0; t < m; t++) {
            float *to = sums + t * GROUP_ROWS + half * HALF_ROWS;
            __m512 dx = broadcast_float(block + ACT_32_D * m + t * 4);
            _mm512_storeu_ps(to, add_scaled(_mm512_loadu_ps(to), fine, dx, part[t]));
        }
    }
}

INLINE void tile_m(const int m, const int sub_k, float *sums, const uint8_t *weights,
                   const uint8_t *acts, int32_t n_blocks)
{
    const decoded_step *w = (const void *)weights;
    ROLLED
    for (int half = 0; half < 2; half++) {
        if (sub_k == FLOAT_SUBS)
            half_fine(m, sums, w, half, acts, n_blocks);
        else
            half_256(m, 256 / sub_k, sums, w, half, acts);
    }
}

#define TILE_CASE(count, sub_k)                                                                    \
    case count:                                                                                    \
        tile_m(count, sub_k, sums, weights, acts, n_blocks);                                       \
        return;
#ifdef INSTRUMENTED
#define TILE_CASES(sub_k)
#define TILE_MOST m
#else
#define TILE_CASES(sub_k)                                                                          \
    TILE_CASE(1, sub_k)                                                                            \
    TILE_CASE(2, sub_k)                                                                            \
    TILE_CASE(3, sub_k)                                                                            \
    TILE_CASE(4, sub_k)                                                                            \
    TILE_CASE(5, sub_k)                                                                            \
    TILE_CASE(6, sub_k)                                                                            \
    TILE_CASE(7, sub_k)
#define TILE_MOST TOKEN_TILE
#endif
#define DEFINE_TILE(sub_k)                                                                         \
    static void tile_##sub_k(float *sums, const uint8_t *weights, const uint8_t *acts,             \
                             int32_t n_blocks, int32_t m)                                          \
    {                                                                                              \
        switch (m) {                                                                               \
            TILE_CASES(sub_k)                                                                      \
        default:                                                                                   \
            tile_m(TILE_MOST, sub_k, sums, weights, acts, n_blocks);                               \
        }                                                                                          \
    }
DEFINE_TILE(16)
DEFINE_TILE(32)
DEFINE_TILE(FLOAT_SUBS)

static void decode(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks)
{
    decode_coded(to, type, block, n_blocks);
    for (int i = 0; i < 2 * STEP_WORDS; i++) {
        uint8_t *at = to->words[0][0] + i * HALF_BYTES;
        _mm512_storeu_si512(at, _mm512_xor_si512(load_line(at), _mm512_set1_epi8((char)OFFSET)));
    }
}

#define DEFINE_DOT_CODED(name, TYPE, act, sub_k, variant, even)                                    \
    static void dot_##name##_##variant(float *y, int64_t ldy, const void *groups,                  \
                                       int32_t n_groups, const void *acts, int32_t n, int64_t k,   \
                                       void *scratch)                                              \
    {                                                                                              \
        dot_decoded(TYPE_##TYPE, act, decode_##name, tile_##sub_k, even, y, ldy, groups, n_groups, \
                    acts, n, k, scratch);                                                          \
    }
#define DEFINE_CODED(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                         \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decode(decoded, TYPE_##TYPE, block, n_blocks);                                             \
    }                                                                                              \
    DEFINE_DOT_CODED(name, TYPE, act, sub_k, full, false)                                          \
    DEFINE_DOT_CODED(name, TYPE, act, sub_k, even, true)
CODED_TYPES(DEFINE_CODED, )

void decoded_avx512_set(kernel_table *table)
{
    const bool lines = table->shape & SHAPE_LINES;
#define SET_CODED(X, TYPE, name, act_, block_k, block_bytes, sub_k, ...)                           \
    table->matmul[TYPE_##TYPE].dot = lines ? dot_##name##_even : dot_##name##_full;                \
    table->matmul[TYPE_##TYPE].tile = tile_##sub_k;                                                \
    table->matmul[TYPE_##TYPE].even_tiles = lines;                                                 \
    table->matmul[TYPE_##TYPE].decode = decode_##name;
    CODED_TYPES(SET_CODED, )
#undef SET_CODED
}
