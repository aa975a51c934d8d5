/* Packing with NEON, any type by its layout: the parts of 32-bit words are transposed 4 rows by 4
 * words at a time, halves 8 by 8. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/packing.h"

typedef uint8x16_t lanes;

static inline lanes lanes_zero(void)
{
    return vdupq_n_u8(0);
}

static inline lanes most_16_of(lanes most, uint8x16_t v)
{
    uint16x8_t magnitude = vandq_u16(vreinterpretq_u16_u8(v), vdupq_n_u16(0x7fff));
    return vreinterpretq_u8_u16(vmaxq_u16(vreinterpretq_u16_u8(most), magnitude));
}

static inline lanes most_32_of(lanes most, uint8x16_t v)
{
    uint32x4_t magnitude = vandq_u32(vreinterpretq_u32_u8(v), vdupq_n_u32(0x7fffffff));
    return vreinterpretq_u8_u32(vmaxq_u32(vreinterpretq_u32_u8(most), magnitude));
}

static inline lanes most_16(lanes most, const uint8_t *p)
{
    for (int i = 0; i < GROUP_ROWS * 2; i += 16)
        most = most_16_of(most, vld1q_u8(p + i));
    return most;
}

static inline lanes most_32(lanes most, const uint8_t *p)
{
    for (int i = 0; i < WORD_BYTES; i += 16)
        most = most_32_of(most, vld1q_u8(p + i));
    return most;
}

static inline uint32_t largest_16(lanes most)
{
    return vmaxvq_u16(vreinterpretq_u16_u8(most));
}

static inline uint32_t largest_32(lanes most)
{
    return vmaxvq_u32(vreinterpretq_u32_u8(most));
}

/* Words 0..3 of 4 rows: out[w] holds word w of each row. */
static inline void transpose_4x4(uint32x4_t out[4], const uint8_t *rows, int64_t row_bytes)
{
    uint32x4_t v[4];
    for (int r = 0; r < 4; r++)
        v[r] = vreinterpretq_u32_u8(vld1q_u8(rows + r * row_bytes));
    uint64x2_t ab01 = vreinterpretq_u64_u32(vzip1q_u32(v[0], v[1]));
    uint64x2_t ab23 = vreinterpretq_u64_u32(vzip2q_u32(v[0], v[1]));
    uint64x2_t cd01 = vreinterpretq_u64_u32(vzip1q_u32(v[2], v[3]));
    uint64x2_t cd23 = vreinterpretq_u64_u32(vzip2q_u32(v[2], v[3]));
    out[0] = vreinterpretq_u32_u64(vzip1q_u64(ab01, cd01));
    out[1] = vreinterpretq_u32_u64(vzip2q_u64(ab01, cd01));
    out[2] = vreinterpretq_u32_u64(vzip1q_u64(ab23, cd23));
    out[3] = vreinterpretq_u32_u64(vzip2q_u64(ab23, cd23));
}

/* Words first .. 3 (of the four at rows) of all 32 rows, flipped by a mask. */
static inline void words_4(uint8_t *out, const uint8_t *rows, int64_t row_bytes, int first,
                           uint8_t flip, lanes *most)
{
    for (int g = 0; g < GROUP_ROWS / 4; g++) {
        uint32x4_t v[4];
        transpose_4x4(v, rows + g * 4 * row_bytes, row_bytes);
        for (int w = first; most && w < 4; w++)
            *most = most_32_of(*most, vreinterpretq_u8_u32(v[w]));
        for (int w = first; w < 4; w++)
            vst1q_u8(out + (w - first) * WORD_BYTES + g * 16,
                     veorq_u8(vreinterpretq_u8_u32(v[w]), vdupq_n_u8(flip)));
    }
}

/* Exchanges two bits of the bit index: bits at mask with those shift above. */
static inline uint32x4_t bits_swap(uint32x4_t x, int shift, uint32_t mask)
{
    uint32x4_t down = vshlq_u32(x, vdupq_n_s32(-shift));
    uint32x4_t t = vandq_u32(veorq_u32(x, down), vdupq_n_u32(mask));
    return veorq_u32(x, veorq_u32(t, vshlq_u32(t, vdupq_n_s32(shift))));
}

/* plane_from_bits of packing.h in 4 words: the bit index c2 c1 c0 j1 j0 becomes j1 j0 c2 c1 c0. */
static inline uint32x4_t planes_from_bits(uint32x4_t x)
{
    x = bits_swap(x, 14, 0x0000cccc);
    x = bits_swap(x, 7, 0x00aa00aa);
    x = bits_swap(x, 2, 0x0c0c0c0c);
    return bits_swap(x, 1, 0x22222222);
}

static inline void planes_32(uint8_t *part)
{
    for (int i = 0; i < WORD_BYTES; i += 16) {
        uint32x4_t planes = planes_from_bits(vreinterpretq_u32_u8(vld1q_u8(part + i)));
        vst1q_u8(part + i, vreinterpretq_u8_u32(planes));
    }
}

/* 8 halves of 8 rows: out + i * 64 gets half i of the 8. */
static inline void halves_8x8(uint8_t *out, const uint8_t *rows, int64_t row_bytes, lanes *most)
{
    uint16x8_t a[8];
    uint32x4_t b[8];
    for (int r = 0; r < 8; r++) {
        uint8x16_t row = vld1q_u8(rows + r * row_bytes);
        *most = most_16_of(*most, row);
        a[r] = vreinterpretq_u16_u8(row);
    }
    for (int r = 0; r < 8; r += 2) { /* pairs of rows: even halves, odd halves */
        b[r] = vreinterpretq_u32_u16(vtrn1q_u16(a[r], a[r + 1]));
        b[r + 1] = vreinterpretq_u32_u16(vtrn2q_u16(a[r], a[r + 1]));
    }
    for (int i = 0; i < 4; i++) { /* half i = 2 * (which trn) + (odd or even), and half i + 4 */
        int odd = i % 2;
        uint32x4_t low = i < 2 ? vtrn1q_u32(b[odd], b[2 + odd]) : vtrn2q_u32(b[odd], b[2 + odd]);
        uint32x4_t high =
            i < 2 ? vtrn1q_u32(b[4 + odd], b[6 + odd]) : vtrn2q_u32(b[4 + odd], b[6 + odd]);
        uint64x2_t x = vreinterpretq_u64_u32(low), y = vreinterpretq_u64_u32(high);
        vst1q_u8(out + i * 64, vreinterpretq_u8_u64(vtrn1q_u64(x, y)));
        vst1q_u8(out + (i + 4) * 64, vreinterpretq_u8_u64(vtrn2q_u64(x, y)));
    }
}

static inline void halves_8(uint8_t *out, const uint8_t *rows, int64_t row_bytes, lanes *most)
{
    for (int g = 0; g < GROUP_ROWS / 8; g++)
        halves_8x8(out + g * 16, rows + g * 8 * row_bytes, row_bytes, most);
}

/* The processor's own prefetching does well with rows. */
static inline void line_fetch(const uint8_t *p)
{
    (void)p;
}

#include "kernel/pack_rows.h"

void pack_neon_set(kernel_table *table)
{
    packs_set(table);
}
