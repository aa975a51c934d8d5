/* One tree for every turn (Medusa; Ghidorah III-C1): the shape that is expected to write the most
 * tokens, by how often the drafter's guesses of a depth and rank are right, whatever their
 * confidence.
 *
 *      shape   root -+- rank 1 -+- rank 1          tree   "the" -+- "cat" -+- "sat"
 *                    |          +- rank 2                        |         +- "is"
 *                    +- rank 2                                   +- "dog"
 *
 * If drey_tune_pair measured this drafter, it is the shape found for this number of rows, or
 * without a number the one of most tokens per second. Otherwise it is grown from shares: measured
 * ones, or a drafter's usual ones. A place for which the drafter has no guess stays empty, with all
 * below it. */
#include "common/num.h"
#include "base/usual.h"
#include "drey/tune.h"
#include "policy/policy.h"
#include "tree/static_tree.h"
#include "tree/tree.h"

typedef struct static_policy {
    draft_policy base;
    static_tree shape;
} static_policy;

/* About what a small model's guesses are worth, at any depth. */
static const double usual_share[] = USUAL_RANK_SHARES;

static static_policy *self_of(draft_policy *p)
{
    return (static_policy *)p;
}

static int32_t n_ranks(const draft_policy *p)
{
    return policy_has(p, DREY_PART_TREE) ? STATIC_RANKS : 1;
}

static int32_t width_of(const draft_policy *p)
{
    return min_i32(1 + p->size, STATIC_WIDEST);
}

static void grow_from(draft_policy *p, const drey_static_trees *known)
{
    rank_shares shares;
    if (static_shares(&shares, known, n_ranks(p)))
        self_of(p)->shape = static_tree_grow(&shares, width_of(p));
}

static void static_init(draft_policy *p)
{
    drey_static_trees usual = {.n_trees = 0};
    for (int32_t d = 0; d < STATIC_DEPTHS; d++)
        for (size_t rank = 0; rank < sizeof usual_share / sizeof *usual_share; rank++)
            usual.share[d][rank] = usual_share[rank];
    grow_from(p, &usual);
}

/* The shape that was found for so many rows. Chains are not among those. */
static bool take_found(draft_policy *p, const drey_static_trees *known)
{
    for (int32_t i = 0; i < known->n_trees && policy_has(p, DREY_PART_TREE); i++) {
        const drey_static_tree *t = &known->tree[i];
        if (t->width == width_of(p) || t->n == width_of(p))
            return static_tree_take(&self_of(p)->shape, t);
    }
    return false;
}

static void static_seed(draft_policy *p, const drey_profile *known)
{
    if (known->trees && !take_found(p, known->trees))
        grow_from(p, known->trees);
}

static int32_t static_fitting(const drey_profile *known)
{
    const drey_static_trees *t = known->trees;
    return t && t->n_trees > 0 ? t->tree[t->best].n - 1 : -1;
}

/* ---- A turn ---- */

/* node[i]: of the tree at the shape's node i; -1: it has none. */
static void find_nodes(const static_policy *s, const token_tree *tree, int32_t node[STATIC_WIDEST])
{
    node[0] = 0;
    for (int32_t i = 1; i < s->shape.n; i++) {
        int32_t at = node[s->shape.parent[i]], rank = s->shape.rank[i];
        bool guessed = at >= 0 && rank < tree->nodes[at].n_guesses;
        node[i] = guessed ? tree_child(tree, at, tree->nodes[at].guess[rank].token) : -1;
    }
}

static bool is_among(int32_t node, const int32_t *nodes, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

/* The shape's nodes for which there is room, with the root: texts that share a pass also share its
 * rows. */
static int32_t n_wanted(const draft_policy *p, const static_tree *shape)
{
    return min_i32(shape->n, 1 + p->size);
}

/* One level at a time: the next one is not known before. */
static int32_t static_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                           int32_t *nodes)
{
    const static_tree *shape = &self_of(p)->shape;
    int32_t node[STATIC_WIDEST], n = 0, level = 0;
    find_nodes(self_of(p), tree, node);
    for (int32_t i = 1; i < n_wanted(p, shape) && n < policy_batch(p); i++) {
        int32_t at = node[shape->parent[i]], depth = shape->depth[i] - 1;
        if (at < 0 || tree->nodes[at].expanded || depth >= max_depth || (n && depth != level) ||
            is_among(at, nodes, n))
            continue;
        level = depth;
        nodes[n++] = at;
    }
    return n;
}

static void static_push(draft_policy *p, token_tree *tree, int32_t at)
{
    const static_tree *shape = &self_of(p)->shape;
    const tree_node *from = &tree->nodes[at];
    int32_t node[STATIC_WIDEST];
    find_nodes(self_of(p), tree, node);
    for (int32_t i = 1; i < n_wanted(p, shape); i++)
        if (node[shape->parent[i]] == at && shape->rank[i] < from->n_guesses &&
            tree->n_nodes < TREE_MAX_NODES)
            tree_push(tree, at, from->guess[shape->rank[i]].token,
                      from->guess[shape->rank[i]].confidence);
}

/* Only the shape, whatever else is in the tree; if there is no room for all of it, its first
 * levels. */
static void static_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    int32_t node[STATIC_WIDEST], n = 0;
    find_nodes(self_of(p), tree, node);
    tree->nodes[0].submitted = true;
    for (int32_t i = 1; i < self_of(p)->shape.n && n < most; i++)
        if (node[i] >= 0 && !tree->nodes[node[i]].submitted) {
            tree->nodes[node[i]].submitted = true;
            n++;
        }
}

const policy_class policy_static = {.option = POLICY_TREE_NODES,
                                    .standard = 7, /* a tile of 8 rows with the root */
                                    .step = 3,
                                    .bytes = sizeof(static_policy),
                                    .init = static_init,
                                    .seed = static_seed,
                                    .fitting = static_fitting,
                                    .next = static_next,
                                    .push = static_push,
                                    .submit = static_submit};
