/* Random blocks of every runnable type. The codes are random bits, and the factors are chosen such
 * that the values have the deviation asked for: see toy.h. */
#include "support/toy.h"

#include "base/fmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t toy_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a number in [0, 1). */
static float uniform(uint64_t *state)
{
    return (float)(toy_random(state) >> 40) * 0x1p-24f;
}

/* About normal, deviation 1: the sum of four uniform numbers. */
static float bell(uint64_t *state)
{
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += uniform(state);
    return (sum - 2.0f) * 1.7320508f;
}

/* Positions of a block's factors, halves but for MXFP4's, and the size of its codes.
 * code_deviation: of a value divided by the factor d, over random codes and inner scales.
 * min_ratio: the second factor over d, so that values are centred; value = d * code + m for Q4_1
 * and Q5_1, d * scale * code - m * inner minimum for the K types. */
typedef struct layout {
    uint32_t type;
    float code_deviation, min_ratio;
    int32_t d_at, m_at; /* offsets of the factors in the block; m_at -1: none */
} layout;

static const layout layouts[] = {
    {TYPE_Q4_0, 4.64f, 0, 0, -1},     {TYPE_Q4_1, 4.61f, -7.5f, 0, 2},
    {TYPE_Q5_0, 9.25f, 0, 0, -1},     {TYPE_Q5_1, 9.23f, -15.5f, 0, 2},
    {TYPE_Q8_0, 73.9f, 0, 0, -1},     {TYPE_Q2_K, 13.9f, 1.5f, 80, 82},
    {TYPE_Q3_K, 43.3f, 0, 108, -1},   {TYPE_Q4_K, 258.0f, 7.5f, 0, 2},
    {TYPE_Q5_K, 527.0f, 15.5f, 0, 2}, {TYPE_Q6_K, 1366.0f, 0, 208, -1},
    {TYPE_IQ4_NL, 67.4f, 0, 0, -1},   {TYPE_IQ4_XS, 1246.0f, 0, 0, -1},
    {TYPE_MXFP4, 2.93f, 0, 0, -1},    {TYPE_IQ2_XXS, 53.4f, 0, 0, -1},
    {TYPE_IQ2_XS, 55.8f, 0, 0, -1},   {TYPE_IQ2_S, 56.4f, 0, 0, -1},
    {TYPE_IQ3_XXS, 142.2f, 0, 0, -1}, {TYPE_IQ3_S, 140.3f, 0, 0, -1},
    {TYPE_IQ1_S, 7.2f, 0, 0, -1},     {TYPE_IQ1_M, 7.2f, 0, 48, -1},
    {TYPE_TQ1_0, 0.817f, 0, 52, -1},  {TYPE_TQ2_0, 1.118f, 0, 64, -1},
    {TYPE_NVFP4, 4.29f, 0, 0, -1},
};

static const layout *find_layout(uint32_t type)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].type == type)
            return &layouts[i];
    abort(); /* not a runnable type */
}

static void put_half(uint8_t *out, float value)
{
    uint16_t half = f32_to_f16(value);
    memcpy(out, &half, sizeof half);
}

/* The power of two below 1.4 times the value, which is about the value in the mean. */
static void put_exponent(uint8_t *out, float value)
{
    int exponent;
    frexpf(1.4f * value, &exponent);
    *out = (uint8_t)(126 + exponent);
}

/* IQ1_M's half: a nibble on top of each of four numbers. */
static void put_nibbles(uint8_t *out, float value)
{
    const uint16_t half = f32_to_f16(value);
    for (int i = 0; i < 4; i++)
        out[2 * i + 1] = (uint8_t)((out[2 * i + 1] & 15) | (half >> 4 * i & 15) << 4);
}

/* NVFP4's four scales: from half to less than twice the value, or those without an exponent where
 * it is too small. */
static void put_scales(uint8_t *out, float value, uint64_t *state)
{
    int exponent;
    frexpf(1.4f * value, &exponent);
    for (int i = 0; i < 4; i++)
        out[i] =
            (uint8_t)((exponent > -6 ? exponent + 6 : 0) << 3 | (int)(toy_random(state) >> 61));
}

static void put_float(uint8_t *out, uint32_t type, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t high = (uint16_t)(bits >> 16);
    if (type == TYPE_F32)
        memcpy(out, &bits, sizeof bits);
    else if (type == TYPE_F16)
        put_half(out, value);
    else
        memcpy(out, &high, sizeof high);
}

void toy_blocks(uint8_t *out, uint32_t type, int64_t n_blocks, float deviation, uint64_t seed)
{
    const type_traits *traits = type_find(type);
    uint64_t state = seed;
    if (traits->block_elements == 1) {
        for (int64_t i = 0; i < n_blocks; i++, out += traits->block_bytes)
            put_float(out, type, deviation * bell(&state));
        return;
    }
    const layout *l = find_layout(type);
    for (int64_t i = 0; i < n_blocks; i++, out += traits->block_bytes) {
        for (int32_t j = 0; j < traits->block_bytes; j++)
            out[j] = (uint8_t)(toy_random(&state) >> 32);
        float d = deviation / l->code_deviation * (0.6f + 0.8f * uniform(&state));
        if (uniform(&state) < 0.125f)
            d = -d;
        if (type == TYPE_MXFP4)
            put_exponent(out, d);
        else if (type == TYPE_NVFP4)
            put_scales(out, fabsf(d), &state);
        else if (type == TYPE_IQ1_M)
            put_nibbles(out + l->d_at, d);
        else
            put_half(out + l->d_at, d);
        if (l->m_at >= 0)
            put_half(out + l->m_at, d * l->min_ratio);
    }
}
