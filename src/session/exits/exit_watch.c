/* Passes that stop when their tokens are decided: see exits.h. */
#include "session/exits/exits.h"

#include <math.h>

#include "base/fmath.h"
#include "common/num.h"
#include "os/clock.h"
#include "session/turn.h"
#include "text/tokenizer.h"

static const uint64_t random_seed = 1; /* for random scores */

static bool has_part(const drey_session *s, drey_part part)
{
    return !(s->engine->config.research.without & DREY_WITHOUT(part));
}

/* Any token of the whole head may leave, and no candidates are needed. */
static bool takes_any(const drey_engine *e)
{
    return e->hooks.exit_here;
}

static int32_t n_layers(const drey_session *s)
{
    return s->engine->target.layout.shape.n_layers;
}

/* ---- A session's ---- */

static void begin_text(drey_session *s)
{
    session_exits *w = exits_of(s);
    const drey_engine *e = s->engine;
    stream_counters reads;
    weights_count(&e->target.weights, &reads);
    w->vain_before = reads.vain_bytes;
    w->n_layers_run = 0;
    w->count = (drey_exits){.mode = e->config.exit, .n_layers = n_layers(s)};
    if (!e->hooks.exit_here)
        exit_schedule_init(&w->schedule, &e->predictors,
                           has_part(s, DREY_PART_SCHEDULE) ? EXIT_TWO_LEVELS : EXIT_EVERY_LAYER, 0);
}

/* ---- Watching a pass ---- */

static bool is_active(const drey_session *s, int32_t layer)
{
    if (s->engine->hooks.exit_here)
        return layer < n_layers(s);
    return exit_schedule_active(&exits_of(s)->schedule, layer);
}

/* The next active layer; the last layer if there is none. */
static int32_t next_active(const drey_session *s, int32_t layer)
{
    while (layer < n_layers(s) && !is_active(s, layer))
        layer++;
    return layer;
}

/* Returns whether the next n tokens may leave. A pass has room for the deferred rows of one
 * session, however many share it. In `exact` tokens that could end the text by its length may not:
 * the end is reported when everything is verified. */
static bool has_room(const drey_session *s, int32_t n_more)
{
    const drey_engine *e = s->engine;
    int32_t n = n_more;
    for (int32_t i = 0; i < e->n_sessions; i++)
        n += e->sessions[i]->deferred.n;
    if (n > s->deferred.max)
        return false;
    return !s->observer->holds_back || turn_depth_left(s) >= n_more;
}

/* A node's candidates are its drafter's best guesses. A leaf of the tree was not expanded: it has
 * what the drafter knows without a step, until it is expanded while the pass waits. */
static void take_guesses(drey_session *s, watched_row *r)
{
    const tree_node *node = &s->tree.nodes[r->node];
    const drafter *d = s->drafter;
    candidate known[TREE_MAX_GUESSES];
    const candidate *guess = node->guess;
    float logp[EXIT_CANDIDATES];
    int32_t n = node->n_guesses;
    if (r->ready || (r->features.n > 0 && !(r->known_free && n > 0)))
        return;
    r->known_free = n == 0;
    if (r->known_free && d && d->class->peek) {
        n = d->class->peek(d, &s->tree, r->node, known);
        guess = known;
    }
    n = min_i32(n, EXIT_CANDIDATES);
    for (int32_t i = 0; i < n; i++) {
        r->ids[i] = guess[i].token;
        logp[i] = (float)log_f64((double)guess[i].confidence);
    }
    if (n > 0)
        exit_features_begin(&r->features, n, logp);
}

static bool has_candidates(drey_session *s)
{
    if (takes_any(s->engine) || s->engine->predictors.source == DREY_EXIT_FROM_TARGET)
        return true;
    take_guesses(s, &exits_of(s)->row[0]);
    return exits_of(s)->row[0].features.n > 0;
}

static void begin_pass(drey_session *s, const pass_group *group, bool alone)
{
    session_exits *w = exits_of(s);
    w->n_rows = w->base.stopped = 0;
    bool watched = alone && s->state == SESSION_DECODE && has_room(s, 1) &&
                   (group->n == 1 || has_part(s, DREY_PART_HYPER));
    for (int32_t i = 0; watched && i < s->tree.n_nodes; i++)
        if (s->row_of[i] >= 0)
            w->row[w->n_rows++] = (watched_row){.node = i};
    if (watched && !has_candidates(s)) /* the root leaves first, or none does */
        w->n_rows = 0;
    /* Reads beyond an exit are in vain: so reads wait one layer after the next look, which gives
     * the disk work until then. A path hardly ever leaves. */
    int32_t hold = w->n_rows == 1 ? next_active(s, 1) + 1 : n_layers(s);
    pass_hold_from(&s->target, min_i32(hold, n_layers(s)));
}

/* ---- Looking ---- */

/* The heads of these rows, and of no others. */
static void compute_heads(drey_session *s, model_pass *pass, const int32_t *rows, int32_t n)
{
    session_exits *w = exits_of(s);
    int64_t start = clock_ns();
    const float *logits = pass_look_head(pass, rows, n), *hidden = pass_look_hidden(pass);
    for (int32_t i = 0; i < w->n_rows; i++)
        w->row[i].head = w->row[i].hidden = NULL;
    for (int32_t i = 0; i < n; i++) {
        w->row[rows[i]].head = logits + i * pass_logits_stride(&s->target);
        w->row[rows[i]].hidden = hidden + i * pass_hidden_stride(&s->target);
    }
    w->count.head_s += (double)(clock_ns() - start) * 1e-9;
}

static void compute_all_heads(drey_session *s, model_pass *pass)
{
    int32_t rows[TREE_MAX_ROWS];
    for (int32_t i = 0; i < exits_of(s)->n_rows; i++)
        rows[i] = i;
    compute_heads(s, pass, rows, exits_of(s)->n_rows);
}

/* The position of the token after a row. */
static int32_t position_after(const drey_session *s, const watched_row *r)
{
    return s->n_timeline + s->tree.nodes[r->node].depth;
}

/* The target's own best at a middle layer. */
static void take_own(drey_session *s, model_pass *pass)
{
    session_exits *w = exits_of(s);
    compute_all_heads(s, pass);
    for (int32_t i = 0; i < w->n_rows; i++) {
        watched_row *r = &w->row[i];
        int32_t top[EXIT_CANDIDATES];
        int32_t n = sampler_top(&s->sampler, r->head, top, EXIT_CANDIDATES);
        for (int32_t j = 0; j < n; j++)
            r->ids[j] = top[j];
        if (n > 0) /* else its logits are not numbers */
            exit_features_begin(&r->features, n, NULL);
    }
}

static void judge(drey_session *s, watched_row *r, int32_t layer, float score)
{
    const drey_engine *e = s->engine;
    int32_t position = position_after(s, r);
    float threshold = e->config.exit_threshold;
    if (threshold <= 0)
        threshold = e->predictors.threshold;
    if (e->hooks.exit_here)
        score = e->hooks.exit_here(e->hooks.exit_user, layer, position) ? 1 : -1;
    else if (!has_part(s, DREY_PART_PREDICTORS))
        score = exit_random_score(random_seed, position, layer);
    exits_of(s)->count.looks++;
    r->ready = r->ready || score > threshold;
}

static void look_at_heads(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = exits_of(s);
    compute_all_heads(s, pass);
    for (int32_t i = 0; i < w->n_rows; i++)
        judge(s, &w->row[i], layer, 0);
}

/* The candidate that the sampler takes, if its choice is one of them. */
static int32_t likeliest(drey_session *s, const watched_row *r)
{
    int32_t tokens[EXIT_CANDIDATES];
    candidate best = {.token = (int32_t)r->ids[0]};
    const logit_ids ids = {.n_more = r->features.n, .more = tokens};
    for (int32_t i = 0; i < r->features.n; i++)
        tokens[i] = (int32_t)r->ids[i];
    sampler_guess(&s->sampler, r->logits, position_after(s, r), &ids, &best, 1);
    return best.token;
}

/* The submitted child of a node with this token, or -1. */
static int32_t submitted_child(const drey_session *s, int32_t node, int32_t token)
{
    int32_t child = tree_child(&s->tree, node, token);
    return child >= 0 && s->row_of[child] >= 0 ? child : -1;
}

/* Adds the rows from a node along the likeliest candidates to rows[0..n), as long as they have
 * scored. Returns their number then; -1: one of them has not. */
static int32_t ready_path(drey_session *s, int32_t node, int32_t rows[TREE_MAX_ROWS], int32_t n)
{
    while (node >= 0) {
        const watched_row *r = &exits_of(s)->row[s->row_of[node]];
        if (!r->ready)
            return -1;
        rows[n++] = s->row_of[node];
        node = submitted_child(s, node, likeliest(s, r));
    }
    return n;
}

/* Computes the logits of the candidates of all nodes, for each its own few rows of the head, in one
 * grouped product. So whatever path turns out to be the text's, its nodes have their scores. */
static void look_at_candidates(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = exits_of(s);
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_rows; i++) {
        watched_row *r = &w->row[i];
        if (s->engine->predictors.source != DREY_EXIT_FROM_TARGET)
            take_guesses(s, r);
        if (r->features.n > 0)
            w->look[n++] =
                (pass_look){.row = i, .n_ids = r->features.n, .ids = r->ids, .logits = r->logits};
    }
    if (n > 0)
        pass_look_ids(pass, w->look, n);
    for (int32_t i = 0; i < n; i++) {
        watched_row *r = &w->row[w->look[i].row];
        exit_features_next(&r->features, r->logits);
        judge(s, r, layer, exit_score(&s->engine->predictors, layer, &r->features));
    }
}

/* ---- Leaving ---- */

static bool may_leave(const drey_session *s, const watched_row *r, int32_t token)
{
    bool known = takes_any(s->engine);
    for (int32_t i = 0; i < r->features.n && !known; i++)
        known = r->ids[i] == token;
    /* A given text continues after an end: its tokens leave as those of a written text would. */
    bool may_end = !s->text.options.ignore_eos || s->text.forced;
    bool ends = may_end && tokenizer_is_end(s->engine->config.target->tokenizer, token);
    /* If weights are damaged, the end of the pass reports it. */
    return known && !ends && isfinite(r->head[token]);
}

/* The walk continues with a node whose head was not computed: now it is, with those of all nodes
 * after it on the likeliest path and once more those before it. False: that path is not ready. */
static bool walk_on(drey_session *s, model_pass *pass, int32_t node)
{
    const accepted *a = &s->accepted;
    int32_t rows[TREE_MAX_ROWS], n = 0;
    if (takes_any(s->engine))
        return true;
    for (int32_t i = 0; i < a->n_path; i++)
        rows[n++] = s->row_of[i > 0 ? a->path[i - 1] : 0];
    n = ready_path(s, node, rows, n);
    if (n < 0 || !has_room(s, n))
        return false;
    compute_heads(s, pass, rows, n);
    return true;
}

/* Walks along the heads' choices, as acceptance does. The likeliest path has to be ready, and if
 * the walk leaves it, so has the rest of the path that it takes. False: a row of the walk may not
 * leave yet. */
static bool walk(drey_session *s, model_pass *pass)
{
    session_exits *w = exits_of(s);
    accepted *a = &s->accepted;
    a->n_path = 0;
    for (int32_t node = 0;;) {
        watched_row *r = &w->row[s->row_of[node]];
        if (!r->ready || (!r->head && !walk_on(s, pass, node)))
            return false;
        int32_t token = sampler_choose(&s->sampler, r->head, position_after(s, r));
        w->count.candidates++;
        if (!may_leave(s, r, token)) {
            w->count.refused++;
            r->ready = false;
            return false;
        }
        int32_t child = submitted_child(s, node, token);
        if (child < 0) {
            a->next = token;
            return has_room(s, a->n_path + 1);
        }
        a->path[a->n_path++] = child;
        node = child;
    }
}

static bool look(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = exits_of(s);
    int64_t start = clock_ns();
    double head_s = w->count.head_s;
    for (int32_t i = 0; i < w->n_rows; i++)
        w->row[i].head = NULL;
    if (takes_any(s->engine))
        look_at_heads(s, pass, layer);
    else
        look_at_candidates(s, pass, layer);
    bool leaves = walk(s, pass);
    w->count.look_s += (double)(clock_ns() - start) * 1e-9 - (w->count.head_s - head_s);
    return leaves;
}

static bool look_into(drey_session *s, model_pass *pass)
{
    session_exits *w = exits_of(s);
    if (w->n_rows == 0 || !pass_can_stop(pass) || !pass_can_look(pass))
        return false;
    int32_t layer = pass_layers_done(pass);
    bool own = !takes_any(s->engine) && s->engine->predictors.source == DREY_EXIT_FROM_TARGET;
    if (own && layer == s->engine->predictors.source_layer)
        take_own(s, pass);
    if (!is_active(s, layer))
        return false;
    if (look(s, pass, layer)) {
        w->base.stopped = layer;
        return true;
    }
    if (w->n_rows == 1)
        pass_read_on(pass, min_i32(next_active(s, layer + 1) + 1, n_layers(s)));
    return false;
}

static const float *logits_of(const drey_session *s, int32_t row)
{
    return exits_of(s)->row[row].head;
}

static const float *hidden_of(const drey_session *s, int32_t row)
{
    return exits_of(s)->row[row].hidden;
}

void exits_init(drey_session *s)
{
    static const pass_observer_class exits_class = {.text_begins = begin_text,
                                                    .pass_begins = begin_pass,
                                                    .look = look_into,
                                                    .finish = exits_finish,
                                                    .count = exits_count,
                                                    .logits = logits_of,
                                                    .hidden = hidden_of};
    if (s->engine->config.exit == DREY_EXIT_OFF)
        return;
    session_exits *w = arena_take(&s->memory.arena, EXIT_SESSION_BYTES);
    if (!w) /* the arena is checked later */
        return;
    w->base = (pass_observer){.class = &exits_class,
                              .holds_back = s->engine->config.exit == DREY_EXIT_EXACT};
    s->observer = &w->base;
}
