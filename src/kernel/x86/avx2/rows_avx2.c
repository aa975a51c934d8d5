/* Row operations, AVX2 with FMA and F16C: two registers are the contract's 16 lanes. Whole
 * registers first; what is left over goes through masked loads and stores. */
#include "kernel/tiers.h"

#include "kernel/attend.h"
#include "kernel/x86/avx2/math_avx2.h"

static void rmsnorm_avx2(float *y, const float *x, const float *w, int64_t d, float eps)
{
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    if (i < d) {
        __m256 a = _mm256_maskload_ps(x + i, first_lanes(d - i));
        low = _mm256_fmadd_ps(a, a, low);
    }
    if (i + 8 < d) {
        __m256 b = _mm256_maskload_ps(x + i + 8, first_lanes(d - i - 8));
        high = _mm256_fmadd_ps(b, b, high);
    }
    __m256 scale = _mm256_set1_ps(1.0f / sqrtf(sum16_avx2(low, high) / (float)d + eps));
    for (i = 0; i + 8 <= d; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(v, _mm256_loadu_ps(w + i)));
    }
    if (i < d) {
        __m256i m = first_lanes(d - i);
        __m256 v = _mm256_mul_ps(_mm256_maskload_ps(x + i, m), scale);
        _mm256_maskstore_ps(y + i, m, _mm256_mul_ps(v, _mm256_maskload_ps(w + i, m)));
    }
}

/* The 16 lanes' sums of x (shift 0), or of the squares of x - shift. */
static inline float lane_sums(const float *x, int64_t d, float shift, bool squares)
{
    const __m256 m = _mm256_set1_ps(shift);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t i = 0; i < d; i += 8) {
        __m256i lanes = first_lanes(d - i);
        __m256 v = i + 8 <= d ? _mm256_loadu_ps(x + i) : _mm256_maskload_ps(x + i, lanes);
        if (squares) {
            v = _mm256_and_ps(_mm256_sub_ps(v, m), _mm256_castsi256_ps(lanes));
            sum[i / 8 % 2] = _mm256_fmadd_ps(v, v, sum[i / 8 % 2]);
        } else {
            sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], v);
        }
    }
    return sum16_avx2(sum[0], sum[1]);
}

static inline __m256 layernorm_8(__m256 x, __m256 mean, __m256 scale, __m256 w, __m256 b)
{
    __m256 v = _mm256_mul_ps(_mm256_sub_ps(x, mean), scale);
    return _mm256_add_ps(_mm256_mul_ps(v, w), b);
}

static void layernorm_avx2(float *y, const float *x, const float *w, const float *b, int64_t d,
                           float eps)
{
    float m = lane_sums(x, d, 0, false) / (float)d;
    float s = 1.0f / sqrtf(lane_sums(x, d, m, true) / (float)d + eps);
    const __m256 mean = _mm256_set1_ps(m), scale = _mm256_set1_ps(s);
    int64_t i = 0;
    for (; i + 8 <= d; i += 8)
        _mm256_storeu_ps(y + i, layernorm_8(_mm256_loadu_ps(x + i), mean, scale,
                                            _mm256_loadu_ps(w + i), _mm256_loadu_ps(b + i)));
    if (i < d) {
        __m256i l = first_lanes(d - i);
        _mm256_maskstore_ps(y + i, l,
                            layernorm_8(_mm256_maskload_ps(x + i, l), mean, scale,
                                        _mm256_maskload_ps(w + i, l),
                                        _mm256_maskload_ps(b + i, l)));
    }
}

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

static void rope_avx2(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                      int32_t n_pairs, bool neox)
{
    if (neox)
        rope_neox_avx2(x, cos_sin, n_heads, head_dim, n_pairs);
    else
        rope_adjacent_avx2(x, cos_sin, n_heads, head_dim, n_pairs);
}

static inline __m256 swiglu_8(__m256 gate, __m256 up)
{
    __m256 e = exp_avx2(_mm256_xor_ps(gate, _mm256_set1_ps(-0.0f)));
    return _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(_mm256_set1_ps(1.0f), e)), up);
}

static void swiglu_avx2(float *y, const float *gate, const float *up, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, swiglu_8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
    if (i < n) {
        __m256i m = first_lanes(n - i);
        _mm256_maskstore_ps(
            y + i, m, swiglu_8(_mm256_maskload_ps(gate + i, m), _mm256_maskload_ps(up + i, m)));
    }
}

static inline __m256 gelu_8(__m256 x)
{
    __m256 v = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(GELU_F32_CUBIC),
                               _mm256_set1_ps(GELU_F32_LINEAR));
    __m256 e = exp_avx2(_mm256_xor_ps(_mm256_mul_ps(x, v), _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

static void geglu_avx2(float *y, const float *gate, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        __m256i m = first_lanes(n - i);
        __m256 v = gelu_8(_mm256_maskload_ps(gate + i, m));
        if (up)
            v = _mm256_mul_ps(v, _mm256_maskload_ps(up + i, m));
        _mm256_maskstore_ps(y + i, m, v);
    }
}

static void softcap_avx2(float *y, int64_t n, float cap)
{
    const __m256 factor = _mm256_set1_ps(2.0f / cap), one = _mm256_set1_ps(1.0f);
    const __m256 c = _mm256_set1_ps(cap), twice = _mm256_set1_ps(2.0f * cap);
    for (int64_t i = 0; i < n; i += 8) {
        __m256i m = first_lanes(n - i);
        __m256 e = exp_avx2(_mm256_mul_ps(_mm256_maskload_ps(y + i, m), factor));
        e = _mm256_div_ps(twice, _mm256_add_ps(one, e));
        _mm256_maskstore_ps(y + i, m, _mm256_sub_ps(c, e));
    }
}

static void add_avx2(float *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

static void to_f16_avx2(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

static void from_f16_avx2(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, load_f16_avx2(x + i));
    for (; i < n; i++)
        y[i] = _cvtsh_ss(x[i]);
}

static float largest_lane(__m256 v)
{
    float lane[8], top = -INFINITY;
    _mm256_storeu_ps(lane, v);
    for (int i = 0; i < 8; i++)
        top = lane[i] > top ? lane[i] : top;
    return top;
}

/* The largest value first (max keeps its second operand when the first is NaN), then where it is
 * first found. */
static int64_t arg_max_avx2(const float *x, int64_t n)
{
    __m256 best = _mm256_set1_ps(-INFINITY), best2 = best;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        best = _mm256_max_ps(_mm256_loadu_ps(x + i), best);
        best2 = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), best2);
    }
    float top = largest_lane(_mm256_max_ps(best, best2));
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (i = 0; i + 8 <= n; i += 8) {
        int found = _mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(top), _CMP_EQ_OQ));
        if (found)
            return i + __builtin_ctz((unsigned)found);
    }
    for (; i < n; i++)
        if (x[i] == top)
            return i;
    return 0; /* nothing but NaN */
}

static float sum_exp_avx2(const float *x, int64_t n, float shift, float factor)
{
    const __m256 s = _mm256_set1_ps(shift), f = _mm256_set1_ps(factor);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 e = exp_avx2(_mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), s), f));
        sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], e);
    }
    if (i < n) {
        __m256i m = first_lanes(n - i);
        __m256 e = exp_avx2(_mm256_mul_ps(_mm256_sub_ps(_mm256_maskload_ps(x + i, m), s), f));
        e = _mm256_and_ps(e, _mm256_castsi256_ps(m));
        sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], e);
    }
    return sum16_avx2(sum[0], sum[1]);
}

void avx2_rows_init(kernel_table *table)
{
#define SET_ROW(op) table->op = op##_avx2;
    KERNEL_ROWS(SET_ROW)
#undef SET_ROW
    table->attend = &attend_avx2;
}
