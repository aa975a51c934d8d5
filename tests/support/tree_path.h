/* A node of a token tree as the words that lead to it. */
#pragma once

#include "tree/tree.h"

/* The tokens from below the root down to `node` into out[depth]; returns depth. */
static inline int32_t tree_path(const token_tree *t, int32_t node, int32_t *out)
{
    int32_t depth = t->nodes[node].depth;
    for (int32_t d = depth; d > 0; d--, node = t->nodes[node].parent)
        out[d - 1] = t->nodes[node].token;
    return depth;
}

/* The nodes from below the root down to `node` into out[depth]; returns depth. */
static inline int32_t tree_nodes_to(const token_tree *t, int32_t node, int32_t *out)
{
    int32_t depth = t->nodes[node].depth;
    for (int32_t d = depth; d > 0; d--, node = t->nodes[node].parent)
        out[d - 1] = node;
    return depth;
}

/* Returns how many nodes below the root are submitted. */
static inline int32_t tree_n_submitted(const token_tree *t)
{
    int32_t n = 0;
    for (int32_t i = 1; i < t->n_nodes; i++)
        n += t->nodes[i].submitted;
    return n;
}

/* Finds the path of a text whose tokens count modulo `limit`: the submitted nodes after the root
 * into path[return), and the token after them. */
static inline int32_t tree_counted(const token_tree *t, int32_t limit, int32_t *path, int32_t *next)
{
    int32_t n = 0, node = 0;
    for (;;) {
        *next = (t->nodes[node].token + 1) % limit;
        node = tree_child(t, node, *next);
        if (node < 0 || !t->nodes[node].submitted)
            return n;
        path[n++] = node;
    }
}

/* Does with guesses what a drafter has to do. */
static inline void tree_guess(token_tree *t, int32_t node, const candidate *guesses, int32_t n)
{
    t->nodes[node].expanded = true;
    t->nodes[node].n_guesses = (uint8_t)n;
    for (int32_t i = 0; i < n; i++)
        t->nodes[node].guess[i] = guesses[i];
}
