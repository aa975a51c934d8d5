/* The token tree: what the drafter guesses. Parents come before their children.
 *
 * Node 0 is the root: the last verified token, which the target has not computed yet. A branch is a
 * path from the root to a leaf (EdgeLLM III-B). One tree serves a whole text: some of its nodes are
 * submitted to the target, and afterwards the nodes below the new root stay.
 *
 *        root --+-- a --+-- c          the target says "a", then "d":
 *               |       +-- d --- e        moved = {-1, -1, -1, -1, 0, 1}
 *               +-- b                      d becomes the root, e its child
 *
 * Invariants, which tree_is_valid checks:
 *   (1) the root has depth 0 and confidence 1, and no parent;
 *   (2) a parent comes before its children, and their depth is one more than its own;
 *   (3) a node's cumulative confidence is its parent's times its own, which is in (0, 1];
 *   (4) no two children of a node have the same token;
 *   (5) a submitted node's parent is submitted;
 *   (6) only an expanded node has guesses. */
#pragma once

#include "drey/choices.h"
#include "sample/sampler.h"

enum {
    TREE_MAX_DRAFTED = DREY_MAX_DRAFTED,       /* submitted at once, the root not counted */
    TREE_MAX_ROWS = 1 + TREE_MAX_DRAFTED,      /* rows of a pass that verifies */
    TREE_MAX_NODES = 1 + 2 * TREE_MAX_DRAFTED, /* as many more may be drafted */
    TREE_MAX_GUESSES = 8,
    TREE_MAX_STEP = 8 /* nodes that one step of a drafter expands */
};

/* Sources of a guess, if drafters are blended (blend.h): one of these, or both. */
enum { SOURCE_DRAFT = 1, SOURCE_TEXT = 2 };

typedef struct tree_node {
    int32_t token;
    int32_t parent;   /* index of a node before this one; -1 for the root */
    int32_t depth;    /* 0 for the root */
    float confidence; /* the drafter's, in (0, 1] */
    float cumulative; /* product along the branch; 1 for the root */
    bool expanded;    /* its guesses have been requested */
    bool submitted;   /* to the target, to be verified */
    bool copied;      /* expanded without a step (drafter.h) */
    bool forced;      /* so, because of the grammar: it has at most one guess */
    bool provisional; /* expanded while the target verified others */
    uint8_t n_guesses;
    candidate guess[TREE_MAX_GUESSES]; /* the drafter's, best first */
    uint8_t source[TREE_MAX_GUESSES];  /* SOURCE_*; 0: unknown */
} tree_node;

typedef struct token_tree {
    tree_node nodes[TREE_MAX_NODES];
    int32_t n_nodes;
    drey_grammar *grammar;         /* grammar of the text; NULL: there is none */
    int32_t state[TREE_MAX_NODES]; /* in it, after each node's token */
} token_tree;

/* Makes a tree of the root alone, without a grammar. */
void tree_reset(token_tree *t, int32_t root_token);
/* The same for a text with a grammar, which holds the tree's places from now on; the root is where
 * the text is. NULL: as above. */
void tree_begin(token_tree *t, int32_t root_token, drey_grammar *grammar);
static inline grammar_cursor tree_cursor(const token_tree *t, int32_t node)
{
    return (grammar_cursor){t->grammar, &t->state[node]};
}
/* The place after the node's token, of a tree whose root is the timeline's token root_position. The
 * tokens below the root are kept in path. */
sampler_context tree_sampled(const token_tree *t, int32_t node, int64_t root_position,
                             int32_t path[TREE_MAX_NODES]);
/* Expands the node if the grammar says what follows it: a token, or nothing. Its child, which the
 * caller pushes, needs no drafter. */
bool tree_expand_forced(token_tree *t, int32_t node);
/* Returns the new node's index, or that of the child of `parent` that already has this token. The
 * caller checks that there is room. */
int32_t tree_push(token_tree *t, int32_t parent, int32_t token, float confidence);
/* The child of `node` with this token, or -1. */
int32_t tree_child(const token_tree *t, int32_t node, int32_t token);
/* The place of a token among a node's guesses, or -1. */
static inline int32_t tree_rank(const tree_node *node, int32_t token)
{
    for (int32_t i = 0; i < node->n_guesses; i++)
        if (node->guess[i].token == token)
            return i;
    return -1;
}
/* Marks the root and the `most` (at most TREE_MAX_DRAFTED) nodes of the highest cumulative
 * confidence as submitted, the older ones first among equals; all nodes if there are fewer. */
void tree_submit(token_tree *t, int32_t most);

/* Gives the indices that nodes will have after the target accepted path[0..n_path) (from below the
 * root downwards) and then chose `next`: moved[old] = new, -1 for those that are removed. The child
 * of the last path node (n_path = 0: of the root) with the token `next` becomes the root; its
 * descendants stay, in their order. False: there is no such child, and all are removed. */
bool tree_moves(const token_tree *t, const int32_t *path, int32_t n_path, int32_t next,
                int32_t moved[TREE_MAX_NODES]);
/* Moves them. Nothing is submitted or provisional then, and cumulative confidences are products
 * from the new root on. A node for which the drafter had no guesses, or no room, may be expanded
 * again. If all nodes are removed, the tree is reset to `next`. */
void tree_reroot(token_tree *t, int32_t next, const int32_t moved[TREE_MAX_NODES]);

bool tree_is_valid(const token_tree *t);
