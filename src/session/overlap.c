/* Drafting while a pass waits: see overlap.h. */
#include "session/overlap.h"
#include "base/usual.h"

#include "policy/policy.h"
#include "policy/provisional.h"
#include "policy/slices.h"
#include "session/turn.h"
#include "os/clock.h"
#include "text/tokenizer.h"

/* Masks are made in time for places that the text reaches at least this often. */
static const float least_bound = USUAL_LEAST_AHEAD;

/* ---- A session ---- */

static bool is_end(const void *user, int32_t token)
{
    const drey_session *s = user;
    return !s->text.options.ignore_eos &&
           tokenizer_is_end(s->engine->config.target->tokenizer, token);
}

/* If a step takes no time, there is nothing to gain by an early one. Nor is there if the policy
 * pauses and has submitted nothing. With exits that decide the text, guesses must not depend on
 * waits. */
static bool can_draft(const drey_session *s)
{
    return s->state == SESSION_DECODE && s->drafter->class->steps &&
           drafting_may_be_timed(s->engine->config.exit) &&
           (s->text.n_drafted > 0 || s->policy->class->alone);
}

static drey_status start(drey_session *s, bool *done)
{
    bool tree = policy_has(s->policy, DREY_PART_TREE);
    const provisional_rules rules = {.max_depth = turn_depth_left(s),
                                     .batch = policy_batch(s->policy),
                                     .ranks = tree ? TREE_MAX_GUESSES : 1,
                                     .least = s->policy->ahead,
                                     .calibrate = policy_calibrate,
                                     .calibrate_user = s->policy,
                                     .is_end = is_end,
                                     .is_end_user = s};
    *done = false;
    if (s->tree.grammar)
        draft_expand_free(s->drafter, s->policy, &s->tree, rules.max_depth);
    s->unfinished.n_nodes = provisional_next(&rules, &s->tree, s->unfinished.nodes);
    if (s->unfinished.n_nodes == 0)
        return DREY_OK;
    s->drafter->n_steps++;
    return drafter_start(s->drafter, &s->tree, s->unfinished.nodes, s->unfinished.n_nodes, done,
                         NULL);
}

static void count_step(overlap_work *w, drey_session *s)
{
    for (int32_t i = 0; i < s->unfinished.n_nodes; i++)
        s->tree.nodes[s->unfinished.nodes[i]].provisional = true;
    provisional_text_show(s, false);
    w->n_expanded += s->unfinished.n_nodes;
    s->unfinished.n_nodes = 0;
}

typedef enum work_state { WORK_NONE, WORK_LATER, WORK_CONTINUES, WORK_STEP_DONE } work_state;

/* Reads a chunk of the prompt, or continues with it. */
static work_state read_prompt(drey_session *s, int64_t until_ns)
{
    draft_reading state;
    s->unfinished.reading = prompt_unread(s);
    if (s->unfinished.reading &&
        s->drafter->class->reader->read(s->drafter, until_ns, &state, NULL) != DREY_OK)
        s->unfinished.reading = false;
    if (!s->unfinished.reading)
        return WORK_NONE;
    s->unfinished.reading = state != DRAFT_CHUNK_READ;
    return state == DRAFT_CHUNK_READ      ? WORK_STEP_DONE
           : state == DRAFT_CHUNK_STARVED ? WORK_LATER
                                          : WORK_CONTINUES;
}

/* Begins a step, unless one is unfinished, and continues it. A draft that fails has nothing more to
 * do. */
static work_state work(overlap_work *w, drey_session *s, int64_t until_ns)
{
    bool done = false;
    if (s->state == SESSION_PROMPT || prompt_unread(s))
        return read_prompt(s, until_ns);
    drey_status status = s->unfinished.n_nodes == 0 ? start(s, &done) : DREY_OK;
    if (status == DREY_OK && s->unfinished.n_nodes > 0 && !done)
        status = s->drafter->class->steps->advance(s->drafter, &s->tree, until_ns, &done, NULL);
    if (status != DREY_OK)
        s->unfinished.n_nodes = 0;
    work_state state = s->unfinished.n_nodes == 0 ? WORK_NONE
                       : done                     ? WORK_STEP_DONE
                                                  : WORK_CONTINUES;
    if (done)
        count_step(w, s);
    return state;
}

/* ---- In a gap ---- */

static bool pass_can_continue(void *user)
{
    return pass_ready(((overlap_work *)user)->waits);
}

static int64_t room_of_pass(void *user)
{
    return pass_room_ns(((overlap_work *)user)->waits);
}

static int64_t now(void *user)
{
    (void)user;
    return clock_ns();
}

/* The mask of one more place that the text may reach in this pass. False: all are there. */
static bool prepare_mask(overlap_work *w)
{
    for (; w->n_bound > 0; w->n_bound--, w->next_node = 0) {
        drey_session *s = w->bound[w->n_bound - 1];
        for (; w->next_node < s->tree.n_nodes; w->next_node++) {
            const tree_node *node = &s->tree.nodes[w->next_node];
            bool likely = node->submitted && node->cumulative >= least_bound;
            if (likely && sampler_prepare_at(&s->sampler, tree_cursor(&s->tree, w->next_node)))
                return true;
        }
    }
    return false;
}

/* All sessions share the draft's workspace: a step is finished before another session begins
 * one. */
static bool work_a_slice(void *user, int64_t until_ns)
{
    overlap_work *w = user;
    if (prepare_mask(w))
        return true;
    while (w->n > 0) {
        work_state state = work(w, w->session[w->next], until_ns);
        if (state == WORK_STEP_DONE)
            w->next = (w->next + 1) % w->n;
        if (state != WORK_NONE)
            return state != WORK_LATER;
        w->session[w->next] = w->session[--w->n]; /* nothing more to do in this pass */
        if (w->next >= w->n)
            w->next = 0;
    }
    return false;
}

void overlap_begin(overlap_work *w, drey_session *const *sessions, int32_t n)
{
    w->n = w->next = w->n_bound = w->next_node = 0;
    for (int32_t i = 0; i < n; i++)
        if (sessions[i]->state == SESSION_DECODE && sessions[i]->tree.grammar)
            w->bound[w->n_bound++] = sessions[i];
    for (int32_t i = 0; i < n; i++)
        if (session_guesses(sessions[i]) &&
            policy_has(sessions[i]->policy, DREY_PART_PROVISIONAL) &&
            (can_draft(sessions[i]) || prompt_unread(sessions[i])))
            w->session[w->n++] = sessions[i];
}

void overlap_drop(overlap_work *w, const drey_session *s)
{
    for (int32_t i = 0; i < w->n; i++)
        if (w->session[i] == s) {
            w->session[i] = w->session[--w->n];
            if (w->next == w->n) /* it may have an unfinished step, which it continues */
                w->next = i;
        }
    if (w->next >= w->n)
        w->next = 0;
    for (int32_t i = 0; i < w->n_bound; i++)
        if (w->bound[i] == s) {
            w->bound[i] = w->bound[--w->n_bound];
            w->next_node = 0;
        }
}

bool overlap_fill(overlap_work *w, const model_pass *pass)
{
    if (w->n + w->n_bound == 0)
        return false;
    drey_engine *drafting = w->n > 0 ? w->session[0]->engine : NULL; /* not masks alone */
    const sliced_work slices = {.ready = pass_can_continue,
                                .room_ns = room_of_pass,
                                .clock_ns = now,
                                .slice = work_a_slice,
                                .user = w};
    w->waits = pass;
    w->n_expanded = 0;
    int64_t start_ns = clock_ns();
    bool is_remote = pass->is_remote;
    bool worked = slices_run(&slices);
    int64_t end_ns = clock_ns();
    if (worked && drafting && is_remote)
        drafting->meters.drafted_away_ns += end_ns - start_ns;
    if (worked && drafting)
        trace_add(&drafting->trace, 0, TRACE_PROVISIONAL, start_ns, end_ns, w->n_expanded);
    return worked;
}

/* ---- After the pass ---- */

void overlap_end_chunk(drey_session *s)
{
    draft_reading state;
    if (s->unfinished.reading)
        s->drafter->class->reader->read(s->drafter, 0, &state, NULL);
    s->unfinished.reading = false;
}

void overlap_give_up(drey_session *s)
{
    if (s->unfinished.n_nodes > 0 || s->unfinished.reading)
        s->drafter->class->steps->give_up(s->drafter);
    s->unfinished.n_nodes = 0;
    s->unfinished.reading = false;
}

static void count_kept(drey_session *s, const int32_t *moved)
{
    drey_speculation *c = &s->text.speculation;
    for (int32_t i = 0; i < s->tree.n_nodes; i++)
        if (s->tree.nodes[i].provisional)
            (*(moved[i] >= 0 ? &c->provisional_kept : &c->provisional_lost))++;
}

void overlap_finish(drey_session *s, const int32_t *moved)
{
    bool stays = false;
    count_kept(s, moved);
    for (int32_t i = 0; i < s->unfinished.n_nodes; i++)
        stays = stays || moved[s->unfinished.nodes[i]] >= 0;
    if (!stays || s->text.done) {
        overlap_give_up(s);
        return;
    }
    bool done;
    int64_t start_ns = clock_ns();
    s->drafter->class->steps->advance(s->drafter, &s->tree, 0, &done, NULL);
    trace_add(&s->engine->trace, 0, TRACE_DRAFT, start_ns, clock_ns(), s->unfinished.n_nodes);
    s->unfinished.n_nodes = 0;
}
