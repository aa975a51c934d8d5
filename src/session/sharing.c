/* Sharing passes: see sharing.h. */
#include "session/sharing.h"
#include "base/usual.h"

#include "common/num.h"
#include "session/turn.h"
#include "os/clock.h"

/* ---- What turns cost ---- */

bool sharing_measures(const drey_engine *e)
{
    return !e->hooks.untimed && drafting_may_be_timed(e->config.exit);
}

/* Returns how long passes have had nothing to compute so far, on any rank. */
static int64_t waited_ns(const drey_engine *e)
{
    trace_sums sums;
    trace_sum(&e->trace, &sums);
    return sums.ns[TRACE_STALL] + sums.ns[TRACE_PROVISIONAL] - e->meters.drafted_away_ns +
           e->team->idle_ns(e);
}

/* The disk's recent speed while it was busy. Not where a pass reads what it chooses, or from other
 * ranks' disks as well. */
static void note_disk(drey_engine *e)
{
    stream_counters now, *since = &e->meters.reads;
    weights_count(&e->target.weights, &now);
    double bytes = (double)(now.read_bytes - since->read_bytes);
    double busy_s = (double)(now.busy_ns - since->busy_ns) * 1e-9;
    bool says = !e->cost.of_experts && e->team->is_alone;
    if (bytes > 0 && busy_s > 0 && sharing_measures(e) && says)
        cost_saw_disk(&e->cost, (double)e->plan.report.streamed_bytes_per_pass * busy_s / bytes);
    e->meters.reads = now;
}

void sharing_pass_begins(drey_engine *e, pass_watch *w)
{
    note_disk(e);
    *w = (pass_watch){clock_ns(), waited_ns(e)};
}

void sharing_pass_ends(drey_engine *e, const pass_watch *w, int32_t n_rows, bool alone)
{
    e->cost.shared = !alone;
    if (sharing_measures(e) && n_rows > 0)
        cost_saw_pass(&e->cost, n_rows, (double)(clock_ns() - w->begun_ns) * 1e-9,
                      (double)(waited_ns(e) - w->waited_ns) * 1e-9);
    if (!alone || !sharing_measures(e))
        e->cost.turn_s = 0;
}

/* ---- Drafting ---- */

/* Lets the draft of each read what it has not read, the shortest first, until until_ns (clock_ns;
 * 0: all of it). */
static drey_status read_on(drey_session *const *sessions, int32_t n, int64_t until_ns,
                           drey_error *err)
{
    for (;;) {
        drey_session *next = NULL;
        int32_t least = INT32_MAX;
        for (int32_t i = 0; i < n; i++) {
            int32_t left = sessions[i]->n_timeline - cache_end(&sessions[i]->draft_cache);
            if (prompt_unread(sessions[i]) && left < least) {
                next = sessions[i];
                least = left;
            }
        }
        draft_reading state;
        if (!next || (until_ns && clock_ns() >= until_ns))
            return DREY_OK;
        TRY(next->drafter->class->reader->read(next->drafter, 0, &state, err));
    }
}

static shared_tree tree_of(drey_session *s)
{
    return (shared_tree){.drafter = s->drafter,
                         .policy = s->policy,
                         .tree = &s->tree,
                         .max_depth = turn_depth_left(s)};
}

/* The sessions for which drafts guess in this turn. */
static int32_t take_in(drey_session *const *sessions, int32_t n, shared_tree *trees)
{
    int32_t n_trees = 0;
    for (int32_t i = 0; i < n; i++) {
        drey_session *s = sessions[i];
        bool guesses = session_guesses(s);
        if (guesses)
            s->drafter->lags = prompt_unread(s);
        if (guesses && (!s->drafter->lags || s->drafter->class->guesses_unread))
            trees[n_trees++] = tree_of(s);
        else
            tree_submit(&s->tree, 0);
    }
    return n_trees;
}

/* Returns whether its text is long enough to pay for what its draft has to read, if all write
 * faster by that part. */
static bool outweighs_reading(const drey_session *s, int32_t n, double gain)
{
    const turn_cost *cost = &s->engine->cost;
    double reading_s = (s->n_timeline - cache_end(&s->draft_cache)) *
                       (cost_step(cost, DRAFT_MAX_BATCH) / DRAFT_MAX_BATCH);
    return turn_depth_left(s) / USUAL_TURN_TOKENS * cost_shared(cost, n, 0) * gain / n > reading_s;
}

/* Chooses the sessions whose drafts now read what they still have to, of those that share passes or
 * did. The gain that drafting promises, if they had read it and if the sessions that read prompts
 * wrote as well, must exceed half a turn of all: in one turn, or over a few, when the time of turns
 * without drafting is known. After a time measured at a bad moment, a small gain is promised for a
 * while. A draft that was not used for long has much of the text to read. */
static int32_t who_reads(drey_session *const *sessions, int32_t n, int32_t n_reading, int32_t most,
                         drey_session **readers)
{
    const double enough = USUAL_ENOUGH_TO_READ;
    drey_engine *e = sessions[0]->engine;
    shared_tree trees[DREY_MAX_SESSIONS];
    shared_drafting c = {.trees = trees, .trust = &e->trust, .most = most};
    int32_t n_unread = 0, n_readers = 0;
    for (int32_t i = 0; i < n; i++) {
        drey_session *s = sessions[i];
        if (!session_guesses(s))
            continue;
        s->drafter->lags = true;
        n_unread += prompt_unread(s);
        trees[c.n++] = tree_of(s);
    }
    if (n_unread == 0)
        return 0;
    c.n_plain = n + n_reading - c.n;
    double gain = shared_drafting_promise(&c);
    if (gain > enough || cost_knows_pass(&e->cost, n + n_reading))
        e->promised = max_f64(min_f64(e->promised + gain, 1), 0);
    for (int32_t i = 0; i < n && e->promised > enough; i++)
        if (prompt_unread(sessions[i]) && outweighs_reading(sessions[i], n + n_reading, gain))
            readers[n_readers++] = sessions[i];
    return n_readers;
}

static int32_t count_nodes(const shared_tree *trees, int32_t n)
{
    int32_t n_nodes = 0;
    for (int32_t i = 0; i < n; i++)
        n_nodes += trees[i].tree->n_nodes;
    return n_nodes;
}

drey_status sharing_draft(drey_session *const *sessions, int32_t n, int32_t n_reading, int32_t most,
                          drey_error *err)
{
    shared_tree trees[DREY_MAX_SESSIONS];
    if (n == 0)
        return DREY_OK;
    drey_engine *e = sessions[0]->engine;
    bool lags = session_guesses(sessions[0]) && sessions[0]->drafter->lags;
    bool chosen = sharing_measures(e) && (n + n_reading > 1 || lags);
    int64_t pass_ns = (int64_t)(1e9 * cost_shared(&e->cost, n, 0));
    drey_session *readers[DREY_MAX_SESSIONS];
    if (chosen) {
        int32_t n_readers = who_reads(sessions, n, n_reading, most, readers);
        TRY(read_on(readers, n_readers, clock_ns() + pass_ns, err));
    } else {
        TRY(read_on(sessions, n, 0, err));
    }
    shared_drafting c = {.trees = trees, .n = take_in(sessions, n, trees), .most = most};
    c.n_plain = n - c.n;
    c.trust = sharing_measures(e) ? &e->trust : NULL;
    e->cost.draft_s = 0;
    if (c.n == 0)
        return DREY_OK;
    int64_t start = clock_ns();
    int32_t n_before = count_nodes(trees, c.n);
    drey_status status = shared_drafting_grow(&c, err);
    trace_add(&e->trace, 0, TRACE_DRAFT, start, clock_ns(), count_nodes(trees, c.n) - n_before);
    if (status == DREY_OK)
        shared_drafting_submit(&c);
    return status;
}

/* ---- Rows of prompts in passes of texts ---- */

/* Returns how many rows all have. */
static int32_t rows_of_prompts(const drey_engine *e, int32_t n_rows, int32_t n, int32_t room)
{
    int32_t rows = min_i32(room, max_i32(USUAL_LEAST_PROMPT_ROWS, n));
    if (n_rows == 0 || e->hooks.untimed)
        return room;
    double most_s = USUAL_PROMPT_PASS_FACTOR * cost_shared(&e->cost, n_rows, 0);
    while (rows < room && cost_shared(&e->cost, n_rows + rows + 1, 0) <= most_s)
        rows++;
    return rows;
}

void sharing_prompt_rows(drey_session *const *sessions, int32_t n, int32_t n_rows, int32_t room,
                         int32_t *rows)
{
    if (n == 0)
        return;
    int32_t all = rows_of_prompts(sessions[0]->engine, n_rows, n, room);
    for (int32_t i = 0; i < n; i++)
        rows[i] = min_i32(prompt_rows_left(sessions[i]), max_i32(all / (2 * n), 1));
    for (int32_t i = 0; i < n; i++)
        all -= rows[i];
    while (all > 0) {
        int32_t next = -1, least = INT32_MAX;
        for (int32_t i = 0; i < n; i++) {
            int32_t left = prompt_rows_left(sessions[i]) - rows[i];
            if (left > 0 && left < least) {
                next = i;
                least = left;
            }
        }
        if (next < 0)
            return;
        rows[next] += min_i32(least, all);
        all -= min_i32(least, all);
    }
}
