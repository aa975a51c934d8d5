/* A rank that computes layers for rank 0: see ranks/ranks.h.
 *
 * It has an engine of its part and a session, whose cache follows rank 0's: what that committed
 * comes with the next rows. Nothing else of the session is used. */
#include <string.h>

#include "model/model.h"
#include "os/float_mode.h"
#include "ranks/ranks.h"
#include "engine/engine.h"
#include "session/session_probe.h"

typedef struct worker {
    drey_ranks *ranks;
    drey_engine *engine;
    drey_session *session;
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
    const engine_tuning tuning = engine_join_options(&o, join);
    int64_t end = (int64_t)join->first + join->n_layers;
    if (join->first < 1 || join->n_layers < 1 || end > options->target->shape.n_layers)
        FAIL(err, DREY_ERR_MISMATCH, "the layers %d to %lld are asked for, which are not there",
             join->first, (long long)end);
    TRY(engine_open(&w->engine, &o, &tuning, err));
    TRY(drey_session_open(&w->session, w->engine, err));
    TRY(ranks_make_room(w->ranks, w->engine->plan.max_rows, w->engine->target.layout.shape.n_embd,
                        err));
    const drey_plan *plan = &w->engine->plan.report;
    const ranks_ready ready = {plan->pinned_bytes, plan->streamed_bytes_per_pass};
    return ranks_send(w->ranks, 0, RANKS_READY, &ready, sizeof ready, err);
}

/* What rank 0's cache did since the last rows. */
static drey_status follow(kv_cache *kv, const ranks_rows *head, const int32_t *path,
                          drey_error *err)
{
    bool fits = head->n_path <= kv->n_pending;
    for (int32_t i = 0; fits && i < head->n_path; i++)
        fits = path[i] >= 0 && path[i] < kv->n_pending &&
               kv->parent[path[i]] == (i ? path[i - 1] : -1);
    fits = fits && head->n_committed <= kv->n_committed + head->n_path;
    if (!fits)
        FAIL(err, DREY_ERR_IO, "its cache is out of step with rank 0's: start all ranks again");
    kv_commit(kv, path, head->n_path);
    kv_truncate(kv, head->n_committed);
    return DREY_OK;
}

/* The message stays where it is until the next one is looked for. */
static drey_status take_rows(worker *w, pass_group *group, ranks_rows *head, const int32_t **path,
                             drey_error *err)
{
    runner *r = probe_target(w->session);
    const int32_t *parent;
    pass_row *rows = r->ws->rows;
    if (!ranks_read_rows(w->ranks, r->layout->shape.n_embd, head, path, &parent) ||
        head->n_rows > r->ws->limits.max_rows)
        FAIL(err, DREY_ERR_IO, "it does not understand the rows it gets: start all ranks again");
    TRY(follow(r->kv, head, *path, err));
    bool fits = kv_has_room(r->kv, head->n_rows);
    for (int32_t i = 0; fits && i < head->n_rows; i++) {
        rows[i] = (pass_row){.parent = parent[i]};
        fits = parent[i] >= -1 && parent[i] < i;
    }
    if (!fits)
        FAIL(err, DREY_ERR_IO, "it has no room for the rows it gets: start all ranks again");
    /* The pass takes them from where its sums will be, which are not in use yet. */
    ranks_copy_rows(w->ranks, head, r->ws->y, pass_hidden_stride(r));
    *group = (pass_group){.kv = r->kv, .rows = rows, .n = head->n_rows, .states = r->ws->y};
    return DREY_OK;
}

/* All layers of the part, with a beat at each. */
static drey_status run_rows(worker *w, pass_group *group, drey_error *err)
{
    model_pass p;
    TRY(pass_begin(&p, probe_target(w->session), group, 1, err));
    for (pass_state state = PASS_GOES_ON; state != PASS_DONE;) {
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
    runner *target = probe_target(w->session);
    pass_group group;
    ranks_rows head;
    const int32_t *path;
    stream_counters reads;
    r->pass = ranks_got(r)->pass;
    ranks_drop(r);
    TRY(take_rows(w, &group, &head, &path, err));
    TRY(run_rows(w, &group, err));
    weights_count(target->weights, &reads);
    r->read_bytes = reads.read_bytes;
    ranks_beat(r, true);
    int32_t next = r->rank + 1 < r->n ? r->rank + 1 : 0;
    return ranks_send_rows(r, next, &head, path, group.rows, target->ws->x,
                           pass_hidden_stride(target), err);
}

/* One message; *quit: it was the last one. Rank 0 reports a failure to the user, and may try a pass
 * again. */
static drey_status serve_next(worker *w, const drey_engine_options *options, bool *quit,
                              drey_error *err)
{
    drey_ranks *r = w->ranks;
    drey_error error = {.code = DREY_OK};
    drey_status status = DREY_OK;
    ranks_join join;
    TRY(ranks_next(r, err));
    switch (ranks_got(r)->kind) {
    case RANKS_JOIN:
        memcpy(&join, ranks_body(r), sizeof join);
        ranks_drop(r);
        if (!w->engine)
            status = open_part(w, options, &join, &error);
        break;
    case RANKS_ROWS:
        status = w->session ? serve_rows(w, &error) : DREY_OK;
        break;
    case RANKS_QUIT:
        *quit = true;
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
    drey_session_close(&w.session);
    drey_engine_close(&w.engine);
    float_mode_leave(caller);
    return status;
}
