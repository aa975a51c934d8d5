/* Matrix kernels for Arm with the 8-bit matrix instructions (armv8.6-a, and some before): one step
 * multiplies two tokens with two rows over 8 k, twice what a dot product instruction does. A packed
 * word has 4 k of a row, so two words are zipped; the activations were, once for the whole block.
 * A token alone takes dot products. */
#include "kernel/arm/arm.h"

#include "kernel/arm/dot_lanes.h"

enum { PAIRS = 1 };

INLINE void words_dot(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
                      int32_t n_words, const uint8_t *x, int32_t m, int32_t n_tokens,
                      int32_t fitting)
{
    (void)fitting;
    if (n_tokens == 1) {
        words_dot_lanes(acc, w, n_rows, n_words, x, m, n_tokens);
        return;
    }
    UNROLL
    for (int32_t i = 0; i < n_words; i += 2, x += m / 2 * 16) {
        int8x16_t two[4]; /* all first: they become fewer instructions */
        UNROLL
        for (int32_t t = 0; t < n_tokens; t += 2)
            two[t / 2] = vreinterpretq_s8_u8(vld1q_u8(x + t / 2 * 16));
        UNROLL
        for (int32_t t = 0; t < n_tokens; t += 2) {
            UNROLL
            for (int32_t r = 0; r < n_rows; r++) {
                acc[r][t] = vmmlaq_s32(acc[r][t], two[t / 2], w[r][i]);
                acc[r][t + 1] = vmmlaq_s32(acc[r][t + 1], two[t / 2], w[r][i + 1]);
            }
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
