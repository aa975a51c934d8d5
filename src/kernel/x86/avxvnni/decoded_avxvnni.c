/* Products of decoded weights by AVX-VNNI. A part is 32 bits wide, starts at -offset * sum(x), and
 * holds a whole sub-block. */
#include "kernel/x86/avxvnni/tile_avxvnni.h"
#include "kernel/x86/x86.h"

INLINE __m256i part_add(__m256i part, __m256i w, __m256i x, bool full)
{
    (void)full;
    return dot_bytes(part, w, x);
}

INLINE __m256i part_total(__m256i total, __m256i part, bool more)
{
    (void)total, (void)more;
    return part;
}

INLINE __m256i pairs_add(__m256i sum, __m256i a, __m256i b)
{
    return dot_pairs(sum, a, b);
}

/* A part within int16 meets its scale in the lower half of a lane, a zero in the other. A wide one,
 * up to 24 bits, is cut into its low byte and the rest, which meets 256 times the scale: that is
 * exact, and half of what a 32-bit multiplication takes. */
INLINE __m256i scale_lanes(__m256i scale, bool wide)
{
    __m256i low = _mm256_and_si256(scale, _mm256_set1_epi32(0xffff));
    return wide ? _mm256_or_si256(low, _mm256_slli_epi32(scale, 24)) : low;
}

INLINE __m256i part_scaled(__m256i sum, __m256i part, __m256i scale, bool wide)
{
    const __m256i cut = _mm256_setr_epi8(0, -1, 1, 2, 4, -1, 5, 6, 8, -1, 9, 10, 12, -1, 13, 14, 0,
                                         -1, 1, 2, 4, -1, 5, 6, 8, -1, 9, 10, 12, -1, 13, 14);
    return dot_pairs(sum, wide ? _mm256_shuffle_epi8(part, cut) : part, scale);
}

/* A part also holds a whole sub-block of coded types. */
enum { CODED_OFFSET = 128 };
#define CODED_PARTS(n_subs) (STEP_WORDS / (n_subs))

#include "kernel/x86/decoded_ymm.h"

/* -offset * sum(x), offset a power of two. */
INLINE __m256i start_32(const uint8_t *acts, int m, int offset)
{
    __m256i sum = load_tokens(acts + ACT_32_SUM * m, m);
    return _mm256_mullo_epi32(sum, _mm256_set1_epi32(-offset));
}

/* Computes the start from the activations' -32 * sum(x) over 16. */
INLINE __m256i start_k(const uint8_t *acts, int m, int s, int n_subs, int offset)
{
    const uint8_t *sum16 = acts + (ACT_256_SUM16 + s * (16 / n_subs) * 4) * m;
    __m256i v = load_tokens(sum16, m);
    if (n_subs == 8)
        v = _mm256_add_epi32(v, load_tokens(sum16 + m * 4, m));
    return offset == 128  ? _mm256_slli_epi32(v, 2)
           : offset == 32 ? v
                          : _mm256_srai_epi32(v, 3); /* 4 */
}

/* Computes -128 times the sums of four words. */
INLINE __m256i start_fine(const uint8_t *words, int m)
{
    __m256i sum = _mm256_setzero_si256();
    for (int c = 0; c < 4; c++)
        sum = dot_bytes(sum, _mm256_set1_epi8(1), load_tokens(words + c * m * 4, m));
    return _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sum, 7));
}

DEFINE_DECODED_32(q4_0, 18, load_halves, 8, false, 8, 0)
DEFINE_DECODED_32(q4_1, 20, load_halves, 8, false, 0, Q4_1_M)
DEFINE_DECODED_32(q5_0, 22, load_halves, 8, false, 16, 0)
DEFINE_DECODED_32(q5_1, 24, load_halves, 8, false, 0, Q5_1_M)
DEFINE_DECODED_32(q8_0, 34, load_halves, 8, true, 128, 0)
DEFINE_DECODED_32(iq4_nl, 18, load_halves, 8, true, 128, 0)
DEFINE_DECODED_32(mxfp4, 17, load_exponents, 8, false, 16, 0)
DEFINE_DECODED_K32(q4_k, 8, false, 0, false)
DEFINE_DECODED_K32(q5_k, 8, true, 0, false)
DEFINE_DECODED_K32(iq4_xs, 8, true, 128, true)
DEFINE_DECODED_K16(q2_k, 4, false, 0, true)
DEFINE_DECODED_K16(q3_k, 4, false, 4, false)
DEFINE_DECODED_K16(q6_k, 4, true, 32, false)
CODED_TYPES(DEFINE_DECODED_CODED, )

/* Blocks of 32 are decoded with so few instructions that up to a tile of rows is faster without a
 * step's detour (Zen 5). */
enum { MANY_32 = TOKEN_TILE + 1 };

DEFINE_DECODED_SET(avxvnni)
