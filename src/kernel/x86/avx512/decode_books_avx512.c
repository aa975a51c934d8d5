/* Decoders of the IQ2 and IQ3 types by permutations of bytes (AVX512-VBMI): 64 rows of a book are
 * looked up at once, as planes of bytes that hold some weights of each.
 *
 * An index vector has four indices of 16 rows of weights. So the bytes that are looked up for it
 * are those of weights from four (IQ2: two) rows of a book, and the words are made of those:
 *
 *   IQ3   word c of 16 k:  weights c, 4 + c, 8 + c, 12 + c
 *   IQ2   word c of 16 k:  weights 2 c, 8 + 2 c, 2 c + 1, 9 + 2 c
 *
 * The activations are brought into the same order (decoded_avx512.c). Weights are plus 128, so that
 * minus is 0 - w. */
#include "kernel/x86/avx512/decode_books_avx512.h"

#include "kernel/code_books.h"
#include "kernel/decoded.h"
#include "kernel/x86/avx512/tile_avx512.h"

#define VBMI        __attribute__((target("avx512vbmi")))
#define VBMI_INLINE static inline __attribute__((always_inline, target("avx512vbmi")))

/* Planes of books. Of IQ3_S, 2 bytes for a row: levels of two weights at bits 1 and 4; of IQ3_XXS,
 * the four weights; of IQ2, 2 bytes: four levels of 2 bits each. */
static _Alignas(64) uint8_t iq3_s[2][512], iq3_xxs[4][256];
static _Alignas(64) uint8_t iq2_xxs[2][256], iq2_xs[2][512], iq2_s[2][1024];

static uint8_t level_of_iq2(uint64_t row, int weight)
{
    uint8_t v = (uint8_t)(row >> 8 * weight);
    return v == 8 ? 0 : v == 25 ? 1 : 2;
}

static void iq2_planes(uint8_t *first, uint8_t *second, const uint64_t *book, int n)
{
    for (int i = 0; i < n; i++) {
        first[i] = second[i] = 0;
        for (int w = 0; w < 4; w++) {
            first[i] |= (uint8_t)(level_of_iq2(book[i], w) << 2 * w);
            second[i] |= (uint8_t)(level_of_iq2(book[i], 4 + w) << 2 * w);
        }
    }
}

void book_planes_make(void)
{
    for (int i = 0; i < 512; i++)
        for (int p = 0; p < 2; p++) {
            uint32_t two = books.iq3_s[i] >> 16 * p;
            iq3_s[p][i] = (uint8_t)((two & 14) | (two >> 8 & 14) << 3);
        }
    for (int i = 0; i < 256; i++)
        for (int w = 0; w < 4; w++)
            iq3_xxs[w][i] = (uint8_t)(128 + (books.iq3_xxs[i] >> 8 * w & 255));
    iq2_planes(iq2_xxs[0], iq2_xxs[1], books.iq2_xxs, 256);
    iq2_planes(iq2_xs[0], iq2_xs[1], books.iq2_xs, 512);
    iq2_planes(iq2_s[0], iq2_s[1], books.iq2_s, 1024);
}

/* Looks up 256 bytes; high: bit 7 of the indices. */
VBMI_INLINE __m512i look_256(const __m512i *table, __m512i index, __mmask64 high)
{
    return _mm512_mask_blend_epi8(high, _mm512_permutex2var_epi8(table[0], index, table[1]),
                                  _mm512_permutex2var_epi8(table[2], index, table[3]));
}

VBMI_INLINE __m512i look_512(const __m512i *table, __m512i index, __mmask64 bit_7, __mmask64 bit_8)
{
    return _mm512_mask_blend_epi8(bit_8, look_256(table, index, bit_7),
                                  look_256(table + 4, index, bit_7));
}

INLINE void table_load(__m512i *table, const uint8_t *bytes, int n)
{
    UNROLL
    for (int i = 0; i < n / 64; i++)
        table[i] = load_line(bytes + i * 64);
}

/* A vector of the same four bytes, the first the lowest. */
INLINE __m512i each(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm512_set1_epi32((int32_t)(a | b << 8 | c << 16 | d << 24));
}

/* Bytes a, b, c, d of each word. */
INLINE __m512i word_bytes(__m512i v, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const __m512i at =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    return _mm512_shuffle_epi8(v, _mm512_add_epi8(at, each(a, b, c, d)));
}

/* Minus where the bits of the signs are set. */
INLINE __m512i with_signs(__m512i w, __m512i signs, __m512i bits)
{
    return _mm512_mask_sub_epi8(w, _mm512_test_epi8_mask(signs, bits), _mm512_setzero_si512(), w);
}

/* Numbers of 7 bits and above them their parity, which makes the count of minuses even. */
INLINE __m512i even_signs(__m512i numbers)
{
    const __m512i odd = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m512i n = _mm512_and_si512(numbers, _mm512_set1_epi8(127));
    __m512i low = _mm512_shuffle_epi8(odd, low_nibbles(n));
    __m512i high = _mm512_shuffle_epi8(odd, high_nibbles(n));
    return _mm512_ternarylogic_epi32(n, low, high, 0x96);
}

/* Four numbers of 7 bits of each word, from bit 0 on. */
VBMI_INLINE __m512i four_signs(__m512i words)
{
    const __m512i at = _mm512_set1_epi64(0x352e2720150e0700);
    return even_signs(_mm512_multishift_epi64_epi8(at, words));
}

/* Takes words and their scales: into half of a decoded step, or into products with one row. */
typedef struct book_sink {
    decoded_step *step; /* NULL: products */
    int half;
    const uint8_t *x;     /* [64] words in their order */
    const int32_t *start; /* [16]: -128 times sums of 16 of x */
    __m512i scale, part, sum;
} book_sink;

/* Sub-block s of n, whose scale is 2 bits + 1; its words follow. */
INLINE void sub_begin(book_sink *to, const int n, int s, __m512i bits)
{
    to->scale = _mm512_add_epi32(_mm512_add_epi32(bits, bits), _mm512_set1_epi32(1));
    if (to->step) {
        _mm512_storeu_si512(to->step->scale[s] + to->half * HALF_ROWS, to->scale);
        return;
    }
    to->part = _mm512_set1_epi32(to->start[s * (16 / n)]);
}

INLINE void sub_end(book_sink *to)
{
    if (!to->step)
        to->sum = add_product(to->sum, to->part, to->scale);
}

INLINE void put_word(book_sink *to, int word, __m512i v)
{
    if (to->step)
        _mm512_storeu_si512(to->step->words[to->half][word], v);
    else
        to->part = _mm512_dpbusd_epi32(to->part, v, broadcast_word(to->x + word * 4));
}

/* Number s % 8 of eight of 4 bits. */
INLINE __m512i nibble_at(const uint8_t *scales, int s, int half)
{
    __m512i words = load_line(scales + s / 8 * WORD_BYTES + half * HALF_BYTES);
    words = _mm512_srl_epi32(words, _mm_cvtsi32_si128(s % 8 * 4));
    return _mm512_and_si512(words, _mm512_set1_epi32(15));
}

INLINE void store_d(decoded_step *to, const uint8_t *block, int half, float unit)
{
    __m512 d = _mm512_mul_ps(load_halves(block + half * 32), _mm512_set1_ps(unit));
    _mm512_storeu_ps(to->d[0] + half * HALF_ROWS, d);
}

enum { AHEAD = 8192 };
/* The lines of a later block, a few at a time: part of n. */
INLINE void fetch(const uint8_t *block, int bytes, int part, int n)
{
    const int lines = bytes * GROUP_ROWS / 64 / n + 1;
    UNROLL
    for (int i = 0; i < lines; i++)
        _mm_prefetch((const char *)block + AHEAD + (part * lines + i) * 64, _MM_HINT_T0);
}

/* The four words of 16 k of an IQ3 type: signs: byte b those of 8 k. */
INLINE void iq3_words(book_sink *to, int i, const __m512i w[4], __m512i signs)
{
    UNROLL
    for (uint32_t c = 0; c < 4; c++)
        put_word(to, i * 4 + (int)c,
                 with_signs(w[c], signs, each(1u << c, 16u << c, 1u << c, 16u << c)));
}

VBMI_INLINE void half_iq3_s(book_sink *to, const uint8_t *block)
{
    const __m512i level = _mm512_set1_epi8(14), plus = _mm512_set1_epi8(-127);
    const uint8_t *at = block + to->half * HALF_BYTES;
    __m512i table[2][8];
    table_load(table[0], iq3_s[0], 512);
    table_load(table[1], iq3_s[1], 512);
    ROLLED
    for (int s = 0; s < 8; s++) {
        sub_begin(to, 8, s, nibble_at(block + IQ3_S_SCALES, s, to->half));
        UNROLL
        for (int j = 0; j < 2; j++) {
            const int i = 2 * s + j;
            __m512i index = load_line(at + IQ3_S_QS + i * WORD_BYTES);
            __m512i qh = load_line(at + IQ3_S_QH + s / 4 * WORD_BYTES);
            qh = _mm512_srl_epi32(qh, _mm_cvtsi32_si128(i % 8 * 4));
            __mmask64 bit_8 = _mm512_test_epi8_mask(word_bytes(qh, 0, 0, 0, 0), each(1, 2, 4, 8));
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            __m512i a = look_512(table[0], index, bit_7, bit_8);
            __m512i b = look_512(table[1], index, bit_7, bit_8);
            __m512i signs = load_line(at + IQ3_S_SIGNS + s * WORD_BYTES);
            fetch(block, 110, to->half * 16 + i, 32);
            __m512i w[4] = {a, _mm512_srli_epi16(a, 3), b, _mm512_srli_epi16(b, 3)};
            UNROLL
            for (int c = 0; c < 4; c++) /* level and 129 */
                w[c] = _mm512_ternarylogic_epi32(w[c], level, plus, 0xea);
            iq3_words(to, i, w, j ? word_bytes(signs, 2, 2, 3, 3) : word_bytes(signs, 0, 0, 1, 1));
        }
        sub_end(to);
    }
}

VBMI_INLINE void half_iq3_xxs(book_sink *to, const uint8_t *block)
{
    const uint8_t *at = block + to->half * HALF_BYTES;
    __m512i table[4][4];
    UNROLL
    for (int c = 0; c < 4; c++)
        table_load(table[c], iq3_xxs[c], 256);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m512i word = load_line(at + IQ3_XXS_SIGNS + s * WORD_BYTES);
        __m512i signs = four_signs(word);
        sub_begin(to, 8, s, _mm512_srli_epi32(word, 28));
        fetch(block, 98, to->half * 8 + s, 16);
        UNROLL
        for (int i = 0; i < 2; i++) {
            __m512i index = load_line(at + IQ3_XXS_QS + (2 * s + i) * WORD_BYTES), w[4];
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            UNROLL
            for (int c = 0; c < 4; c++)
                w[c] = look_256(table[c], index, bit_7);
            iq3_words(to, 2 * s + i, w,
                      i ? word_bytes(signs, 2, 2, 3, 3) : word_bytes(signs, 0, 0, 1, 1));
        }
        sub_end(to);
    }
}

/* The four words of 16 k of an IQ2 type: a and b are the planes of its two rows of the book, in
 * bytes first and second; signs the same. */
VBMI_INLINE void iq2_words(book_sink *to, int i, __m512i a, __m512i b, __m512i signs,
                           uint32_t first, uint32_t second)
{
    const __m512i levels = each(136, 153, 171, 0); /* 128 and a level, by the low bits of indices */
    signs = word_bytes(signs, first, second, first, second);
    a = word_bytes(a, first, second, first, second);
    b = word_bytes(b, first, second, first, second);
    UNROLL
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t shift = c % 2 * 4;
        __m512i v = _mm512_srlv_epi16(c < 2 ? a : b, each(shift, 0, shift + 2, 0));
        const uint32_t one = 1u << 2 * c, two = 2u << 2 * c;
        put_word(to, i * 4 + (int)c,
                 with_signs(_mm512_permutexvar_epi8(v, levels), signs, each(one, one, two, two)));
    }
}

/* The words of 32 k of which 16 have a scale each: those of bytes 0 and 1, then 2 and 3; alternate:
 * 0 and 2, then 1 and 3. */
VBMI_INLINE void two_subs(book_sink *to, int s, const uint8_t *scales, __m512i a, __m512i b,
                          __m512i signs, const bool alternate)
{
    sub_begin(to, 16, 2 * s, nibble_at(scales, 2 * s, to->half));
    iq2_words(to, 2 * s, a, b, signs, 0, alternate ? 2 : 1);
    sub_end(to);
    sub_begin(to, 16, 2 * s + 1, nibble_at(scales, 2 * s + 1, to->half));
    iq2_words(to, 2 * s + 1, a, b, signs, alternate ? 1 : 2, 3);
    sub_end(to);
}

VBMI_INLINE void half_iq2_xxs(book_sink *to, const uint8_t *block)
{
    __m512i table[2][4];
    table_load(table[0], iq2_xxs[0], 256);
    table_load(table[1], iq2_xxs[1], 256);
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint8_t *at = block + IQ2_XXS_QS + to->half * HALF_BYTES + 2 * s * WORD_BYTES;
        __m512i index = load_line(at), word = load_line(at + WORD_BYTES);
        __m512i signs = four_signs(word);
        __mmask64 bit_7 = _mm512_movepi8_mask(index);
        __m512i a = look_256(table[0], index, bit_7), b = look_256(table[1], index, bit_7);
        sub_begin(to, 8, s, _mm512_srli_epi32(word, 28));
        fetch(block, 66, to->half * 8 + s, 16);
        iq2_words(to, 2 * s, a, b, signs, 0, 1);
        iq2_words(to, 2 * s + 1, a, b, signs, 2, 3);
        sub_end(to);
    }
}

/* Two words of 16-bit numbers: their low bytes in the order 0, 2, 1, 3, and their high bytes. */
VBMI_INLINE void half_iq2_xs(book_sink *to, const uint8_t *block)
{
    const __m512i odd = _mm512_set1_epi16(-256);
    __m512i table[2][8];
    table_load(table[0], iq2_xs[0], 512);
    table_load(table[1], iq2_xs[1], 512);
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint8_t *at = block + IQ2_XS_QS + to->half * HALF_BYTES + 2 * s * WORD_BYTES;
        __m512i x = load_line(at), y = load_line(at + WORD_BYTES);
        __m512i index = _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaau, x, _mm512_slli_epi16(y, 8));
        __m512i high = _mm512_ternarylogic_epi32(odd, y, _mm512_srli_epi16(x, 8), 0xca);
        __mmask64 bit_7 = _mm512_movepi8_mask(index);
        __mmask64 bit_8 = _mm512_test_epi8_mask(high, _mm512_set1_epi8(1));
        __m512i a = look_512(table[0], index, bit_7, bit_8);
        __m512i b = look_512(table[1], index, bit_7, bit_8);
        fetch(block, 74, to->half * 8 + s, 16);
        two_subs(to, s, block + IQ2_XS_SCALES, a, b, even_signs(_mm512_srli_epi16(high, 1)), true);
    }
}

/* A plane of 1024 bytes does not fit the registers. */
VBMI_INLINE __m512i look_1024(const uint8_t *bytes, __m512i index, __mmask64 bit_7, __mmask64 bit_8,
                              __mmask64 bit_9)
{
    __m512i table[16];
    table_load(table, bytes, 1024);
    return _mm512_mask_blend_epi8(bit_9, look_512(table, index, bit_7, bit_8),
                                  look_512(table + 8, index, bit_7, bit_8));
}

VBMI_INLINE void half_iq2_s(book_sink *to, const uint8_t *block)
{
    const uint8_t *at = block + to->half * HALF_BYTES;
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m512i index = load_line(at + IQ2_S_QS + s * WORD_BYTES);
        __m512i qh = load_line(at + IQ2_S_QH + s / 4 * WORD_BYTES);
        qh = word_bytes(_mm512_srl_epi32(qh, _mm_cvtsi32_si128(s % 4 * 8)), 0, 0, 0, 0);
        __mmask64 bit_7 = _mm512_movepi8_mask(index);
        __mmask64 bit_8 = _mm512_test_epi8_mask(qh, each(1, 4, 16, 64));
        __mmask64 bit_9 = _mm512_test_epi8_mask(qh, each(2, 8, 32, 128));
        __m512i a = look_1024(iq2_s[0], index, bit_7, bit_8, bit_9);
        __m512i b = look_1024(iq2_s[1], index, bit_7, bit_8, bit_9);
        fetch(block, 82, to->half * 8 + s, 16);
        two_subs(to, s, block + IQ2_S_SCALES, a, b, load_line(at + IQ2_S_SIGNS + s * WORD_BYTES),
                 false);
    }
}

/* ---- Decoding, and one row ---- */

#define DEFINE_DECODER(TYPE, name, sub_k, order, unit)                                             \
    VBMI void decode_##name##_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)          \
    {                                                                                              \
        (void)n_blocks;                                                                            \
        ROLLED                                                                                     \
        for (int half = 0; half < 2; half++) {                                                     \
            store_d(decoded, block, half, unit);                                                   \
            book_sink to = {.step = decoded, .half = half};                                        \
            half_##name(&to, block);                                                               \
        }                                                                                          \
    }
VBMI_TYPES(DEFINE_DECODER)

/* A row's words of a block in the order of the weights', and what sums start at. */
typedef struct ordered_row {
    _Alignas(64) uint8_t words[256];
    _Alignas(64) int32_t start[16];
} ordered_row;

VBMI_INLINE void row_order(ordered_row *to, const word_order order, const int n_subs,
                           const uint8_t *acts, int m, int t)
{
    const __m512i at = _mm512_broadcast_i32x4(
        order == ORDER_IQ3 ? _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
                           : _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const uint8_t *from = acts;
    if (m > 1) {
        for (int c = 0; c < STEP_WORDS; c++)
            memcpy(to->words + c * 4, acts + (c * m + t) * 4, 4);
        from = to->words;
    }
    for (int i = 0; i < 4; i++)
        _mm512_store_si512(to->words + i * 64, _mm512_shuffle_epi8(load_line(from + i * 64), at));
    for (int s = 0; s < 16; s++)
        to->start[s] = 4 * (int32_t)load_u32(acts + ACT_256_SUM16 * m + (s * m + t) * 4);
    for (int s = 0; n_subs == 8 && s < 16; s += 2)
        to->start[s] += to->start[s + 1];
}

#define DEFINE_TILE_ROW(TYPE, name, sub_k, order, unit)                                            \
    VBMI void tile_##name##_row(float *sums, const uint8_t *block, const uint8_t *acts,            \
                                int32_t n_blocks, int32_t m)                                       \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            for (int t = 0; t < m; t++) {                                                          \
                ordered_row row;                                                                   \
                row_order(&row, order, 256 / (sub_k), acts, m, t);                                 \
                ROLLED                                                                             \
                for (int half = 0; half < 2; half++) {                                             \
                    book_sink to = {.half = half,                                                  \
                                    .x = row.words,                                                \
                                    .start = row.start,                                            \
                                    .sum = _mm512_setzero_si512()};                                \
                    half_##name(&to, block);                                                       \
                    __m512 d =                                                                     \
                        _mm512_mul_ps(load_halves(block + half * 32), _mm512_set1_ps(unit));       \
                    finish_256(sums, acts, m, t, half, d, d, to.sum, to.sum, false);               \
                }                                                                                  \
            }                                                                                      \
            block += layout_find(TYPE_##TYPE)->file_block_bytes * GROUP_ROWS;                      \
            acts += ACT_Q8_256_BYTES * m;                                                          \
        }                                                                                          \
    }
VBMI_TYPES(DEFINE_TILE_ROW)
