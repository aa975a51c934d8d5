/* Row operations, AVX-512: one register is the contract's 16 lanes, tails are masked. */
#include "kernel/tiers.h"

#include "kernel/attend.h"
#include "kernel/x86/avx512/math_avx512.h"

static void rmsnorm_avx512(float *y, const float *x, const float *w, int64_t d, float eps)
{
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < d; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(first_lanes(d - i), x + i);
        sum = _mm512_fmadd_ps(v, v, sum);
    }
    float scale = 1.0f / sqrtf(sum16_avx512(sum) / (float)d + eps);
    for (int64_t i = 0; i < d; i += 16) {
        __mmask16 m = first_lanes(d - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(scale));
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
    }
}

static void layernorm_avx512(float *y, const float *x, const float *w, const float *b, int64_t d,
                             float eps)
{
    __m512 sum = _mm512_setzero_ps(), square = sum;
    for (int64_t i = 0; i < d; i += 16)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(first_lanes(d - i), x + i));
    const __m512 mean = _mm512_set1_ps(sum16_avx512(sum) / (float)d);
    for (int64_t i = 0; i < d; i += 16) {
        __mmask16 m = first_lanes(d - i);
        __m512 v = _mm512_maskz_sub_ps(m, _mm512_maskz_loadu_ps(m, x + i), mean);
        square = _mm512_fmadd_ps(v, v, square);
    }
    const __m512 scale = _mm512_set1_ps(1.0f / sqrtf(sum16_avx512(square) / (float)d + eps));
    for (int64_t i = 0; i < d; i += 16) {
        __mmask16 m = first_lanes(d - i);
        __m512 v = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), mean), scale);
        v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i));
        _mm512_mask_storeu_ps(y + i, m, _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, b + i)));
    }
}

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

static void rope_avx512(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                        int32_t n_pairs, bool neox)
{
    if (neox)
        rope_neox_avx512(x, cos_sin, n_heads, head_dim, n_pairs);
    else
        rope_adjacent_avx512(x, cos_sin, n_heads, head_dim, n_pairs);
}

static void swiglu_avx512(float *y, const float *gate, const float *up, int64_t n)
{
    const __m512 one = _mm512_set1_ps(1.0f), sign = _mm512_set1_ps(-0.0f);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m512 g = _mm512_maskz_loadu_ps(m, gate + i);
        __m512 v = _mm512_div_ps(g, _mm512_add_ps(one, exp_avx512(_mm512_xor_ps(g, sign))));
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, up + i)));
    }
}

static inline __m512 gelu_16(__m512 x)
{
    __m512 v = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(GELU_F32_CUBIC),
                               _mm512_set1_ps(GELU_F32_LINEAR));
    __m512 e = exp_avx512(_mm512_xor_ps(_mm512_mul_ps(x, v), _mm512_set1_ps(-0.0f)));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

static void geglu_avx512(float *y, const float *gate, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m512 v = gelu_16(_mm512_maskz_loadu_ps(m, gate + i));
        if (up)
            v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, up + i));
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}

static void softcap_avx512(float *y, int64_t n, float cap)
{
    const __m512 factor = _mm512_set1_ps(2.0f / cap), one = _mm512_set1_ps(1.0f);
    const __m512 c = _mm512_set1_ps(cap), twice = _mm512_set1_ps(2.0f * cap);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m512 e = exp_avx512(_mm512_mul_ps(_mm512_maskz_loadu_ps(m, y + i), factor));
        e = _mm512_div_ps(twice, _mm512_add_ps(one, e));
        _mm512_mask_storeu_ps(y + i, m, _mm512_sub_ps(c, e));
    }
}

static void add_avx512(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m512 v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, y + i), _mm512_maskz_loadu_ps(m, x + i));
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}

static void to_f16_avx512(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(y + i, m, half);
    }
}

static void from_f16_avx512(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        _mm512_mask_storeu_ps(y + i, m, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, x + i)));
    }
}

/* The largest value first (max keeps its second operand when the first is NaN), then where it is
 * first found. */
static int64_t arg_max_avx512(const float *x, int64_t n)
{
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 best = lowest, best2 = lowest;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        best = _mm512_max_ps(_mm512_loadu_ps(x + i), best);
        best2 = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), best2);
    }
    for (; i < n; i += 16)
        best = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, first_lanes(n - i), x + i), best);
    __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_max_ps(best, best2)));
    for (i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        uint32_t found =
            _mm512_mask_cmp_ps_mask(m, _mm512_maskz_loadu_ps(m, x + i), top, _CMP_EQ_OQ);
        if (found)
            return i + __builtin_ctz(found);
    }
    return 0; /* nothing but NaN */
}

static float sum_exp_avx512(const float *x, int64_t n, float shift, float factor)
{
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 m = first_lanes(n - i);
        __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(shift));
        __m512 e = exp_avx512(_mm512_mul_ps(v, _mm512_set1_ps(factor)));
        sum = _mm512_mask_add_ps(sum, m, sum, e);
    }
    return sum16_avx512(sum);
}

void avx512_rows_init(kernel_table *table)
{
#define SET_ROW(op) table->op = op##_avx512;
    KERNEL_ROWS(SET_ROW)
#undef SET_ROW
    table->attend = &attend_avx512;
}
