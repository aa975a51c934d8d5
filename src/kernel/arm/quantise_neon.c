/* Activations into tiles with NEON. Every step is one IEEE operation an element or exact, in the
 * order of kernel.h, so the bytes are those of the scalar version. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/quantise_rows.h"

/* The larger, or best where x is NaN, as the scalar version has it. */
static inline float32x4_t max_number(float32x4_t best, float32x4_t x)
{
    return vbslq_f32(vcgtq_f32(x, best), x, best);
}

/* Largest |x| of n numbers, a multiple of 4. */
static inline float amax_of(const float *x, int32_t n)
{
    float32x4_t amax = vdupq_n_f32(0);
    for (int32_t i = 0; i < n; i += 4)
        amax = max_number(amax, vabsq_f32(vld1q_f32(x + i)));
    return vmaxvq_f32(amax);
}

/* Four numbers; maxnm takes the number where x is NaN. */
static inline int32x4_t quantise_4(const float *x, float inverse)
{
    float32x4_t v = vmulq_n_f32(vld1q_f32(x), inverse);
    v = vmaxnmq_f32(v, vdupq_n_f32(-127.0f));
    v = vminnmq_f32(v, vdupq_n_f32(127.0f));
    return vcvtnq_s32_f32(v);
}

/* 16 numbers to 4 words, m words apart. Returns their sum. */
static inline int32_t words_16(uint8_t *words, const float *x, float inverse, int32_t m)
{
    int16x8_t low =
        vcombine_s16(vmovn_s32(quantise_4(x, inverse)), vmovn_s32(quantise_4(x + 4, inverse)));
    int16x8_t high =
        vcombine_s16(vmovn_s32(quantise_4(x + 8, inverse)), vmovn_s32(quantise_4(x + 12, inverse)));
    int8x16_t bytes = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
    if (m == 1) {
        vst1q_s8((int8_t *)words, bytes);
    } else {
        uint32_t w[4];
        vst1q_u32(w, vreinterpretq_u32_s8(bytes));
        for (int i = 0; i < 4; i++)
            memcpy(words + (ptrdiff_t)i * m * 4, &w[i], 4);
    }
    return vaddlvq_s8(bytes);
}

static inline void block_32(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    float amax = amax_of(x, 32), d = amax / 127.0f;
    float inverse = inverse_or_zero(&d, 127.0f / amax);
    int32_t sum = words_16(block + t * 4, x, inverse, m);
    sum += words_16(block + (4 * m + t) * 4, x + 16, inverse, m);
    memcpy(block + ACT_32_D * m + t * 4, &d, 4);
    memcpy(block + ACT_32_SUM * m + t * 4, &sum, 4);
}

/* |x| of four 32-blocks' numbers i to i + 3: out[j] holds number i + j of each. */
static inline void abs_4x4(float32x4_t out[4], const float *x)
{
    float32x4_t v[4];
    for (int s = 0; s < 4; s++)
        v[s] = vabsq_f32(vld1q_f32(x + s * 32));
    float64x2_t ab01 = vreinterpretq_f64_f32(vzip1q_f32(v[0], v[1]));
    float64x2_t ab23 = vreinterpretq_f64_f32(vzip2q_f32(v[0], v[1]));
    float64x2_t cd01 = vreinterpretq_f64_f32(vzip1q_f32(v[2], v[3]));
    float64x2_t cd23 = vreinterpretq_f64_f32(vzip2q_f32(v[2], v[3]));
    out[0] = vreinterpretq_f32_f64(vzip1q_f64(ab01, cd01));
    out[1] = vreinterpretq_f32_f64(vzip2q_f64(ab01, cd01));
    out[2] = vreinterpretq_f32_f64(vzip1q_f64(ab23, cd23));
    out[3] = vreinterpretq_f32_f64(vzip2q_f64(ab23, cd23));
}

/* The eight sums of |x| run side by side, each in order of index. */
static inline float scale_256(const float *x)
{
    float32x4_t d = vdupq_n_f32(amax_of(x, 256) / 127.0f);
    for (int half = 0; half < 2; half++, x += 128) {
        float32x4_t sum = vdupq_n_f32(0), v[4];
        for (int i = 0; i < 32; i += 4) {
            abs_4x4(v, x + i);
            for (int j = 0; j < 4; j++)
                sum = vaddq_f32(sum, v[j]);
        }
        d = max_number(d, vdivq_f32(sum, vdupq_n_f32(2167.0f)));
    }
    return vmaxvq_f32(d);
}

static inline void block_256(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    float d = scale_256(x);
    float inverse = inverse_or_zero(&d, 1.0f / d);
    int32_t sum16[16];
    for (int s = 0; s < 16; s++)
        sum16[s] = words_16(block + (s * 4 * m + t) * 4, x + s * 16, inverse, m);
    scale_and_sums_store(block, d, sum16, t, m);
}

DEFINE_QUANTISE(q8_32, 32, Q8_32, block_32, _neon, false)
DEFINE_QUANTISE(q8_256, 256, Q8_256, block_256, _neon, false)

void quantise_neon_set(kernel_table *table)
{
    table->quantise[ACT_Q8_32] = quantise_q8_32_neon;
    table->quantise[ACT_Q8_256] = quantise_q8_256_neon;
}
