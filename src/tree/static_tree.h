/* Static trees: the best shape of a token tree of a given width, found before any text is written
 * (Ghidorah III-C1). The input is how often a drafter's guesses are right, by depth (with Medusa:
 * by head) and rank. A node's worth is the product of these shares along its path. Of all trees of
 * a width, the one with the nodes of the highest worth has the most expected tokens.
 *
 *      depth 1   .60 .20        width 4:  root -+- 1 (.60) --- 1 (.30)
 *      depth 2   .50 .10                        +- 2 (.20)
 *      1 + .60 + .30 + .20 = 2.1 tokens per pass
 *
 * Guesses at successive depths are not independent. So the tree is then refined with records of
 * real texts: a leaf is exchanged for an absent node, of any level, as long as more tokens are
 * accepted. A node is never accepted more often than its parent; so every tree except the best one
 * has such an exchange, and the result is the best tree for these records.
 *
 * Pure: uses no models and no clocks. */
#pragma once

#include "drey/profile.h"
#include "tree/tree.h"

enum {
    STATIC_DEPTHS = DREY_STATIC_DEPTHS,
    STATIC_RANKS = DREY_STATIC_RANKS,
    STATIC_WIDEST = DREY_STATIC_ROWS
};

/* share[d][r]: how often guess r + 1 at depth d + 1 is right if the path to it is right. */
typedef struct rank_shares {
    int32_t n_depths, n_ranks;
    float share[STATIC_DEPTHS][STATIC_RANKS];
} rank_shares;

/* A shape: node 0 is the root; parents come before children, levels before deeper levels. */
typedef struct static_tree {
    int32_t n; /* the width: rows of the target's pass, the root's among them */
    int8_t parent[STATIC_WIDEST], depth[STATIC_WIDEST], rank[STATIC_WIDEST]; /* rank from 0 */
} static_tree;

/* The nodes of the highest worth; among equals the shallower one, then the lower rank. Fewer than
 * `width` nodes where no others are worth anything. width: 1 to STATIC_WIDEST. */
static_tree static_tree_grow(const rank_shares *shares, int32_t width);

/* 1 plus the worth of each node: the expected tokens per pass. */
double static_tree_expected(const static_tree *tree, const rank_shares *shares);

/* The draft's steps for it: the nodes that have children, level by level, as many at a time as a
 * step takes. nodes[i]: number of nodes in step i. Returns the number of steps. */
int32_t static_tree_steps(const static_tree *tree, int32_t nodes[STATIC_WIDEST]);

/* Measured shares, of all ranks or of the best one only. False: there are none. */
bool static_shares(rank_shares *out, const drey_static_trees *known, int32_t n_ranks);
/* A measured shape, which is not trusted. False: it is not a valid shape. */
bool static_tree_take(static_tree *out, const drey_static_tree *known);

/* Records of real texts, in a tree: equal beginnings are merged. */
typedef struct truth_node {
    int32_t count;              /* records that pass through this node */
    int32_t next[STATIC_RANKS]; /* index; 0: none */
} truth_node;
typedef struct truth_log {
    truth_node *nodes; /* [capacity], borrowed; the first is where all records begin */
    int32_t n, capacity;
} truth_log;

/* memory: [capacity], at least one, which the log borrows. */
void truth_init(truth_log *log, truth_node *memory, int32_t capacity);
/* One position of a text: rank[d] is the rank of the right guess at depth d + 1; -1: none was
 * right. False: there is no room for all of it, and nothing was added. */
bool truth_add(truth_log *log, const int8_t *rank, int32_t n_depths);
/* Counts how often each rank was right at positions where a guess was right at all depths
 * before. */
void truth_shares(const truth_log *log, rank_shares *out);

/* Mean tokens that a pass over this tree would have written at the recorded positions. */
double static_tree_measured(const static_tree *tree, const truth_log *log);
/* Exchanges leaves; returns how many were exchanged. */
int32_t static_tree_refine(static_tree *tree, const truth_log *log);

/* The width that writes the most tokens per second, the narrower among equals: tokens[i] per pass
 * of seconds[i]. n at least 1. Returns the index. */
int32_t width_choose(const double *tokens, const double *seconds, int32_t n);
