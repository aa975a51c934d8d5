/* Finds how to divide passes between units: see drey_tune_units in drey/tune.h.
 *
 *      load   for each width:  each unit alone   the search   all sides in turns
 *
 * Passes are made up, as the time of one does not depend on its numbers; what waits for the disk is
 * left out, so that what is found is about computing. */
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "engine/engine.h"
#include "os/clock.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "tune/alone.h"
#include "tune/machine_limits.h"
#include "tune/search.h"
#include "unit/units.h"

enum { WIDEST = 64, CONTEXT = 256, ROUNDS = 5, MOST_LOOKS = 16 };

/* A ratio's time is the least of a few passes: as many as fit in here, two at least. */
static const double look_s = 0.06;

_Static_assert((int)SEARCH_MAX_UNITS >= (int)DREY_MAX_UNITS, "the search has room for all units");

typedef struct tuner {
    drey_session *session;
    unit_set *units;
    const drey_units_options *options;
    drey_units_report *report;
    int32_t n_looks;    /* ratios that were measured */
    int32_t rows;       /* rows of the passes that are measured now */
    drey_status status; /* status of a pass that failed while the search was under way */
    drey_error *err;
} tuner;

/* ---- Passes ---- */

static drey_status time_pass(tuner *t, double *seconds)
{
    TRY(alone_pass(t->session, t->rows, seconds, t->err));
    for (int32_t i = 0; i < t->units->n; i++)
        if (t->units->unit[i].failed)
            FAIL(t->err, DREY_ERR_IO, "the unit %s failed while it was measured: %s",
                 t->report->units[i].name, t->units->unit[i].why);
    return DREY_OK;
}

static void divide(tuner *t, const double *share, bool steal)
{
    t->units->steal = steal;
    units_set_shares(t->units, t->rows, share);
}

/* Seconds with these shares, nobody taking over. */
static double look(void *user, const double *share)
{
    tuner *t = user;
    double least = 0, spent = 0, seconds;
    divide(t, share, false);
    t->n_looks++;
    for (int i = 0; t->status == DREY_OK && (i < 2 || (i < MOST_LOOKS && spent < look_s)); i++) {
        t->status = time_pass(t, &seconds);
        spent += seconds;
        least = i == 0 ? seconds : min_f64(least, seconds);
    }
    return least;
}

/* ---- A width ---- */

/* All in turns, so that they meet the same machine: both sides, the shares with which the search
 * began, and each unit alone. */
static drey_status take_turns(tuner *t, drey_units_width *w, const double *begin, double *begin_s)
{
    enum { BEGIN = DREY_UNITS_SIDES, ALONE, ALL = ALONE + DREY_MAX_UNITS };
    double seconds[ALL][ROUNDS];
    int32_t n = ALONE + t->units->n;
    for (int32_t round = 0; round < ROUNDS; round++)
        for (int32_t i = 0; i < n; i++) {
            double alone[DREY_MAX_UNITS] = {0};
            if (i >= ALONE)
                alone[i - ALONE] = 1;
            divide(t, i >= ALONE ? alone : i == BEGIN ? begin : w->share, i == DREY_UNITS_DYNAMIC);
            TRY(time_pass(t, &seconds[i][round]));
        }
    for (int32_t i = 0; i < DREY_UNITS_SIDES; i++)
        w->side_s[i] = median(seconds[i], ROUNDS);
    *begin_s = median(seconds[BEGIN], ROUNDS);
    for (int32_t i = ALONE; i < n; i++)
        w->alone_s[i - ALONE] = median(seconds[i], ROUNDS);
    return DREY_OK;
}

static drey_status measure_width(tuner *t, drey_units_width *w)
{
    int32_t n = t->units->n;
    double begin[DREY_MAX_UNITS] = {0}, begin_s;
    t->rows = w->rows;
    if (t->options->stage)
        t->options->stage(t->options->user, w->rows);
    for (int32_t i = 0; i < n; i++) {
        double alone[DREY_MAX_UNITS] = {0};
        alone[i] = 1;
        w->alone_s[i] = look(t, alone);
    }
    TRY(t->status);
    shares_from_alone(w->alone_s, n, begin);
    t->n_looks = 0;
    shares_search(look, t, w->alone_s, n, w->share);
    w->n_measured = t->n_looks;
    TRY(t->status);
    TRY(take_turns(t, w, begin, &begin_s));
    if (begin_s < w->side_s[DREY_UNITS_STATIC]) { /* a hiccup may have led the search astray */
        w->side_s[DREY_UNITS_STATIC] = begin_s;
        memcpy(w->share, begin, sizeof begin);
    }
    return DREY_OK;
}

/* A width that was not measured is between its neighbours, or like the only one. */
static void fill_shares(drey_units_report *r)
{
    drey_unit_shares *all = &r->shares;
    all->n_units = r->n_units;
    for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++) {
        const drey_units_width *below = NULL, *above = NULL;
        for (int32_t k = 0; k < r->n_widths; k++) {
            if (r->widths[k].rows <= 1 << w)
                below = &r->widths[k];
            if (r->widths[k].rows >= 1 << w && !above)
                above = &r->widths[k];
        }
        below = below ? below : above;
        above = above ? above : below;
        for (int32_t i = 0; i < r->n_units; i++)
            all->share[w][i] = (below->share[i] + above->share[i]) / 2;
    }
}

static drey_status measure(tuner *t, drey_error *err)
{
    static const int32_t usual[] = {1, 4, 16, 64};
    drey_units_report *r = t->report;
    const drey_engine *e = probe_engine(t->session);
    double seconds;
    if (!e->units)
        FAIL(err, DREY_ERR_USAGE,
             "one cluster of cores alone has nothing to divide: name several units");
    t->units = e->units;
    t->err = err;
    r->n_units = e->units->n;
    for (int32_t i = 0; i < r->n_units; i++)
        drey_engine_unit(e, i, &r->units[i]);
    t->rows = 1;
    TRY(time_pass(t, &seconds)); /* brings the weights */
    TRY(cache_make_up(probe_target(t->session)->cache, CONTEXT, err));
    for (int32_t i = 0; i < DREY_UNIT_WIDTHS; i++) {
        int32_t rows = t->options->rows[0] ? t->options->rows[i] : i < 4 ? usual[i] : 0;
        if (rows == 0)
            break;
        r->widths[r->n_widths].rows = rows;
        TRY(measure_width(t, &r->widths[r->n_widths++]));
    }
    fill_shares(r);
    return DREY_OK;
}

/* ---- The engine ---- */

static drey_status check_widths(const drey_units_options *tune, drey_error *err)
{
    for (int32_t i = 0, before = 0; i < DREY_UNIT_WIDTHS && tune->rows[i]; before = tune->rows[i++])
        if (tune->rows[i] <= before || tune->rows[i] > WIDEST)
            FAIL(err, DREY_ERR_USAGE, "widths are numbers of rows from 1 to %d, ascending", WIDEST);
    return DREY_OK;
}

drey_status drey_tune_units(const drey_engine_options *options, const drey_units_options *tune,
                            drey_units_report *report, drey_error *err)
{
    *report = (drey_units_report){.n_units = 0};
    TRY(check_widths(tune, err));
    double start = clock_s();
    drey_engine *e = NULL;
    tuner t = {.options = tune, .report = report};
    drey_engine_options o = engine_options_alone(options);
    o.unit_shares = NULL;
    o.n_context = CONTEXT + WIDEST + 1;
    drey_status status =
        alone_open(&e, &t.session, o, (engine_hooks){.whole_devices = true}, WIDEST, err);
    if (status == DREY_OK)
        status = measure(&t, err);
    alone_close(&e, &t.session);
    report->seconds = clock_s() - start;
    return status;
}
