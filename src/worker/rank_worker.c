/* A rank that computes layers for rank 0: see ranks/ranks.h.
 *
 * It has an engine of its part and as many sessions as rank 0 may open, whose caches follow those
 * of rank 0: what they committed comes with the next rows. Nothing else of the sessions is used. */
#include <string.h>

#include "os/clock.h"
#include "os/float_mode.h"
#include "ranks/ranks.h"
#include "engine/engine.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "state/kept_positions.h"

typedef struct worker {
    drey_ranks *ranks;
    drey_engine *engine;
    drey_session *session[DREY_MAX_SESSIONS]; /* [n_sessions], by slot */
    int32_t n_sessions;
} worker;

static drey_status say_hello(drey_ranks *r, const drey_engine_options *options, drey_error *err)
{
    ranks_hello hello;
    TRY(engine_rank_hello(options, &hello, err));
    memcpy(hello.host, r->host, sizeof hello.host);
    hello.disk_bytes_per_s = r->disk_bytes_per_s;
    return ranks_send(r, 0, RANKS_HELLO, &hello, sizeof hello, err);
}

/* The part that rank 0 asks for, of this rank's memory. */
static drey_status open_part(worker *w, const drey_engine_options *options, const ranks_join *join,
                             drey_error *err)
{
    drey_engine_options o = *options;
    const engine_part part = engine_join_options(&o, join);
    int64_t end = (int64_t)join->first + join->n_layers;
    if (join->first < 0 || join->n_layers < 1 || end > options->target->shape.n_layers)
        FAIL(err, DREY_ERR_MISMATCH, "the layers %d to %lld are asked for, which are not there",
             join->first, (long long)end);
    TRY(engine_open_part(&w->engine, &o, &part, err));
    for (; w->n_sessions < join->n_sessions; w->n_sessions++)
        TRY(drey_session_open(&w->session[w->n_sessions], w->engine, err));
    TRY(ranks_make_room(w->ranks, join->n_sessions, w->engine->plan.max_rows,
                        shape_width(&w->engine->target.layout.shape), err));
    const ranks_ready ready = engine_rank_ready(w->engine);
    return ranks_send(w->ranks, 0, RANKS_READY, &ready, sizeof ready, err);
}

/* ---- What rank 0's caches did since the last rows ---- */

static text_cache *cache_of(const worker *w, int32_t slot)
{
    return slot >= 0 && slot < w->n_sessions ? probe_target(w->session[slot])->cache : NULL;
}

static bool commit_all(worker *w, const ranks_pass *m)
{
    const int32_t *path = m->paths;
    bool seen[DREY_MAX_SESSIONS] = {false};
    for (int32_t i = 0; i < m->head.n_caches; i++) {
        const ranks_cache *c = &m->caches[i];
        text_cache *cache = cache_of(w, c->slot);
        if (!cache || seen[c->slot] || !cache_is_path(cache, path, c->n_path))
            return false;
        seen[c->slot] = true;
        cache_commit(cache, path, c->n_path);
        path += c->n_path;
    }
    return true;
}

static bool copy_all(worker *w, const ranks_pass *m)
{
    for (int32_t i = 0; i < m->head.n_copies; i++) {
        const ranks_copy c = m->copies[i];
        text_cache *to = cache_of(w, c.to), *from = cache_of(w, c.from);
        if (!to || !from || to == from || c.n_kept < 0 || c.n_kept > cache_end(to) ||
            c.n < c.n_kept || c.n > cache_end(from) || c.n != cache_whole(from, c.n, 0) ||
            cache_cut(to, c.n_kept) != c.n_kept)
            return false;
        cache_copy(to, from, c.n);
    }
    return true;
}

static bool truncate_all(worker *w, const ranks_pass *m)
{
    for (int32_t i = 0; i < m->head.n_caches; i++) {
        const ranks_cache *c = &m->caches[i];
        text_cache *cache = cache_of(w, c->slot);
        if (c->n_committed > cache_end(cache) || cache_cut(cache, c->n_committed) != c->n_committed)
            return false;
    }
    return true;
}

/* ---- A pass ---- */

/* Takes the groups of the caches that take part: groups[n], with their rows' places. False: they do
 * not fit. */
static bool take_groups(worker *w, const ranks_pass *m, pass_group *groups, int32_t *n)
{
    runner *r = probe_target(w->session[0]);
    const int32_t *parent = m->parents;
    pass_row *rows = r->ws->rows;
    const float *states = r->ws->y;
    for (*n = 0; *n < m->head.n_caches && m->caches[*n].n_rows > 0; ++*n) {
        const ranks_cache *c = &m->caches[*n];
        text_cache *cache = cache_of(w, c->slot);
        bool fits = c->whole ? cache_pending(cache) == 0 && cache_has_room_whole(cache, c->n_rows)
                             : cache_has_room(cache, c->n_rows);
        for (int32_t i = 0; fits && i < c->n_rows; i++) {
            rows[i] = (pass_row){.parent = parent[i]};
            fits = parent[i] >= -1 && parent[i] < i && (!c->whole || parent[i] == i - 1);
        }
        if (!fits)
            return false;
        groups[*n] = (pass_group){.cache = cache,
                                  .rows = rows,
                                  .n = c->n_rows,
                                  .head = (pass_head)c->head, /* says which rows are prompts' */
                                  .whole = c->whole,
                                  .states = states};
        parent += c->n_rows;
        rows += c->n_rows;
        states += c->n_rows * pass_rows_stride(r);
    }
    return true;
}

/* The message stays where it is until the next one is looked for. */
static drey_status take_rows(worker *w, pass_group *groups, int32_t *n, ranks_pass *m,
                             drey_error *err)
{
    runner *r = probe_target(w->session[0]);
    if (!ranks_read_rows(w->ranks, shape_width(&r->layout->shape), m) ||
        m->head.n_rows > r->ws->limits.max_rows)
        FAIL(err, DREY_ERR_IO, "it does not understand the rows it gets: start all ranks again");
    if (!commit_all(w, m) || !copy_all(w, m) || !truncate_all(w, m))
        FAIL(err, DREY_ERR_IO, "its caches are out of step with rank 0's: start all ranks again");
    if (!take_groups(w, m, groups, n))
        FAIL(err, DREY_ERR_IO, "it has no room for the rows it gets: start all ranks again");
    /* The pass takes them from where its sums will be, which are not in use yet. */
    ranks_copy_rows(m, r->ws->y, pass_rows_stride(r));
    return DREY_OK;
}

/* Returns how long passes of the part have had nothing to compute. */
static int64_t stalled_ns(const worker *w)
{
    trace_sums sums;
    trace_sum(&w->engine->trace, &sums);
    return sums.ns[TRACE_STALL];
}

/* All layers of the part, with a beat at each. */
static drey_status run_rows(worker *w, pass_group *groups, int32_t n, drey_error *err)
{
    model_pass p;
    TRY(pass_begin(&p, probe_target(w->session[0]), groups, n, err));
    for (pass_state state = PASS_CONTINUES; state != PASS_DONE;) {
        TRY(pass_step(&p, 0, &state, err));
        ranks_beat(w->ranks, false);
        if (state == PASS_STARVED)
            pass_wait(&p);
    }
    return pass_end(&p, err);
}

static drey_status serve_rows(worker *w, drey_error *err)
{
    drey_ranks *r = w->ranks;
    runner *target = probe_target(w->session[0]);
    pass_group groups[DREY_MAX_SESSIONS];
    int32_t n = 0;
    ranks_pass m;
    r->pass = ranks_got(r)->pass;
    r->computed_ns = ranks_got(r)->computed_ns;
    ranks_drop(r);
    TRY(take_rows(w, groups, &n, &m, err));
    int64_t begun_ns = clock_ns() - stalled_ns(w);
    TRY(run_rows(w, groups, n, err));
    r->computed_ns += (uint64_t)(clock_ns() - stalled_ns(w) - begun_ns);
    ranks_count(r, target->weights);
    ranks_beat(r, true);
    int32_t next = r->rank + 1 < r->n ? r->rank + 1 : 0;
    if (next == 0 && !m.head.is_wanted)
        return DREY_OK;
    return ranks_pass_on(r, next, &m, target->ws->x, pass_rows_stride(target), err);
}

/* One message; *quit: it was the last one. Rank 0 reports a failure to the user, and may try a pass
 * again. */
static drey_status serve_next(worker *w, const drey_engine_options *options, bool *quit,
                              drey_error *err)
{
    drey_ranks *r = w->ranks;
    drey_error error = {.code = DREY_OK};
    drey_status status = DREY_OK;
    ranks_join join = {.n_layers = 0}; /* which is refused */
    TRY(ranks_next(r, err));
    switch (ranks_got(r)->kind) {
    case RANKS_JOIN:
        if (ranks_got(r)->n_bytes == sizeof join)
            memcpy(&join, ranks_body(r), sizeof join);
        ranks_drop(r);
        if (!w->engine)
            status = open_part(w, options, &join, &error);
        break;
    case RANKS_ROWS:
        status = w->n_sessions > 0 ? serve_rows(w, &error) : DREY_OK;
        break;
    case RANKS_QUIT:
        ranks_drop(r);
        *quit = true;
        status = ranks_send(r, 0, RANKS_QUIT, NULL, 0, &error);
        break;
    default:
        ranks_drop(r);
    }
    if (r->broken && err)
        *err = error;
    return status == DREY_OK || r->broken ? status : ranks_report(r, status, error.message, err);
}

drey_status drey_ranks_serve(drey_ranks *ranks, const drey_engine_options *options, drey_error *err)
{
    worker w = {.ranks = ranks};
    drey_error error;
    bool quit = false;
    const drey_engine_options alone = engine_part_options(options);
    ranks->served = true;
    float_mode caller = float_mode_enter();
    drey_status status = say_hello(ranks, &alone, &error);
    if (status != DREY_OK)
        status = ranks_report(ranks, status, error.message, err);
    while (status == DREY_OK && !quit)
        status = serve_next(&w, &alone, &quit, err);
    for (int32_t i = 0; i < w.n_sessions; i++)
        drey_session_close(&w.session[i]);
    drey_engine_close(&w.engine);
    float_mode_leave(caller);
    return status;
}
