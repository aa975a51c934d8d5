/* One row by the types with code books by AVX-VNNI: parts are 32 bits wide. */
#include "kernel/x86/vnni_ymm.h"
#include "kernel/x86/x86.h"
#include "kernel/x86/ymm.h"

INLINE __m256i book_scale(__m256i bits)
{
    return _mm256_add_epi32(_mm256_add_epi32(bits, bits), _mm256_set1_epi32(1));
}

INLINE __m256i book_add(__m256i part, __m256i w, __m256i x)
{
    return dot_bytes(part, w, x);
}

INLINE __m256i book_part(__m256i sum, __m256i part, __m256i scale)
{
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(part, scale));
}

#define BOOK_WORDS(whole, short) whole

#include "kernel/x86/tile_books_ymm.h"

DEFINE_BOOKS_SET(avxvnni)
