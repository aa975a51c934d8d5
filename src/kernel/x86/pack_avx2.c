/* Packing with AVX2, any type by its layout: the parts of 32-bit words are transposed 8 rows by 4
 * words at a time, in registers. It is bound by memory, so AVX-512 uses it too. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/ref/ref.h"

enum { FETCH_BYTES = 512 }; /* how far ahead each row is fetched */

/* Rows r and r + 4 of a block of 8, 16 bytes of each. */
static inline __m256i two_rows(const uint8_t *rows, int64_t row_bytes, int r)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(rows + r * row_bytes));
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(rows + (r + 4) * row_bytes));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Words 0..3 of 8 rows: out[w] holds word w of each row. */
static inline void transpose_8x4(__m256i out[4], const uint8_t *rows, int64_t row_bytes)
{
    __m256i a = two_rows(rows, row_bytes, 0), b = two_rows(rows, row_bytes, 1);
    __m256i c = two_rows(rows, row_bytes, 2), d = two_rows(rows, row_bytes, 3);
    __m256i ab01 = _mm256_unpacklo_epi32(a, b), ab23 = _mm256_unpackhi_epi32(a, b);
    __m256i cd01 = _mm256_unpacklo_epi32(c, d), cd23 = _mm256_unpackhi_epi32(c, d);
    out[0] = _mm256_unpacklo_epi64(ab01, cd01);
    out[1] = _mm256_unpackhi_epi64(ab01, cd01);
    out[2] = _mm256_unpacklo_epi64(ab23, cd23);
    out[3] = _mm256_unpackhi_epi64(ab23, cd23);
}

static inline void store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

/* Words first .. first + n - 1 (of the four at rows) of all 32 rows, flipped by a mask. */
static inline void words_4(uint8_t *out, const uint8_t *rows, int64_t row_bytes, int first, int n,
                           __m256i flip)
{
    for (int g = 0; g < GROUP_ROWS / 8; g++) {
        __m256i v[4];
        transpose_8x4(v, rows + g * 8 * row_bytes, row_bytes);
        for (int w = 0; w < n; w++)
            store(out + w * WORD_BYTES + g * 32, _mm256_xor_si256(v[first + w], flip));
    }
}

/* Exchanges two bits of the bit index: bits at mask with those shift above. */
static inline __m256i bits_swap(__m256i x, int shift, uint32_t mask)
{
    __m128i n = _mm_cvtsi32_si128(shift);
    __m256i t = _mm256_xor_si256(x, _mm256_srl_epi32(x, n));
    t = _mm256_and_si256(t, _mm256_set1_epi32((int32_t)mask));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_sll_epi32(t, n)));
}

/* plane_from_bits of layout.h in 8 words: the bit index c2 c1 c0 j1 j0 becomes j1 j0 c2 c1 c0. */
static inline __m256i planes_from_bits(__m256i x)
{
    x = bits_swap(x, 14, 0x0000cccc);
    x = bits_swap(x, 7, 0x00aa00aa);
    x = bits_swap(x, 2, 0x0c0c0c0c);
    return bits_swap(x, 1, 0x22222222);
}

static void part_u16(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        memcpy(out + r * 2, rows + r * row_bytes, 2);
}

static void part_plane(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        memcpy(out + r * 4, rows + r * row_bytes, 4);
    for (int g = 0; g < GROUP_ROWS / 8; g++)
        store(out + g * 32,
              planes_from_bits(_mm256_loadu_si256((const __m256i *)(const void *)(out + g * 32))));
}

/* Returns the first byte behind the part. */
static inline uint8_t *part_pack(uint8_t *out, const uint8_t *rows, int64_t row_bytes,
                                 const layout_part *part)
{
    const __m256i flip = _mm256_set1_epi8(part->kind == PART_FLIP ? -128 : 0);
    rows += part->file_offset;
    if (part->kind == PART_U16) {
        part_u16(out, rows, row_bytes);
        return out + GROUP_ROWS * 2;
    }
    if (part->kind == PART_PLANE)
        part_plane(out, rows, row_bytes);
    else if (part->n_words == 3) /* with the word before it: the one behind may not exist */
        words_4(out, rows - 4, row_bytes, 1, 3, flip);
    else if (part->n_words == 1)
        for (int r = 0; r < GROUP_ROWS; r++)
            memcpy(out + r * 4, rows + r * row_bytes, 4);
    else
        for (int w = 0; w < part->n_words; w += 4)
            words_4(out + w * WORD_BYTES, rows + w * 4, row_bytes, 0, 4, flip);
    return out + part->n_words * WORD_BYTES;
}

static void rows_prefetch(const uint8_t *rows, int64_t row_bytes, int32_t n_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        for (int32_t i = 0; i < n_bytes; i += 64)
            _mm_prefetch((const char *)rows + r * row_bytes + FETCH_BYTES + i, _MM_HINT_T0);
}

/* A float row is a run of words. */
static void floats_pack(uint8_t *group, const uint8_t *rows, int64_t row_bytes, int64_t k)
{
    const __m256i flip = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
        if (i % 16 == 0)
            rows_prefetch(rows + i * 4, row_bytes, 64);
        words_4(group + i * WORD_BYTES, rows + i * 4, row_bytes, 0, 4, flip);
    }
    for (; i < k; i++)
        for (int r = 0; r < GROUP_ROWS; r++)
            memcpy(group + i * WORD_BYTES + r * 4, rows + r * row_bytes + i * 4, 4);
}

/* 8 halves of 16 rows (r and r + 8 share a register): out + i * 64 gets half i of the 16. */
static inline void halves_16x8(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    __m256i v[8], u[8];
    for (int r = 0; r < 8; r++) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(rows + r * row_bytes));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(rows + (r + 8) * row_bytes));
        v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    for (int i = 0; i < 4; i++) { /* pairs of rows: halves 0..3 and 4..7 */
        u[i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        u[i + 4] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* fours of rows: two halves each */
        v[i] = _mm256_unpacklo_epi32(u[i], u[i + 1]);
        v[i + 1] = _mm256_unpackhi_epi32(u[i], u[i + 1]);
        v[i + 2] = _mm256_unpacklo_epi32(u[i + 2], u[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi32(u[i + 2], u[i + 3]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            store(out + (i + 2 * j) * 64, _mm256_unpacklo_epi64(v[i + j], v[i + j + 2]));
            store(out + (i + 2 * j + 1) * 64, _mm256_unpackhi_epi64(v[i + j], v[i + j + 2]));
        }
}

/* F16 and BF16. */
static void halves_pack(uint8_t *group, const uint8_t *rows, int64_t row_bytes, int64_t k)
{
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) {
        if (i % 32 == 0)
            rows_prefetch(rows + i * 2, row_bytes, 64);
        halves_16x8(group + i * 64, rows + i * 2, row_bytes);
        halves_16x8(group + i * 64 + 32, rows + i * 2 + HALF_ROWS * row_bytes, row_bytes);
    }
    for (; i < k; i++)
        part_u16(group + i * 64, rows + i * 2, row_bytes);
}

static void pack(tensor_type type, uint8_t *group, const uint8_t *rows, int64_t row_bytes,
                 int32_t n_rows, int64_t k)
{
    const type_layout *layout = layout_find(type);
    if (n_rows < GROUP_ROWS) { /* a tensor's last group */
        pack_ref(type, group, rows, row_bytes, n_rows, k);
        return;
    }
    if (type == TYPE_F32) {
        floats_pack(group, rows, row_bytes, k);
        return;
    }
    if (type == TYPE_F16 || type == TYPE_BF16) {
        halves_pack(group, rows, row_bytes, k);
        return;
    }
    for (int64_t b = 0; b < k / layout->block_k; b++) {
        rows_prefetch(rows, row_bytes, layout->file_block_bytes);
        for (int32_t p = 0; p < layout->n_parts; p++)
            group = part_pack(group, rows, row_bytes, &layout->parts[p]);
        rows += layout->file_block_bytes;
    }
}

#define DEFINE_PACK(TYPE, name, act, block_k, block_bytes)                                         \
    static void pack_##name##_avx2(void *group, const void *rows, int64_t row_bytes,               \
                                   int32_t n_rows, int64_t k)                                      \
    {                                                                                              \
        pack(TYPE_##TYPE, group, rows, row_bytes, n_rows, k);                                      \
    }
KERNEL_TYPES(DEFINE_PACK)

void pack_avx2_set(kernel_table *table)
{
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].pack = pack_##name##_avx2;
    KERNEL_TYPES(SET_TYPE)
#undef SET_TYPE
}
