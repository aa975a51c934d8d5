/* Places, and asking again: see heads_truth.h. */
#include "tune/heads_truth.h"

#include <string.h>

#include "base/arena.h"
#include "common/error.h"
#include "common/num.h"
#include "draft/drafter.h"
#include "draft/medusa_drafter.h"
#include "tree/tree.h"

size_t heads_places_bytes(int32_t n, int32_t n_embd)
{
    return arena_size((size_t)n * sizeof(int32_t)) +
           arena_size((size_t)n * (size_t)n_embd * sizeof(float));
}

void heads_places_init(heads_places *p, int32_t n, int32_t n_embd, arena *a)
{
    *p = (heads_places){.most = n, .n_embd = n_embd};
    p->root = arena_take(a, (size_t)n * sizeof *p->root);
    p->hidden = arena_take(a, (size_t)n * (size_t)n_embd * sizeof *p->hidden);
}

void heads_places_keep(heads_places *p, const medusa_drafter *d, int32_t root)
{
    if (root <= 0 || d->seen_for != root || p->n == p->most)
        return;
    memcpy(p->hidden + (int64_t)p->n * p->n_embd, d->hidden, (size_t)p->n_embd * sizeof *p->hidden);
    p->root[p->n++] = root;
}

drey_status heads_ranks(drafter *d, const heads_places *p, int32_t place, token_tree *tree,
                        heads_answer *out, drey_error *err)
{
    const int32_t *text = p->text;
    int32_t root = p->root[place], nodes[DRAFT_MAX_BATCH] = {0};
    int32_t n_nodes = min_i32(p->n_text - root, min_i32(STATIC_DEPTHS, DRAFT_MAX_BATCH));
    bool decided = n_nodes == STATIC_DEPTHS && root + n_nodes < p->n_text;
    tree_reset(tree, text[root]);
    for (int32_t i = 1; i < n_nodes; i++)
        nodes[i] = tree_push(tree, nodes[i - 1], text[root + i], 1);
    TRY(d->class->begin(d, text, root + 1, err));
    d->class->listener->take_hidden(d, root - 1, p->hidden + (int64_t)place * p->n_embd);
    TRY(d->class->expand(d, tree, nodes, n_nodes, err));
    out->n = 0;
    for (int32_t i = 0; i < n_nodes; i++) {
        const tree_node *node = &tree->nodes[nodes[i]];
        decided = decided || node->n_guesses == 0;
        if (node->n_guesses == 0 || root + 1 + i == p->n_text)
            break;
        out->rank[out->n] = (int8_t)tree_rank(node, text[root + 1 + i]);
        if (out->rank[out->n++] < 0) {
            decided = true;
            break;
        }
    }
    out->n = decided ? out->n : 0;
    return DREY_OK;
}
