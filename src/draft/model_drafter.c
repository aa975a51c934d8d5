/* Expanding nodes with a small model: see model.h.
 *
 * The cache's committed part lags behind the timeline by the root and by tokens that were verified
 * but never computed here (the last accepted leaf). The first expansion after a verification
 * computes them as a chain whose end is the root; each later one computes a single node on top of
 * its parent. Switching branches is choosing another parent: nothing is copied or reloaded (EdgeLLM
 * Fig. 8). */
#include "draft/model_drafter.h"

static model_drafter *self_of(drafter *d)
{
    return (model_drafter *)d;
}

/* Padding of the target's vocabulary may have no row in the draft's: any token stands in for it. */
static int32_t known(const model_drafter *d, int32_t id)
{
    return id < d->n_ids ? id : 0;
}

static void forget_tree(model_drafter *d)
{
    for (int32_t i = 0; i < TREE_MAX_NODES; i++)
        d->pending_of[i] = -1;
}

static drey_status model_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    model_drafter *d = self_of(base);
    kv_cache *kv = d->run->kv;
    int32_t same = 0;
    while (same < kv->n_committed && same < n - 1 && d->timeline[same] == known(d, tokens[same]))
        same++;
    kv_truncate(kv, same);
    for (int32_t i = same; i < n; i++)
        d->timeline[i] = known(d, tokens[i]);
    d->n_timeline = n;
    forget_tree(d);
    return forward_prompt(d->run, d->timeline + same, n - 1 - same, d->chunk, HEAD_NONE,
                          d->progress, d->progress_user, err);
}

/* Computes what the timeline has beyond the cache; its end is the root. */
static drey_status expand_root(model_drafter *d, drey_error *err)
{
    kv_cache *kv = d->run->kv;
    kv_truncate(kv, kv->n_committed);
    int32_t n = d->n_timeline - kv->n_committed;
    if (n > CATCH_UP) { /* nothing was drafted for a while */
        TRY(forward_prompt(d->run, d->timeline + kv->n_committed, n - 1, d->chunk, HEAD_NONE, NULL,
                           NULL, err));
        n = 1;
    }
    forward_row *rows = d->run->ws->rows;
    for (int32_t i = 0; i < n; i++)
        rows[i] = (forward_row){.token = d->timeline[kv->n_committed + i], .parent = i - 1};
    TRY(forward(d->run, rows, n, HEAD_LAST, err));
    d->pending_of[0] = n - 1;
    return DREY_OK;
}

static drey_status model_expand(drafter *base, token_tree *tree, int32_t node, candidate *out,
                                int32_t max, int32_t *n_out, drey_error *err)
{
    model_drafter *d = self_of(base);
    *n_out = 0;
    if (node == 0) {
        TRY(expand_root(d, err));
    } else {
        if (!kv_has_room(d->run->kv, 1))
            return DREY_OK;
        forward_row row = {.token = tree->nodes[node].token,
                           .parent = d->pending_of[tree->nodes[node].parent]};
        d->pending_of[node] = d->run->kv->n_pending;
        TRY(forward(d->run, &row, 1, HEAD_LAST, err));
    }
    tree->nodes[node].expanded = true;
    int64_t position = d->n_timeline - 1 + tree->nodes[node].depth + 1;
    *n_out = sampler_guess(d->sampler, d->run->ws->logits, position, d->n_ids, out, max);
    return DREY_OK;
}

static void model_commit(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next)
{
    model_drafter *d = self_of(base);
    int32_t keep[TREE_MAX_NODES + CATCH_UP], n = 0;
    /* The catch-up chain up to the root, then the accepted nodes that were computed here. */
    for (; n <= d->pending_of[0]; n++)
        keep[n] = n;
    for (int32_t i = 0; i < n_path && d->pending_of[path[i]] >= 0; i++)
        keep[n++] = d->pending_of[path[i]];
    kv_commit(d->run->kv, keep, n);
    for (int32_t i = 0; i < n_path; i++)
        d->timeline[d->n_timeline++] = tree->nodes[path[i]].token;
    d->timeline[d->n_timeline++] = known(d, next);
    forget_tree(d);
}

static void model_close(drafter *base)
{
    (void)base;
}

static const drafter_class model_class = {.name = "model",
                                          .begin = model_begin,
                                          .expand = model_expand,
                                          .commit = model_commit,
                                          .close = model_close};

void model_drafter_init(model_drafter *d, runner *run, sampler *s, int32_t *timeline, int32_t n_ids,
                        int32_t chunk)
{
    *d = (model_drafter){.base.class = &model_class,
                         .run = run,
                         .sampler = s,
                         .timeline = timeline,
                         .n_ids = n_ids,
                         .chunk = chunk};
    forget_tree(d);
}
