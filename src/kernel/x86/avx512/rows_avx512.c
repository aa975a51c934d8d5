/* Row operations, AVX-512. See rows_v16.h. */
#include "kernel/tiers.h"

#include "kernel/attend.h"
#include "kernel/delta.h"
#include "kernel/x86/avx512/v16_avx512.h"
#include "kernel/rows_v16.h"

/* Pairs (i, i + n_pairs), 16 at a time; their cosines are the even numbers of cos_sin. */
static void rope_neox_avx512(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                             int32_t n_pairs)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (int32_t i = 0; i < n_pairs; i += 16) {
        __mmask16 m = first_lanes(n_pairs - i);
        int32_t rest = 2 * (n_pairs - i);
        __m512 low = _mm512_maskz_loadu_ps(first_lanes(rest), cos_sin + 2 * i);
        __m512 high = rest > 16
                          ? _mm512_maskz_loadu_ps(first_lanes(rest - 16), cos_sin + 2 * i + 16)
                          : _mm512_setzero_ps();
        __m512 c = _mm512_permutex2var_ps(low, even, high);
        __m512 s = _mm512_permutex2var_ps(low, odd, high);
        for (int32_t h = 0; h < n_heads; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            __m512 a = _mm512_maskz_loadu_ps(m, at);
            __m512 b = _mm512_maskz_loadu_ps(m, at + n_pairs);
            _mm512_mask_storeu_ps(at, m, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
            _mm512_mask_storeu_ps(at + n_pairs, m, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
        }
    }
}

/* Pairs (2 i, 2 i + 1): even lanes become a c - b s, odd lanes a s + b c. */
static void rope_adjacent_avx512(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                                 int32_t n_pairs)
{
    for (int32_t i = 0; i < 2 * n_pairs; i += 16) {
        __mmask16 m = first_lanes(2 * n_pairs - i);
        __m512 cs = _mm512_maskz_loadu_ps(m, cos_sin + i);
        __m512 sc = _mm512_permute_ps(cs, 0xb1);
        for (int32_t h = 0; h < n_heads; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            __m512 ab = _mm512_maskz_loadu_ps(m, at);
            __m512 b_sc = _mm512_mul_ps(_mm512_movehdup_ps(ab), sc);
            _mm512_mask_storeu_ps(at, m, _mm512_fmaddsub_ps(_mm512_moveldup_ps(ab), cs, b_sc));
        }
    }
}

static void rope_v16(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                     int32_t n_pairs, bool neox)
{
    if (neox)
        rope_neox_avx512(x, cos_sin, n_heads, head_dim, n_pairs);
    else
        rope_adjacent_avx512(x, cos_sin, n_heads, head_dim, n_pairs);
}

void avx512_rows_init(kernel_table *table)
{
    ROWS_SET(table);
    table->attend = &attend_avx512;
    table->delta = &delta_avx512;
}
