/* One row by the types with code books by AVX2: parts are 16 bits wide. */
#include "kernel/x86/avx2/tile_avx2.h"
#include "kernel/x86/x86.h"

INLINE __m256i book_scale(__m256i bits)
{
    bits = _mm256_mullo_epi32(bits, _mm256_set1_epi32(0x00020002));
    return _mm256_add_epi32(bits, _mm256_set1_epi32(0x00010001));
}

INLINE __m256i book_add(__m256i part, __m256i w, __m256i x)
{
    return _mm256_add_epi16(part, _mm256_maddubs_epi16(w, x));
}

INLINE __m256i book_part(__m256i sum, __m256i part, __m256i scale)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(part, scale));
}

#define BOOK_WORDS(whole, short) short

#include "kernel/x86/tile_books_ymm.h"

DEFINE_BOOKS_SET(avx2)
