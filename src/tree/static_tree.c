/* Growing and refining static trees: see static_tree.h. Shapes have at most 64 nodes and 8 ranks,
 * so each step tries every place. */
#include "tree/static_tree.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "tree/tree.h"

/* ---- Shapes ---- */

static bool has_child(const static_tree *t, int32_t node, int32_t rank)
{
    for (int32_t i = node + 1; i < t->n; i++)
        if (t->parent[i] == node && t->rank[i] == rank)
            return true;
    return false;
}

static bool is_leaf(const static_tree *t, int32_t node)
{
    for (int32_t i = node + 1; i < t->n; i++)
        if (t->parent[i] == node)
            return false;
    return true;
}

static void put(static_tree *t, int32_t parent, int32_t rank)
{
    int32_t depth = parent < 0 ? 0 : t->depth[parent] + 1;
    t->parent[t->n] = (int8_t)parent;
    t->depth[t->n] = (int8_t)depth;
    t->rank[t->n] = (int8_t)rank;
    t->n++;
}

/* Sorts by level, siblings by rank. `node` is the one that was inserted last. */
static void put_in_order(static_tree *t)
{
    static_tree sorted = {.n = 0};
    int32_t from[STATIC_WIDEST] = {0};
    put(&sorted, -1, 0);
    for (int32_t i = 0; i < sorted.n; i++)
        for (int32_t rank = 0; rank < STATIC_RANKS; rank++)
            for (int32_t j = 1; j < t->n; j++)
                if (t->parent[j] == from[i] && t->rank[j] == rank) {
                    from[sorted.n] = j;
                    put(&sorted, i, rank);
                }
    assert(sorted.n == t->n);
    *t = sorted;
}

/* ---- From shares ---- */

static double worth_at(const rank_shares *s, int32_t depth, int32_t rank)
{
    return depth < s->n_depths && rank < s->n_ranks ? (double)s->share[depth][rank] : 0;
}

static void worth_of_all(const static_tree *t, const rank_shares *s, double worth[STATIC_WIDEST])
{
    worth[0] = 1;
    for (int32_t i = 1; i < t->n; i++)
        worth[i] = worth[t->parent[i]] * worth_at(s, t->depth[i] - 1, t->rank[i]);
}

static_tree static_tree_grow(const rank_shares *shares, int32_t width)
{
    static_tree t = {.n = 0};
    double worth[STATIC_WIDEST];
    assert(width >= 1 && width <= STATIC_WIDEST);
    put(&t, -1, 0);
    while (t.n < width) {
        int32_t parent = -1, best_rank = 0;
        double best = 0;
        worth_of_all(&t, shares, worth);
        for (int32_t i = 0; i < t.n; i++)
            for (int32_t rank = 0; rank < shares->n_ranks; rank++) {
                double w = worth[i] * worth_at(shares, t.depth[i], rank);
                if (w > best && !has_child(&t, i, rank)) {
                    best = w;
                    parent = i;
                    best_rank = rank;
                }
            }
        if (parent < 0)
            break;
        put(&t, parent, best_rank);
        put_in_order(&t);
    }
    return t;
}

double static_tree_expected(const static_tree *tree, const rank_shares *shares)
{
    double worth[STATIC_WIDEST], sum = 0;
    worth_of_all(tree, shares, worth);
    for (int32_t i = 0; i < tree->n; i++)
        sum += worth[i];
    return sum;
}

int32_t static_tree_steps(const static_tree *t, int32_t nodes[STATIC_WIDEST])
{
    bool expands[STATIC_WIDEST] = {false};
    int32_t at_depth[STATIC_DEPTHS] = {0}, n = 0;
    for (int32_t i = 1; i < t->n; i++) {
        at_depth[t->depth[i] - 1] += !expands[t->parent[i]];
        expands[t->parent[i]] = true;
    }
    for (int32_t d = 0; d < STATIC_DEPTHS; d++)
        for (int32_t left = at_depth[d]; left > 0; left -= TREE_MAX_STEP)
            nodes[n++] = min_i32(left, TREE_MAX_STEP);
    return n;
}

/* ---- From what was measured ---- */

bool static_shares(rank_shares *out, const drey_static_trees *known, int32_t n_ranks)
{
    bool any = false;
    *out = (rank_shares){.n_depths = STATIC_DEPTHS, .n_ranks = n_ranks};
    for (int32_t d = 0; d < STATIC_DEPTHS; d++)
        for (int32_t rank = 0; rank < n_ranks; rank++) {
            out->share[d][rank] = (float)known->share[d][rank];
            any = any || known->share[d][rank] > 0;
        }
    return any;
}

bool static_tree_take(static_tree *out, const drey_static_tree *known)
{
    *out = (static_tree){.n = 0};
    put(out, -1, 0);
    if (known->n < 1 || known->n > STATIC_WIDEST)
        return false;
    for (int32_t i = 1; i < known->n; i++) {
        int32_t parent = known->parent[i], rank = known->rank[i];
        if (parent < 0 || parent >= i || out->depth[parent] == STATIC_DEPTHS || rank < 0 ||
            rank >= STATIC_RANKS || has_child(out, parent, rank))
            return false;
        put(out, parent, rank);
        if (out->depth[i] < out->depth[i - 1])
            return false;
    }
    return true;
}

/* ---- From records ---- */

void truth_init(truth_log *log, truth_node *memory, int32_t capacity)
{
    assert(capacity >= 1);
    *log = (truth_log){.nodes = memory, .n = 1, .capacity = capacity};
    memory[0] = (truth_node){0};
}

bool truth_add(truth_log *log, const int8_t *rank, int32_t n_depths)
{
    int32_t depths = 0, at = 0, fresh = 0;
    while (depths < n_depths && rank[depths] >= 0 && rank[depths] < STATIC_RANKS)
        depths++;
    for (int32_t d = 0; d < depths && !fresh; d++) {
        at = log->nodes[at].next[rank[d]];
        if (at == 0)
            fresh = depths - d;
    }
    if (log->n + fresh > log->capacity)
        return false;
    at = 0;
    log->nodes[0].count++;
    for (int32_t d = 0; d < depths; d++) {
        int32_t *next = &log->nodes[at].next[rank[d]];
        if (*next == 0) {
            *next = log->n;
            log->nodes[log->n++] = (truth_node){0};
        }
        at = *next;
        log->nodes[at].count++;
    }
    return true;
}

/* A record ends where no guess was right, so those that pass through a node could have
 * continued. */
static void sum_shares(const truth_log *log, int32_t at, int32_t depth, int64_t came[STATIC_DEPTHS],
                       int64_t right[STATIC_DEPTHS][STATIC_RANKS])
{
    if (depth == STATIC_DEPTHS)
        return;
    came[depth] += log->nodes[at].count;
    for (int32_t rank = 0; rank < STATIC_RANKS; rank++) {
        int32_t next = log->nodes[at].next[rank];
        if (next == 0)
            continue;
        right[depth][rank] += log->nodes[next].count;
        sum_shares(log, next, depth + 1, came, right);
    }
}

void truth_shares(const truth_log *log, rank_shares *out)
{
    int64_t came[STATIC_DEPTHS] = {0}, right[STATIC_DEPTHS][STATIC_RANKS] = {{0}};
    sum_shares(log, 0, 0, came, right);
    *out = (rank_shares){.n_ranks = STATIC_RANKS};
    for (int32_t d = 0; d < STATIC_DEPTHS && came[d] > 0; d++) {
        for (int32_t rank = 0; rank < STATIC_RANKS; rank++) {
            out->share[d][rank] = (float)right[d][rank] / (float)came[d];
            if (right[d][rank])
                out->n_depths = d + 1;
        }
    }
}

/* The truth node of the records for which a tree node would have been right; -1: there are none. */
static void find_all(const static_tree *t, const truth_log *log, int32_t at[STATIC_WIDEST])
{
    at[0] = 0;
    for (int32_t i = 1; i < t->n; i++) {
        int32_t parent = at[t->parent[i]];
        int32_t next = parent >= 0 ? log->nodes[parent].next[t->rank[i]] : 0;
        at[i] = next ? next : -1;
    }
}

static int32_t count_at(const truth_log *log, int32_t at)
{
    return at >= 0 ? log->nodes[at].count : 0;
}

double static_tree_measured(const static_tree *tree, const truth_log *log)
{
    int32_t at[STATIC_WIDEST];
    int64_t sum = 0;
    if (log->nodes[0].count == 0)
        return 1;
    find_all(tree, log, at);
    for (int32_t i = 1; i < tree->n; i++)
        sum += count_at(log, at[i]);
    return 1 + (double)sum / log->nodes[0].count;
}

typedef struct place {
    int32_t parent, rank, count;
} place;

/* The absent place that most records pass through, not below `leaf`; at: each node's truth node. */
static place best_place(const static_tree *t, const truth_log *log, const int32_t *at, int32_t leaf)
{
    place best = {.parent = -1};
    for (int32_t i = 0; i < t->n; i++)
        for (int32_t rank = 0; i != leaf && at[i] >= 0 && rank < STATIC_RANKS; rank++) {
            int32_t next = log->nodes[at[i]].next[rank];
            if (next && log->nodes[next].count > best.count && !has_child(t, i, rank))
                best = (place){i, rank, log->nodes[next].count};
        }
    return best;
}

/* False: no exchange is an improvement. */
static bool exchange_one(static_tree *t, const truth_log *log)
{
    int32_t at[STATIC_WIDEST], best_leaf = -1, best_gain = 0;
    place best = {0};
    find_all(t, log, at);
    for (int32_t leaf = 1; leaf < t->n; leaf++) {
        if (!is_leaf(t, leaf))
            continue;
        place p = best_place(t, log, at, leaf);
        if (p.parent >= 0 && p.count - count_at(log, at[leaf]) > best_gain) {
            best_gain = p.count - count_at(log, at[leaf]);
            best_leaf = leaf;
            best = p;
        }
    }
    if (best_leaf < 0)
        return false;
    t->parent[best_leaf] = (int8_t)best.parent;
    t->rank[best_leaf] = (int8_t)best.rank;
    put_in_order(t);
    return true;
}

int32_t static_tree_refine(static_tree *tree, const truth_log *log)
{
    int32_t n = 0;
    while (exchange_one(tree, log))
        n++;
    return n;
}

/* ---- Widths ---- */

int32_t width_choose(const double *tokens, const double *seconds, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (tokens[i] * seconds[best] > tokens[best] * seconds[i])
            best = i;
    return best;
}
