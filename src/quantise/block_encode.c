/* Types in blocks of 32, floats, and the table of all types: see block_encode.h. */
#include "quantise/block_encode.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/kernel.h"
#include "quantise/level_fit.h"

enum { BLOCK = 32 };

void block_put_f16(uint8_t *out, float value)
{
    uint16_t h = f32_to_f16(value);
    out[0] = (uint8_t)h;
    out[1] = (uint8_t)(h >> 8);
}

float block_f16(float value)
{
    const float most = 65504;
    if (isnan(value)) /* of sums of squares that were infinite */
        return 0;
    value = value > most ? most : value < -most ? -most : value;
    return f16_to_f32(f32_to_f16(value));
}

/* 4-bit codes: byte j has weight j low, j + 16 high. */
static void put_nibbles(uint8_t *qs, const uint32_t code[BLOCK])
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((code[j] & 15) | (code[j + 16] & 15) << 4);
}

static void put_fifth_bits(uint8_t *qh, const uint32_t code[BLOCK])
{
    uint32_t bits = 0;
    for (int j = 0; j < BLOCK; j++)
        bits |= (code[j] >> 4 & 1) << j;
    for (int i = 0; i < 4; i++)
        qh[i] = (uint8_t)(bits >> 8 * i);
}

/* Codes of a step alone, counted from the lowest level; d as the file has it. */
static float codes_of_step(uint32_t code[BLOCK], const float *x, const float *w,
                           const fit_levels *levels)
{
    float q[BLOCK];
    fit_line line = {block_f16(fit_step(x, w, BLOCK, levels).step), 0};
    fit_codes(q, x, w, BLOCK, line, levels);
    for (int i = 0; i < BLOCK; i++)
        code[i] = (uint32_t)(int32_t)(q[i] - levels->low);
    return line.step;
}

static fit_line codes_of_line(uint32_t code[BLOCK], const float *x, const float *w,
                              const fit_levels *levels)
{
    float q[BLOCK];
    fit_line line = fit_step_offset(x, w, BLOCK, levels, FLT_MAX);
    line = (fit_line){block_f16(line.step), block_f16(line.offset)};
    fit_codes(q, x, w, BLOCK, line, levels);
    for (int i = 0; i < BLOCK; i++)
        code[i] = (uint32_t)q[i];
    return line;
}

static void encode_q4_0(uint8_t *out, const float *x, const float *w)
{
    uint32_t code[BLOCK];
    block_put_f16(out, codes_of_step(code, x, w, &(fit_levels){.low = -8, .high = 7}));
    put_nibbles(out + 2, code);
}

static void encode_q5_0(uint8_t *out, const float *x, const float *w)
{
    uint32_t code[BLOCK];
    block_put_f16(out, codes_of_step(code, x, w, &(fit_levels){.low = -16, .high = 15}));
    put_fifth_bits(out + 2, code);
    put_nibbles(out + 6, code);
}

static void encode_q4_1(uint8_t *out, const float *x, const float *w)
{
    uint32_t code[BLOCK];
    fit_line line = codes_of_line(code, x, w, &(fit_levels){.low = 0, .high = 15});
    block_put_f16(out, line.step);
    block_put_f16(out + 2, line.offset);
    put_nibbles(out + 4, code);
}

static void encode_q5_1(uint8_t *out, const float *x, const float *w)
{
    uint32_t code[BLOCK];
    fit_line line = codes_of_line(code, x, w, &(fit_levels){.low = 0, .high = 31});
    block_put_f16(out, line.step);
    block_put_f16(out + 2, line.offset);
    put_fifth_bits(out + 4, code);
    put_nibbles(out + 8, code);
}

static void encode_q8_0(uint8_t *out, const float *x, const float *w)
{
    (void)w; /* no level is worth cutting numbers off */
    float most = 0, q[BLOCK], ones[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        most = fmaxf(most, fabsf(x[i]));
        ones[i] = 1;
    }
    fit_line line = {block_f16(most / 127), 0};
    fit_codes(q, x, ones, BLOCK, line, &(fit_levels){.low = -127, .high = 127});
    block_put_f16(out, line.step);
    for (int i = 0; i < BLOCK; i++)
        out[2 + i] = (uint8_t)(int8_t)q[i];
}

static void encode_iq4_nl(uint8_t *out, const float *x, const float *w)
{
    const fit_levels levels = {.low = iq4_levels[0], .high = iq4_levels[15], .table = iq4_levels};
    float q[BLOCK];
    uint32_t code[BLOCK] = {0};
    fit_line line = {block_f16(fit_step(x, w, BLOCK, &levels).step), 0};
    fit_codes(q, x, w, BLOCK, line, &levels);
    for (int i = 0; i < BLOCK; i++)
        while (iq4_levels[code[i]] != (int8_t)q[i])
            code[i]++;
    block_put_f16(out, line.step);
    put_nibbles(out + 2, code);
}

/* ---- Floats ---- */

static void encode_floats(tensor_type type, uint8_t *out, const float *x, int64_t k)
{
    for (int64_t i = 0; i < k; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        if (type == TYPE_F16)
            block_put_f16(out + 2 * i, block_f16(x[i]));
        else if (type == TYPE_BF16) /* to nearest even */
            bits += 0x7fff + (bits >> 16 & 1);
        for (int b = 0; type == TYPE_F32 && b < 4; b++)
            out[4 * i + b] = (uint8_t)(bits >> 8 * b);
        for (int b = 0; type == TYPE_BF16 && b < 2; b++)
            out[2 * i + b] = (uint8_t)(bits >> (16 + 8 * b));
    }
}

/* ---- Rows ---- */

static block_encoder *const encoders[TYPE_LIMIT] = {
    [TYPE_Q4_0] = encode_q4_0,       [TYPE_Q4_1] = encode_q4_1,     [TYPE_Q5_0] = encode_q5_0,
    [TYPE_Q5_1] = encode_q5_1,       [TYPE_Q8_0] = encode_q8_0,     [TYPE_IQ4_NL] = encode_iq4_nl,
    [TYPE_Q2_K] = encode_q2_k,       [TYPE_Q3_K] = encode_q3_k,     [TYPE_Q4_K] = encode_q4_k,
    [TYPE_Q5_K] = encode_q5_k,       [TYPE_Q6_K] = encode_q6_k,     [TYPE_IQ4_XS] = encode_iq4_xs,
    [TYPE_IQ2_XXS] = encode_iq2_xxs, [TYPE_IQ2_XS] = encode_iq2_xs, [TYPE_IQ2_S] = encode_iq2_s,
    [TYPE_IQ3_XXS] = encode_iq3_xxs, [TYPE_IQ3_S] = encode_iq3_s,
};

/* An error of a large number counts more than one of a small number: sqrt(mean x^2 + x^2). Where no
 * column is of any importance, all are of the same. */
static void weigh(float *w, const float *x, const float *importance, int32_t n)
{
    float squares = 0, sum = 0;
    for (int32_t i = 0; i < n; i++) {
        squares += x[i] * x[i];
        sum += importance ? importance[i] : 0;
    }
    const float mean = squares / (float)n;
    for (int32_t i = 0; i < n; i++)
        w[i] = sqrtf(mean + x[i] * x[i]) * (sum > 0 ? importance[i] : 1);
}

void block_encode_row(tensor_type type, uint8_t *out, const float *x, const float *importance,
                      int64_t k)
{
    if (type_is_float(type)) {
        encode_floats(type, out, x, k);
        return;
    }
    const type_traits *t = type_find(type);
    float w[SUPER_BLOCK];
    for (int64_t i = 0; i < k; i += t->block_elements, out += t->block_bytes) {
        weigh(w, x + i, importance ? importance + i : NULL, t->block_elements);
        encoders[type](out, x + i, w);
    }
}
