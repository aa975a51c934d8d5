/* Nodes that are drafted while a verification waits: by hand on a small tree, and against a search
 * of everything there is on random ones. */
#include "policy/provisional.h"
#include "support/rng.h"
#include "support/test.h"
#include "support/tree_path.h"

enum { END = 9 };

static bool is_nine(const void *user, int32_t token)
{
    return token == END;
}

static const provisional_rules all_rules = {
    .max_depth = 1000, .batch = 8, .ranks = 8, .is_end = is_nine};

/*  0 root --+-- 1 "1" .8 --+-- 3 "3" .5 (not expanded)     guesses of 1: 3 .5, 4 .25, 5 .125
 *           |              (.4)                            guesses of 0: 1 .8, 2 .1, 6 .05, 9 .04
 *           +-- 2 "2" .1 (not expanded)
 * All but node 2 are submitted. */
static void small_tree(token_tree *t)
{
    tree_reset(t, 7);
    tree_guess(t, 0, (candidate[]){{1, 0.8f}, {2, 0.1f}, {6, 0.05f}, {END, 0.04f}}, 4);
    assert_int_equal(tree_push(t, 0, 1, 0.8f), 1);
    assert_int_equal(tree_push(t, 0, 2, 0.1f), 2);
    tree_guess(t, 1, (candidate[]){{3, 0.5f}, {4, 0.25f}, {5, 0.125f}}, 3);
    assert_int_equal(tree_push(t, 1, 3, 0.5f), 3);
    for (int32_t i = 0; i < 4; i++)
        t->nodes[i].submitted = i != 2;
    assert_true(tree_is_valid(t));
}

static void check(const provisional_rules *rules, token_tree *t, const int32_t *tokens, int32_t n)
{
    int32_t nodes[DRAFT_MAX_BATCH];
    assert_int_equal(provisional_next(rules, t, nodes), n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(t->nodes[nodes[i]].token, tokens[i]);
    assert_true(tree_is_valid(t));
}

/* .4 "3"; .2 "4" below "1"; .1 "2" and .1 "5" (nodes before guesses); .05 "6"; "9" ends
 * the text. */
TEST(best_first)
{
    token_tree t;
    small_tree(&t);
    check(&all_rules, &t, (int32_t[]){3, 4, 2, 5, 6}, 5);
    assert_int_equal(t.n_nodes, 7); /* "4", "5", "6" are nodes now */
    assert_int_equal(t.nodes[4].parent, 1);
    assert_int_equal(t.nodes[6].parent, 0);
    assert_true(t.nodes[4].cumulative == 0.8f * 0.25f);
    for (int32_t i = 4; i < 7; i++)
        assert_true(!t.nodes[i].submitted && !t.nodes[i].expanded);
    /* Asked again before anything was expanded: the same, and no node twice. */
    check(&all_rules, &t, (int32_t[]){3, 4, 2, 5, 6}, 5);
    assert_int_equal(t.n_nodes, 7);
}

TEST(a_smaller_batch)
{
    token_tree t;
    small_tree(&t);
    provisional_rules rules = all_rules;
    rules.batch = 2;
    check(&rules, &t, (int32_t[]){3, 4}, 2);
    assert_int_equal(t.n_nodes, 5); /* the others have not become nodes */
    tree_guess(&t, 3, (candidate[]){{8, 0.75f}}, 1);
    tree_guess(&t, 4, NULL, 0);
    check(&rules, &t, (int32_t[]){8, 2}, 2); /* .3, .1 */
}

TEST(ranks_depth_and_least)
{
    static const struct {
        int32_t ranks, max_depth;
        float least;
        int32_t n, tokens[2];
    } cases[] = {{1, 1000, 0, 2, {3, 2}}, /* chains */
                 {8, 2, 0, 2, {2, 6}},    /* "3" and its like have nothing below them */
                 {8, 1, 0, 0, {0}},
                 {8, 1000, 0.15f, 2, {3, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        token_tree t;
        provisional_rules rules = all_rules;
        rules.ranks = cases[i].ranks;
        rules.max_depth = cases[i].max_depth;
        rules.least = cases[i].least;
        small_tree(&t);
        check(&rules, &t, cases[i].tokens, cases[i].n);
        assert_true(i > 0 || t.n_nodes == 4);
    }
}

TEST(a_root_that_nobody_expanded)
{
    token_tree t;
    tree_reset(&t, END); /* what precedes the text may be anything */
    check(&all_rules, &t, (int32_t[]){END}, 1);
}

/* An end of the text that a policy has put into the tree. */
TEST(nothing_below_an_end)
{
    token_tree t;
    tree_reset(&t, 7);
    tree_guess(&t, 0, (candidate[]){{END, 0.9f}}, 1);
    tree_push(&t, 0, END, 0.9f);
    check(&all_rules, &t, NULL, 0);
}

static float doubled(const void *user, int32_t rank, float confidence)
{
    return rank == 0 ? confidence : *(const float *)user * confidence;
}

/* "4" has .8 * .5 = .4 after node "3", which keeps its policy's confidence; "5" and "2" have .2
 * and .1. */
TEST(calibrated_guesses)
{
    token_tree t;
    small_tree(&t);
    provisional_rules rules = all_rules;
    rules.calibrate = doubled;
    rules.calibrate_user = &(float){2};
    check(&rules, &t, (int32_t[]){3, 4, 5, 2, 6}, 5);
    assert_true(t.nodes[4].confidence == 0.5f && t.nodes[5].confidence == 0.25f);
}

TEST(a_full_tree)
{
    token_tree t;
    tree_reset(&t, 7);
    candidate two[] = {{1, 0.9f}, {2, 0.05f}};
    for (int32_t i = 0; t.n_nodes < TREE_MAX_NODES; i++) {
        tree_guess(&t, i, two, 2);
        tree_push(&t, i, 1, 0.9f);
    }
    check(&all_rules, &t, (int32_t[]){1}, 1); /* the end of the chain; no guess has room */
    tree_guess(&t, TREE_MAX_NODES - 1, two, 2);
    check(&all_rules, &t, NULL, 0);
    assert_int_equal(t.n_nodes, TREE_MAX_NODES);
}

/* ---- Random trees ---- */

static void random_guesses(token_tree *t, int32_t node, rng *r)
{
    candidate c[TREE_MAX_GUESSES];
    int32_t n = rng_below(r, TREE_MAX_GUESSES + 1), first = rng_below(r, 4);
    for (int32_t i = 0; i < n; i++)
        c[i] = (candidate){.token = first + i, .confidence = (float)(0.01 + 0.5 * rng_unit(r))};
    tree_guess(t, node, c, n);
}

/* The value of what the next step may still take, the best of all; 0: nothing. */
static float best_left(const provisional_rules *rules, const token_tree *t, const int32_t *taken,
                       int32_t n_taken)
{
    float best = 0;
    for (int32_t i = 0; i < t->n_nodes; i++) {
        const tree_node *node = &t->nodes[i];
        bool is_taken = false;
        for (int32_t j = 0; j < n_taken; j++)
            is_taken = is_taken || taken[j] == i;
        if (!is_taken && !node->expanded && node->depth < rules->max_depth &&
            (i == 0 || node->token != END) && node->cumulative > best)
            best = node->cumulative;
        for (int32_t j = 0; j < node->n_guesses; j++)
            if (tree_child(t, i, node->guess[j].token) < 0 && node->guess[j].token != END &&
                node->depth + 1 < rules->max_depth &&
                node->cumulative * node->guess[j].confidence > best)
                best = node->cumulative * node->guess[j].confidence;
    }
    return best;
}

/* Each step takes the best there is: its values fall, and nothing that is left is better. */
TEST(random_trees)
{
    rng r = rng_from(5);
    for (int round = 0; round < 200; round++) {
        token_tree t;
        provisional_rules rules = all_rules;
        rules.max_depth = 2 + rng_below(&r, 9);
        rules.batch = 1 + rng_below(&r, DRAFT_MAX_BATCH);
        tree_reset(&t, 1);
        for (int step = 0;; step++) {
            int32_t nodes[DRAFT_MAX_BATCH], n = provisional_next(&rules, &t, nodes);
            float left = best_left(&rules, &t, nodes, n);
            assert_true(tree_is_valid(&t));
            assert_true(n == rules.batch || left == 0 || t.n_nodes == TREE_MAX_NODES);
            for (int32_t i = 0; i < n; i++) {
                const tree_node *node = &t.nodes[nodes[i]];
                assert_true(!node->expanded && node->depth < rules.max_depth);
                assert_true(node->parent < 0 || t.nodes[node->parent].expanded);
                assert_true(i == 0 || t.nodes[nodes[i - 1]].cumulative >= node->cumulative);
                assert_true(t.n_nodes == TREE_MAX_NODES || node->cumulative >= left);
                random_guesses(&t, nodes[i], &r);
            }
            if (n == 0)
                break;
            assert_true(step < TREE_MAX_NODES);
        }
    }
}
