/* Golden section and exchange between pairs: see search.h. */
#include "tune/search.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/num.h"

static const double golden = 0.6180339887498949;

typedef struct line {
    search_fn *measure;
    void *user;
    search_result best;
} line;

static double look(line *l, double at)
{
    double seconds = l->measure(l->user, at);
    l->best.n_measured++;
    if (l->best.n_measured == 1 || seconds < l->best.seconds) {
        l->best.at = at;
        l->best.seconds = seconds;
    }
    return seconds;
}

/* Searches from `start` in steps that double, for as long as it goes down: the best place seen is
 * between *before and *end. False: the first step already went up. */
static bool go_down(line *l, double start, double at_start, double step, double low, double high,
                    double *before, double *end)
{
    double here = start, at_here = at_start;
    *before = start;
    for (bool moved = false;; moved = true) {
        *end = max_f64(low, min_f64(high, here + step));
        if (*end == here)
            return moved;
        double at_end = look(l, *end);
        if (at_end >= at_here)
            return moved;
        *before = here;
        here = *end;
        at_here = at_end;
        step *= 2;
    }
}

static void golden_section(line *l, double a, double b, double tolerance)
{
    double x = b - golden * (b - a), y = a + golden * (b - a);
    double at_x = look(l, x), at_y = look(l, y);
    for (;;) {
        bool left = at_x <= at_y;
        *(left ? &b : &a) = left ? y : x;
        if (b - a <= tolerance)
            return;
        if (left) {
            y = x;
            at_y = at_x;
            x = b - golden * (b - a);
            at_x = look(l, x);
        } else {
            x = y;
            at_x = at_y;
            y = a + golden * (b - a);
            at_y = look(l, y);
        }
    }
}

search_result search_least(search_fn *measure, void *user, double low, double high, double start,
                           double tolerance)
{
    line l = {.measure = measure, .user = user};
    double step = 0.05 * (high - low), before, up, down;
    start = max_f64(low, min_f64(high, start));
    double at_start = look(&l, start);
    if (go_down(&l, start, at_start, step, low, high, &before, &up))
        down = before;
    else if (go_down(&l, start, at_start, -step, low, high, &before, &down))
        up = before;
    if (up - down > tolerance)
        golden_section(&l, down, up, tolerance);
    return l.best;
}

void shares_from_alone(const double *alone_s, int32_t n_units, double *share)
{
    double speed = 0;
    for (int32_t u = 0; u < n_units; u++)
        speed += alone_s[u] > 0 ? 1 / alone_s[u] : 0;
    for (int32_t u = 0; u < n_units; u++)
        share[u] = alone_s[u] > 0 ? 1 / alone_s[u] / speed : 0;
}

/* Two units, and how much of what they have together the first one takes. */
typedef struct pair {
    shares_fn *measure;
    void *user;
    double share[SEARCH_MAX_UNITS];
    int32_t first, second;
} pair;

static void divide(pair *p, double of_first)
{
    double both = p->share[p->first] + p->share[p->second];
    p->share[p->first] = of_first * both;
    p->share[p->second] = both - p->share[p->first];
}

static double measure_pair(void *user, double of_first)
{
    pair *p = user;
    divide(p, of_first);
    return p->measure(p->user, p->share);
}

static double exchange(pair *p, double seconds)
{
    double both = p->share[p->first] + p->share[p->second];
    if (both <= 0)
        return seconds;
    double before[SEARCH_MAX_UNITS];
    memcpy(before, p->share, sizeof before);
    search_result found = search_least(measure_pair, p, 0, 1, p->share[p->first] / both, 0.01);
    memcpy(p->share, before, sizeof before);
    if (found.seconds >= seconds)
        return seconds;
    divide(p, found.at);
    return found.seconds;
}

double shares_search(shares_fn *measure, void *user, const double *alone_s, int32_t n_units,
                     double *share)
{
    pair p = {.measure = measure, .user = user};
    const double worthwhile = 0.01;
    assert(n_units >= 1 && n_units <= SEARCH_MAX_UNITS);
    shares_from_alone(alone_s, n_units, p.share);
    double best = measure(user, p.share), before;
    do {
        before = best;
        for (p.first = 0; p.first < n_units; p.first++)
            for (p.second = p.first + 1; p.second < n_units; p.second++)
                best = exchange(&p, best);
    } while (n_units > 2 && best < (1 - worthwhile) * before);
    for (int32_t u = 0; u < n_units; u++)
        if (alone_s[u] > 0 && alone_s[u] < best) {
            memset(p.share, 0, sizeof p.share);
            p.share[u] = 1;
            best = alone_s[u];
        }
    memcpy(share, p.share, (size_t)n_units * sizeof *share);
    return best;
}

typedef struct attention {
    boundary_fn *measure;
    void *user;
    int32_t n_positions;
} attention;

static double measure_boundary(void *user, double at)
{
    const attention *a = user;
    return a->measure(a->user, a->n_positions, at);
}

void boundaries_search(boundary_fn *measure, void *user, const int32_t *contexts, int32_t n,
                       double low, float *boundary)
{
    for (int32_t i = 0; i < n; i++) {
        attention a = {measure, user, contexts[i]};
        double start = max_f64((double)boundary[i], low);
        boundary[i] = (float)search_least(measure_boundary, &a, low, 1, start, 0.01).at;
    }
}
