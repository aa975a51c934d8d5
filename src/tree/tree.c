/* The token tree's few operations: see tree.h.
 *
 * A tree is walked a few times per token, which takes the model milliseconds. So children are found
 * by looking at every node after the parent, without links. */
#include "tree/tree.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "base/usual.h"

/* Makes any confidence (0, NaN, a sum of floats just above 1) a probability that keeps products
 * above 0. */
static float clamp_confidence(float c)
{
    if (!(c >= FLT_MIN))
        return FLT_MIN;
    return c > 1 ? 1 : c;
}

static bool root_is_valid(const tree_node *root)
{
    return root->parent == -1 && root->depth == 0 && root->confidence == 1 && root->cumulative == 1;
}

static bool node_is_valid(const token_tree *t, int32_t i)
{
    const tree_node *n = &t->nodes[i];
    if (n->n_guesses > (n->expanded ? TREE_MAX_GUESSES : 0))
        return false;
    if (i == 0)
        return root_is_valid(n);
    if (n->parent < 0 || n->parent >= i)
        return false;
    const tree_node *parent = &t->nodes[n->parent];
    return n->depth == parent->depth + 1 && n->confidence > 0 && n->confidence <= 1 &&
           n->cumulative == parent->cumulative * n->confidence &&
           (!n->submitted || parent->submitted) && tree_child(t, n->parent, n->token) == i;
}

bool tree_is_valid(const token_tree *t)
{
    bool valid = t->n_nodes >= 1 && t->n_nodes <= TREE_MAX_NODES;
    for (int32_t i = 0; valid && i < t->n_nodes; i++)
        valid = node_is_valid(t, i);
    return valid;
}

void tree_reset(token_tree *t, int32_t root_token)
{
    t->nodes[0] = (tree_node){.token = root_token, .parent = -1, .confidence = 1, .cumulative = 1};
    t->n_nodes = 1;
    t->grammar = NULL;
}

void tree_begin(token_tree *t, int32_t root_token, drey_grammar *grammar)
{
    tree_reset(t, root_token);
    t->grammar = grammar;
    if (!grammar)
        return;
    memset(t->state, 0, sizeof t->state);
    t->state[0] = grammar_now(grammar);
    grammar_hold(grammar, t->state, TREE_MAX_NODES);
}

sampler_context tree_sampled(const token_tree *t, int32_t node, int64_t root_position,
                             int32_t path[TREE_MAX_NODES])
{
    int32_t depth = t->nodes[node].depth;
    const sampler_context place = {.position = root_position + depth + 1,
                                   .at = tree_cursor(t, node),
                                   .drafted = path,
                                   .n_drafted = depth};
    for (int32_t i = node; i > 0; i = t->nodes[i].parent)
        path[--depth] = t->nodes[i].token;
    return place;
}

/* More may be certain than a token: a chain of such nodes grows token by token. */
bool tree_expand_forced(token_tree *t, int32_t i)
{
    tree_node *node = &t->nodes[i];
    if (!t->grammar)
        return false;
    bool over = grammar_is_over(t->grammar, &t->state[i]);
    int32_t token = over ? -1 : grammar_forced(t->grammar, &t->state[i]);
    if (token < 0 && !over)
        return false;
    node->expanded = node->copied = node->forced = true;
    node->n_guesses = token >= 0;
    node->guess[0] = (candidate){token, USUAL_FORCED};
    return true;
}

int32_t tree_push(token_tree *t, int32_t parent, int32_t token, float confidence)
{
    assert(parent >= 0 && parent < t->n_nodes);
    int32_t present = tree_child(t, parent, token);
    if (present >= 0)
        return present;
    assert(t->n_nodes < TREE_MAX_NODES);
    const tree_node *p = &t->nodes[parent];
    float c = clamp_confidence(confidence);
    t->nodes[t->n_nodes] = (tree_node){.token = token,
                                       .parent = parent,
                                       .depth = p->depth + 1,
                                       .confidence = c,
                                       .cumulative = p->cumulative * c};
    t->state[t->n_nodes] =
        t->grammar ? grammar_follow(t->grammar, &t->state[parent], token) : GRAMMAR_NOWHERE;
    t->n_nodes++;
    assert(node_is_valid(t, t->n_nodes - 1));
    return t->n_nodes - 1;
}

int32_t tree_child(const token_tree *t, int32_t node, int32_t token)
{
    for (int32_t i = node + 1; i < t->n_nodes; i++) {
        if (t->nodes[i].parent == node && t->nodes[i].token == token)
            return i;
    }
    return -1;
}

/* Returns whether node i comes before node j. Ancestors come before their descendants. */
static bool goes_before(const token_tree *t, int32_t i, int32_t j)
{
    float a = t->nodes[i].cumulative, b = t->nodes[j].cumulative;
    return a > b || (a == b && i < j);
}

void tree_submit(token_tree *t, int32_t most)
{
    assert(most >= 0 && most <= TREE_MAX_DRAFTED);
    for (int32_t i = 0; i < t->n_nodes; i++) {
        int32_t n_before = 0;
        for (int32_t j = 0; j < t->n_nodes; j++)
            n_before += goes_before(t, j, i);
        t->nodes[i].submitted = n_before <= most;
    }
    assert(tree_is_valid(t));
}

bool tree_moves(const token_tree *t, const int32_t *path, int32_t n_path, int32_t next,
                int32_t moved[TREE_MAX_NODES])
{
    int32_t root = tree_child(t, n_path ? path[n_path - 1] : 0, next);
    int32_t n = 0;
    for (int32_t i = 0; i < t->n_nodes; i++) {
        int32_t parent = t->nodes[i].parent;
        bool stays = i == root || (root >= 0 && i > root && moved[parent] >= 0);
        moved[i] = stays ? n++ : -1;
    }
    return root >= 0;
}

void tree_reroot(token_tree *t, int32_t next, const int32_t moved[TREE_MAX_NODES])
{
    int32_t n = 0;
    for (int32_t i = 0; i < t->n_nodes; i++) {
        if (moved[i] < 0)
            continue;
        tree_node node = t->nodes[i]; /* moved[i] <= i: nothing is overwritten before it is moved */
        node.submitted = node.provisional = false;
        node.expanded = node.n_guesses > 0;
        node.copied = node.copied && node.expanded;
        node.forced = node.forced && node.expanded;
        node.parent = n ? moved[node.parent] : -1;
        node.depth = n ? t->nodes[node.parent].depth + 1 : 0;
        node.confidence = n ? node.confidence : 1;
        node.cumulative = n ? t->nodes[node.parent].cumulative * node.confidence : 1;
        t->state[n] = t->state[i];
        t->nodes[n++] = node;
    }
    t->n_nodes = n;
    if (n == 0)
        tree_begin(t, next, t->grammar);
    else if (t->grammar)
        t->state[0] = grammar_now(t->grammar);
    assert(t->nodes[0].token == next && tree_is_valid(t));
}
