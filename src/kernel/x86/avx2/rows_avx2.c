/* Row operations, AVX2 with FMA and F16C. See rows_v16.h. */
#include "kernel/tiers.h"

#include "kernel/attend.h"
#include "kernel/delta.h"
#include "kernel/x86/avx2/v16_avx2.h"
#include "kernel/rows_v16.h"

/* Cosines and sines of eight pairs, given as two registers of (c, s). */
static inline void split_pairs(__m256 p, __m256 q, __m256 *c, __m256 *s)
{
    __m256 low = _mm256_permute2f128_ps(p, q, 0x20), high = _mm256_permute2f128_ps(p, q, 0x31);
    *c = _mm256_shuffle_ps(low, high, 0x88);
    *s = _mm256_shuffle_ps(low, high, 0xdd);
}

/* Pairs (i, i + n_pairs), eight at a time. */
static void rope_neox_avx2(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                           int32_t n_pairs)
{
    for (int32_t i = 0; i < n_pairs; i += 8) {
        int32_t rest = n_pairs - i;
        const float *pairs = cos_sin + 2 * i;
        __m256 second = rest > 4 ? _mm256_maskload_ps(pairs + 8, first_lanes(2 * rest - 8))
                                 : _mm256_setzero_ps();
        __m256 c, s;
        split_pairs(_mm256_maskload_ps(pairs, first_lanes(2 * rest)), second, &c, &s);
        __m256i m = first_lanes(rest);
        for (int32_t h = 0; h < n_heads; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            __m256 a = rest >= 8 ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, m);
            __m256 b =
                rest >= 8 ? _mm256_loadu_ps(at + n_pairs) : _mm256_maskload_ps(at + n_pairs, m);
            __m256 a_new = _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s));
            __m256 b_new = _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c));
            if (rest >= 8) {
                _mm256_storeu_ps(at, a_new);
                _mm256_storeu_ps(at + n_pairs, b_new);
            } else {
                _mm256_maskstore_ps(at, m, a_new);
                _mm256_maskstore_ps(at + n_pairs, m, b_new);
            }
        }
    }
}

/* Pairs (2 i, 2 i + 1): even lanes become a c - b s, odd lanes a s + b c. */
static inline __m256 rotate_adjacent(__m256 ab, __m256 cs)
{
    __m256 b_sc = _mm256_mul_ps(_mm256_movehdup_ps(ab), _mm256_permute_ps(cs, 0xb1));
    return _mm256_fmaddsub_ps(_mm256_moveldup_ps(ab), cs, b_sc);
}

static void rope_adjacent_avx2(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                               int32_t n_pairs)
{
    for (int32_t h = 0; h < n_heads; h++) {
        float *head = x + (int64_t)h * head_dim;
        int32_t i = 0;
        for (; i + 8 <= 2 * n_pairs; i += 8)
            _mm256_storeu_ps(
                head + i, rotate_adjacent(_mm256_loadu_ps(head + i), _mm256_loadu_ps(cos_sin + i)));
        if (i < 2 * n_pairs) {
            __m256i m = first_lanes(2 * n_pairs - i);
            _mm256_maskstore_ps(head + i, m,
                                rotate_adjacent(_mm256_maskload_ps(head + i, m),
                                                _mm256_maskload_ps(cos_sin + i, m)));
        }
    }
}

static void rope_v16(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                     int32_t n_pairs, bool neox)
{
    if (neox)
        rope_neox_avx2(x, cos_sin, n_heads, head_dim, n_pairs);
    else
        rope_adjacent_avx2(x, cos_sin, n_heads, head_dim, n_pairs);
}

void avx2_rows_init(kernel_table *table)
{
    ROWS_SET(table);
    table->attend = &attend_avx2;
    table->delta = &delta_avx2;
}
