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

INLINE void store_scale(decoded_step *to, int s, int half, __m512i bits)
{
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, bits), _mm512_set1_epi32(1));
    _mm512_storeu_si512(to->scale[s] + half * HALF_ROWS, bits);
}

/* Scales of 4 bits: eight in a word. */
INLINE void store_scales(decoded_step *to, const uint8_t *scales, int n, int half)
{
    for (int s = 0; s < n; s++) {
        __m512i words = load_line(scales + s / 8 * WORD_BYTES + half * HALF_BYTES);
        words = _mm512_srl_epi32(words, _mm_cvtsi32_si128(s % 8 * 4));
        store_scale(to, s, half, _mm512_and_si512(words, _mm512_set1_epi32(15)));
    }
}

INLINE void store_d(decoded_step *to, const uint8_t *block, int half, float unit)
{
    __m512 d = _mm512_mul_ps(load_halves(block + half * 32), _mm512_set1_ps(unit));
    _mm512_storeu_ps(to->d[0] + half * HALF_ROWS, d);
}

INLINE void store_word(decoded_step *to, int half, int word, __m512i v)
{
    _mm512_storeu_si512(to->words[half][word], v);
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
INLINE void iq3_words(decoded_step *to, int half, int i, const __m512i w[4], __m512i signs)
{
    UNROLL
    for (uint32_t c = 0; c < 4; c++)
        store_word(to, half, i * 4 + (int)c,
                   with_signs(w[c], signs, each(1u << c, 16u << c, 1u << c, 16u << c)));
}

VBMI void decode_iq3_s_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)
{
    decoded_step *to = decoded;
    const __m512i level = _mm512_set1_epi8(14), plus = _mm512_set1_epi8(-127);
    __m512i table[2][8];
    (void)n_blocks;
    table_load(table[0], iq3_s[0], 512);
    table_load(table[1], iq3_s[1], 512);
    ROLLED
    for (int half = 0; half < 2; half++) {
        store_d(to, block, half, 1.0f);
        store_scales(to, block + IQ3_S_SCALES, 8, half);
        ROLLED
        for (int i = 0; i < 16; i++) {
            const uint8_t *at = block + half * HALF_BYTES;
            __m512i index = load_line(at + IQ3_S_QS + i * WORD_BYTES);
            __m512i qh = load_line(at + IQ3_S_QH + i / 8 * WORD_BYTES);
            qh = _mm512_srl_epi32(qh, _mm_cvtsi32_si128(i % 8 * 4));
            __mmask64 bit_8 = _mm512_test_epi8_mask(word_bytes(qh, 0, 0, 0, 0), each(1, 2, 4, 8));
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            __m512i a = look_512(table[0], index, bit_7, bit_8);
            __m512i b = look_512(table[1], index, bit_7, bit_8);
            __m512i signs = load_line(at + IQ3_S_SIGNS + i / 2 * WORD_BYTES);
            signs = _mm512_srl_epi32(signs, _mm_cvtsi32_si128(i % 2 * 16));
            fetch(block, 110, half * 16 + i, 32);
            __m512i w[4] = {a, _mm512_srli_epi16(a, 3), b, _mm512_srli_epi16(b, 3)};
            UNROLL
            for (int c = 0; c < 4; c++) /* level and 129 */
                w[c] = _mm512_ternarylogic_epi32(w[c], level, plus, 0xea);
            iq3_words(to, half, i, w, word_bytes(signs, 0, 0, 1, 1));
        }
    }
}

VBMI void decode_iq3_xxs_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)
{
    decoded_step *to = decoded;
    __m512i table[4][4];
    (void)n_blocks;
    UNROLL
    for (int c = 0; c < 4; c++)
        table_load(table[c], iq3_xxs[c], 256);
    ROLLED
    for (int half = 0; half < 2; half++) {
        store_d(to, block, half, 0.25f);
        ROLLED
        for (int s = 0; s < 8; s++) {
            const uint8_t *at = block + half * HALF_BYTES;
            __m512i word = load_line(at + IQ3_XXS_SIGNS + s * WORD_BYTES);
            __m512i signs = four_signs(word);
            store_scale(to, s, half, _mm512_srli_epi32(word, 28));
            fetch(block, 98, half * 8 + s, 16);
            UNROLL
            for (int i = 0; i < 2; i++) {
                __m512i index = load_line(at + IQ3_XXS_QS + (2 * s + i) * WORD_BYTES), w[4];
                __mmask64 bit_7 = _mm512_movepi8_mask(index);
                UNROLL
                for (int c = 0; c < 4; c++)
                    w[c] = look_256(table[c], index, bit_7);
                iq3_words(to, half, 2 * s + i, w,
                          i ? word_bytes(signs, 2, 2, 3, 3) : word_bytes(signs, 0, 0, 1, 1));
            }
        }
    }
}

/* The four words of 16 k of an IQ2 type: a and b are the planes of its two rows of the book, in
 * bytes first and second; signs the same. */
VBMI_INLINE void iq2_words(decoded_step *to, int half, int i, __m512i a, __m512i b, __m512i signs,
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
        store_word(to, half, i * 4 + (int)c,
                   with_signs(_mm512_permutexvar_epi8(v, levels), signs, each(one, one, two, two)));
    }
}

VBMI void decode_iq2_xxs_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)
{
    decoded_step *to = decoded;
    __m512i table[2][4];
    (void)n_blocks;
    table_load(table[0], iq2_xxs[0], 256);
    table_load(table[1], iq2_xxs[1], 256);
    ROLLED
    for (int half = 0; half < 2; half++) {
        store_d(to, block, half, 0.125f);
        ROLLED
        for (int s = 0; s < 8; s++) {
            const uint8_t *at = block + IQ2_XXS_QS + half * HALF_BYTES + 2 * s * WORD_BYTES;
            __m512i index = load_line(at), word = load_line(at + WORD_BYTES);
            __m512i signs = four_signs(word);
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            __m512i a = look_256(table[0], index, bit_7), b = look_256(table[1], index, bit_7);
            store_scale(to, s, half, _mm512_srli_epi32(word, 28));
            fetch(block, 66, half * 8 + s, 16);
            iq2_words(to, half, 2 * s, a, b, signs, 0, 1);
            iq2_words(to, half, 2 * s + 1, a, b, signs, 2, 3);
        }
    }
}

/* Two words of 16-bit numbers: their low bytes in the order 0, 2, 1, 3, and their high bytes. */
VBMI void decode_iq2_xs_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)
{
    decoded_step *to = decoded;
    const __m512i odd = _mm512_set1_epi16(-256);
    __m512i table[2][8];
    (void)n_blocks;
    table_load(table[0], iq2_xs[0], 512);
    table_load(table[1], iq2_xs[1], 512);
    ROLLED
    for (int half = 0; half < 2; half++) {
        store_d(to, block, half, 0.125f);
        store_scales(to, block + IQ2_XS_SCALES, 16, half);
        ROLLED
        for (int s = 0; s < 8; s++) {
            const uint8_t *at = block + IQ2_XS_QS + half * HALF_BYTES + 2 * s * WORD_BYTES;
            __m512i x = load_line(at), y = load_line(at + WORD_BYTES);
            __m512i index = _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaau, x, _mm512_slli_epi16(y, 8));
            __m512i high = _mm512_ternarylogic_epi32(odd, y, _mm512_srli_epi16(x, 8), 0xca);
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            __mmask64 bit_8 = _mm512_test_epi8_mask(high, _mm512_set1_epi8(1));
            __m512i a = look_512(table[0], index, bit_7, bit_8);
            __m512i b = look_512(table[1], index, bit_7, bit_8);
            __m512i signs = even_signs(_mm512_srli_epi16(high, 1));
            fetch(block, 74, half * 8 + s, 16);
            iq2_words(to, half, 2 * s, a, b, signs, 0, 2);
            iq2_words(to, half, 2 * s + 1, a, b, signs, 1, 3);
        }
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

VBMI void decode_iq2_s_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks)
{
    decoded_step *to = decoded;
    (void)n_blocks;
    ROLLED
    for (int half = 0; half < 2; half++) {
        store_d(to, block, half, 0.125f);
        store_scales(to, block + IQ2_S_SCALES, 16, half);
        ROLLED
        for (int s = 0; s < 8; s++) {
            const uint8_t *at = block + half * HALF_BYTES;
            __m512i index = load_line(at + IQ2_S_QS + s * WORD_BYTES);
            __m512i qh = load_line(at + IQ2_S_QH + s / 4 * WORD_BYTES);
            qh = word_bytes(_mm512_srl_epi32(qh, _mm_cvtsi32_si128(s % 4 * 8)), 0, 0, 0, 0);
            __mmask64 bit_7 = _mm512_movepi8_mask(index);
            __mmask64 bit_8 = _mm512_test_epi8_mask(qh, each(1, 4, 16, 64));
            __mmask64 bit_9 = _mm512_test_epi8_mask(qh, each(2, 8, 32, 128));
            __m512i a = look_1024(iq2_s[0], index, bit_7, bit_8, bit_9);
            __m512i b = look_1024(iq2_s[1], index, bit_7, bit_8, bit_9);
            __m512i signs = load_line(at + IQ2_S_SIGNS + s * WORD_BYTES);
            fetch(block, 82, half * 8 + s, 16);
            iq2_words(to, half, 2 * s, a, b, signs, 0, 1);
            iq2_words(to, half, 2 * s + 1, a, b, signs, 2, 3);
        }
    }
}
