/* Products of decoded weights, coded types: half of the rows at a time, whose words meet all tokens
 * of a tile. Words are unsigned, and a sum starts at -128 times that of its activations. */
#include "kernel/decoded.h"
#include "kernel/x86/avx512/decode_books_avx512.h"
#include "kernel/x86/avx512/tile_avx512.h"
#include "kernel/x86/x86.h"
#include "os/cpu_tuning.h"

enum { OFFSET = 128, CHUNK_WORDS = 4, CHUNKS = STEP_WORDS / CHUNK_WORDS };

#define VBMI_INLINE static inline __attribute__((always_inline, target("avx512vbmi")))

/* Places that the bytes of 16 k of m tokens come from, in two vectors. */
static _Alignas(64) uint8_t sources[WORD_ORDERS][TOKEN_TILE + 1][2][64];

static void sources_make(void)
{
    for (int order = ORDER_IQ3; order < WORD_ORDERS; order++)
        for (int m = 1; m <= TOKEN_TILE; m++)
            for (int i = 0; i < CHUNK_WORDS * 4 * m; i++) {
                const int c = i / (4 * m), t = i / 4 % m, j = i % 4;
                const int k = order == ORDER_IQ3 ? 4 * j + c : j % 2 * 8 + j / 2 + 2 * c;
                sources[order][m][i / 64][i % 64] = (uint8_t)((k / 4 * m + t) * 4 + k % 4);
            }
}

/* Brings a block's activations into the order of the words; out has 64 bytes more than they. */
VBMI_INLINE void acts_order(const int m, const word_order order, uint8_t *out, const uint8_t *acts)
{
    const int bytes = CHUNK_WORDS * 4 * m, second = bytes > 64 ? bytes - 64 : 0;
    const __mmask64 in_first = ~(__mmask64)0 >> (bytes < 64 ? 64 - bytes : 0);
    const __mmask64 in_second = second ? ~(__mmask64)0 >> (64 - second) : 0;
    const __m512i at_first = load_line(sources[order][m][0]);
    const __m512i at_second = load_line(sources[order][m][1]);
    for (int c = 0; c < CHUNKS; c++, acts += bytes, out += bytes) {
        __m512i a = _mm512_maskz_loadu_epi8(in_first, acts), b = a;
        if (second)
            b = _mm512_maskz_loadu_epi8(in_second, acts + 64);
        _mm512_storeu_si512(out, _mm512_permutex2var_epi8(a, at_first, b));
        if (second)
            _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi8(a, at_second, b));
    }
}

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

/* One super-block, whose activations are at x in the order of the words. They carry -32 * sum(x)
 * over 16. */
INLINE void half_256(const int m, const int n_subs, float *sums, const decoded_step *w, int half,
                     const uint8_t *acts, const uint8_t *x)
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
        words_multiply(m, part, n_words, w->words[half][s * n_words], x + s * n_words * m * 4);
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
            half_256(m, 256 / sub_k, sums, w, half, acts, acts);
    }
}

VBMI_INLINE void tile_ordered_m(const int m, const int sub_k, const word_order order, float *sums,
                                const uint8_t *weights, const uint8_t *acts)
{
    const decoded_step *w = (const void *)weights;
    _Alignas(64) uint8_t x[STEP_WORDS * 4 * TOKEN_TILE + 64];
    acts_order(m, order, x, acts);
    ROLLED
    for (int half = 0; half < 2; half++)
        half_256(m, 256 / sub_k, sums, w, half, acts, x);
}

#ifdef INSTRUMENTED
#define FOR_M(CALL) CALL(m)
#else
#define FOR_M(CALL)                                                                                \
    switch (m) {                                                                                   \
    case 1:                                                                                        \
        CALL(1);                                                                                   \
        break;                                                                                     \
    case 2:                                                                                        \
        CALL(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        CALL(3);                                                                                   \
        break;                                                                                     \
    case 4:                                                                                        \
        CALL(4);                                                                                   \
        break;                                                                                     \
    case 5:                                                                                        \
        CALL(5);                                                                                   \
        break;                                                                                     \
    case 6:                                                                                        \
        CALL(6);                                                                                   \
        break;                                                                                     \
    case 7:                                                                                        \
        CALL(7);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        CALL(TOKEN_TILE);                                                                          \
    }
#endif

#define DEFINE_TILE(name, attribute, CALL)                                                         \
    attribute static void tile_##name(float *sums, const uint8_t *weights, const uint8_t *acts,    \
                                      int32_t n_blocks, int32_t m)                                 \
    {                                                                                              \
        (void)n_blocks;                                                                            \
        FOR_M(CALL);                                                                               \
    }
#define VBMI           __attribute__((target("avx512vbmi")))
#define CALL_16(m)     tile_m(m, 16, sums, weights, acts, n_blocks)
#define CALL_32(m)     tile_m(m, 32, sums, weights, acts, n_blocks)
#define CALL_FINE(m)   tile_m(m, FLOAT_SUBS, sums, weights, acts, n_blocks)
#define CALL_16_IQ2(m) tile_ordered_m(m, 16, ORDER_IQ2, sums, weights, acts)
#define CALL_32_IQ2(m) tile_ordered_m(m, 32, ORDER_IQ2, sums, weights, acts)
#define CALL_32_IQ3(m) tile_ordered_m(m, 32, ORDER_IQ3, sums, weights, acts)
DEFINE_TILE(16, , CALL_16)
DEFINE_TILE(32, , CALL_32)
DEFINE_TILE(FLOAT_SUBS, , CALL_FINE)
DEFINE_TILE(16_ORDER_IQ2, VBMI, CALL_16_IQ2)
DEFINE_TILE(32_ORDER_IQ2, VBMI, CALL_32_IQ2)
DEFINE_TILE(32_ORDER_IQ3, VBMI, CALL_32_IQ3)

static void decode(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks)
{
    decode_coded_avx2(to, type, block, n_blocks);
    for (int i = 0; i < 2 * STEP_WORDS; i++) {
        uint8_t *at = (uint8_t *)to->words + i * HALF_BYTES;
        _mm512_storeu_si512(at, _mm512_xor_si512(load_line(at), _mm512_set1_epi8((char)OFFSET)));
    }
}

#define DEFINE_DOT_CODED(name, TYPE, act, decoder, tile, variant, even)                            \
    static void dot_##name##_##variant(float *y, int64_t ldy, const void *groups,                  \
                                       int32_t n_groups, const void *acts, int32_t n, int64_t k,   \
                                       void *scratch)                                              \
    {                                                                                              \
        dot_decoded(TYPE_##TYPE, act, decoder, tile, even, y, ldy, groups, n_groups, acts, n, k,   \
                    scratch);                                                                      \
    }
#define DEFINE_CODED(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                         \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decode(decoded, TYPE_##TYPE, block, n_blocks);                                             \
    }                                                                                              \
    DEFINE_DOT_CODED(name, TYPE, act, decode_##name, tile_##sub_k, full, false)                    \
    DEFINE_DOT_CODED(name, TYPE, act, decode_##name, tile_##sub_k, even, true)
CODED_TYPES(DEFINE_CODED, )

#define DEFINE_DOT_VBMI(TYPE, name, decoder, tile, variant, even)                                  \
    static void dot_##name##_##variant(float *y, int64_t ldy, const void *groups,                  \
                                       int32_t n_groups, const void *acts, int32_t n, int64_t k,   \
                                       void *scratch)                                              \
    {                                                                                              \
        if (n == 1)                                                                                \
            dot_tiles(TYPE_##TYPE, ACT_Q8_256, tile_##name##_row, even, y, ldy, groups, n_groups,  \
                      acts, n, k, scratch);                                                        \
        else                                                                                       \
            dot_decoded(TYPE_##TYPE, ACT_Q8_256, decoder, tile, even, y, ldy, groups, n_groups,    \
                        acts, n, k, scratch);                                                      \
    }
#define DEFINE_VBMI(TYPE, name, sub_k, order, unit)                                                \
    DEFINE_DOT_VBMI(TYPE, name, decode_##name##_vbmi, tile_##sub_k##_##order, vbmi_full, false)    \
    DEFINE_DOT_VBMI(TYPE, name, decode_##name##_vbmi, tile_##sub_k##_##order, vbmi_even, true)
VBMI_TYPES(DEFINE_VBMI)

/* Sets dot; without VBMI the tier below stays for one row of the types with books. */
static void set_coded(matmul_kernel *m, dot_fn *dot, bool vbmi)
{
    if (m->dot_many && !vbmi) {
        m->dot_many = dot;
        return;
    }
    m->dot = dot;
    m->dot_many = NULL;
}

void decoded_avx512_set(kernel_table *table, bool vbmi)
{
    const bool lines = table->shape & SHAPE_LINES;
#define SET_CODED(X, TYPE, name, act_, block_k, block_bytes, sub_k, ...)                           \
    set_coded(&table->matmul[TYPE_##TYPE], lines ? dot_##name##_even : dot_##name##_full, vbmi);   \
    table->matmul[TYPE_##TYPE].tile = tile_##sub_k;                                                \
    table->matmul[TYPE_##TYPE].even_tiles = lines;                                                 \
    table->matmul[TYPE_##TYPE].decode = decode_##name;
    CODED_TYPES(SET_CODED, )
#undef SET_CODED
    if (!vbmi)
        return;
    book_planes_make();
    sources_make();
#define SET_VBMI(TYPE, name, sub_k, order, unit)                                                   \
    table->matmul[TYPE_##TYPE].dot = lines ? dot_##name##_vbmi_even : dot_##name##_vbmi_full;      \
    table->matmul[TYPE_##TYPE].tile = tile_##sub_k##_##order;                                      \
    table->matmul[TYPE_##TYPE].decode = decode_##name##_vbmi;
    VBMI_TYPES(SET_VBMI)
#undef SET_VBMI
}
