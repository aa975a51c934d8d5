/* Integers and the two numbers of a super-block, chosen together: see super_fit.h. */
#include "quantise/super_fit.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N_ROUNDS = 4 };

/* Scales that the fits of the sub-blocks ask for. */
typedef struct super_wish {
    float step[MOST_SUBS], min[MOST_SUBS];
} super_wish;

static int32_t within(float x, int32_t low, int32_t high)
{
    x = nearbyintf(x);
    return x < (float)low ? low : x > (float)high ? high : (int32_t)x;
}

static float scale_value(const super_form *f, int32_t scale)
{
    return (float)(f->odd ? 2 * scale + 1 : scale);
}

/* The integers of sub-block s near its wish, and its codes. */
static float choose_sub(const super_form *f, super_block *b, const super_wish *wish, int32_t s,
                        const float *x, const float *w)
{
    float best = FLT_MAX, q[FIT_MOST];
    const int32_t at = s * f->sub_n;
    float scale = wish->step[s] * fit_inverse(b->d), min = wish->min[s] * fit_inverse(b->dmin);
    scale = f->odd ? 0.5f * (scale - 1) : scale;
    const int32_t first = within(scale - 1, f->least_scale, f->most_scale);
    const int32_t last = within(scale + 1, f->least_scale, f->most_scale);
    /* Without a step nothing asks for a minimum: 0 may be the best. */
    const int32_t first_min = b->d == 0 ? 0 : within(min - 1, 0, f->most_min);
    const int32_t last_min = within(min + 1, 0, f->most_min);
    for (int32_t i = first; i <= last; i++)
        for (int32_t m = first_min; m <= last_min; m++) {
            fit_line line = {b->d * scale_value(f, i), -(b->dmin * (float)m)};
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
        double p = (double)(scale_value(f, b->scale[s]) * b->q[i]), m = -(double)b->min[s],
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

void super_fit(const super_form *f, super_block *best, const float *x, const float *w)
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
    const float most = scale_value(f, f->least_scale < 0 ? f->least_scale : f->most_scale);
    const float dmin = f->most_min ? min / (float)f->most_min : 0;
    improve(f, best, step / most, dmin, &wish, x, w);
    /* With few integers it matters where they lie. */
    static const float others[] = {0.95f, 1.05f, 0.9f, 1.1f};
    const int32_t n_others = f->most_scale >= 16 ? 0 : f->levels.book ? 2 : 4;
    for (int32_t i = 0; i < n_others; i++) {
        improve(f, best, step / most * others[i], dmin, &wish, x, w);
        if (f->most_min)
            improve(f, best, step / most, dmin * others[i], &wish, x, w);
    }
}
