/* Expanding nodes with a layer after the target: see eagle_drafter.h.
 *
 * Tokens that the target has accepted wait with its states until the root is expanded, whose pass
 * computes them all. They are committed then, but for the root: its row is the first pending one,
 * and the parent of the tree's.
 *
 *        cache | committed: tokens that were accepted | root | nodes in the order of expansion |
 *               first                                  ^ waits to be computed, with its states
 *
 * What was guessed is computed again once it has been accepted, from the target's states. So
 * nothing stays of a tree whose root is left, and a step takes no part of a pass's waits.
 *
 * A pass that stops early has no states after later layers: there the one of the layer where it
 * stopped serves for them, as it does for the target's own head. The row is not computed again when
 * the pass is completed later: its guesses are a little worse, and the text is the same.
 *
 * Positions whose states never came (they were restored, not computed) are not in the cache: it
 * begins after them. Where a text was cut, a single one is missing, and the next one's states serve
 * for it: guesses lose little. */
#include "draft/eagle_drafter.h"
#include "base/usual.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "draft/drafter_kind.h"
#include "model/arch.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/workspace.h"
#include "os/file.h"
#include "sample/penalties.h"
#include "state/cache.h"
#include "weights/identity.h"

static eagle_drafter *self_of(drafter *d)
{
    return (eagle_drafter *)d;
}

static const model_shape *shape_of(const eagle_drafter *d)
{
    return &d->run->layout->shape;
}

static int64_t tapped_ld(const model_shape *s)
{
    return row_stride(tapped_numbers(s));
}

/* The position of the first token that has no states yet. */
static int32_t end_of(const eagle_drafter *d)
{
    return d->first + cache_end(d->run->cache) + d->n_tapped;
}

/* Drops the tree's rows; the root waits as before. */
static void forget_tree(eagle_drafter *d)
{
    cache_drop(d->run->cache);
    for (int32_t i = 0; i < TREE_MAX_NODES; i++)
        d->row_of[i] = -1;
}

/* Keeps what comes before this position. */
static void cut(eagle_drafter *d, int32_t position)
{
    text_cache *cache = d->run->cache;
    int32_t n = max_i32(position - d->first, 0);
    forget_tree(d);
    d->n_tapped = max_i32(min_i32(d->n_tapped, n - cache_end(cache)), 0);
    n = min_i32(n, cache_end(cache));
    int32_t stay = cache_cut(cache, n);
    assert(stay == n); /* its layer has attention alone, and the target's states are gone */
    (void)stay;
}

static void start_at(eagle_drafter *d, int32_t position)
{
    cut(d, 0);
    d->first = position;
}

/* ---- Rows of accepted tokens ---- */

/* A pass over the first n that wait. */
static drey_status run_chain(eagle_drafter *d, int32_t n, pass_group *group, drey_error *err)
{
    text_cache *cache = d->run->cache;
    pass_row *rows = d->run->ws->rows;
    forget_tree(d);
    for (int32_t i = 0; i < n; i++)
        rows[i] =
            (pass_row){.token = d->timeline[d->first + cache_end(cache) + i], .parent = i - 1};
    group->cache = cache;
    group->rows = rows;
    group->n = n;
    group->tapped = d->tapped;
    return pass_run(d->run, group, 1, err);
}

/* The first n rows have been committed. */
static void drop_tapped(eagle_drafter *d, int32_t n)
{
    int64_t ld = tapped_ld(shape_of(d));
    d->n_tapped -= n;
    memmove(d->tapped, d->tapped + n * ld, (size_t)(d->n_tapped * ld) * sizeof *d->tapped);
}

static drey_status compute_until(eagle_drafter *d, int32_t n_left, drey_error *err)
{
    while (d->n_tapped > n_left) {
        pass_group group = {.head = HEAD_NONE};
        int32_t n = min_i32(d->n_tapped, d->chunk);
        TRY(run_chain(d, n, &group, err));
        cache_commit(d->run->cache, NULL, n);
        drop_tapped(d, n);
    }
    return DREY_OK;
}

static void put_tapped(eagle_drafter *d, const float *const *taps)
{
    const model_shape *s = shape_of(d);
    float *out = d->tapped + d->n_tapped++ * tapped_ld(s);
    for (int32_t i = 0; i < s->taps.n; i++)
        memcpy(out + (int64_t)i * s->taps.width, taps[i], (size_t)s->taps.width * sizeof *out);
}

static void eagle_take_taps(drafter *base, int32_t position, int32_t next, const float *const *taps)
{
    eagle_drafter *d = self_of(base);
    if (d->row_of[0] >= 0) { /* the root is accepted, and computed */
        cache_commit(d->run->cache, (int32_t[]){0}, 1);
        d->n_tapped = 0;
    }
    cut(d, position + 1);
    int32_t n_missing = position + 1 - end_of(d);
    if (n_missing < 0 || n_missing > 1 || end_of(d) == d->first)
        start_at(d, position + 1);
    d->timeline[position + 1] = next;
    /* An error that stays is met, and returned, by the next step. */
    if (d->n_tapped > EAGLE_ROWS - 2 && compute_until(d, 0, NULL) != DREY_OK)
        start_at(d, position + 1);
    for (int32_t n = position + 1 - end_of(d); n >= 0; n--)
        put_tapped(d, taps);
}

static drey_status eagle_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    (void)err;
    eagle_drafter *d = self_of(base);
    int32_t same = 0, most = min_i32(n, max_i32(d->n_timeline, end_of(d)));
    while (same < most && d->timeline[same] == tokens[same])
        same++;
    cut(d, same);
    memcpy(d->timeline, tokens, (size_t)n * sizeof *tokens);
    d->n_timeline = n;
    return DREY_OK;
}

static void eagle_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next, const int32_t *moved)
{
    eagle_drafter *d = self_of(base);
    (void)moved;
    forget_tree(d);
    for (int32_t i = 0; i < n_path; i++)
        d->timeline[d->n_timeline++] = tree->nodes[path[i]].token;
    d->timeline[d->n_timeline++] = next;
}

/* ---- A step ---- */

static bool knows_root(const eagle_drafter *d)
{
    return d->n_tapped > 0 && end_of(d) == d->n_timeline;
}

static bool eagle_can_guess(const drafter *base, const token_tree *tree, int32_t node)
{
    const eagle_drafter *d = (const eagle_drafter *)base;
    return node == 0 ? knows_root(d) : d->row_of[tree->nodes[node].parent] >= 0;
}

static pass_tap last_layer(const eagle_drafter *d, int32_t n, const int32_t *rows)
{
    return (pass_tap){.layer = shape_of(d)->n_layers, .n = n, .rows = rows};
}

/* The node's row is the pending one, with this state and these logits. */
static void give(eagle_drafter *d, token_tree *tree, int32_t i, int32_t row, const float *state,
                 const float *logits)
{
    tree_node *node = &tree->nodes[i];
    const model_shape *s = shape_of(d);
    const logit_ids ids = {
        .n_first = d->ids ? 0 : d->n_ids, .n_more = d->ids ? d->n_ids : 0, .more = d->ids};
    memcpy(d->states + row * row_stride(s->n_embd), state, (size_t)s->n_embd * sizeof *state);
    int32_t path[TREE_MAX_NODES];
    const sampler_context place = tree_sampled(tree, i, d->n_timeline - 1, path);
    node->n_guesses =
        (uint8_t)sampler_guess_at(d->sampler, logits, &place, &ids, node->guess, TREE_MAX_GUESSES);
}

static drey_status expand_root(eagle_drafter *d, token_tree *tree, drey_error *err)
{
    int32_t path[EAGLE_ROWS];
    d->base.n_caught_up = d->n_tapped - 1;
    TRY(compute_until(d, d->chunk, err));
    int32_t n = d->n_tapped, root = n - 1;
    pass_tap tap = last_layer(d, 1, &root);
    pass_group group = {.head = HEAD_LAST, .taps = &tap, .n_taps = 1};
    TRY(run_chain(d, n, &group, err));
    for (int32_t i = 0; i < root; i++)
        path[i] = i;
    if (root > 0) {
        cache_reroot(d->run->cache, path, root, &root, 1);
        drop_tapped(d, root);
    }
    d->row_of[0] = 0;
    give(d, tree, 0, 0, tap.out, group.logits);
    return DREY_OK;
}

static drey_status expand_below(eagle_drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    text_cache *cache = d->run->cache;
    pass_row *rows = d->run->ws->rows;
    int64_t ld = pass_hidden_stride(d->run);
    int32_t of[DRAFT_MAX_BATCH], n_rows = 0;
    for (int32_t i = 0; i < n; i++) {
        const tree_node *node = &tree->nodes[nodes[i]];
        int32_t parent = d->row_of[node->parent];
        if (parent < 0)
            continue;
        memcpy(d->asked + n_rows * ld, d->states + parent * ld, (size_t)ld * sizeof *d->asked);
        rows[n_rows] = (pass_row){.token = node->token, .parent = parent};
        of[n_rows++] = nodes[i];
    }
    if (n_rows == 0 || !cache_has_room(cache, n_rows))
        return DREY_OK;
    pass_tap tap = last_layer(d, n_rows, NULL);
    pass_group group = {.cache = cache,
                        .rows = rows,
                        .n = n_rows,
                        .head = HEAD_ALL,
                        .taps = &tap,
                        .n_taps = 1,
                        .states = d->asked};
    TRY(pass_run(d->run, &group, 1, err));
    for (int32_t i = 0; i < n_rows; i++) {
        d->row_of[of[i]] = group.first_pending + i;
        give(d, tree, of[i], group.first_pending + i, tap.out + i * ld,
             group.logits + i * pass_logits_stride(d->run));
    }
    return DREY_OK;
}

static drey_status eagle_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    eagle_drafter *d = self_of(base);
    d->base.n_caught_up = 0;
    if (nodes[0] != 0)
        TRY(expand_below(d, tree, nodes, n, err));
    else if (knows_root(d)) /* it is alone in its step: all others are below it */
        TRY(expand_root(d, tree, err));
    for (int32_t i = 0; i < n; i++)
        tree->nodes[nodes[i]].expanded = true;
    return DREY_OK;
}

static bool eagle_is_valid(const drafter *base, const int32_t *tokens, int32_t n)
{
    const eagle_drafter *d = (const eagle_drafter *)base;
    return d->n_timeline == n && memcmp(d->timeline, tokens, (size_t)n * sizeof *tokens) == 0 &&
           cache_is_valid(d->run->cache) && end_of(d) <= n;
}

static const drafter_class eagle_class = {
    .begin = eagle_begin,
    .can_guess = eagle_can_guess,
    .expand = eagle_expand,
    .listener = &(const drafter_listener){.take_taps = eagle_take_taps},
    .reroot = eagle_reroot,
    .is_valid = eagle_is_valid};

/* ---- What others ask ---- */

static drey_status check_fit(const draft_source *src, drey_error *err)
{
    const model_shape *s = src->in.side_shape, *target = &src->in.layout->shape;
    const tap_shape *taps = &s->taps;
    int32_t last = taps->layer[taps->n - 1];
    if (target->streams.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "an EAGLE layer reads one residual stream, and this model has %d; take another draft",
             target->streams.n);
    if (taps->width != target->n_embd)
        FAIL(
            err, DREY_ERR_MISMATCH,
            "this EAGLE layer is for a model of width %d, and this one has %d; take the layer that "
            "was trained for it",
            taps->width, target->n_embd);
    if (last > target->n_layers)
        FAIL(
            err, DREY_ERR_MISMATCH,
            "this EAGLE layer looks at what comes after %d layers, and this model has %d; take the "
            "layer that was trained for it",
            last, target->n_layers);
    if (!gguf_find_tensor(src->in.side, "token_embd.weight") && s->n_embd != target->n_embd)
        FAIL(
            err, DREY_ERR_MISMATCH,
            "this EAGLE layer has width %d and no embedding, and the model's has width %d; convert "
            "it together with its embedding",
            s->n_embd, target->n_embd);
    return DREY_OK;
}

/* Files that drey trained say for which model. */
static drey_status check_target(const draft_source *src, drey_error *err)
{
    const gguf_key *of = gguf_find_key(src->in.side, EAGLE_TARGET_KEY);
    uint64_t wanted, identity;
    if (!of || of->kind != GGUF_U64)
        return DREY_OK;
    memcpy(&wanted, of->value, sizeof wanted);
    TRY(model_identity(src->in.target, &identity, err));
    if (identity != wanted)
        FAIL(err, DREY_ERR_MISMATCH,
             "this EAGLE layer was trained for another model, or the model has changed since; "
             "train another one, or continue without it");
    return DREY_OK;
}

static drey_status eagle_open(draft_source *src, drey_error *err)
{
    const char *path = gguf_shard_path(src->in.side, 0);
    if (!shape_is_eagle(src->in.side_shape))
        FAIL(err, DREY_ERR_USAGE,
             "%s is a model of its own and no EAGLE layer: use it with the drafter \"model\"",
             SHOWN_PATH(path));
    TRY(error_in_file(err, path, check_fit(src, err)));
    TRY(error_in_file(err, path, check_target(src, err)));
    static const float right[TREE_MAX_GUESSES] = USUAL_EAGLE_SHARES;
    src->out.taps = &src->in.side_shape->taps;
    src->out.has_right = true;
    memcpy(src->out.right, right, sizeof right);
    src->out.resident_bytes = arena_size((size_t)src->out.taps->n_ids * sizeof(int32_t));
    return DREY_OK;
}

static drey_status read_d2t(const draft_source *src, const gguf_tensor *t, int64_t *out,
                            drey_error *err)
{
    const char *path = gguf_shard_path(src->in.side, t->part);
    file f;
    TRY(file_open(&f, path, false, err));
    drey_status status = file_check(&f, path, gguf_part_stamp(src->in.side, t->part), err);
    if (status == DREY_OK)
        status = file_read(&f, path, t->offset, t->n_bytes, out, NULL, 0, err);
    file_close(&f);
    return status;
}

/* Each token once, and none that the target lacks. seen: [src->in.n_ids], zeroed. */
static drey_status take_ids(const draft_source *src, const int64_t *d2t, int32_t *ids, bool *seen,
                            drey_error *err)
{
    for (int32_t i = 0; i < src->out.taps->n_ids; i++) {
        if (d2t[i] < 0 || d2t[i] >= src->in.n_ids)
            FAIL(err, DREY_ERR_MISMATCH,
                 "this EAGLE layer guesses token %lld, and the model has %d; take the layer that "
                 "was trained for it",
                 (long long)d2t[i], src->in.n_ids);
        if (seen[d2t[i]])
            FAIL(err, DREY_ERR_FORMAT,
                 "d2t holds token %lld twice: it may hold differences, as early converters wrote; "
                 "convert the file again",
                 (long long)d2t[i]);
        seen[d2t[i]] = true;
        ids[i] = (int32_t)d2t[i];
    }
    return DREY_OK;
}

static drey_status eagle_load(draft_source *src, drey_error *err)
{
    const gguf_tensor *t = gguf_find_tensor(src->in.side, "d2t");
    if (!t)
        return DREY_OK;
    const char *path = gguf_shard_path(src->in.side, t->part);
    int32_t *ids = arena_take(&src->memory, (size_t)src->out.taps->n_ids * sizeof *ids);
    TRY(arena_check(&src->memory, err));
    int64_t *d2t = malloc(t->n_bytes);
    bool *seen = calloc((size_t)src->in.n_ids, sizeof *seen);
    drey_status status = DREY_OK;
    if (!d2t || !seen)
        status = error_set(err, DREY_ERR_MEMORY, "no memory to load %s", SHOWN_PATH(path));
    if (status == DREY_OK)
        status = read_d2t(src, t, d2t, err);
    if (status == DREY_OK)
        status = error_in_file(err, path, take_ids(src, d2t, ids, seen, err));
    free(d2t);
    free(seen);
    src->out.own = status == DREY_OK ? ids : NULL;
    return status;
}

static size_t floats(int32_t rows, int64_t ld)
{
    return arena_size((size_t)(rows * ld) * sizeof(float));
}

size_t eagle_session_bytes(const draft_source *src)
{
    const model_shape *s = src->in.side_shape;
    return arena_size(sizeof(eagle_drafter)) +
           arena_size((size_t)src->in.capacity * sizeof(int32_t)) +
           floats(EAGLE_ROWS, tapped_ld(s)) +
           floats(TREE_MAX_NODES + DRAFT_MAX_BATCH, row_stride(s->n_embd));
}

drafter *eagle_make(draft_source *src, const drafter_context *context, void *memory)
{
    const model_shape *s = src->in.side_shape;
    eagle_drafter *d = memory;
    uint8_t *at = (uint8_t *)memory + arena_size(sizeof *d);
    *d = (eagle_drafter){.base = {.class = &eagle_class},
                         .run = context->run,
                         .sampler = context->sampler,
                         .ids = src->out.own,
                         .n_ids =
                             min_i32(s->taps.n_ids, src->out.own ? s->taps.n_ids : src->in.n_ids),
                         .chunk = min_i32(context->chunk, EAGLE_ROWS)};
    d->timeline = (int32_t *)(void *)at;
    at += arena_size((size_t)src->in.capacity * sizeof(int32_t));
    d->tapped = (float *)(void *)at;
    d->states = (float *)(void *)(at + floats(EAGLE_ROWS, tapped_ld(s)));
    d->asked = d->states + TREE_MAX_NODES * row_stride(s->n_embd);
    forget_tree(d);
    return &d->base;
}

static const tree_yield usual[DRAFT_YIELDS] = USUAL_EAGLE_YIELDS;

const drafter_kind drafter_eagle = {.name = "eagle",
                                    .with = "the layer after it",
                                    .side = DRAFT_SIDE_MODEL,
                                    .usual = usual,
                                    .open = eagle_open,
                                    .load = eagle_load,
                                    .session_bytes = eagle_session_bytes,
                                    .make = eagle_make};
