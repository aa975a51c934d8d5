/* Scales and levels: see encode.h. */
#include "train/encode.h"

#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "gguf/types.h"
#include "kernel/kernel.h"

enum { BLOCK = 32, N_LEVELS = 16, SUPER = 256, N_BLOCKS = SUPER / BLOCK };

uint32_t encode_type(int64_t n)
{
    return n % SUPER == 0 ? TYPE_IQ4_XS : n % BLOCK == 0 ? TYPE_IQ4_NL : TYPE_F16;
}

/* ---- A block ---- */

typedef struct level_table {
    uint8_t nearest[256]; /* to i - 128 */
} level_table;

static level_table make_table(void)
{
    level_table t;
    for (int32_t i = 0, level = 0; i < 256; i++) {
        while (level + 1 < N_LEVELS && 2 * (i - 128) > iq4_levels[level] + iq4_levels[level + 1])
            level++;
        t.nearest[i] = (uint8_t)level;
    }
    return t;
}

static int32_t level_of(const level_table *t, float x)
{
    return t->nearest[(int32_t)min_f32(max_f32(x + 128.5f, 0), 255)];
}

/* Returns the best scale for the levels next to x / scale; *gain: the part of the block's square
 * that it represents. */
static float refit(const level_table *t, const float *x, float scale, float *gain)
{
    float product = 0, square = 0, per_scale = 1 / scale;
    for (int32_t i = 0; i < BLOCK; i++) {
        float level = iq4_levels[level_of(t, x[i] * per_scale)];
        product += level * x[i];
        square += level * level;
    }
    *gain = square > 0 ? product * product / square : 0;
    return square > 0 ? product / square : 0;
}

/* The largest number may be at either end of the levels, which are not symmetric, and a bit within
 * or beyond it. */
static float best_scale(const level_table *t, const float *x)
{
    const float ends[] = {iq4_levels[0], iq4_levels[N_LEVELS - 1]}, least = 1e-30f;
    float gain, best_gain = 0, best = 0, most = 0;
    for (int32_t i = 0; i < BLOCK; i++)
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    for (int32_t i = 0; fabsf(most) > least && i < 16; i++) {
        float end = ends[i % 2] * (0.8f + 0.05f * (float)(i / 2));
        float scale = refit(t, x, most / end, &gain);
        if (gain > best_gain) {
            best_gain = gain;
            best = scale;
        }
    }
    return best;
}

/* The first 16 levels are the low halves of the bytes. x becomes the block's values. */
static void put_levels(const level_table *t, uint8_t *out, float *x, float scale)
{
    float per_scale = scale != 0 ? 1 / scale : 0;
    memset(out, 0, BLOCK / 2);
    for (int32_t i = 0; i < BLOCK; i++) {
        int32_t level = level_of(t, x[i] * per_scale);
        out[i % (BLOCK / 2)] |= (uint8_t)(level << (i < BLOCK / 2 ? 0 : 4));
        x[i] = scale * (float)iq4_levels[level];
    }
}

static void put_u16(uint8_t *out, uint16_t x)
{
    memcpy(out, &x, sizeof x);
}

/* ---- Rows ---- */

/* scale | levels */
static void encode_nl(const level_table *t, uint8_t *out, float *x)
{
    uint16_t scale = f32_to_f16(best_scale(t, x));
    put_u16(out, scale);
    put_levels(t, out + 2, x, f16_to_f32(scale));
}

/* scale | high two bits of each block's factor | low four | levels; factors are -32 .. 31. */
static void encode_xs(const level_table *t, uint8_t *out, float *x)
{
    float scale[N_BLOCKS], most = 0;
    uint16_t high = 0;
    for (int32_t b = 0; b < N_BLOCKS; b++) {
        scale[b] = best_scale(t, x + b * BLOCK);
        most = fabsf(scale[b]) > fabsf(most) ? scale[b] : most;
    }
    uint16_t of_all = f32_to_f16(most / -32);
    float unit = f16_to_f32(of_all);
    memset(out, 0, 8);
    for (int32_t b = 0; b < N_BLOCKS; b++) {
        float factor = unit != 0 ? rintf(scale[b] / unit) : 0;
        factor = min_f32(max_f32(factor, -32), 31);
        uint32_t bits = (uint32_t)((int32_t)factor + 32);
        high |= (uint16_t)(bits >> 4 << (2 * b));
        out[4 + b / 2] |= (uint8_t)((bits & 15) << (b % 2 * 4));
        put_levels(t, out + 8 + b * (BLOCK / 2), x + b * BLOCK, unit * factor);
    }
    put_u16(out, of_all);
    put_u16(out + 2, high);
}

static void encode_f16(uint8_t *out, float *x)
{
    uint16_t half = f32_to_f16(*x);
    put_u16(out, half);
    *x = f16_to_f32(half);
}

void encode_row(uint32_t type, uint8_t *out, float *row, int64_t n)
{
    const level_table levels = make_table();
    const type_traits *t = type_find(type);
    for (int64_t i = 0; i < n; i += t->block_elements, out += t->block_bytes) {
        if (type == TYPE_IQ4_XS)
            encode_xs(&levels, out, row + i);
        else if (type == TYPE_IQ4_NL)
            encode_nl(&levels, out, row + i);
        else
            encode_f16(out, row + i);
    }
}
