/* Expanding nodes with Medusa heads: see medusa_heads.h.
 *
 * Head k looks at the hidden state of the last accepted row and at the node that it guesses behind,
 * whose depth is k - 1. There is no cache that would have to follow the tree.
 *
 *        row  ...  last accepted   root    depth 1   depth 2
 *                        |        ^    |   ^     |   ^
 *                        h -- V --+    |   |     |   |
 *                        +--- head 1 --+---+     |   |
 *                        +--- head 2 ------------+---+
 *
 * How likely a guess is, a head says itself, by softmax over the slice; where the text has no row
 * that could be looked at (it goes on from what was read long ago), nothing is guessed for
 * a turn. */
#include "draft/medusa_drafter.h"

#include <string.h>

#include "common/num.h"
#include "model/workspace.h"

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

static void medusa_see(drafter *base, int32_t position, const float *hidden)
{
    medusa_drafter *d = (medusa_drafter *)base;
    memcpy(d->hidden, hidden, (size_t)d->heads->shape.n_embd * sizeof *hidden);
    d->seen_for = position + 1;
}

static bool medusa_reaches(const drafter *base, const token_tree *tree, int32_t node)
{
    const medusa_drafter *d = (const medusa_drafter *)base;
    int32_t root = d->n_tokens - 1;
    return root > 0 && d->seen_for == root && tree->nodes[node].depth < d->heads->shape.n_heads;
}

static drey_status medusa_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                 drey_error *err)
{
    medusa_drafter *d = (medusa_drafter *)base;
    const medusa_heads *m = d->heads;
    medusa_node asked[DRAFT_MAX_BATCH];
    int32_t place[DRAFT_MAX_BATCH], n_asked = 0, root = d->n_tokens - 1;
    bool seen = root > 0 && d->seen_for == root && d->n_ids > 0;
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
        node->n_guesses =
            (uint8_t)sampler_guess_among(d->sampler, m->logits + i * m->logits_ld,
                                         root + node->depth + 1, &ids, node->guess, MEDUSA_RANKS);
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

static size_t medusa_bytes(int32_t capacity)
{
    (void)capacity;
    return sizeof(medusa_drafter);
}

const drafter_class drafter_medusa_class = {.begin = medusa_begin,
                                            .reaches = medusa_reaches,
                                            .expand = medusa_expand,
                                            .see = medusa_see,
                                            .reroot = medusa_reroot,
                                            .bytes = medusa_bytes};

size_t medusa_drafter_bytes(const medusa_heads *heads)
{
    return arena_size(sizeof(medusa_drafter)) + hidden_bytes(heads);
}

drafter *medusa_drafter_init(void *memory, medusa_heads *heads, sampler *s, int32_t n_vocab)
{
    medusa_drafter *d = memory;
    *d = (medusa_drafter){.base = {.class = &drafter_medusa_class},
                          .heads = heads,
                          .sampler = s,
                          .n_ids = medusa_ids_below(heads, n_vocab)};
    d->hidden = (float *)(void *)((uint8_t *)memory + arena_size(sizeof *d));
    return &d->base;
}
