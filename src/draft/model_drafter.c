/* Expanding nodes with a small model: see model_drafter.h.
 *
 * The cache's committed part lacks the root and the tokens that were verified but never computed
 * here (the last accepted leaf). The first expansion after a verification computes them as a chain
 * whose end is the root; each later one computes nodes on top of their parents. To switch branches
 * is to choose another parent: nothing is copied or reloaded (EdgeLLM Fig. 8).
 *
 *        cache | committed | chain ... root | nodes in the order of their expansion |
 *
 * A root that was expanded before it became one is row 0 and its own chain. If a grammar says what
 * follows the root, its guesses are not needed, and the chain is computed with a node below it. */
#include "draft/model_drafter.h"
#include "base/usual.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/num.h"
#include "draft/drafter_kind.h"
#include "model/layout.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "sample/penalties.h"
#include "state/cache.h"
#include "weights/row_table.h"
#include "weights/weights.h"

static model_drafter *self_of(drafter *d)
{
    return (model_drafter *)d;
}

/* Padding of the target's vocabulary may have no row in the draft's: any token replaces it. */
static int32_t known(const model_drafter *d, int32_t id)
{
    return id < d->n_ids ? id : 0;
}

static void forget_rows(model_drafter *d)
{
    for (int32_t i = 0; i < TREE_MAX_NODES; i++)
        d->row_of[i] = -1;
}

/* Adds a token that can be guessed from then on. If its row cannot be read, the token is not
 * guessed and its row is requested again the next time. */
static void take_in(model_drafter *d, const int32_t *ids, int32_t n)
{
    row_table *table = d->run->layout->table;
    for (int32_t i = 0; i < n && table; i++)
        row_table_take(table, &ids[i], 1, NULL);
}

static drey_status model_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    (void)err;
    model_drafter *d = self_of(base);
    text_cache *cache = d->run->cache;
    int32_t same = 0;
    assert(d->n_nodes == 0 && !d->reading);
    if (cache_is_view(cache)) {
        cache_view_sync(cache, n - 1);
        memcpy(d->timeline, tokens, (size_t)n * sizeof *tokens);
    }
    while (same < cache_end(cache) && same < n - 1 && d->timeline[same] == known(d, tokens[same]))
        same++;
    same = cache_cut(cache, same);
    for (int32_t i = same; i < n; i++)
        d->timeline[i] = known(d, tokens[i]);
    d->n_timeline = n;
    forget_rows(d);
    take_in(d, d->timeline + same, n - same);
    return DREY_OK;
}

/* ---- A step ---- */

static void set_group(model_drafter *d, pass_row *rows, int32_t n, pass_head head)
{
    const row_table *table = d->run->layout->table;
    d->n_places = table ? row_table_places(table) : 0;
    d->group = (pass_group){.cache = d->run->cache, .rows = rows, .n = n, .head = head};
}

static drey_status open_pass(model_drafter *d, drey_error *err)
{
    TRY(pass_begin(&d->pass, d->run, &d->group, 1, err));
    d->in_pass = true;
    return DREY_OK;
}

/* The next n tokens that the timeline has beyond the cache. */
static void offer_chain(model_drafter *d, pass_row *rows, int32_t n, pass_head head)
{
    text_cache *cache = d->run->cache;
    cache_drop(cache);
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = d->timeline[cache_end(cache) + i], .parent = i - 1};
    set_group(d, rows, n, head);
    d->group.whole = head == HEAD_NONE;
}

static drey_status open_chain(model_drafter *d, int32_t n, pass_head head, drey_error *err)
{
    offer_chain(d, d->run->ws->rows, n, head);
    return open_pass(d, err);
}

/* Returns how many rows come before the node's, because a grammar forced its ancestors: theirs, and
 * if the root is one of them, those of the tokens before it. DRAFT_MAX_BATCH: too many, or another
 * one lacks its row, because it was copied from the text. */
static int32_t n_missing(const model_drafter *d, const token_tree *tree, int32_t node)
{
    int32_t n = 0;
    for (int32_t at = tree->nodes[node].parent; d->row_of[at] < 0; at = tree->nodes[at].parent) {
        bool forced = tree->nodes[at ? tree->nodes[at].parent : 0].forced;
        n += at ? 1 : d->n_timeline - cache_end(d->run->cache);
        if (!forced || n >= DRAFT_MAX_BATCH)
            return DRAFT_MAX_BATCH;
        if (at == 0)
            break;
    }
    return n;
}

static bool is_computed(const model_drafter *d, int32_t node, int32_t *row)
{
    for (int32_t i = 0; i < d->n_computed; i++)
        if (d->computed[i] == node) {
            *row = cache_pending(d->run->cache) + d->n_chain + i;
            return true;
        }
    return false;
}

/* The tokens before a root that lacks its row. */
static void offer_before_root(model_drafter *d, pass_row *rows)
{
    text_cache *cache = d->run->cache;
    cache_drop(cache);
    d->n_chain = d->n_timeline - cache_end(cache) - 1;
    for (int32_t i = 0; i < d->n_chain; i++)
        rows[i] = (pass_row){.token = d->timeline[cache_end(cache) + i], .parent = i - 1};
}

/* The node after its ancestors that lack rows. */
static void offer_node(model_drafter *d, pass_row *rows, const token_tree *tree, int32_t node)
{
    int32_t path[DRAFT_MAX_BATCH], n = 0, row;
    for (int32_t at = node; at >= 0 && d->row_of[at] < 0 && !is_computed(d, at, &row);
         at = tree->nodes[at].parent)
        path[n++] = at;
    if (path[n - 1] == 0)
        offer_before_root(d, rows);
    while (n > 0) {
        int32_t at = path[--n], parent = tree->nodes[at].parent;
        if (parent < 0)
            row = d->n_chain - 1;
        else if (!is_computed(d, parent, &row))
            row = d->row_of[parent];
        rows[d->n_chain + d->n_computed] =
            (pass_row){.token = known(d, tree->nodes[at].token), .parent = row};
        d->computed[d->n_computed++] = at;
    }
}

/* Nodes whose parents have rows, or get them in the same pass. False: there are none, or the cache
 * has no room. */
static bool offer_below(model_drafter *d, pass_row *rows, const token_tree *tree)
{
    d->n_computed = 0;
    for (int32_t i = 0; i < d->n_nodes; i++)
        if (n_missing(d, tree, d->nodes[i]) + 1 + d->n_chain + d->n_computed <= DRAFT_MAX_BATCH)
            offer_node(d, rows, tree, d->nodes[i]);
    if (d->n_computed == 0 || !cache_has_room(d->run->cache, d->n_chain + d->n_computed))
        return false;
    set_group(d, rows, d->n_chain + d->n_computed, HEAD_ALL);
    return true;
}

/* Reads the tokens that the timeline has beyond the cache; its end is the root. If that is long,
 * because nothing was read or drafted for a while, it is computed in chunks. */
static drey_status open_root(model_drafter *d, drey_error *err)
{
    int32_t n = d->n_timeline - cache_end(d->run->cache);
    d->catching_up = n > CATCH_UP;
    if (d->catching_up)
        return open_chain(d, min_i32(n - 1, d->chunk), HEAD_NONE, err);
    return open_chain(d, n, HEAD_LAST, err);
}

static drey_status open_below(model_drafter *d, const token_tree *tree, drey_error *err)
{
    return offer_below(d, d->run->ws->rows, tree) ? open_pass(d, err) : DREY_OK;
}

static void take_nodes(model_drafter *d, const int32_t *nodes, int32_t n)
{
    assert(d->n_nodes == 0 && !d->reading && n >= 1 && n <= DRAFT_MAX_BATCH);
    for (int32_t i = 0; i < n; i++)
        d->nodes[i] = nodes[i];
    d->n_nodes = n;
    d->base.n_caught_up = nodes[0] == 0 ? d->n_timeline - cache_end(d->run->cache) - 1 : 0;
    d->computed[0] = 0; /* if the step is the root's */
    d->n_computed = 1;
    d->n_chain = 0;
    d->in_pass = d->catching_up = false;
}

static drey_status model_start(drafter *base, const token_tree *tree, const int32_t *nodes,
                               int32_t n, drey_error *err)
{
    model_drafter *d = self_of(base);
    take_nodes(d, nodes, n);
    /* The root is alone in its step: all others are below it. */
    drey_status status = nodes[0] == 0 ? open_root(d, err) : open_below(d, tree, err);
    if (status != DREY_OK)
        d->n_nodes = 0;
    return status;
}

/* Continues the pass; until_ns: as for advance. */
static drey_status compute(model_drafter *d, int64_t until_ns, bool *done, drey_error *err)
{
    *done = false;
    for (pass_state state = PASS_CONTINUES; state != PASS_DONE;) {
        if (until_ns && clock_ns() >= until_ns)
            return DREY_OK;
        TRY(pass_step(&d->pass, until_ns, &state, err));
        if (state != PASS_STARVED) /* only while the draft itself is loaded */
            continue;
        if (until_ns)
            return DREY_OK;
        pass_wait(&d->pass);
    }
    TRY(pass_end(&d->pass, err));
    d->in_pass = false;
    *done = true;
    return DREY_OK;
}

/* Returns the ids of a pass's logits: those of ids that the target has as well. */
static logit_ids ids_of_logits(const model_drafter *d)
{
    const model_layout *l = d->run->layout;
    if (!l->table)
        return (logit_ids){.n_first = d->n_ids};
    int32_t n_first = min_i32(d->n_ids, (int32_t)l->head->form.n_rows);
    return (logit_ids){.n_first = n_first,
                       .n_more = min_i32(d->n_places, d->n_ids - n_first),
                       .more = l->table->id};
}

static drey_status model_read(drafter *base, int64_t until_ns, draft_reading *state,
                              drey_error *err)
{
    model_drafter *d = self_of(base);
    assert(d->n_nodes == 0);
    bool done = false;
    int32_t left = d->n_timeline - 1 - cache_end(d->run->cache);
    if (!d->reading)
        TRY(open_chain(d, min_i32(left, d->chunk), HEAD_NONE, err));
    d->reading = true;
    drey_status status = compute(d, until_ns, &done, err);
    if (status == DREY_OK && done)
        cache_commit(d->run->cache, NULL, d->group.n);
    if (status != DREY_OK || done)
        d->reading = false;
    *state = done                   ? DRAFT_CHUNK_READ
             : pass_ready(&d->pass) ? DRAFT_CHUNK_LEFT
                                    : DRAFT_CHUNK_STARVED;
    return status;
}

/* Tokens that an expansion of the root computes in one pass need not be read before; but reading
 * also loads the weights. */
static bool model_unread(const drafter *base)
{
    const model_drafter *d = (const model_drafter *)base;
    int32_t n = d->n_timeline - cache_end(d->run->cache);
    return d->reading || n > (weights_loaded(d->run->weights) ? CATCH_UP : 1);
}

/* Gives a node the best tokens of its logits. */
static void guess(model_drafter *d, token_tree *tree, int32_t i, float *logits)
{
    tree_node *node = &tree->nodes[i];
    logit_ids ids = ids_of_logits(d);
    for (int32_t place = 0; place < ids.n_more; place++)
        if (ids.more[place] < 0 || ids.more[place] >= d->n_ids)
            logits[ids.n_first + place] = -INFINITY;
    int32_t path[TREE_MAX_NODES];
    const sampler_context place = tree_sampled(tree, i, d->n_timeline - 1, path);
    node->n_guesses =
        (uint8_t)sampler_guess_at(d->sampler, logits, &place, &ids, node->guess, TREE_MAX_GUESSES);
}

/* The nodes have rows, the last ones of the pass. */
static void finish(model_drafter *d, token_tree *tree, bool computed)
{
    int32_t first = d->group.first_pending + d->group.n - d->n_computed;
    for (int32_t i = 0; i < d->n_nodes; i++)
        tree->nodes[d->nodes[i]].expanded = true;
    for (int32_t i = 0; i < d->n_computed && computed; i++) {
        d->row_of[d->computed[i]] = first + i;
        if (!tree->nodes[d->computed[i]].forced)
            guess(d, tree, d->computed[i],
                  d->group.logits + (d->n_chain + i) * pass_logits_stride(d->run));
    }
    d->n_nodes = 0;
}

static drey_status continue_step(model_drafter *d, token_tree *tree, int64_t until_ns, bool *done,
                                 drey_error *err)
{
    bool computed = d->in_pass;
    *done = true;
    if (computed)
        TRY(compute(d, until_ns, done, err));
    while (*done && d->catching_up) {
        cache_commit(d->run->cache, NULL, d->group.n);
        TRY(open_root(d, err));
        TRY(compute(d, until_ns, done, err));
    }
    if (*done)
        finish(d, tree, computed);
    return DREY_OK;
}

static drey_status model_advance(drafter *base, token_tree *tree, int64_t until_ns, bool *done,
                                 drey_error *err)
{
    model_drafter *d = self_of(base);
    assert(d->n_nodes > 0);
    drey_status status = continue_step(d, tree, until_ns, done, err);
    if (status != DREY_OK)
        d->n_nodes = 0;
    return status;
}

static void model_give_up(drafter *base)
{
    model_drafter *d = self_of(base);
    if ((d->n_nodes > 0 || d->reading) && d->in_pass)
        pass_leave(&d->pass);
    d->n_nodes = 0;
    d->reading = false;
}

/* Returns whether it can guess: tokens that were copied from the text have no row. */
static bool model_can_guess(const drafter *base, const token_tree *tree, int32_t node)
{
    const model_drafter *d = (const model_drafter *)base;
    return node == 0 || n_missing(d, tree, node) < DRAFT_MAX_BATCH;
}

static drey_status model_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    TRY(model_start(base, tree, nodes, n, err));
    for (bool done = false; !done;)
        TRY(model_advance(base, tree, 0, &done, err));
    return DREY_OK;
}

/* ---- Steps of several ---- */

/* The drafters whose steps run in one pass. */
typedef struct joint_pass {
    model_drafter *of[DRAFT_MAX_BATCH];
    pass_group group[DRAFT_MAX_BATCH];
    int32_t n, n_rows, n_logits;
} joint_pass;

/* Returns whether its rows fit next to the others'. If not, it is left for its own pass, as is a
 * step that has many tokens to compute first. */
static bool joins(joint_pass *j, const draft_step *s)
{
    model_drafter *d = self_of(s->drafter);
    workspace *ws = d->run->ws;
    int32_t chain = d->n_timeline - cache_end(d->run->cache);
    int32_t most = s->tree->grammar ? DRAFT_MAX_BATCH : s->n; /* and what was forced before it */
    int32_t n = s->nodes[0] == 0 ? chain : most;
    if (n > CATCH_UP || j->n_rows + n > ws->limits.max_rows)
        return false;
    take_nodes(d, s->nodes, s->n);
    pass_row *rows = ws->rows + j->n_rows;
    if (s->nodes[0] == 0)
        offer_chain(d, rows, n, HEAD_LAST);
    else if (!offer_below(d, rows, s->tree))
        return true; /* it is over at once */
    if (j->n_logits + d->n_chain + d->n_computed > DRAFT_MAX_BATCH) {
        d->n_nodes = 0;
        return false;
    }
    j->n_logits += d->n_chain + d->n_computed;
    d->in_pass = true;
    j->group[j->n] = d->group;
    j->of[j->n++] = d;
    j->n_rows += d->group.n;
    return true;
}

static void give_back_nodes(const draft_step *steps, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        self_of(steps[i].drafter)->n_nodes = 0;
}

static drey_status model_expand_all(const draft_step *steps, int32_t n, drey_error *err)
{
    static const _Atomic bool never = false;
    joint_pass j = {.n = 0};
    bool joined[DRAFT_MAX_BATCH];
    assert(n <= DRAFT_MAX_BATCH);
    for (int32_t i = 0; i < n; i++)
        joined[i] = joins(&j, &steps[i]);
    runner run = *self_of(steps[0].drafter)->run;
    run.cancel = &never; /* one session's error does not concern the others */
    drey_status status = j.n > 0 ? pass_run(&run, j.group, j.n, err) : DREY_OK;
    if (status != DREY_OK) {
        give_back_nodes(steps, n);
        return status;
    }
    for (int32_t i = 0; i < j.n; i++)
        j.of[i]->group = j.group[i];
    for (int32_t i = 0; i < n; i++) {
        model_drafter *d = self_of(steps[i].drafter);
        if (joined[i]) {
            finish(d, steps[i].tree, d->in_pass);
            d->in_pass = false;
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (!joined[i])
            TRY(model_expand(steps[i].drafter, steps[i].tree, steps[i].nodes, steps[i].n, err));
    return DREY_OK;
}

/* ---- Continuing ---- */

/* Lists the nodes that stay and have pending rows, in the order of the rows, which is not the
 * nodes'. */
static int32_t rows_that_stay(const model_drafter *d, const token_tree *tree, const int32_t *moved,
                              int32_t *rows, int32_t *nodes)
{
    int32_t node_of[TREE_MAX_NODES + CATCH_UP], n = 0, n_pending = cache_pending(d->run->cache);
    for (int32_t row = 0; row < n_pending; row++)
        node_of[row] = -1;
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (moved[i] >= 0 && d->row_of[i] >= 0)
            node_of[d->row_of[i]] = i;
    for (int32_t row = 0; row < n_pending; row++)
        if (node_of[row] >= 0) {
            rows[n] = row;
            nodes[n++] = node_of[row];
        }
    return n;
}

static bool can_guess(const model_drafter *d, int32_t id)
{
    const model_layout *l = d->run->layout;
    return !l->table || id < l->head->form.n_rows || row_table_find(l->table, id) >= 0;
}

/* Takes the target's likely tokens of one position, which are likely at others as well: in a
 * language whose tokens are not among the frequent ones, most of the coming tokens are known before
 * they come. */
static void model_take_target_top(drafter *base, const token_tree *tree, int32_t node,
                                  const int32_t *tokens, int32_t n)
{
    enum { LIKELY_PER_ROW = 4 };
    (void)tree;
    (void)node;
    model_drafter *d = self_of(base);
    for (int32_t i = 0; i < min_i32(n, LIKELY_PER_ROW) && d->n_likely < MOST_LIKELY; i++)
        if (tokens[i] < d->n_ids && !can_guess(d, tokens[i]))
            d->likely[d->n_likely++] = tokens[i];
}

/* Commits what was computed for the path. In a view, the owner has computed and committed it. */
static void keep_rows(model_drafter *d, const int32_t *path, int32_t n_path, const int32_t *rows,
                      int32_t n_rows)
{
    int32_t done[TREE_MAX_NODES + CATCH_UP], n = 0;
    if (cache_is_view(d->run->cache)) {
        cache_view_keep(d->run->cache, d->n_timeline + n_path, rows, n_rows);
        return;
    }
    /* The chain up to the root, then the accepted nodes that were computed here. */
    for (; n <= d->row_of[0]; n++)
        done[n] = n;
    for (int32_t i = 0; i < n_path && d->row_of[path[i]] >= 0; i++)
        done[n++] = d->row_of[path[i]];
    cache_reroot(d->run->cache, done, n, rows, n_rows);
}

static void model_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next, const int32_t *moved)
{
    model_drafter *d = self_of(base);
    int32_t rows[TREE_MAX_NODES] = {0}, nodes[TREE_MAX_NODES];
    assert(d->n_nodes == 0 && !d->reading);
    int32_t n_rows = rows_that_stay(d, tree, moved, rows, nodes);
    keep_rows(d, path, n_path, rows, n_rows);
    forget_rows(d);
    for (int32_t i = 0; i < n_rows; i++)
        d->row_of[moved[nodes[i]]] = i;
    int32_t from = d->n_timeline;
    for (int32_t i = 0; i < n_path; i++)
        d->timeline[d->n_timeline++] = known(d, tree->nodes[path[i]].token);
    d->timeline[d->n_timeline++] = known(d, next);
    base->n_unguessable += !can_guess(d, next);
    take_in(d, d->likely, d->n_likely);
    d->n_likely = 0;
    take_in(d, d->timeline + from, d->n_timeline - from);
}

static bool model_is_valid(const drafter *base, const int32_t *tokens, int32_t n)
{
    const model_drafter *d = (const model_drafter *)base;
    if (d->n_timeline != n || !cache_is_valid(d->run->cache) || cache_end(d->run->cache) > n)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (d->timeline[i] != known(d, tokens[i]))
            return false;
    return true;
}

static const drafter_steps steps = {model_start, model_advance, model_give_up};
static const drafter_reader reader = {model_unread, model_read};
static const drafter_listener listener = {.take_target_top = model_take_target_top};

const drafter_class drafter_model_class = {.begin = model_begin,
                                           .skips_forced_root = true,
                                           .steps = &steps,
                                           .reader = &reader,
                                           .listener = &listener,
                                           .can_guess = model_can_guess,
                                           .expand = model_expand,
                                           .expand_all = model_expand_all,
                                           .reroot = model_reroot,
                                           .is_valid = model_is_valid};

/* ---- What others ask ---- */

/* The drafter, and its timeline. */
static size_t session_bytes(const draft_source *src)
{
    return arena_size(sizeof(model_drafter)) + (size_t)src->in.capacity * sizeof(int32_t);
}

static drafter *make(draft_source *src, const drafter_context *context, void *memory)
{
    model_drafter *d = memory;
    int32_t *timeline = (int32_t *)(void *)((uint8_t *)memory + arena_size(sizeof *d));
    *d = (model_drafter){.base = {.class = &drafter_model_class,
                                  .wants_target_top = context->run->layout->table != NULL},
                         .run = context->run,
                         .sampler = context->sampler,
                         .timeline = timeline,
                         .n_ids = src->in.n_ids,
                         .chunk = context->chunk};
    forget_rows(d);
    return &d->base;
}

/* A target drafts for itself with those planes of a sidecar that stay in memory. */
static drey_status check_planes(draft_source *src, drey_error *err)
{
    for (int32_t i = 0; i < src->in.layout->n_matrices; i++)
        if (src->in.layout->matrix[i].form.planes)
            return DREY_OK;
    FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_PLANES,
              "%s can draft for itself only with a sidecar that holds its weights in planes, and "
              "there is none%s%s; have it prepared",
              SHOWN_PATH(gguf_shard_path(src->in.target, 0)),
              src->in.sidecar_refused[0] ? ": " : "", src->in.sidecar_refused);
}

/* Over code and chat. A larger draft is assumed to guess no better: its higher cost is known, how
 * much better it guesses is not. The target's own high bits guess like a model of a tenth of its
 * size. */
static const tree_yield usual[DRAFT_YIELDS] = USUAL_MODEL_YIELDS;

const drafter_kind drafter_model = {.name = "model",
                                    .with = "the model next to it",
                                    .side = DRAFT_SIDE_MODEL,
                                    .usual = usual,
                                    .session_bytes = session_bytes,
                                    .make = make};

const drafter_kind drafter_self = {.name = "self",
                                   .with = "its planes",
                                   .side = DRAFT_SIDE_VIEW,
                                   .exit_conflict = "it would draft with what exits leave undone",
                                   .usual = usual,
                                   .open = check_planes,
                                   .session_bytes = session_bytes,
                                   .make = make};
