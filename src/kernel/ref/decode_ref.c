/* The bit layouts of the quantised types, one row of a packed block at a time.
 *
 * The formats are ggml's (GGUF files); comments name the file's fields. row_word() finds a row's
 * word in the packed block, the rest is as in the file. */
#include "kernel/ref/decode.h"

#include "base/fmath.h"

static float half_at(const uint8_t *part, int32_t row)
{
    return f16_to_f32((uint16_t)row_u16(part, row));
}

/* Blocks of 32 with 4-bit weights: byte j has weight j low, j + 16 high. */
static void nibbles_32(int8_t *q, const uint8_t *qs, int32_t row, int32_t offset)
{
    for (int32_t j = 0; j < 16; j++) {
        uint32_t b = row_byte(qs, j, row);
        q[j] = (int8_t)((int32_t)(b & 15) - offset);
        q[j + 16] = (int8_t)((int32_t)(b >> 4) - offset);
    }
}

/* Adds the fifth bits: bit c of byte j of the plane belongs to weight 4 c + j. */
static void fifth_bits(int8_t *q, const uint8_t *plane, int32_t row)
{
    uint32_t bits = row_word(plane, 0, row);
    for (int32_t i = 0; i < 32; i++)
        q[i] = (int8_t)(q[i] + (int8_t)(((bits >> (8 * (i % 4) + i / 4)) & 1) << 4));
}

static void decode_q4_0(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q4_0_D, row);
    nibbles_32(out->q, block + Q4_0_QS, row, 8);
}

static void decode_q4_1(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q4_1_D, row);
    out->m = half_at(block + Q4_1_M, row);
    nibbles_32(out->q, block + Q4_1_QS, row, 0);
}

static void decode_q5_0(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q5_0_D, row);
    nibbles_32(out->q, block + Q5_0_QS, row, 16);
    fifth_bits(out->q, block + Q5_0_QH, row);
}

static void decode_q5_1(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q5_1_D, row);
    out->m = half_at(block + Q5_1_M, row);
    nibbles_32(out->q, block + Q5_1_QS, row, 0);
    fifth_bits(out->q, block + Q5_1_QH, row);
}

static void decode_q8_0(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q8_0_D, row);
    for (int32_t j = 0; j < 32; j++)
        out->q[j] = (int8_t)((int32_t)row_byte(block + Q8_0_QS, j, row) - 128);
}

static void decode_iq4_nl(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + IQ4_NL_D, row);
    nibbles_32(out->q, block + IQ4_NL_QS, row, 0);
    for (int32_t j = 0; j < 32; j++)
        out->q[j] = iq4_levels[out->q[j]];
}

static void decode_mxfp4(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = e8m0_half(block[MXFP4_E + row]);
    nibbles_32(out->q, block + MXFP4_QS, row, 0);
    for (int32_t j = 0; j < 32; j++)
        out->q[j] = mxfp4_levels[out->q[j]];
}

/* Two bits per weight in 64 bytes: four weights per byte, 32 apart; 128 weights every 32 bytes. */
static uint32_t two_bits(const uint8_t *qs, int32_t i, int32_t row)
{
    return (row_byte(qs, i / 128 * 32 + i % 32, row) >> (2 * (i % 128 / 32))) & 3;
}

static void decode_q2_k(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q2_K_D, row);
    out->m = half_at(block + Q2_K_DMIN, row);
    for (int32_t s = 0; s < 16; s++) {
        uint32_t b = row_byte(block + Q2_K_SCALES, s, row);
        out->scale[s] = (int32_t)(b & 15);
        out->min[s] = (int32_t)(b >> 4);
    }
    for (int32_t i = 0; i < 256; i++)
        out->q[i] = (int8_t)two_bits(block + Q2_K_QS, i, row);
}

static void decode_q3_k(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q3_K_D, row);
    const uint8_t *scales = block + Q3_K_SCALES;
    for (int32_t s = 0; s < 16; s++) {
        uint32_t low = (row_byte(scales, s % 8, row) >> (s / 8 * 4)) & 15;
        uint32_t high = (row_byte(scales, 8 + s % 4, row) >> (s / 4 * 2)) & 3;
        out->scale[s] = (int32_t)(low | high << 4) - 32;
    }
    for (int32_t i = 0; i < 256; i++) {
        uint32_t high = (row_byte(block + Q3_K_HMASK, i % 32, row) >> (i / 32)) & 1;
        out->q[i] = (int8_t)((int32_t)(two_bits(block + Q3_K_QS, i, row) | high << 2) - 4);
    }
}

/* The eight 6-bit scales and minima of Q4_K and Q5_K in 12 bytes. */
static void scales_k4(row_block *out, const uint8_t *scales, int32_t row)
{
    for (int32_t s = 0; s < 4; s++) {
        uint32_t a = row_byte(scales, s, row), b = row_byte(scales, s + 4, row),
                 c = row_byte(scales, s + 8, row);
        out->scale[s] = (int32_t)(a & 63);
        out->min[s] = (int32_t)(b & 63);
        out->scale[s + 4] = (int32_t)((c & 15) | (a >> 6) << 4);
        out->min[s + 4] = (int32_t)((c >> 4) | (b >> 6) << 4);
    }
}

/* Four bits per weight in 128 bytes: two weights per byte, 32 apart; 64 weights every 32 bytes. */
static uint32_t four_bits(const uint8_t *qs, int32_t i, int32_t row)
{
    return (row_byte(qs, i / 64 * 32 + i % 32, row) >> (4 * (i % 64 / 32))) & 15;
}

static void decode_q4_k(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q4_K_D, row);
    out->m = half_at(block + Q4_K_DMIN, row);
    scales_k4(out, block + Q4_K_SCALES, row);
    for (int32_t i = 0; i < 32; i++) { /* a word has four weights, and the four 32 after them */
        uint32_t bytes = row_word(block + Q4_K_QS, i, row);
        int8_t *q = out->q + i / 8 * 64 + i % 8 * 4;
        for (int32_t j = 0; j < 4; j++) {
            q[j] = (int8_t)((bytes >> (8 * j)) & 15);
            q[j + 32] = (int8_t)((bytes >> (8 * j + 4)) & 15);
        }
    }
}

static void decode_q5_k(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q5_K_D, row);
    out->m = half_at(block + Q5_K_DMIN, row);
    scales_k4(out, block + Q5_K_SCALES, row);
    for (int32_t i = 0; i < 256; i++) {
        uint32_t high = (row_byte(block + Q5_K_QH, i % 32, row) >> (i / 32)) & 1;
        out->q[i] = (int8_t)(four_bits(block + Q5_K_QS, i, row) | high << 4);
    }
}

static void decode_q6_k(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + Q6_K_D, row);
    for (int32_t s = 0; s < 16; s++)
        out->scale[s] = (int8_t)row_byte(block + Q6_K_SCALES, s, row);
    for (int32_t i = 0; i < 256; i++) {
        /* Sub-block j of four in this half of 256; its column of 32 says which quarter. */
        int32_t j = i % 128 / 32, column = i % 32;
        const uint8_t *quarter =
            block + Q6_K_QUANTS + (i / 128 * 2 + column / 16) * Q6_K_QUARTER_BYTES;
        uint32_t high = row_byte(quarter, column % 16, row) >> (2 * j);
        uint32_t low = row_byte(quarter, 16 + j % 2 * 16 + column % 16, row) >> (4 * (j / 2));
        out->q[i] = (int8_t)((int32_t)((low & 15) | (high & 3) << 4) - 32);
    }
}

static void decode_iq4_xs(row_block *out, const uint8_t *block, int32_t row)
{
    out->d = half_at(block + IQ4_XS_D, row);
    uint32_t scales_h = load_u16(block + IQ4_XS_SCALES_H + row * 2);
    uint32_t scales_l = row_word(block + IQ4_XS_SCALES_L, 0, row);
    for (int32_t s = 0; s < 8; s++)
        out->scale[s] =
            (int32_t)(((scales_l >> (4 * s)) & 15) | ((scales_h >> (2 * s)) & 3) << 4) - 32;
    for (int32_t i = 0; i < 256; i++) {
        uint32_t b = row_byte(block + IQ4_XS_QS, i / 32 * 16 + i % 16, row);
        out->q[i] = iq4_levels[(b >> (4 * (i % 32 / 16))) & 15];
    }
}

#define DECODER(TYPE, name, sub_k, has_m) [TYPE_##TYPE] = {decode_##name, sub_k, has_m},
#define CODED(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                                \
    [TYPE_##TYPE] = {decode_##name##_ref, sub_k, false},
const type_decoder decoders_ref[TYPE_LIMIT] = {QUANTISED_TYPES(DECODER) CODED_TYPES(CODED, )};

float decode_f32_ref(const uint8_t *block, int32_t row)
{
    uint32_t bits = row_word(block, 0, row);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float decode_f16_ref(const uint8_t *block, int32_t row)
{
    return half_at(block, row);
}

float decode_bf16_ref(const uint8_t *block, int32_t row)
{
    return bf16_to_f32(load_u16(block + row * 2));
}
