/* The token tree: what the drafter guesses, laid out so that parents stand before their children.
 *
 * Node 0 is the root: the last verified token, which the target has not computed yet. A branch is a
 * path from the root to a leaf (EdgeLLM III-B). Pure data; the arrays are taken from an arena once.
 */
#ifndef DREY_DRAFT_TREE_H
#define DREY_DRAFT_TREE_H

#include "base/arena.h"

enum { TREE_MAX_NODES = 129 }; /* root and 128 drafted */

typedef struct tree_node {
    int32_t token;
    int32_t parent;   /* index of a node before this one; -1 for the root */
    int32_t depth;    /* 0 for the root */
    float confidence; /* the drafter's, in (0, 1] */
    float cumulative; /* product along the branch; 1 for the root */
    bool expanded;    /* the drafter has computed this node */
} tree_node;

typedef struct token_tree {
    tree_node nodes[TREE_MAX_NODES];
    int32_t n_nodes;
} token_tree;

void tree_reset(token_tree *t, int32_t root_token);
/* Returns the new node's index, or that of the child of `parent` which already has this token. The
 * caller checks for room. */
int32_t tree_push(token_tree *t, int32_t parent, int32_t token, float confidence);
/* The child of `node` with this token, or -1. */
int32_t tree_child(const token_tree *t, int32_t node, int32_t token);
/* The tokens from below the root down to `node` into out[depth]; returns depth. */
int32_t tree_path(const token_tree *t, int32_t node, int32_t *out);

#endif
