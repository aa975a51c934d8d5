/* Row operations, NEON. See rows_v16.h. */
#include "kernel/arm/arm.h"

#include "kernel/arm/v16_neon.h"
#include "kernel/attend.h"
#include "kernel/delta.h"
#include "kernel/rows_v16.h"

/* One pair in the scalar form. */
static inline void rotate(float *a, float *b, float c, float s)
{
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static inline void rotate_4(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s)
{
    float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, s)), x, c);
    *b = vfmaq_f32(vmulq_f32(y, c), x, s);
}

static void rope_v16(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                     int32_t n_pairs, bool neox)
{
    for (int32_t h = 0; h < n_heads; h++) {
        float *head = x + (int64_t)h * head_dim;
        int32_t i = 0;
        for (; i + 4 <= n_pairs; i += 4) {
            float32x4x2_t cs = vld2q_f32(cos_sin + 2 * i);
            if (neox) {
                float32x4_t a = vld1q_f32(head + i), b = vld1q_f32(head + n_pairs + i);
                rotate_4(&a, &b, cs.val[0], cs.val[1]);
                vst1q_f32(head + i, a);
                vst1q_f32(head + n_pairs + i, b);
            } else {
                float32x4x2_t ab = vld2q_f32(head + 2 * i);
                rotate_4(&ab.val[0], &ab.val[1], cs.val[0], cs.val[1]);
                vst2q_f32(head + 2 * i, ab);
            }
        }
        for (; i < n_pairs; i++) {
            float *a = neox ? head + i : head + 2 * i, *b = neox ? a + n_pairs : a + 1;
            rotate(a, b, cos_sin[2 * i], cos_sin[2 * i + 1]);
        }
    }
}

void neon_rows_init(kernel_table *table)
{
    ROWS_SET(table);
    table->attend = &attend_neon;
    table->delta = &delta_neon;
}
