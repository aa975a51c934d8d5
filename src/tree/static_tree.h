/* Static trees: the best shape of a token tree of a given width, found before any text is written
 * (Ghidorah III-C1). What is known is how often a drafter's guesses are right by depth (the head,
 * of Medusa's) and rank; a node's worth is the product of these shares along its path, and the tree
 * of a width with the most expected tokens has the nodes that are worth most.
 *
 *      depth 1   .60 .20        width 4:  root -+- 1 (.60) --- 1 (.30)
 *      depth 2   .50 .10                        +- 2 (.20)
 *      1 + .60 + .30 + .20 = 2.1 tokens a pass
 *
 * Guesses at successive depths are not independent, so the tree is then refined against records of
 * what really came: a leaf is exchanged for an absent node, of its own level or of another, for as
 * long as more tokens are accepted. A node is never accepted more often than its parent; so no tree
 * but the best one lacks such an exchange, and what comes out is the best tree for these records.
 *
 * Pure: no models, no clocks. */
#ifndef DREY_TREE_STATIC_TREE_H
#define DREY_TREE_STATIC_TREE_H

#include "tree/tree.h"
#include "drey/tune.h"

enum {
    STATIC_DEPTHS = DREY_STATIC_DEPTHS,
    STATIC_RANKS = DREY_STATIC_RANKS,
    STATIC_WIDEST = DREY_STATIC_ROWS
};

/* share[d][r]: how often guess r + 1 at depth d + 1 is right, given that the path to it is. */
typedef struct rank_shares {
    int32_t n_depths, n_ranks;
    float share[STATIC_DEPTHS][STATIC_RANKS];
} rank_shares;

/* A shape: node 0 is the root; parents stand before children, levels before deeper ones. */
typedef struct static_tree {
    int32_t n; /* the width: rows of the target's pass, the root's among them */
    int8_t parent[STATIC_WIDEST], depth[STATIC_WIDEST], rank[STATIC_WIDEST]; /* rank from 0 */
} static_tree;

/* The nodes worth most, the shallower first among equals, then the lower rank; fewer than `width`
 * where no more are worth anything. width: 1 to STATIC_WIDEST. */
static_tree static_tree_grow(const rank_shares *shares, int32_t width);

/* 1 and what each node is worth: tokens a pass is expected to write. */
double static_tree_expected(const static_tree *tree, const rank_shares *shares);

/* The draft's steps for it: level by level those nodes who have children, as many at a time as a
 * step takes. nodes[i]: how many in step i. Returns how many steps. */
int32_t static_tree_steps(const static_tree *tree, int32_t nodes[STATIC_WIDEST]);

/* Shares that were measured, of all ranks or the best alone. False: there are none. */
bool static_shares(rank_shares *out, const drey_static_trees *known, int32_t n_ranks);
/* A shape that was measured, and may be anybody's. False: it is none. */
bool static_tree_take(static_tree *out, const drey_static_tree *known);

/* Records of what came, gathered where they begin alike. */
typedef struct truth_node {
    int32_t count;              /* records that come by here */
    int32_t next[STATIC_RANKS]; /* index; 0: none */
} truth_node;
typedef struct truth_log {
    truth_node *nodes; /* [capacity], borrowed; the first is where all records begin */
    int32_t n, capacity;
} truth_log;

/* memory: [capacity], at least one, which the log borrows. */
void truth_init(truth_log *log, truth_node *memory, int32_t capacity);
/* One place of a text: rank[d] is that of the guess at depth d + 1 that turned out right, -1: none
 * did. False: there is no room for all of it, and nothing was noted. */
bool truth_add(truth_log *log, const int8_t *rank, int32_t n_depths);
/* How often each rank was right where all guesses before it were among the ranks. */
void truth_shares(const truth_log *log, rank_shares *out);

/* Tokens that a pass over this tree would have written at the recorded places, on average. */
double static_tree_measured(const static_tree *tree, const truth_log *log);
/* Exchanges leaves; returns how many. */
int32_t static_tree_refine(static_tree *tree, const truth_log *log);

/* Which width writes most tokens a second: tokens[i] a pass of seconds[i]; the narrower of equals.
 * n at least 1. Returns the index. */
int32_t width_choose(const double *tokens, const double *seconds, int32_t n);

#endif
