/* Expanding nodes with Medusa heads: see medusa_heads.h.
 *
 * Head k reads the hidden state of the last accepted row and the node whose next token it guesses,
 * which has depth k - 1. There is no cache that would have to follow the tree.
 *
 *        row  ...  last accepted   root    depth 1   depth 2
 *                        |        ^    |   ^     |   ^
 *                        h -- V --+    |   |     |   |
 *                        +--- head 1 --+---+     |   |
 *                        +--- head 2 ------------+---+
 *
 * A guess's confidence is its probability by the head, softmax over the slice. If the text has no
 * such row (it continues from what was read long ago), nothing is guessed for one turn. */
#include "draft/medusa_drafter.h"
#include "base/usual.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "draft/drafter_kind.h"
#include "draft/medusa_heads.h"
#include "drey/train.h"
#include "gguf/gguf.h"
#include "model/layout.h"
#include "model/workspace.h"
#include "sample/penalties.h"
#include "weights/weights.h"

static size_t hidden_bytes(const medusa_heads *heads)
{
    return (size_t)row_stride(heads->shape.n_embd) * sizeof(float);
}

static drey_status medusa_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    medusa_drafter *d = (medusa_drafter *)base;
    (void)tokens;
    (void)err;
    d->n_tokens = n;
    if (d->seen_for != n - 1)
        d->seen_for = 0;
    return DREY_OK;
}

static void medusa_take_hidden(drafter *base, int32_t position, const float *hidden)
{
    medusa_drafter *d = (medusa_drafter *)base;
    memcpy(d->hidden, hidden, (size_t)d->heads->shape.n_embd * sizeof *hidden);
    d->seen_for = position + 1;
}

static bool medusa_can_guess(const drafter *base, const token_tree *tree, int32_t node)
{
    const medusa_drafter *d = (const medusa_drafter *)base;
    int32_t root = d->n_tokens - 1;
    return root > 0 && d->seen_for == root && tree->nodes[node].depth < d->heads->shape.n_heads &&
           medusa_has_head(d->heads);
}

static drey_status medusa_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                 drey_error *err)
{
    medusa_drafter *d = (medusa_drafter *)base;
    const medusa_heads *m = d->heads;
    medusa_node asked[DRAFT_MAX_BATCH];
    int32_t place[DRAFT_MAX_BATCH], path[TREE_MAX_NODES], n_asked = 0, root = d->n_tokens - 1;
    bool seen = root > 0 && d->seen_for == root && d->n_ids > 0 && medusa_has_head(m);
    for (int32_t i = 0; i < n; i++) {
        const tree_node *node = &tree->nodes[nodes[i]];
        if (!seen || node->depth >= m->shape.n_heads)
            continue;
        asked[n_asked] = (medusa_node){node->depth, node->token};
        place[n_asked++] = nodes[i];
    }
    if (n_asked > 0)
        TRY(medusa_compute(d->heads, d->hidden, asked, n_asked, err));
    for (int32_t i = 0; i < n; i++) {
        tree->nodes[nodes[i]].expanded = true;
        tree->nodes[nodes[i]].n_guesses = 0;
    }
    const logit_ids ids = {.n_more = d->n_ids, .more = m->ids};
    for (int32_t i = 0; i < n_asked; i++) {
        tree_node *node = &tree->nodes[place[i]];
        const sampler_context after = tree_sampled(tree, place[i], root, path);
        node->n_guesses = (uint8_t)sampler_guess_at(d->sampler, m->logits + i * m->logits_ld,
                                                    &after, &ids, node->guess, MEDUSA_RANKS);
    }
    return DREY_OK;
}

static void medusa_reroot(drafter *base, const token_tree *tree, const int32_t *path,
                          int32_t n_path, int32_t next, const int32_t *moved)
{
    medusa_drafter *d = (medusa_drafter *)base;
    (void)tree;
    (void)path;
    (void)next;
    (void)moved;
    d->n_tokens += n_path + 1;
}

static const drafter_class medusa_class = {
    .begin = medusa_begin,
    .can_guess = medusa_can_guess,
    .expand = medusa_expand,
    .listener = &(const drafter_listener){.take_hidden = medusa_take_hidden},
    .reroot = medusa_reroot};

/* ---- What others ask ---- */

static drey_status open_file(draft_source *src, drey_error *err)
{
    medusa_heads *heads = calloc(1, sizeof *heads);
    char *path = src->in.path ? strdup(src->in.path)
                              : path_with(gguf_shard_path(src->in.target, 0), MEDUSA_FILE_ENDING);
    drey_status status = DREY_OK;
    src->out.own = heads;
    const bool missing = path && !src->in.path && access(path, F_OK) != 0;
    if (missing)
        status = error_set(err, DREY_ERR_IO,
                           "heads are to guess, and there are none in %s; have them trained",
                           SHOWN_PATH(path));
    else if (heads && path)
        status =
            medusa_open(heads, path, src->in.target, &src->in.layout->shape, src->in.kernels, err);
    else
        status = error_set(err, DREY_ERR_MEMORY, "no memory for the name of a file of heads");
    if (missing && err)
        err->hint = DREY_HINT_HEADS;
    free(path);
    return status;
}

/* The accuracies of heads are from texts like those they were trained with. In texts that people
 * ask for, a fifth fewer of their best guesses were right. */
static void state_ranks(draft_source *src, const medusa_shape *heads)
{
    src->out.has_trees = src->out.has_right = true;
    medusa_trees(&src->out.trees, heads);
    for (int32_t r = 0; r < MEDUSA_RANKS; r++)
        src->out.right[r] = heads->accuracy[0][r] * (r == 0 ? USUAL_HEADS_BEST : 1);
}

static drey_status medusa_kind_open(draft_source *src, drey_error *err)
{
    TRY(open_file(src, err));
    medusa_heads *heads = src->out.own;
    const weight *head = src->in.layout->head;
    if (src->in.for_exits)
        medusa_for_roots(heads);
    src->out.resident_bytes = medusa_weight_bytes(heads, head);
    src->out.work_bytes = medusa_work_bytes(heads, head);
    src->out.file_bytes = gguf_header_bytes(heads->file);
    src->out.most_steps = heads->shape.n_heads; /* one level per step */
    state_ranks(src, &heads->shape);
    return DREY_OK;
}

static drey_status medusa_kind_load(draft_source *src, drey_error *err)
{
    return medusa_load(src->out.own, src->in.weights, src->in.layout->head, src->in.pool,
                       &src->memory, err);
}

static void medusa_kind_close(draft_source *src)
{
    if (src->out.own)
        medusa_close(src->out.own);
    free(src->out.own);
    src->out.own = NULL;
}

static size_t session_bytes(const draft_source *src)
{
    return arena_size(sizeof(medusa_drafter)) + hidden_bytes(src->out.own);
}

static drafter *make(draft_source *src, const drafter_context *context, void *memory)
{
    medusa_drafter *d = memory;
    *d = (medusa_drafter){.base = {.class = &medusa_class},
                          .heads = src->out.own,
                          .sampler = context->sampler,
                          .n_ids = medusa_ids_below(src->out.own, src->in.n_ids)};
    d->hidden = (float *)(void *)((uint8_t *)memory + arena_size(sizeof *d));
    return &d->base;
}

const drafter_kind drafter_medusa = {.name = "medusa",
                                     .with = "its heads",
                                     .file_ending = MEDUSA_FILE_ENDING,
                                     .blends = true,
                                     .exit_source = DREY_EXIT_FROM_HEADS,
                                     .open = medusa_kind_open,
                                     .load = medusa_kind_load,
                                     .close = medusa_kind_close,
                                     .session_bytes = session_bytes,
                                     .make = make};
