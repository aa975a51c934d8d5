/* A step: one pass of the target for all sessions that take part.
 *
 *   session 1: offer ---rows---\                         /---logits--- take
 *   session 2: offer ---rows----+--- pass: each weight ---+---logits--- take
 *   session 3: offer ---rows---/     is read once          \---logits--- take
 *
 * Sessions in the middle of a text draft together (sharing.h), and their trees' best nodes come
 * first; those that read a prompt get the remaining rows, as long as no session waits for them.
 * While the pass waits for the disk, the drafts of those sessions continue (overlap.h). */
#include "session/step.h"

#include <assert.h>

#include "common/num.h"
#include "session/overlap.h"
#include "session/sharing.h"
#include "session/turn.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "state/cache.h"

typedef struct shared_pass {
    drey_session *session[DREY_MAX_SESSIONS];
    pass_group group[DREY_MAX_SESSIONS];
    bool left[DREY_MAX_SESSIONS]; /* cancelled during the pass */
    bool fewer;                   /* a session has left */
    int32_t n, n_writing; /* n_writing: those in the middle of a text, which are the first */
    int32_t n_rows;
    runner runner; /* the pass's */
    model_pass pass;
    overlap_work overlap;
} shared_pass;

static void take_in(shared_pass *p, drey_session *const *sessions, int32_t n, session_state state)
{
    for (int32_t i = 0; i < n; i++)
        if (sessions[i]->state == state)
            p->session[p->n++] = sessions[i];
}

static bool is_cancelled(const drey_session *s)
{
    return atomic_load_explicit(&s->cancel, memory_order_relaxed);
}

static int32_t count_cancelled(drey_session *const *sessions, int32_t n)
{
    int32_t n_cancelled = 0;
    for (int32_t i = 0; i < n; i++)
        n_cancelled += is_cancelled(sessions[i]);
    return n_cancelled;
}

/* A session whose prompt the target has read begins to decode. A cancelled one does not hold up the
 * others. */
static drey_status finish(drey_session *const *sessions, int32_t n, drey_error *err)
{
    if (count_cancelled(sessions, n) == n)
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    for (int32_t i = 0; i < n; i++) {
        drey_session *s = sessions[i];
        TRY(session_read_input(s, err));
        if (s->state == SESSION_PROMPT)
            TRY(prompt_left(s) ? prompt_begin(s, err) : prompt_end(s, n > 1, err));
    }
    return DREY_OK;
}

/* One row with logits is kept for each session that reads. */
static drey_status offer(shared_pass *p, drey_error *err)
{
    workspace *ws = p->session[0]->target.ws;
    int32_t n_reading = p->n - p->n_writing;
    int32_t most = min_i32(ws->limits.max_rows, ws->limits.max_logit_rows) - n_reading;
    TRY(sharing_draft(p->session, p->n_writing, n_reading, most - p->n_writing, err));
    p->n_rows = 0;
    for (int32_t i = 0; i < p->n_writing; i++) {
        turn_offer(p->session[i], ws->rows + p->n_rows, &p->group[i]);
        p->n_rows += p->group[i].n;
    }
    assert(p->n_rows <= most);
    int32_t rows[DREY_MAX_SESSIONS];
    sharing_prompt_rows(p->session + p->n_writing, n_reading, p->n_rows,
                        ws->limits.max_rows - p->n_rows, rows);
    for (int32_t i = p->n_writing; i < p->n; i++) {
        prompt_offer(p->session[i], ws->rows + p->n_rows, rows[i - p->n_writing], &p->group[i]);
        p->n_rows += p->group[i].n;
    }
    return DREY_OK;
}

/* Ends a session that was cancelled during the others' pass, or after it: it takes no result of the
 * pass. */
static void leave(drey_session *s)
{
    session_retry(s);
    cache_drop(&s->target_cache);
    session_end(s, DREY_FINISH_INTERRUPTED);
}

/* Handles what happens between two layers of a shared pass: removes cancelled sessions. A
 * session whose rows may be deferred to other passes stays until the end of this one. Fails if
 * none stays. */
static drey_status let_leave(shared_pass *p, drey_error *err)
{
    int32_t n_stay = 0;
    /* Sessions that are cancelled from here on leave at the next layer. */
    bool goes[DREY_MAX_SESSIONS];
    for (int32_t i = 0; i < p->n; i++) {
        goes[i] = !p->left[i] && is_cancelled(p->session[i]);
        n_stay += !p->left[i] && !goes[i];
    }
    if (n_stay == 0) {
        pass_leave(&p->pass);
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    }
    for (int32_t i = 0; i < p->n && pass_at_layer(&p->pass); i++) {
        drey_session *s = p->session[i];
        if (!goes[i] || s->observer)
            continue;
        p->left[i] = p->fewer = true;
        pass_drop(&p->pass, i);
        leave(s);
        overlap_drop(&p->overlap, s);
    }
    return DREY_OK;
}

/* The observer of a pass of one session knows its tokens. */
static bool is_enough(shared_pass *p)
{
    drey_session *s = p->session[0];
    return p->n == 1 && s->observer && s->observer->class->look(s, &p->pass);
}

/* Runs a pass. While it waits for weights, the drafts continue their trees. */
static drey_status run_pass(shared_pass *p, drey_error *err)
{
    model_pass *pass = &p->pass;
    for (int32_t i = 0; i < p->n; i++)
        if (p->session[i]->observer)
            p->session[i]->observer->class->pass_begins(p->session[i], &p->group[i], p->n == 1);
    TRY(pass_begin(pass, &p->runner, p->group, p->n, err));
    overlap_begin(&p->overlap, p->session, p->n);
    for (pass_state state = PASS_CONTINUES; state != PASS_DONE;) {
        TRY(pass_step(pass, 0, &state, err));
        if (p->n > 1)
            TRY(let_leave(p, err));
        if (state == PASS_CONTINUES && is_enough(p))
            return pass_stop(pass, err);
        if (state == PASS_STARVED && !overlap_fill(&p->overlap, pass))
            pass_wait(pass);
    }
    return pass_end(pass, err);
}

static drey_status compute(shared_pass *p, drey_error *err)
{
    static const _Atomic bool never = false;
    drey_engine *e = p->session[0]->engine;
    p->runner = p->session[0]->target;
    if (p->n > 1) /* one session's cancel does not concern the others */
        p->runner.cancel = &never;
    trace_kind what = !weights_loaded(p->runner.weights)       ? TRACE_LOAD
                      : p->session[0]->state == SESSION_DECODE ? TRACE_VERIFY
                                                               : TRACE_PROMPT;
    pass_watch watch;
    int64_t start = clock_ns();
    sharing_pass_begins(e, &watch);
    TRY(run_pass(p, err));
    trace_add(&e->trace, 0, what, start, clock_ns(), p->n_rows);
    if (what == TRACE_VERIFY)
        sharing_pass_ends(e, &watch, p->fewer ? 0 : p->n_rows, p->n == 1);
    return DREY_OK;
}

static void take(drey_session *s, const model_pass *pass, pass_group *group)
{
    if (s->state == SESSION_PROMPT)
        prompt_take(s, group);
    else
        turn_take(s, pass, group);
    if (s->text.done)
        session_end(s, DREY_FINISH_STOP);
    assert(session_is_valid(s));
}

/* At most one draft has an unfinished step. Its session is first: a new root may change what all
 * drafts share, the table of rows that such a step multiplies (weights/row_table.h). */
static int32_t first_to_take(const shared_pass *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->session[i]->unfinished.n_nodes > 0)
            return i;
    return 0;
}

drey_status sessions_step(drey_session *const *sessions, int32_t n, drey_error *err)
{
    shared_pass p = {.n = 0};
    drey_status status = finish(sessions, n, err);
    take_in(&p, sessions, n, SESSION_DECODE);
    p.n_writing = p.n;
    take_in(&p, sessions, n, SESSION_PROMPT);
    assert(p.n == n);
    if (status == DREY_OK)
        status = offer(&p, err);
    if (status == DREY_OK)
        status = compute(&p, err);
    for (int32_t i = 0; i < n && status == DREY_OK; i++)
        if (!p.left[i])
            overlap_end_chunk(p.session[i]);
    for (int32_t i = 0, first = first_to_take(&p); i < n; i++) {
        int32_t at = (first + i) % n;
        drey_session *s = p.session[at];
        if (p.left[at]) /* and may have begun another text since */
            continue;
        if (status != DREY_OK)
            session_retry(s);
        else if (n > 1 && !s->observer && is_cancelled(s))
            leave(s);
        else
            take(s, &p.pass, &p.group[at]);
    }
    drey_engine *e = p.session[0]->engine;
    energy_meter_add(&e->meters.energy, e->hooks.energy_root, false);
    e->team->stepped(e);
    prefix_write(&e->prefixes);
    return status;
}

static void end_if_cancelled(drey_session *s)
{
    if (s->state != SESSION_IDLE && atomic_load(&s->cancel))
        session_end(s, DREY_FINISH_INTERRUPTED);
}

drey_status drey_engine_step(drey_engine *e, int32_t *n_writing, drey_error *err)
{
    float_mode caller = float_mode_enter();
    drey_session *writing[DREY_MAX_SESSIONS];
    int32_t n = 0;
    for (int32_t i = 0; i < e->n_sessions; i++) {
        end_if_cancelled(e->sessions[i]);
        if (e->sessions[i]->state != SESSION_IDLE)
            writing[n++] = e->sessions[i];
    }
    drey_status status = n > 0 ? sessions_step(writing, n, err) : DREY_OK;
    if (status == DREY_ERR_CANCELLED)
        status = DREY_OK;
    *n_writing = 0;
    for (int32_t i = 0; i < e->n_sessions; i++) {
        end_if_cancelled(e->sessions[i]);
        *n_writing += e->sessions[i]->state != SESSION_IDLE;
    }
    float_mode_leave(caller);
    return status;
}
