/* The bit layouts of the coded types (packing.h), one row of a packed block at a time. */
#include "base/fmath.h"
#include "kernel/code_books.h"
#include "kernel/ref/decode.h"

static float half_at(const uint8_t *part, int32_t row)
{
    return f16_to_f32((uint16_t)row_u16(part, row));
}

/* Eight weights; no magnitude is 0, so nothing carries from a byte to the next one. */
static void put_signed(int8_t *q, uint64_t magnitudes, uint64_t minus)
{
    uint64_t v = (magnitudes ^ minus) + (minus & 0x0101010101010101u);
    memcpy(q, &v, sizeof v);
}

/* Four 7-bit numbers of signs of 8 weights each, and a scale of 4 bits, in a word. */
static uint64_t signs_at(uint32_t word, int32_t i)
{
    return books.even_minus[word >> 7 * i & 127];
}

static int32_t odd_scale(uint32_t bits)
{
    return (int32_t)(2 * bits + 1);
}

void decode_iq2_xxs_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row) * 0.125f;
    for (int32_t s = 0; s < 8; s++) {
        uint32_t indices = row_word(block + IQ2_XXS_QS, 2 * s, row);
        uint32_t word = row_word(block + IQ2_XXS_QS, 2 * s + 1, row);
        out->scale[s] = odd_scale(word >> 28);
        for (int32_t i = 0; i < 4; i++)
            put_signed(out->q + 32 * s + 8 * i, books.iq2_xxs[indices >> 8 * i & 255],
                       signs_at(word, i));
    }
}

/* Sixteen scales of 4 bits. */
static void nibble_scales(row_block *out, const uint8_t *scales, int32_t row)
{
    for (int32_t s = 0; s < 16; s++)
        out->scale[s] = odd_scale(row_word(scales, s / 8, row) >> 4 * (s % 8) & 15);
}

void decode_iq2_xs_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row) * 0.125f;
    nibble_scales(out, block + IQ2_XS_SCALES, row);
    for (int32_t i = 0; i < 32; i++) {
        uint32_t q = row_word(block + IQ2_XS_QS, i / 2, row) >> 16 * (i % 2);
        put_signed(out->q + 8 * i, books.iq2_xs[q & 511], books.even_minus[q >> 9 & 127]);
    }
}

void decode_iq2_s_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row) * 0.125f;
    nibble_scales(out, block + IQ2_S_SCALES, row);
    for (int32_t i = 0; i < 32; i++) {
        uint32_t high = row_word(block + IQ2_S_QH, i / 16, row) >> 2 * (i % 16) & 3;
        uint32_t signs = row_byte(block + IQ2_S_SIGNS, i, row);
        put_signed(out->q + 8 * i, books.iq2_s[row_byte(block + IQ2_S_QS, i, row) | high << 8],
                   books.minus[signs]);
    }
}

void decode_iq3_xxs_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row) * 0.25f;
    for (int32_t s = 0; s < 8; s++) {
        uint32_t word = row_word(block + IQ3_XXS_SIGNS, s, row);
        out->scale[s] = odd_scale(word >> 28);
        for (int32_t i = 0; i < 4; i++) {
            const uint8_t *qs = block + IQ3_XXS_QS;
            uint64_t low = books.iq3_xxs[row_byte(qs, 8 * s + 2 * i, row)];
            uint64_t high = books.iq3_xxs[row_byte(qs, 8 * s + 2 * i + 1, row)];
            put_signed(out->q + 32 * s + 8 * i, low | high << 32, signs_at(word, i));
        }
    }
}

void decode_iq3_s_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row);
    for (int32_t s = 0; s < 8; s++)
        out->scale[s] = odd_scale(row_word(block + IQ3_S_SCALES, 0, row) >> 4 * s & 15);
    for (int32_t i = 0; i < 32; i++) {
        uint64_t rows[2];
        for (int32_t j = 0; j < 2; j++) {
            uint32_t n = (uint32_t)(2 * i + j), top = row_word(block + IQ3_S_QH, i / 16, row);
            rows[j] =
                books.iq3_s[row_byte(block + IQ3_S_QS, (int32_t)n, row) | (top >> n % 32 & 1) << 8];
        }
        put_signed(out->q + 8 * i, rows[0] | rows[1] << 32,
                   books.minus[row_byte(block + IQ3_S_SIGNS, i, row)]);
    }
}

/* Eight weights: eight times the book's numbers, plus or minus one, which is an eighth of what d
 * stands for. */
static void put_shifted(int8_t *q, uint64_t numbers, bool minus)
{
    const uint64_t each = 0x0101010101010101u;
    uint64_t v = (numbers + (minus ? 119 : 121) * each) ^ 128 * each;
    memcpy(q, &v, sizeof v);
}

void decode_iq1_s_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row) * 0.125f;
    for (int32_t s = 0; s < 8; s++) {
        uint32_t high = row_word(block + IQ1_S_QH, s / 2, row) >> 16 * (s % 2);
        out->scale[s] = odd_scale(high >> 12 & 7);
        for (int32_t i = 0; i < 4; i++) {
            uint32_t n = row_byte(block + IQ1_S_QS, 4 * s + i, row) | (high >> 3 * i & 7) << 8;
            put_shifted(out->q + 32 * s + 8 * i, books.iq1[n], high >> 15 & 1);
        }
    }
}

void decode_iq1_m_ref(row_block *out, const uint8_t *block, int32_t row)
{
    uint64_t scales = 0;
    out->d = half_at(block, row) * 0.125f;
    for (int32_t i = 0; i < 3; i++)
        scales |= (uint64_t)row_u16(block + IQ1_M_SCALES + i * GROUP_ROWS * 2, row) << 16 * i;
    for (int32_t s = 0; s < 16; s++)
        out->scale[s] = odd_scale(scales >> 3 * s & 7);
    for (int32_t i = 0; i < 32; i++) {
        uint32_t high = row_word(block + IQ1_M_QH, i / 8, row) >> 4 * (i % 8);
        put_shifted(out->q + 8 * i, books.iq1[row_byte(block + IQ1_M_QS, i, row) | (high & 7) << 8],
                    high & 8);
    }
}

static void scales_of_one(row_block *out)
{
    for (int32_t s = 0; s < 8; s++)
        out->scale[s] = 1;
}

/* Digit n of a byte: the whole number before the point after multiplying by 3, n times. */
static int8_t ternary(uint32_t byte, int32_t n)
{
    static const uint8_t power[] = {1, 3, 9, 27, 81};
    return (int8_t)(((byte * power[n] & 255) * 3 >> 8) - 1);
}

void decode_tq1_0_ref(row_block *out, const uint8_t *block, int32_t row)
{
    int8_t *q = out->q;
    out->d = half_at(block, row);
    scales_of_one(out);
    for (int32_t n = 0; n < 5; n++)
        for (int32_t i = 0; i < 32; i++)
            *q++ = ternary(row_byte(block + TQ1_0_QS, i, row), n);
    for (int32_t n = 0; n < 5; n++)
        for (int32_t i = 32; i < 48; i++)
            *q++ = ternary(row_byte(block + TQ1_0_QS, i, row), n);
    for (int32_t n = 0; n < 4; n++)
        for (int32_t i = 0; i < 4; i++)
            *q++ = ternary(row_byte(block + TQ1_0_QH, i, row), n);
}

void decode_tq2_0_ref(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block, row);
    scales_of_one(out);
    for (int32_t i = 0; i < 256; i++) {
        uint32_t byte = row_byte(block + TQ2_0_QS, i / 128 * 32 + i % 32, row);
        out->q[i] = (int8_t)((int32_t)(byte >> 2 * (i % 128 / 32) & 3) - 1);
    }
}

void decode_nvfp4_ref(row_block *out, const uint8_t *block, int32_t row)
{
    for (int32_t s = 0; s < 4; s++) {
        out->fine[s] = ue4m3_half((uint8_t)row_byte(block + NVFP4_D, s, row));
        for (int32_t i = 0; i < 8; i++) {
            uint32_t byte = row_byte(block + NVFP4_QS, 8 * s + i, row);
            out->q[16 * s + i] = mxfp4_levels[byte & 15];
            out->q[16 * s + 8 + i] = mxfp4_levels[byte >> 4];
        }
    }
}
