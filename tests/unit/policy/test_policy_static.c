/* The policy `static`: shapes by hand, what a tree gets of them, and whole texts, each turn of
 * which submits the shape. */
#include "policy/policy.h"
#include "session/session.h"
#include "support/heads_file.h"
#include "support/policy_memory.h"
#include "support/toy_models.h"
#include "support/tree_path.h"

/* ---- Trees ---- */

/* Guesses after token t: 10 t + 1, 10 t + 2, ..., so that a token's digits are its path's ranks;
 * fewer after `poor`. */
typedef struct digits {
    drafter base;
    int32_t n_steps, n_nodes[16], poor;
} digits;

static drey_status digits_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                 drey_error *err)
{
    digits *d = (digits *)base;
    assert_true(d->n_steps < 16);
    d->n_nodes[d->n_steps++] = n;
    for (int32_t i = 0; i < n; i++) {
        candidate guess[3];
        int32_t token = tree->nodes[nodes[i]].token;
        assert_false(tree->nodes[nodes[i]].expanded);
        for (int32_t r = 0; r < 3; r++)
            guess[r] = (candidate){.token = 10 * token + 1 + r, .confidence = 0.5f};
        tree_guess(tree, nodes[i], guess, token == d->poor ? 1 : 3);
    }
    return DREY_OK;
}

static const drafter_class digits_class = {.expand = digits_expand};

/* 1 + .6 + .2 + .1 + .3 tokens, and so on: as in test_static_tree.c. */
static const drey_static_trees two_deep = {.share = {{0.6, 0.2, 0.1}, {0.5, 0.1, 0.05}}};

static void submits(const token_tree *tree, const char *want)
{
    char got[200] = "";
    size_t n = 0;
    assert_true(tree_is_valid(tree) && tree->nodes[0].submitted);
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].submitted)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", n ? " " : "",
                                  tree->nodes[i].token);
    assert_string_equal(got, want);
}

static void grow(digits *d, draft_policy *p, token_tree *tree, int32_t max_depth, int32_t most)
{
    *d = (digits){.base = {.class = &digits_class}, .poor = d->poor};
    MUST(draft_grow, &d->base, p, tree, max_depth);
    draft_submit(p, tree, most);
}

static draft_policy *policy_with(policy_memory *memory, int32_t size, uint64_t without,
                                 const drey_static_trees *trees)
{
    drey_profile known;
    drey_profile_init(&known);
    known.trees = trees;
    assert_true(policy_static.bytes <= sizeof memory->bytes);
    draft_policy *p = policy_init(memory, &policy_static, size, without);
    policy_static.seed(p, &known);
    return p;
}

TEST(shapes_by_hand)
{
    static const struct {
        int32_t size, max_depth, most;
        uint64_t without;
        const char *tokens;
        int32_t n_steps, n_nodes[3];
    } want[] = {
        {1, 9, 99, 0, "1", 1, {1}},
        {2, 9, 99, 0, "1 11", 2, {1, 1}},
        {3, 9, 99, 0, "1 2 11", 2, {1, 1}},
        {4, 9, 99, 0, "1 2 3 11", 2, {1, 1}},
        {5, 9, 99, 0, "1 2 3 11 21", 2, {1, 2}},
        {12, 9, 99, 0, "1 2 3 11 12 13 21 22 23 31 32 33", 2, {1, 3}},
        {127, 9, 99, 0, "1 2 3 11 12 13 21 22 23 31 32 33", 2, {1, 3}},
        {5, 1, 99, 0, "1 2 3", 1, {1}}, /* the text ends after the next token */
        {5, 0, 99, 0, "", 0, {0}},
        {5, 9, 4, 0, "1 2 3 11", 2, {1, 2}}, /* no room for all */
        {5, 9, 99, DREY_WITHOUT(DREY_PART_TREE), "1 11", 2, {1, 1}},
        {5, 9, 99, DREY_WITHOUT(DREY_PART_BATCHING), "1 2 3 11 21", 3, {1, 1, 1}},
        {0, 9, 99, 0, "", 0, {0}}, /* one token per pass is best */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        static token_tree tree;
        policy_memory memory;
        digits d = {.poor = -1};
        draft_policy *p = policy_with(&memory, want[i].size, want[i].without, &two_deep);
        tree_reset(&tree, 0);
        grow(&d, p, &tree, want[i].max_depth, want[i].most);
        submits(&tree, want[i].tokens);
        assert_int_equal(d.n_steps, want[i].n_steps);
        for (int32_t s = 0; s < d.n_steps; s++)
            assert_int_equal(d.n_nodes[s], want[i].n_nodes[s]);
    }
}

/* Where texts share a pass, each has a part of its rows: nothing is drafted that has none. */
TEST(a_share_of_the_rows)
{
    static token_tree tree;
    policy_memory memory;
    digits d = {.poor = -1};
    draft_policy *p = policy_with(&memory, 12, 0, &two_deep);
    p->size = 4;
    tree_reset(&tree, 0);
    grow(&d, p, &tree, 9, 99);
    submits(&tree, "1 2 3 11");
    assert_int_equal(tree.n_nodes, 5);
    assert_int_equal(d.n_steps, 2);
    assert_int_equal(d.n_nodes[1], 1);
}

/* Where no shares are known, they are a small model's usual ones: .75, .12, ... at each depth.
 * Seven nodes are a chain, .75 to .75^7 = .13; then comes .12. */
TEST(usual_shares)
{
    static token_tree tree;
    static const drey_static_trees nothing;
    policy_memory memory;
    digits d = {.poor = -1};
    tree_reset(&tree, 0);
    grow(&d, policy_with(&memory, 7, 0, &nothing), &tree, 99, 99);
    submits(&tree, "1 11 111 1111 11111 111111 1111111");
    tree_reset(&tree, 0);
    grow(&d, policy_with(&memory, 8, 0, NULL), &tree, 99, 99);
    submits(&tree, "1 2 11 111 1111 11111 111111 1111111");
}

/* What a place has no guess for, it has no nodes below either. */
TEST(places_without_a_guess)
{
    static token_tree tree;
    policy_memory memory;
    digits d = {.poor = 0};
    tree_reset(&tree, 0);
    grow(&d, policy_with(&memory, 5, 0, &two_deep), &tree, 9, 99);
    submits(&tree, "1 11");
    d.poor = 1;
    tree_reset(&tree, 0);
    grow(&d, policy_with(&memory, 12, 0, &two_deep), &tree, 9, 99);
    submits(&tree, "1 2 3 11 21 22 23 31 32 33");
}

/* Nodes that were drafted beyond the shape are none of it; those of it are not drafted again. */
TEST(what_was_drafted_ahead)
{
    static token_tree tree;
    policy_memory memory;
    digits d = {.poor = -1};
    draft_policy *p = policy_with(&memory, 4, 0, &two_deep);
    tree_reset(&tree, 0);
    const candidate guess[] = {{1, 0.5f}, {2, 0.5f}, {3, 0.5f}}, next[] = {{21, 0.5f}};
    tree_guess(&tree, 0, guess, 3);
    int32_t two = tree_push(&tree, 0, 2, 0.5f);
    tree_guess(&tree, two, next, 1);
    tree_push(&tree, two, 21, 0.5f);
    grow(&d, p, &tree, 9, 99);
    assert_int_equal(d.n_steps, 1);
    submits(&tree, "2 1 3 11");
}

/* ---- Shapes that were found ---- */

static drey_static_trees found(void)
{
    drey_static_trees t = two_deep;
    t.n_trees = 3;
    t.best = 1;
    t.tree[0] = (drey_static_tree){.width = 1, .n = 1, .measured_tokens = 1, .parent = {-1}};
    /* Refined: two second guesses that shares would not take. */
    t.tree[1] = (drey_static_tree){
        .width = 4, .n = 4, .measured_tokens = 2, .parent = {-1, 0, 0, 2}, .rank = {0, 0, 1, 1}};
    t.tree[2] = (drey_static_tree){
        .width = 8, .n = 3, .measured_tokens = 1.5, .parent = {-1, 0, 1}, .rank = {0, 0, 2}};
    return t;
}

TEST(found_shapes_win)
{
    static token_tree tree;
    policy_memory memory;
    digits d = {.poor = -1};
    drey_static_trees t = found();
    static const struct {
        int32_t size;
        uint64_t without;
        const char *tokens;
    } want[] = {{3, 0, "1 2 22"},
                {7, 0, "1 13"}, /* no more were ever right */
                {2, 0, "1 13"},
                {4, 0, "1 2 3 11"}, /* none of so many was found: from shares */
                {3, DREY_WITHOUT(DREY_PART_TREE), "1 11"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        tree_reset(&tree, 0);
        grow(&d, policy_with(&memory, want[i].size, want[i].without, &t), &tree, 9, 99);
        submits(&tree, want[i].tokens);
    }
    drey_profile known;
    drey_profile_init(&known);
    drey_engine_options o = {.policy = DREY_POLICY_STATIC, .profile = &known};
    assert_int_equal(policy_size(&o), 7);
    known.trees = &two_deep;
    assert_int_equal(policy_size(&o), 7);
    known.trees = &t;
    assert_int_equal(policy_size(&o), 3);
    o.exit = DREY_EXIT_FAST; /* whose text no measurement may change */
    assert_int_equal(policy_size(&o), 7);
    o.exit = DREY_EXIT_EXACT;
    t.best = 0;
    assert_int_equal(policy_size(&o), 0);
    o.tree_nodes = 12;
    assert_int_equal(policy_size(&o), 12);
}

TEST(what_is_no_tree)
{
    drey_static_trees t = found();
    const drey_profile p = {.trees = &t};
    assert_true(drey_profile_is_sound(&p));
#define BROKEN_BY(change) t = found(), change, assert_false(drey_profile_is_sound(&p))
    BROKEN_BY(t.best = 3);
    BROKEN_BY(t.n_trees = DREY_STATIC_TREES + 1);
    BROKEN_BY(t.share[1][2] = 1.01);
    BROKEN_BY(t.tree[1].parent[1] = 1);
    BROKEN_BY(t.tree[1].parent[1] = -1);
    BROKEN_BY(t.tree[1].rank[3] = DREY_STATIC_RANKS);
    BROKEN_BY(t.tree[1].rank[2] = 0);                              /* twice the same place */
    BROKEN_BY((t.tree[1].parent[2] = 1, t.tree[1].parent[3] = 0)); /* a level after the next */
    BROKEN_BY(t.tree[1].n = 5);
    BROKEN_BY(t.tree[2].measured_tokens = 0);
#undef BROKEN_BY
    t = found();
    t.tree[2].width = t.tree[2].n = 10; /* a chain of nine */
    for (int8_t i = 1; i < 10; i++)
        t.tree[2].parent[i] = (int8_t)(i - 1), t.tree[2].rank[i] = 0;
    assert_false(drey_profile_is_sound(&p));
    t.tree[2].n = 9;
    assert_true(drey_profile_is_sound(&p));
}

/* ---- Texts ---- */

enum { N_PROMPT = 12, N_TEXT = 40 };

typedef struct shape_watch {
    turn_watch watch;
    const drey_session *session;
    const char *want;
    int32_t n_turns;
} shape_watch;

static int32_t rank_of(const token_tree *tree, int32_t node)
{
    const tree_node *parent = &tree->nodes[tree->nodes[node].parent];
    int32_t rank = 0;
    while (parent->guess[rank].token != tree->nodes[node].token)
        rank++;
    assert_true(rank < parent->n_guesses);
    return rank;
}

/* Each submitted node by the ranks of its path, shallower ones first. */
static void look(turn_watch *w, const token_tree *tree, const accepted *a)
{
    shape_watch *s = (shape_watch *)w;
    char got[300] = "", words[64] = "";
    size_t n = 0;
    if (s->session->text.stats.generated_tokens > N_TEXT - 12)
        return; /* the text's end leaves no room for all */
    for (int32_t depth = 1; depth <= 8; depth++)
        for (int32_t i = 1; i < tree->n_nodes; i++) {
            int32_t path[9], length = tree_nodes_to(tree, i, path);
            if (!tree->nodes[i].submitted || length != depth)
                continue;
            for (int32_t d = 0; d < length; d++)
                words[d] = (char)('1' + rank_of(tree, path[d]));
            words[length] = 0;
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", n ? " " : "", words);
        }
    assert_string_equal(got, s->want);
    s->n_turns++;
}

static void writes_with(const drey_engine_options *o, const char *want)
{
    static int32_t prompt[N_PROMPT];
    drey_generate_options g = greedy(N_TEXT);
    drey_statistics stats = {0};
    drey_session *s = open_alone(o, NULL);
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 40 + 7 * i;
    shape_watch watch = {.watch.turn = look, .session = s, .want = want};
    s->turns.watch = &watch.watch;
    MUST(drey_session_generate, s, prompt, N_PROMPT, &g, &stats);
    assert_int_equal(stats.generated_tokens, N_TEXT);
    assert_true(watch.n_turns > 1);
    close_alone(&s);
}

TEST(turns_submit_the_shape)
{
    toy_options toy = toy_default();
    toy.n_layers = 4;
    toys_open_pair(&toy);
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    memset(h.shape.accuracy, 0, sizeof h.shape.accuracy);
    const float accuracy[2][3] = {{0.6f, 0.2f, 0.1f}, {0.5f, 0.1f, 0.05f}};
    for (int k = 0; k < 2; k++)
        memcpy(h.shape.accuracy[k], accuracy[k], sizeof accuracy[k]);
    heads_file_write(temp_path("target.gguf.drey-medusa"), &h);
    drey_engine_options o = plain_options(target, 96, 1);
    o.drafter = DREY_DRAFTER_MEDUSA;
    o.policy = DREY_POLICY_STATIC;
    o.research = &(drey_research){.without = DREY_WITHOUT(DREY_PART_PROVISIONAL)};
    o.tree_nodes = 5;
    writes_with(&o, "1 2 3 11 21");
    o.tree_nodes = 0; /* seven */
    writes_with(&o, "1 2 3 11 12 21 31");
    drey_profile known;
    drey_profile_init(&known);
    drey_static_trees t = found();
    known.trees = &t;
    o.profile = &known;
    writes_with(&o, "1 2 22");
    t.best = 0;
    writes_with(&o, "");
    t.best = 1;
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = draft;
    writes_with(&o, "1 2 22");
    o.profile = NULL;
    writes_with(&o, "1 11 111 1111 11111 111111 1111111");
    toys_close(state);
}
