/* Guesses of two sources for one tree: what a mixture gives by hand, what is learnt of it, and a
 * drafter of which each half knows what the other does not. */
#include "draft/blend.h"
#include "policy/policy.h"
#include "support/policy_memory.h"
#include "support/scene.h"
#include "support/tree_path.h"

enum { CAPACITY = 200 };

#define near(got, want) assert_near(got, want, 1e-4)

/* ---- The mixture ---- */

/* Tokens 5 and 6 of the one, 7 and 5 of the other. */
static blend_guesses two_opinions(void)
{
    return (blend_guesses){.guess = {{.token = 5, .inner = 0.6f, .text = 0.1f},
                                     {.token = 6, .inner = 0.2f},
                                     {.token = 7, .text = 0.3f}},
                           .n = 3};
}

TEST(a_mixture_by_hand)
{
    blend_trust t = {.places = {{0}}};
    blend_guesses g = two_opinions();
    blend_weigh(&t, &g);
    /* w = 0.6 / (0.6 + 0.3); both have 5; neither's are 2/3 of 0.2 and 1/3 of 0.6. */
    const double all = 3 * (2 / 3.0 * 0.6 + 1 / 3.0 * 0.1) + 2 / 3.0 * 0.2 + 1 / 3.0 * 0.3 +
                       2 / 3.0 * 0.2 + 1 / 3.0 * 0.6;
    assert_int_equal(g.guess[0].token, 5);
    near(g.guess[0].value, 3 * (2 / 3.0 * 0.6 + 1 / 3.0 * 0.1) / all);
    assert_int_equal(g.guess[1].token, 6);
    near(g.guess[1].value, 2 / 3.0 * 0.2 / all);
    assert_int_equal(g.guess[2].token, 7);
    near(g.guess[2].value, 1 / 3.0 * 0.3 / all);
    /* One of them says nothing: the other's values are as they were. */
    blend_guesses alone = {.guess = {{.token = 7, .text = 0.3f}, {.token = 8, .text = 0.5f}},
                           .n = 2};
    blend_weigh(&t, &alone);
    assert_int_equal(alone.guess[0].token, 8);
    near(alone.guess[0].value, 0.5);
    near(alone.guess[1].value, 0.3);
}

TEST(what_came_moves_the_weight)
{
    blend_trust t = {.places = {{0}}};
    blend_guesses g = two_opinions();
    blend_weigh(&t, &g);
    /* Token 5 is the one's for 0.4 of 0.4333, 7 the other's alone; 9 is nobody's. */
    blend_learn(&t, &g, 5);
    near(t.places[2][1], 1);
    near(t.inner[2][1], 0.4 / (0.4 + 0.1 / 3));
    blend_learn(&t, &g, 9);
    near(t.places[2][1], 1);
    float before = t.inner[2][1];
    blend_learn(&t, &g, 7);
    near(t.places[2][1], 2);
    near(t.inner[2][1], (double)before);
    g = two_opinions();
    blend_weigh(&t, &g);
    double w = ((double)before + 8 * (2 / 3.0)) / (2 + 8);
    double both = w * 0.6 + (1 - w) * 0.1, rest = 1 - w * 0.8 - (1 - w) * 0.4;
    near(g.guess[0].value, 3 * both / (3 * both + w * 0.2 + (1 - w) * 0.3 + rest));
    /* Always the other one: in the end it is believed alone. */
    for (int i = 0; i < 1000; i++)
        blend_learn(&t, &g, 7);
    g = two_opinions();
    blend_weigh(&t, &g);
    assert_int_equal(g.guess[2].token, 6);
    assert_true(g.guess[2].value < 0.02f);
    assert_true(t.places[2][1] < 256);
}

/* ---- An inner drafter whose guesses the tests set ---- */

typedef struct scripted {
    drafter base;
    candidate guess[TREE_MAX_GUESSES];
    int32_t n;
    int32_t deepest;                         /* it guesses after nodes of less depth */
    int32_t n_asked;                         /* nodes */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes; /* nodes of its step */
    int32_t n_tops, n_reroots;
} scripted;

static drey_status scripted_begin(drafter *d, const int32_t *tokens, int32_t n, drey_error *err)
{
    return DREY_OK;
}

static bool scripted_can_guess(const drafter *d, const token_tree *tree, int32_t node)
{
    return tree->nodes[node].depth < ((const scripted *)d)->deepest;
}

static drey_status scripted_expand(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                   drey_error *err)
{
    scripted *t = (scripted *)d;
    t->n_asked += n;
    for (int32_t i = 0; i < n; i++) {
        assert_true(scripted_can_guess(d, tree, nodes[i]));
        tree_guess(tree, nodes[i], t->guess, t->n);
    }
    return DREY_OK;
}

static drey_status scripted_start(drafter *d, const token_tree *tree, const int32_t *nodes,
                                  int32_t n, drey_error *err)
{
    scripted *t = (scripted *)d;
    memcpy(t->nodes, nodes, (size_t)n * sizeof *nodes);
    t->n_nodes = n;
    return DREY_OK;
}

static drey_status scripted_advance(drafter *d, token_tree *tree, int64_t until_ns, bool *done,
                                    drey_error *err)
{
    scripted *t = (scripted *)d;
    *done = until_ns == 0;
    return *done ? scripted_expand(d, tree, t->nodes, t->n_nodes, err) : DREY_OK;
}

static void scripted_give_up(drafter *d)
{
    ((scripted *)d)->n_nodes = 0;
}

static void scripted_reroot(drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                            int32_t next, const int32_t *moved)
{
    ((scripted *)d)->n_reroots++;
}

static const drafter_steps steps = {scripted_start, scripted_advance, scripted_give_up};
static const drafter_class scripted_class = {.begin = scripted_begin,
                                             .can_guess = scripted_can_guess,
                                             .expand = scripted_expand,
                                             .steps = &steps,
                                             .reroot = scripted_reroot};

typedef struct bench {
    void *memory;
    scripted inner;
    sampler sampler;
    drafter *d;
    token_tree tree;
} bench;

static bench b; /* its memory stays until the next one opens */

static void open_bench(const int32_t *tokens, int32_t n)
{
    free(b.memory);
    memset(&b, 0, sizeof b);
    b.memory = calloc(1, blend_bytes(CAPACITY));
    assert_non_null(b.memory);
    b.inner = (scripted){.base = {.class = &scripted_class}, .deepest = 1000};
    b.d = blend_init(b.memory, CAPACITY, &b.inner.base, &b.sampler, NULL, NULL, false);
    MUST(b.d->class->begin, b.d, tokens, n);
    tree_reset(&b.tree, tokens[n - 1]);
}

static void inner_guesses(const candidate *guess, int32_t n)
{
    memcpy(b.inner.guess, guess, (size_t)n * sizeof *guess);
    b.inner.n = n;
}

static const tree_node *expand(int32_t node)
{
    MUST(b.d->class->expand, b.d, &b.tree, &node, 1);
    assert_true(tree_is_valid(&b.tree));
    return &b.tree.nodes[node];
}

static void continue_writing(int32_t next)
{
    int32_t moved[TREE_MAX_NODES];
    tree_moves(&b.tree, NULL, 0, next, moved);
    b.d->class->reroot(b.d, &b.tree, NULL, 0, next, moved);
    tree_reroot(&b.tree, next, moved);
}

static const int32_t repeated[] = {1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3, 8, 5, 2, 3, 9, 1, 2, 3};
static const int32_t fresh[] = {20, 21, 22, 23, 24, 25};
enum { N_REPEATED = sizeof repeated / sizeof *repeated, N_FRESH = sizeof fresh / sizeof *fresh };

TEST(one_knows_what_the_other_does_not)
{
    open_bench(repeated, N_REPEATED); /* after 1 2 3: 8 twice and 7; after 2 3: also 9 */
    const tree_node *root = expand(0);
    assert_int_equal(root->n_guesses, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(root->guess[i].token, 8 - i + 3 * (i == 2));
        assert_int_equal(root->source[i], SOURCE_TEXT);
    }
    open_bench(fresh, N_FRESH);
    inner_guesses((candidate[]){{31, 0.7f}, {32, 0.1f}}, 2);
    root = expand(0);
    assert_int_equal(root->n_guesses, 2);
    assert_int_equal(root->guess[0].token, 31);
    near(root->guess[0].confidence, 0.7);
    near(root->guess[1].confidence, 0.1);
    assert_int_equal(root->source[0], SOURCE_DRAFT);
}

/* The best 8 of both, each with its source. */
TEST(both_guess)
{
    open_bench(repeated, N_REPEATED);
    for (int32_t i = 0; i < TREE_MAX_GUESSES; i++)
        b.inner.guess[i] =
            (candidate){i == 1 ? 8 : 40 + i, i == 0 ? 0.3f : 0.09f - 0.01f * (float)i};
    b.inner.n = TREE_MAX_GUESSES;
    const tree_node *root = expand(0);
    int32_t of_both = 0, of_text = 0;
    float sum = 0;
    assert_int_equal(root->n_guesses, TREE_MAX_GUESSES);
    for (int32_t i = 0; i < TREE_MAX_GUESSES; i++) {
        for (int32_t k = 0; k < i; k++)
            assert_int_not_equal(root->guess[i].token, root->guess[k].token);
        assert_int_equal(root->source[i], root->guess[i].token == 8   ? SOURCE_DRAFT | SOURCE_TEXT
                                          : root->guess[i].token < 40 ? SOURCE_TEXT
                                                                      : SOURCE_DRAFT);
        of_both += root->guess[i].token == 8;
        of_text += root->source[i] == SOURCE_TEXT;
        sum += root->guess[i].confidence;
    }
    assert_int_equal(of_both, 1);
    assert_int_equal(of_text, 2);
    assert_true(sum <= 1.0001f);
}

/* A text that repeats itself: what follows is copied at once, to any depth, and the inner drafter
 * is not asked. Guesses below a node that the inner drafter cannot reach are lookup's. */
TEST(copies_take_no_step)
{
    int32_t round[150];
    for (int32_t i = 0; i < 150; i++)
        round[i] = i % 30;
    open_bench(round, 100);
    policy_memory memory;
    draft_policy *p = policy_init(memory.bytes, &policy_optimal, 12, 0);
    for (int32_t i = 100; i < 130; i++) { /* it has to see that copies are right */
        draft_expand_free(b.d, p, &b.tree, 20);
        if (!b.tree.nodes[0].expanded)
            expand(0);
        continue_writing(round[i]);
        tree_reset(&b.tree, round[i]);
    }
    b.inner.n_asked = 0;
    MUST(draft_grow, b.d, p, &b.tree, 20);
    assert_int_equal(b.inner.n_asked, 0);
    assert_true(b.tree.nodes[0].copied && b.tree.n_nodes == 13);
    for (int32_t i = 1; i < b.tree.n_nodes; i++)
        assert_int_equal(b.tree.nodes[i].token, (129 + i) % 30);
    /* Heads of depth 1: the root is theirs, and 8's children are not. */
    open_bench(repeated, N_REPEATED);
    b.inner.deepest = 1;
    inner_guesses(&(candidate){8, 0.6f}, 1);
    p = policy_init(memory.bytes, &policy_optimal, 12, 0);
    MUST(draft_grow, b.d, p, &b.tree, 20);
    assert_int_equal(b.inner.n_asked, 1);
    int32_t child = tree_child(&b.tree, 0, 8);
    assert_true(child > 0 && b.tree.nodes[child].copied && !b.tree.nodes[0].copied);
    assert_int_equal(b.tree.nodes[child].n_guesses, 2); /* 5 and 1 */
}

/* While the inner drafter has not read the prompt, guesses are lookup's, and it is not asked. */
TEST(lookup_alone_while_the_other_lags)
{
    open_bench(repeated, N_REPEATED);
    inner_guesses(&(candidate){50, 0.9f}, 1);
    assert_true(b.d->class->guesses_unread);
    b.d->lags = true;
    policy_memory memory;
    draft_policy *p = policy_init(memory.bytes, &policy_optimal, 12, 0);
    MUST(draft_grow, b.d, p, &b.tree, 20);
    assert_int_equal(b.inner.n_asked, 0);
    assert_true(b.tree.n_nodes > 3 && b.tree.nodes[1].token == 8);
    continue_writing(8);
    b.d->lags = false;
    assert_int_equal(expand(0)->guess[0].token, 50);
}

/* A step in parts: the nodes get theirs when it is over, and not when it is given up. */
TEST(steps_in_parts)
{
    int32_t root = 0;
    bool done = true;
    open_bench(repeated, N_REPEATED);
    inner_guesses(&(candidate){50, 0.4f}, 1);
    drafter *d = b.d;
    MUST(d->class->steps->start, d, &b.tree, &root, 1);
    MUST(d->class->steps->advance, d, &b.tree, 1, &done);
    assert_true(!done && !b.tree.nodes[0].expanded);
    d->class->steps->give_up(d);
    MUST(d->class->steps->start, d, &b.tree, &root, 1);
    MUST(d->class->steps->advance, d, &b.tree, 0, &done);
    assert_true(done && b.tree.nodes[0].expanded);
    assert_int_equal(b.tree.nodes[0].n_guesses, 4);
    /* A step of nodes that it cannot reach is over at once. */
    b.inner.deepest = 1;
    int32_t child = tree_push(&b.tree, 0, 8, 0.5f);
    MUST(d->class->steps->start, d, &b.tree, &child, 1);
    MUST(d->class->steps->advance, d, &b.tree, 1, &done);
    assert_true(done && b.tree.nodes[child].n_guesses == 2);
}

/* Both follow the text: a child that stays keeps whose its guesses were, and is judged by that. */
TEST(going_on)
{
    open_bench(repeated, N_REPEATED);
    blend_drafter *blend = (blend_drafter *)b.d;
    inner_guesses(&(candidate){8, 0.4f}, 1);
    expand(0);
    expand(tree_push(&b.tree, 0, 8, 0.5f)); /* lookup: 5 and 1; the other: 8 */
    continue_writing(8);
    assert_true(b.tree.nodes[0].expanded && b.inner.n_reroots == 1);
    assert_int_equal(blend->worth[0].n_positions, 1);
    float hits = 0, trials = 0;
    for (int i = 0; i < CALIBRATION_BINS; i++) {
        hits += blend->worth[0].hits[0][i];
        trials += blend->worth[0].trials[0][i];
    }
    assert_true(hits == 1 && trials == 1);
    continue_writing(5);
    trials = 0;
    for (int i = 0; i < CALIBRATION_BINS; i++)
        trials += blend->worth[0].trials[0][i];
    assert_true(trials == 2);
    /* The timeline ends in 1 2 3 8 5 now, which the text has once already. */
    b.inner.n = 0;
    assert_int_equal(expand(0)->guess[0].token, 2);
}
