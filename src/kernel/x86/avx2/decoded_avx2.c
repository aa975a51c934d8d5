/* Products of decoded weights by AVX2. A part is 16 bits wide, of even and odd pairs of weights, as
 * many words as fit, and is widened as it meets its scale. Where an offset would make it too large
 * it starts at -offset times the sums of the same weights' x: then four words of 6 bits fit, and
 * eight of 5. What is beyond 16 bits on the way wraps around and comes back. Weights of 8 bits are
 * signed, and one word of them fills a part. */
#include "kernel/x86/avx2/tile_avx2.h"
#include "kernel/x86/x86.h"

/* Settled here: compilers would rather form the products of a whole loop body, add them up in pairs
 * at its end, and spill them until then. */
INLINE __m256i part_add(__m256i part, __m256i w, __m256i x, bool full)
{
    part = _mm256_add_epi16(part, products_16(w, x, full));
    __asm__("" : "+x"(part));
    return part;
}

INLINE __m256i part_total(__m256i total, __m256i part, bool more)
{
    __m256i v = _mm256_madd_epi16(part, _mm256_set1_epi16(1));
    return more ? _mm256_add_epi32(total, v) : v;
}

INLINE __m256i pairs_add(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

INLINE __m256i scale_lanes(__m256i scale, bool wide)
{
    (void)wide;
    return both_halves(scale);
}

INLINE __m256i part_scaled(__m256i sum, __m256i part, __m256i scale, bool wide)
{
    (void)wide;
    return pairs_add(sum, part, scale);
}

/* Weights of coded types are signed, within +-64: two words' products fit 16 bits. */
enum { CODED_OFFSET = 0 };
#define CODED_PARTS(n_subs) 2

#include "kernel/x86/decoded_ymm.h"

/* -offset times the sums of pairs over n_words words of all tokens. */
INLINE __m256i start_words(const uint8_t *words, int m, int n_words, int offset)
{
    __m256i sum = _mm256_setzero_si256();
    for (int c = 0; c < n_words; c++)
        sum = _mm256_sub_epi16(sum, _mm256_maddubs_epi16(_mm256_set1_epi8((char)offset),
                                                         load_tokens(words + c * m * 4, m)));
    return sum;
}

INLINE __m256i start_32(const uint8_t *acts, int m, int offset)
{
    return start_words(acts, m, 8, offset);
}

INLINE __m256i start_k(const uint8_t *acts, int m, int s, int n_subs, int offset)
{
    const int n_words = STEP_WORDS / n_subs;
    return start_words(acts + s * n_words * m * 4, m, n_words, offset);
}

INLINE __m256i start_fine(const uint8_t *words, int m)
{
    (void)words, (void)m;
    return _mm256_setzero_si256();
}

DEFINE_DECODED_32(q4_0, 18, load_halves, 8, false, 8, 0)
DEFINE_DECODED_32(q4_1, 20, load_halves, 8, false, 0, Q4_1_M)
DEFINE_DECODED_32(q5_0, 22, load_halves, 8, false, 16, 0)
DEFINE_DECODED_32(q5_1, 24, load_halves, 4, false, 0, Q5_1_M)
DEFINE_DECODED_32(q8_0, 34, load_halves, 1, true, 0, 0)
DEFINE_DECODED_32(iq4_nl, 18, load_halves, 1, true, 0, 0)
DEFINE_DECODED_32(mxfp4, 17, load_exponents, 8, false, 16, 0)
DEFINE_DECODED_K32(q4_k, 8, false, 0, false)
DEFINE_DECODED_K32(q5_k, 4, false, 0, false)
DEFINE_DECODED_K32(iq4_xs, 1, false, 0, true)
DEFINE_DECODED_K16(q2_k, 4, false, 0, true)
DEFINE_DECODED_K16(q3_k, 4, false, 4, false)
DEFINE_DECODED_K16(q6_k, 4, false, 32, false)
CODED_TYPES(DEFINE_DECODED_CODED, )

/* Up to so many rows blocks of 32 are faster without a step's detour (Zen 5). */
enum { MANY_32 = 5 };

DEFINE_DECODED_SET(avx2)
