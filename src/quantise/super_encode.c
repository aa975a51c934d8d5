/* Layouts of the types in super-blocks of 256 that have scales and minima (K types, IQ4_XS). */
#include "quantise/super_fit.h"

#include <string.h>

#include "kernel/kernel.h"

/* Byte, and how far up, of weight i where a byte has weights 32 apart, so many bits each. */
static void put_bits(uint8_t *qs, int32_t i, int32_t n_bits, uint32_t code)
{
    const int32_t n = 8 / n_bits * 32;
    qs[i / n * 32 + i % 32] |= (uint8_t)(code << n_bits * (i % n / 32));
}

void encode_q2_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {16, {.low = 0, .high = 3}, 0, 15, 15, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 84);
    for (int s = 0; s < 16; s++)
        out[s] = (uint8_t)(b.scale[s] | b.min[s] << 4);
    for (int i = 0; i < SUPER_BLOCK; i++)
        put_bits(out + 16, i, 2, (uint32_t)b.q[i]);
    block_put_f16(out + 80, b.d);
    block_put_f16(out + 82, b.dmin);
}

void encode_q3_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {16, {.low = -4, .high = 3}, -32, 31, 0, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 110);
    for (int i = 0; i < SUPER_BLOCK; i++) {
        uint32_t code = (uint32_t)(int32_t)(b.q[i] + 4);
        put_bits(out, i, 1, code >> 2);
        put_bits(out + 32, i, 2, code & 3);
    }
    for (int s = 0; s < 16; s++) {
        uint32_t scale = (uint32_t)(b.scale[s] + 32);
        out[96 + s % 8] |= (uint8_t)((scale & 15) << s / 8 * 4);
        out[104 + s % 4] |= (uint8_t)((scale >> 4) << s / 4 * 2);
    }
    block_put_f16(out + 108, b.d);
}

/* The eight 6-bit scales and minima of Q4_K and Q5_K in 12 bytes, d and dmin in front. */
static void put_scales_k4(uint8_t *out, const super_block *b)
{
    block_put_f16(out, b->d);
    block_put_f16(out + 2, b->dmin);
    uint8_t *scales = out + 4;
    for (int s = 0; s < 4; s++) {
        uint32_t high_scale = (uint32_t)b->scale[s + 4], high_min = (uint32_t)b->min[s + 4];
        scales[s] = (uint8_t)((uint32_t)b->scale[s] | (high_scale >> 4) << 6);
        scales[s + 4] = (uint8_t)((uint32_t)b->min[s] | (high_min >> 4) << 6);
        scales[s + 8] = (uint8_t)((high_scale & 15) | (high_min & 15) << 4);
    }
}

void encode_q4_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {32, {.low = 0, .high = 15}, 0, 63, 63, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 144);
    put_scales_k4(out, &b);
    for (int i = 0; i < SUPER_BLOCK; i++)
        put_bits(out + 16, i, 4, (uint32_t)b.q[i]);
}

void encode_q5_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {32, {.low = 0, .high = 31}, 0, 63, 63, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 176);
    put_scales_k4(out, &b);
    for (int i = 0; i < SUPER_BLOCK; i++) {
        put_bits(out + 16, i, 1, (uint32_t)b.q[i] >> 4);
        put_bits(out + 48, i, 4, (uint32_t)b.q[i] & 15);
    }
}

void encode_q6_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {16, {.low = -32, .high = 31}, -128, 127, 0, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 210);
    for (int i = 0; i < SUPER_BLOCK; i++) {
        /* In each half the low bits of weights 64 apart share a byte. */
        uint32_t code = (uint32_t)(int32_t)(b.q[i] + 32);
        out[i / 128 * 64 + i % 64] |= (uint8_t)((code & 15) << i % 128 / 64 * 4);
        put_bits(out + 128, i, 2, code >> 4);
    }
    for (int s = 0; s < 16; s++)
        out[192 + s] = (uint8_t)(int8_t)b.scale[s];
    block_put_f16(out + 208, b.d);
}

void encode_iq4_xs(uint8_t *out, const float *x, const float *w)
{
    const super_form form = {
        32, {.low = iq4_levels[0], .high = iq4_levels[15], .table = iq4_levels}, -32, 31, 0, false};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 136);
    block_put_f16(out, b.d);
    for (int s = 0; s < 8; s++) {
        uint32_t scale = (uint32_t)(b.scale[s] + 32);
        out[2 + s / 4] |= (uint8_t)((scale >> 4) << s % 4 * 2);
        out[4 + s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
    }
    for (int i = 0; i < SUPER_BLOCK; i++) {
        uint32_t code = 0;
        while (iq4_levels[code] != (int8_t)b.q[i])
            code++;
        out[8 + i / 32 * 16 + i % 16] |= (uint8_t)(code << i % 32 / 16 * 4);
    }
}
