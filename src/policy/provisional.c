/* Choosing the best nodes and guesses of a tree: see provisional.h. */
#include "policy/provisional.h"

#include <assert.h>

#include "common/num.h"
#include "tree/values.h"

/* The best so far; never more than are needed. */
typedef struct shortlist {
    ranked_nodes nodes;
    int32_t most;
} shortlist;

/* Returns whether this value would be among the best. */
static bool is_worth_it(const shortlist *s, float value)
{
    const ranked_nodes *r = &s->nodes;
    return r->n < s->most || (r->n > 0 && value > r->best[r->n - 1].value);
}

static bool ends(const provisional_rules *rules, int32_t token)
{
    return rules->is_end && rules->is_end(rules->is_end_user, token);
}

static void enter_nodes(shortlist *s, const provisional_rules *rules, const token_tree *tree)
{
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (!node->expanded && node->depth < rules->max_depth && node->cumulative >= rules->least &&
            is_worth_it(s, node->cumulative) && !(i > 0 && ends(rules, node->token)))
            ranked_insert(&s->nodes, (ranked_node){node->cumulative, 0, i, -1}, s->most);
    }
}

static float confidence_of(const provisional_rules *rules, const tree_node *node, int32_t rank)
{
    float raw = node->guess[rank].confidence;
    return rules->calibrate ? rules->calibrate(rules->calibrate_user, rank, raw) : raw;
}

static void enter_guesses(shortlist *s, const provisional_rules *rules, const token_tree *tree)
{
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (node->depth + 1 >= rules->max_depth)
            continue;
        for (int32_t rank = 0; rank < min_i32(node->n_guesses, rules->ranks); rank++) {
            float value = node->cumulative * confidence_of(rules, node, rank);
            int32_t token = node->guess[rank].token;
            if (value >= rules->least && is_worth_it(s, value) && !ends(rules, token) &&
                tree_child(tree, i, token) < 0)
                ranked_insert(&s->nodes, (ranked_node){value, 0, i, rank}, s->most);
        }
    }
}

int32_t provisional_next(const provisional_rules *rules, token_tree *tree,
                         int32_t nodes[DRAFT_MAX_BATCH])
{
    assert(rules->batch >= 1 && rules->batch <= DRAFT_MAX_BATCH);
    shortlist s = {.most = rules->batch};
    int32_t n = 0;
    enter_nodes(&s, rules, tree);
    if (tree->n_nodes < TREE_MAX_NODES)
        enter_guesses(&s, rules, tree);
    for (int32_t i = 0; i < s.nodes.n; i++) {
        ranked_node o = s.nodes.best[i];
        if (o.guess < 0) {
            nodes[n++] = o.node;
        } else if (tree->n_nodes < TREE_MAX_NODES) {
            const tree_node *parent = &tree->nodes[o.node];
            nodes[n++] = tree_push(tree, o.node, parent->guess[o.guess].token,
                                   confidence_of(rules, parent, o.guess));
        }
    }
    return n;
}
