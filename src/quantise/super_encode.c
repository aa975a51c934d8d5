/* Types in super-blocks of 256 (K types, IQ4_XS): steps and minima of sub-blocks are small integers
 * times a number of the super-block.
 *
 * Each sub-block is fitted alone first. Then the super-block's two numbers and the sub-blocks'
 * integers are chosen together: integers around what the fits ask for, whichever gives the least
 * error; with those integers and codes the best two numbers, by least squares; and again, as long
 * as that helps. */
#include "quantise/block_encode.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/kernel.h"
#include "quantise/level_fit.h"

enum { MOST_SUBS = 16, N_ROUNDS = 4 };

typedef struct super_form {
    int32_t sub_n; /* numbers of a sub-block: 16, 32 */
    fit_levels levels;
    int32_t least_scale, most_scale, most_min; /* most_min 0: there are no minima */
} super_form;

/* x[i] ~ d * scale[s] * q[i] - dmin * min[s] */
typedef struct super_block {
    float d, dmin; /* as an f16 has them */
    int32_t scale[MOST_SUBS], min[MOST_SUBS];
    float q[SUPER_BLOCK];
    float error; /* below 0: nothing is chosen yet */
} super_block;

/* Scales that the fits of the sub-blocks ask for. */
typedef struct super_wish {
    float step[MOST_SUBS], min[MOST_SUBS];
} super_wish;

static int32_t within(float x, int32_t low, int32_t high)
{
    x = nearbyintf(x);
    return x < (float)low ? low : x > (float)high ? high : (int32_t)x;
}

/* The integers of sub-block s near its wish, and its codes. */
static float choose_sub(const super_form *f, super_block *b, const super_wish *wish, int32_t s,
                        const float *x, const float *w)
{
    float best = FLT_MAX, q[FIT_MOST];
    const int32_t at = s * f->sub_n;
    const float scale = wish->step[s] * fit_inverse(b->d),
                min = wish->min[s] * fit_inverse(b->dmin);
    const int32_t first = within(scale - 1, f->least_scale, f->most_scale);
    const int32_t last = within(scale + 1, f->least_scale, f->most_scale);
    /* Without a step nothing asks for a minimum: 0 may be the best. */
    const int32_t first_min = b->d == 0 ? 0 : within(min - 1, 0, f->most_min);
    const int32_t last_min = within(min + 1, 0, f->most_min);
    for (int32_t i = first; i <= last; i++)
        for (int32_t m = first_min; m <= last_min; m++) {
            fit_line line = {b->d * (float)i, -(b->dmin * (float)m)};
            float error = fit_codes(q, x + at, w + at, f->sub_n, line, &f->levels);
            /* Of numbers so large that no error is finite, the first. */
            if (error < best || (i == first && m == first_min)) {
                best = error;
                b->scale[s] = i;
                b->min[s] = m;
                memcpy(b->q + at, q, (size_t)f->sub_n * sizeof *q);
            }
        }
    return best;
}

static void choose_all(const super_form *f, super_block *b, const super_wish *wish, const float *x,
                       const float *w)
{
    b->d = block_f16(b->d);
    b->dmin = block_f16(b->dmin);
    b->error = 0;
    for (int32_t s = 0; s < SUPER_BLOCK / f->sub_n; s++)
        b->error += choose_sub(f, b, wish, s, x, w);
}

/* The best d and dmin for these integers and codes. */
static void refit(const super_form *f, super_block *b, const float *x, const float *w)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int32_t i = 0; i < SUPER_BLOCK; i++) {
        const int32_t s = i / f->sub_n;
        double p = (double)((float)b->scale[s] * b->q[i]), m = -(double)b->min[s],
               wi = (double)w[i];
        aa += wi * p * p;
        ab += wi * p * m;
        bb += wi * m * m;
        ax += wi * p * (double)x[i];
        bx += wi * m * (double)x[i];
    }
    double det = aa * bb - ab * ab;
    if (bb > 0 && det > 1e-9 * aa * bb) {
        b->d = (float)((ax * bb - bx * ab) / det);
        b->dmin = (float)((bx * aa - ax * ab) / det);
    } else if (aa > 0) {
        b->d = (float)((ax - (double)b->dmin * ab) / aa);
    }
    b->dmin = b->dmin > 0 ? b->dmin : 0;
}

/* Improves a block from these d and dmin on; *best keeps the better one. */
static void improve(const super_form *f, super_block *best, float d, float dmin,
                    const super_wish *wish, const float *x, const float *w)
{
    super_block b = {.d = d, .dmin = dmin};
    for (int round = 0; round < N_ROUNDS; round++) {
        choose_all(f, &b, wish, x, w);
        if (best->error >= 0 && !(b.error < best->error))
            return;
        *best = b;
        refit(f, &b, x, w);
    }
}

static void super_fit(const super_form *f, super_block *best, const float *x, const float *w)
{
    super_wish wish;
    float step = 0, min = 0;
    for (int32_t s = 0; s < SUPER_BLOCK / f->sub_n; s++) {
        const int32_t at = s * f->sub_n;
        fit_line line = f->most_min ? fit_step_offset(x + at, w + at, f->sub_n, &f->levels, 0)
                                    : fit_step(x + at, w + at, f->sub_n, &f->levels);
        wish.step[s] = line.step;
        wish.min[s] = -line.offset;
        step = fabsf(line.step) > fabsf(step) ? line.step : step;
        min = fmaxf(min, -line.offset);
    }
    *best = (super_block){.error = -1};
    /* The largest step is the integer that is farthest from 0. */
    const float most = (float)(f->most_min ? f->most_scale : f->least_scale);
    const float dmin = f->most_min ? min / (float)f->most_min : 0;
    improve(f, best, step / most, dmin, &wish, x, w);
    /* With few integers it matters where they lie. */
    static const float others[] = {0.9f, 0.95f, 1.05f, 1.1f};
    for (size_t i = 0; f->most_scale < 16 && i < sizeof others / sizeof *others; i++) {
        improve(f, best, step / most * others[i], dmin, &wish, x, w);
        improve(f, best, step / most, dmin * others[i], &wish, x, w);
    }
}

/* ---- The files' layouts ---- */

/* Byte, and how far up, of weight i where a byte has weights 32 apart, so many bits each. */
static void put_bits(uint8_t *qs, int32_t i, int32_t n_bits, uint32_t code)
{
    const int32_t n = 8 / n_bits * 32;
    qs[i / n * 32 + i % 32] |= (uint8_t)(code << n_bits * (i % n / 32));
}

void encode_q2_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {16, {0, 3, NULL}, 0, 15, 15};
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
    static const super_form form = {16, {-4, 3, NULL}, -32, 31, 0};
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
    static const super_form form = {32, {0, 15, NULL}, 0, 63, 63};
    super_block b;
    super_fit(&form, &b, x, w);
    memset(out, 0, 144);
    put_scales_k4(out, &b);
    for (int i = 0; i < SUPER_BLOCK; i++)
        put_bits(out + 16, i, 4, (uint32_t)b.q[i]);
}

void encode_q5_k(uint8_t *out, const float *x, const float *w)
{
    static const super_form form = {32, {0, 31, NULL}, 0, 63, 63};
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
    static const super_form form = {16, {-32, 31, NULL}, -128, 127, 0};
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
    const super_form form = {32, {iq4_levels[0], iq4_levels[15], iq4_levels}, -32, 31, 0};
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
