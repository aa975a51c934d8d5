/* Weighted least squares over candidate steps: see level_fit.h. */
#include "quantise/level_fit.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Steps that a search begins with, as the range divided by the number of levels and some tenths of
 * one: fewer levels than there are leave some unused, more cut off the largest numbers. */
enum { N_STARTS = 8, N_ROUNDS = 3 };
static const float start_width = 0.16f;

/* Sums of one rounding: sums of w q, w q^2, w q x. */
typedef struct fit_sums {
    float q, qq, qx;
} fit_sums;

/* Sums that do not change: of w, w x, w x^2. */
typedef struct fixed_sums {
    float w, x, xx;
} fixed_sums;

static float lanes_sum(const float lane[FIT_LANES])
{
    float half[FIT_LANES / 2];
    for (int l = 0; l < FIT_LANES / 2; l++)
        half[l] = lane[l] + lane[l + FIT_LANES / 2];
    for (int l = 0; l < FIT_LANES / 4; l++)
        half[l] += half[l + FIT_LANES / 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
}

float fit_inverse(float x)
{
    float inverse = x == 0 ? 0 : 1 / x;
    return fabsf(inverse) <= FLT_MAX ? inverse : 0;
}

/* Rounds to nearest even: |x| < 2^22. */
static inline float nearest(float x)
{
    const float magic = 0x1.8p+23f;
    return (x + magic) - magic;
}

/* Returns the nearest number of a table, found by the middles between its numbers. */
static float nearest_of(const int8_t *table, float x)
{
    int i = 0;
    for (int step = 8; step; step /= 2)
        if (x > 0.5f * (float)(table[i + step - 1] + table[i + step]))
            i += step;
    return table[i];
}

static void round_all(float *q, const float *x, const float *w, int32_t n, float inverse,
                      float offset, const fit_levels *levels)
{
    if (levels->book) {
        book_search_round(levels->book, q, x, w, n, inverse);
        return;
    }
    if (levels->table) {
        for (int32_t i = 0; i < n; i++)
            q[i] = nearest_of(levels->table, (x[i] - offset) * inverse);
        return;
    }
    const float low = levels->low, high = levels->high;
    for (int32_t i = 0; i < n; i++) {
        float v = (x[i] - offset) * inverse;
        v = v > low ? v : low;
        v = v < high ? v : high;
        q[i] = nearest(v);
    }
}

static fit_sums sums_of(const float *q, const float *x, const float *w, int32_t n)
{
    float a[FIT_LANES] = {0}, b[FIT_LANES] = {0}, c[FIT_LANES] = {0};
    for (int32_t i = 0; i < n; i += FIT_LANES)
        for (int l = 0; l < FIT_LANES; l++) {
            float wq = w[i + l] * q[i + l];
            a[l] += wq;
            b[l] += wq * q[i + l];
            c[l] += wq * x[i + l];
        }
    return (fit_sums){lanes_sum(a), lanes_sum(b), lanes_sum(c)};
}

static fixed_sums fixed_of(const float *x, const float *w, int32_t n)
{
    float a[FIT_LANES] = {0}, b[FIT_LANES] = {0}, c[FIT_LANES] = {0};
    for (int32_t i = 0; i < n; i += FIT_LANES)
        for (int l = 0; l < FIT_LANES; l++) {
            float wx = w[i + l] * x[i + l];
            a[l] += w[i + l];
            b[l] += wx;
            c[l] += wx * x[i + l];
        }
    return (fixed_sums){lanes_sum(a), lanes_sum(b), lanes_sum(c)};
}

float fit_codes(float *q, const float *x, const float *w, int32_t n, fit_line line,
                const fit_levels *levels)
{
    float error[FIT_LANES] = {0};
    round_all(q, x, w, n, fit_inverse(line.step), line.offset, levels);
    for (int32_t i = 0; i < n; i += FIT_LANES)
        for (int l = 0; l < FIT_LANES; l++) {
            float off = line.step * q[i + l] + line.offset - x[i + l];
            error[l] += w[i + l] * off * off;
        }
    return lanes_sum(error);
}

/* ---- A step alone ---- */

typedef struct best_line {
    fit_line line;
    float gain; /* by how much it lessens the error of the line that is 0 everywhere */
} best_line;

static void try_step(best_line *best, float step, const float *x, const float *w, int32_t n,
                     const fit_levels *levels)
{
    float q[FIT_MOST];
    const int n_rounds = levels->book ? 2 : N_ROUNDS;
    for (int round = 0; round < n_rounds; round++) {
        round_all(q, x, w, n, fit_inverse(step), 0, levels);
        fit_sums s = sums_of(q, x, w, n);
        if (!(s.qq > 0))
            return;
        float better = s.qx / s.qq, gain = better * s.qx;
        if (gain > best->gain)
            *best = (best_line){{better, 0}, gain};
        if (better == step)
            return;
        step = better;
    }
}

fit_line fit_step(const float *x, const float *w, int32_t n, const fit_levels *levels)
{
    float most = 0;
    for (int32_t i = 0; i < n; i++)
        if (levels->low < 0 ? fabsf(x[i]) > fabsf(most) : x[i] > most)
            most = x[i];
    best_line best = {{0, 0}, 0};
    if (most == 0)
        return best.line;
    /* The largest number at either end of the levels; of a book, whose other end is above 0, there
     * if all numbers are alike. Where levels are far apart, few starts end elsewhere. */
    const bool far = levels->book || levels->table;
    const float width = start_width * (levels->book ? 2 : levels->table ? 12 : 1);
    for (int k = -N_STARTS; k <= N_STARTS; k += far ? 4 : 1) {
        float more = (float)k * width;
        if (levels->low < 0 ? levels->low - more < 0 : k == 0)
            try_step(&best, most / (levels->low - more), x, w, n, levels);
        if (levels->high + more > 0)
            try_step(&best, most / (levels->high + more), x, w, n, levels);
    }
    return best.line;
}

/* ---- With an offset ---- */

/* The best line through codes of these sums whose offset is at most `most`. */
static fit_line line_of(const fit_sums *s, const fixed_sums *f, float most)
{
    const fit_line flat = {0, fminf(most, f->x * fit_inverse(f->w))};
    float det = f->w * s->qq - s->q * s->q;
    if (!(det > 0))
        return flat;
    fit_line line = {(f->w * s->qx - f->x * s->q) / det, (s->qq * f->x - s->q * s->qx) / det};
    if (line.offset > most)
        line = (fit_line){(s->qx - most * s->q) / s->qq, most};
    return line.step > 0 ? line : flat;
}

static float gain_of(const fit_line *l, const fit_sums *s, const fixed_sums *f)
{
    return 2 * (l->step * s->qx + l->offset * f->x) - l->step * l->step * s->qq -
           2 * l->step * l->offset * s->q - l->offset * l->offset * f->w;
}

static void try_line(best_line *best, fit_line line, const float *x, const float *w, int32_t n,
                     const fixed_sums *f, const fit_levels *levels, float most)
{
    float q[FIT_MOST];
    for (int round = 0; round < N_ROUNDS; round++) {
        round_all(q, x, w, n, fit_inverse(line.step), line.offset, levels);
        fit_sums s = sums_of(q, x, w, n);
        fit_line better = line_of(&s, f, most);
        float gain = gain_of(&better, &s, f);
        if (gain > best->gain)
            *best = (best_line){better, gain};
        if (better.step == line.step && better.offset == line.offset)
            return;
        line = better;
    }
}

fit_line fit_step_offset(const float *x, const float *w, int32_t n, const fit_levels *levels,
                         float most)
{
    float low = most < x[0] ? most : x[0], high = x[0];
    for (int32_t i = 1; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    fixed_sums f = fixed_of(x, w, n);
    fit_line flat = {0, fminf(most, f.x * fit_inverse(f.w))};
    best_line best = {flat, 2 * flat.offset * f.x - flat.offset * flat.offset * f.w};
    if (!(high > low))
        return best.line;
    for (int k = -N_STARTS; k <= N_STARTS; k++) {
        float n_steps = levels->high + (float)k * start_width;
        if (n_steps > 0)
            try_line(&best, (fit_line){(high - low) / n_steps, low}, x, w, n, &f, levels, most);
    }
    return best.line;
}
