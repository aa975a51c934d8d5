/* Matrix kernels for Arm with the 8-bit matrix instructions (armv8.6-a, and some before): one step
 * multiplies two tokens with two rows over 8 k, twice what a dot product instruction does. A packed
 * word has 4 k of a row, so two words are zipped; the activations were, once for the whole block.
 * One token alone takes dot products. */
#include "kernel/arm/arm.h"

#include "kernel/arm/dot_lanes.h"

enum { PAIRS = 1, STEP_TOKENS = 8 };

INLINE void words_2(int32x4_t (*acc)[HALF_REGISTERS], int8x16_t (*w)[HALF_REGISTERS],
                    int32_t n_rows, const uint8_t *x, int32_t m, int32_t n_tokens, bool narrow)
{
    (void)narrow;
    if (n_tokens == 1) {
        words_2_lanes(acc, w, n_rows, x, m, n_tokens);
        return;
    }
    UNROLL
    for (int32_t r = 0; r < n_rows; r++) {
        int32x4_t first = vreinterpretq_s32_s8(w[0][r]), second = vreinterpretq_s32_s8(w[1][r]);
        int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
        int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
        UNROLL
        for (int32_t t = 0; t < n_tokens; t += 2) {
            int8x16_t two = vreinterpretq_s8_u8(vld1q_u8(x + t / 2 * 16));
            acc[t][r] = vmmlaq_s32(acc[t][r], two, low);
            acc[t + 1][r] = vmmlaq_s32(acc[t + 1][r], two, high);
        }
    }
}

#include "kernel/arm/matmul_tiles.h"

DEFINE_TILES(i8mm)

void i8mm_matmul_init(kernel_table *table)
{
    limits_i8mm_set(table);
    SET_TILES(table, i8mm);
}
