/* Finds attention's boundary between units: see drey_tune_boundaries in drey/tune.h.
 *
 * Only the time of attention counts, in passes over a tree after made-up positions; the rest of a
 * pass is the same in any case. */
#include <math.h>
#include <string.h>

#include "common/num.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "tune/alone.h"
#include "tune/machine_limits.h"
#include "tune/search.h"
#include "unit/attend_split.h"
#include "unit/units.h"

enum { USUAL_ROWS = 16, USUAL_POSITIONS = 4096, MOST_ROWS = 64, ROUNDS = 5, LOOKS = 3 };

typedef struct bounder {
    drey_session *session;
    unit_set *units;
    const drey_boundaries_options *options;
    drey_boundaries_report *report;
    int32_t rows;
    drey_status status;
    drey_error *err;
} bounder;

/* Attention of a pass over a tree, each node with two children, which is dropped afterwards. */
static drey_status time_attention(bounder *b, double *seconds)
{
    runner *target = probe_target(b->session);
    const trace *spans = &probe_engine(b->session)->trace;
    pass_row rows[MOST_ROWS];
    trace_sums before, after;
    for (int32_t i = 0; i < b->rows; i++)
        rows[i] =
            (pass_row){.token = i % target->layout->shape.n_vocab, .parent = i ? (i - 1) / 2 : -1};
    trace_sum(spans, &before);
    TRY(pass_rows(target, rows, b->rows, HEAD_NONE, b->err));
    trace_sum(spans, &after);
    *seconds = max_f64((double)(after.ns[TRACE_ATTEND] - before.ns[TRACE_ATTEND]) * 1e-9, 1e-9);
    cache_drop(target->cache);
    return DREY_OK;
}

/* Positions that nothing computed. */
static drey_boundary_context *set_context(bounder *b, int32_t n_positions)
{
    text_cache *cache = probe_target(b->session)->cache;
    drey_boundary_context *c = b->report->contexts;
    while (c->n_positions != n_positions)
        c++;
    if (cache_end(cache) != n_positions)
        (void)cache_make_up(cache, n_positions, NULL); /* it has no file: nothing can fail */
    return c;
}

static void place(bounder *b, double boundary, bool steal)
{
    float at = (float)boundary;
    b->units->steal = steal;
    units_set_boundaries(b->units, &at, 1);
}

/* The least of a few, nobody taking over. */
static double look(void *user, int32_t n_positions, double boundary)
{
    bounder *b = user;
    double least = 0, seconds = 0;
    drey_boundary_context *c = set_context(b, n_positions);
    if (c->n_measured++ == 0 && b->options->stage)
        b->options->stage(b->options->user, n_positions);
    place(b, boundary, false);
    for (int i = 0; b->status == DREY_OK && i < LOOKS; i++) {
        b->status = time_attention(b, &seconds);
        least = i == 0 ? seconds : min_f64(least, seconds);
    }
    return least;
}

/* All ways in turns, so that they meet the same machine. */
static drey_status take_turns(bounder *b, drey_boundary_context *c)
{
    double seconds[DREY_BOUNDARY_SIDES][ROUNDS];
    runner *target = probe_target(b->session);
    set_context(b, c->n_positions);
    for (int round = 0; round < ROUNDS; round++)
        for (int side = 0; side < DREY_BOUNDARY_SIDES; side++) {
            bool searched = side == DREY_BOUNDARY_STATIC || side == DREY_BOUNDARY_DYNAMIC;
            place(b, searched ? (double)c->boundary : 0, side == DREY_BOUNDARY_DYNAMIC);
            target->whole_heads = side == DREY_BOUNDARY_HEADS;
            drey_status status = time_attention(b, &seconds[side][round]);
            target->whole_heads = false;
            TRY(status);
        }
    for (int side = 0; side < DREY_BOUNDARY_SIDES; side++)
        c->side_s[side] = median(seconds[side], ROUNDS);
    return DREY_OK;
}

static drey_status measure(bounder *b, int32_t most_positions)
{
    drey_boundaries_report *r = b->report;
    int32_t contexts[DREY_UNIT_CONTEXTS];
    float boundary[DREY_UNIT_CONTEXTS];
    double seconds;
    b->units = probe_engine(b->session)->units;
    if (!b->units || b->units->n_clusters + units_n_attending(b->units) < 2)
        FAIL(b->err, DREY_ERR_USAGE,
             "attention is divided between units, and there is one that has a part "
             "in it");
    probe_target(b->session)->trace = &probe_engine(b->session)->trace;
    TRY(time_attention(b, &seconds)); /* brings the weights */
    for (int32_t n = DREY_UNIT_CONTEXT; n <= most_positions && r->n_contexts < DREY_UNIT_CONTEXTS;
         n *= 4) {
        int32_t i = r->n_contexts++;
        r->contexts[i].n_positions = contexts[i] = n;
        units_set_boundaries(b->units, NULL, 0);
        boundary[i] =
            (float)units_boundary(b->units, b->rows, n, true); /* where the search begins */
    }
    double low = b->units->n_clusters > 1 ? -1 : 0; /* a device has no sparse parts */
    boundaries_search(look, b, contexts, r->n_contexts, low, boundary);
    TRY(b->status);
    for (int32_t i = 0; i < r->n_contexts; i++) {
        drey_boundary_context *c = &r->contexts[i];
        c->boundary = boundary[i];
        TRY(take_turns(b, c));
        if (c->side_s[DREY_BOUNDARY_AFFINITY] < c->side_s[DREY_BOUNDARY_STATIC])
            c->boundary = 0; /* a hiccup had led the search astray */
    }
    return DREY_OK;
}

drey_status drey_tune_boundaries(const drey_engine_options *options,
                                 const drey_boundaries_options *tune,
                                 drey_boundaries_report *report, drey_error *err)
{
    *report = (drey_boundaries_report){.n_contexts = 0};
    int32_t rows = tune->rows ? tune->rows : USUAL_ROWS;
    int32_t most = tune->most_positions ? tune->most_positions : USUAL_POSITIONS;
    if (rows < 1 || rows > MOST_ROWS)
        FAIL(err, DREY_ERR_USAGE, "a tree of %d rows cannot be measured (1 to %d)", rows,
             MOST_ROWS);
    if (most < DREY_UNIT_CONTEXT)
        FAIL(err, DREY_ERR_USAGE, "attention is divided after %d positions or more, not after %d",
             DREY_UNIT_CONTEXT, most);
    if (most > DREY_MAX_CONTEXT - MOST_ROWS - 1)
        FAIL(err, DREY_ERR_USAGE, "a context holds up to %d positions, and no tree after %d",
             DREY_MAX_CONTEXT, most);
    double start = clock_s();
    drey_engine *e = NULL;
    bounder b = {.options = tune, .report = report, .rows = rows, .err = err};
    drey_engine_options o = engine_options_alone(options);
    o.n_context = most + MOST_ROWS + 1;
    drey_status status = alone_open(&e, &b.session, o, (engine_hooks){0}, MOST_ROWS, err);
    if (status == DREY_OK)
        status = measure(&b, most);
    alone_close(&e, &b.session);
    report->seconds = clock_s() - start;
    return status;
}
