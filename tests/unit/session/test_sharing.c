/* Sessions that share passes: whose nodes go into a pass, how many rows of prompts it has as well,
 * and steps of the draft for several trees, which guess what each alone would. */
#include "policy/shared_drafting.h"
#include "session/sharing.h"
#include "support/policy_memory.h"
#include "support/toy_models.h"
#include "support/tree_path.h"

/* ---- Which nodes ---- */

typedef struct member {
    policy_memory memory;
    token_tree tree;
} member;

static shared_tree enter(member *m, turn_cost *cost, const policy_class *class, int32_t size)
{
    tree_reset(&m->tree, 7);
    shared_tree t = {.policy = policy_init(&m->memory, class, size, 0), .tree = &m->tree};
    t.policy->cost = cost;
    t.max_depth = 10;
    return t;
}

TEST(test_best_of_all)
{
    turn_cost cost = small_pass(1);
    member sure, doubtful;
    shared_tree trees[2] = {enter(&sure, &cost, &policy_optimal, 20),
                            enter(&doubtful, &cost, &policy_optimal, 20)};
    shared_drafting c = {.trees = trees, .n = 2, .most = 20};
    int32_t at = 0;
    for (int32_t i = 0; i < 4; i++) /* 0.9, 0.81, 0.729, 0.656 */
        at = tree_push(&sure.tree, at, 10 + i, 0.9f);
    tree_push(&doubtful.tree, 0, 20, 0.75f);
    tree_push(&doubtful.tree, 0, 21, 0.2f);
    /* Two roots; 4 rows take as long: 2 + 0.9 + 0.81 in 1 s. A fifth row, 0.75: 4.46 in 1.5 s. */
    shared_drafting_submit(&c);
    assert_int_equal(tree_n_submitted(&sure.tree), 2);
    assert_int_equal(tree_n_submitted(&doubtful.tree), 0);
    assert_true(doubtful.tree.nodes[0].submitted);
    /* Reads take 2 s: so do 6 rows, for 2 + 0.9 + 0.81 + 0.75 + 0.729 tokens; and 7, in 2.5 s,
     * would add 0.656: 2.34 a second instead of 2.59. */
    cost.read_s = 2;
    shared_drafting_submit(&c);
    assert_int_equal(tree_n_submitted(&sure.tree), 3);
    assert_int_equal(tree_n_submitted(&doubtful.tree), 1);
    /* Room for one: the best. */
    c.most = 1;
    shared_drafting_submit(&c);
    assert_int_equal(tree_n_submitted(&sure.tree), 1);
    assert_int_equal(tree_n_submitted(&doubtful.tree), 0);
    /* Of equal ones the older tree's. */
    tree_reset(&sure.tree, 7);
    tree_push(&sure.tree, 0, 10, 0.75f);
    shared_drafting_submit(&c);
    assert_int_equal(tree_n_submitted(&sure.tree), 1);
    assert_int_equal(tree_n_submitted(&doubtful.tree), 0);
}

/* ---- Which steps ---- */

/* Guesses two tokens below each node, and counts. */
typedef struct guesser {
    drafter base;
    float confidence;
    int32_t n_expanded;
} guesser;
static int32_t n_shared, n_nodes_shared;

static drey_status guess_node(drafter *d, token_tree *t, const int32_t *nodes, int32_t n,
                              drey_error *err)
{
    guesser *g = (guesser *)d;
    for (int32_t i = 0; i < n; i++) {
        const candidate two[] = {{nodes[i] * 2 + 1, g->confidence},
                                 {nodes[i] * 2 + 2, (1 - g->confidence) / 2}};
        tree_guess(t, nodes[i], two, 2);
        g->n_expanded++;
    }
    return DREY_OK;
}

static drey_status guess_all(const draft_step *steps, int32_t n, drey_error *err)
{
    n_shared++;
    for (int32_t i = 0; i < n; i++) {
        n_nodes_shared += steps[i].n;
        guess_node(steps[i].drafter, steps[i].tree, steps[i].nodes, steps[i].n, err);
    }
    return DREY_OK;
}

static const drafter_class guesses = {.expand = guess_node, .expand_all = guess_all};

/* Chains of four tokens in three trees: four steps, not twelve. */
TEST(test_steps_are_shared)
{
    member m[3];
    guesser g[3];
    shared_tree trees[3];
    for (int i = 0; i < 3; i++) {
        g[i] = (guesser){.base.class = &guesses, .confidence = 0.8f};
        trees[i] = enter(&m[i], NULL, &policy_sequence, 4);
        trees[i].drafter = &g[i].base;
    }
    shared_drafting c = {.trees = trees, .n = 3, .most = 20};
    n_shared = n_nodes_shared = 0;
    MUST(shared_drafting_grow, &c);
    assert_int_equal(n_shared, 4);
    assert_int_equal(n_nodes_shared, 12);
    shared_drafting_submit(&c);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tree_n_submitted(&m[i].tree), 4);
        assert_int_equal(g[i].base.n_steps, 4);
        assert_int_equal(trees[i].policy->size, 4);
    }
    /* Room for seven: three, two and two. */
    c.most = 7;
    for (int i = 0; i < 3; i++)
        tree_reset(&m[i].tree, 7);
    MUST(shared_drafting_grow, &c);
    shared_drafting_submit(&c);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tree_n_submitted(&m[i].tree), i == 0 ? 3 : 2);
}

/* Reads make even a pass of few rows long: the tree of the surer draft grows deeper. */
TEST(test_steps_go_where_they_pay)
{
    turn_cost cost = small_pass(1);
    member m[2];
    guesser g[2];
    shared_tree trees[2];
    cost.read_s = 3;
    for (int i = 0; i < 2; i++) {
        g[i] = (guesser){.base.class = &guesses, .confidence = i == 0 ? 0.97f : 0.35f};
        trees[i] = enter(&m[i], &cost, &policy_optimal, 20);
        trees[i].drafter = &g[i].base;
    }
    shared_drafting c = {.trees = trees, .n = 2, .most = 20};
    MUST(shared_drafting_grow, &c);
    shared_drafting_submit(&c);
    assert_true(g[0].n_expanded > g[1].n_expanded);
    assert_true(tree_n_submitted(&m[0].tree) > tree_n_submitted(&m[1].tree));
    assert_true(tree_n_submitted(&m[0].tree) + tree_n_submitted(&m[1].tree) <=
                6); /* 8 rows take 3 s */
}

/* ---- Rows of prompts ---- */

TEST(test_rows_of_prompts)
{
    drey_engine e = {.cost = small_pass(1)};
    drey_session s[3];
    drey_session *list[3];
    int32_t rows[3];
    static const int32_t left[] = {100, 9, 30};
    for (int i = 0; i < 3; i++) {
        list[i] = &s[i];
        s[i].engine = &e;
        s[i].n_timeline = 50 + left[i];
        s[i].target_cache.n_committed = 50;
    }
    /* Nobody waits: all 60 rows. A half evenly, then the shortest: 9 (all), 10 + 20, 10 + 11. */
    sharing_prompt_rows(list, 3, 0, 60, rows);
    assert_int_equal(rows[1], 9);
    assert_int_equal(rows[2], 30);
    assert_int_equal(rows[0], 21);
    /* With 24 other rows, which take 11 s: 22 s are 46 rows. */
    sharing_prompt_rows(list, 3, 24, 60, rows);
    assert_int_equal(rows[0] + rows[1] + rows[2], 22);
    assert_true(rows[0] >= 3 && rows[1] >= 3 && rows[2] >= 3);
    /* With one other row: still two tiles. */
    sharing_prompt_rows(list, 3, 1, 60, rows);
    assert_int_equal(rows[0] + rows[1] + rows[2], 16);
    /* Where there is less room, that; and a row each. */
    sharing_prompt_rows(list, 3, 24, 3, rows);
    assert_true(rows[0] == 1 && rows[1] == 1 && rows[2] == 1);
    /* No more than there are. */
    sharing_prompt_rows(list, 3, 0, 1000, rows);
    assert_true(rows[0] == 100 && rows[1] == 9 && rows[2] == 30);
}

/* ---- A model's steps ---- */

enum { N_TEXTS = 4, N_PREDICT = 40 };

typedef struct text {
    int32_t ids[N_PREDICT], n;
    drey_statistics stats;
} text;

static bool keep_id(void *user, int32_t id)
{
    text *t = user;
    t->ids[t->n++] = id;
    return true;
}

static void begin_text(drey_session *s, int which, text *t)
{
    int32_t prompt[20];
    rng r = rng_from((uint64_t)which);
    for (int i = 0; i < 20; i++)
        prompt[i] = 1 + rng_below(&r, 250);
    drey_generate_options g = greedy(N_PREDICT);
    g.on_token = keep_id;
    g.user = t;
    *t = (text){.n = 0};
    MUST(drey_session_sync, s, prompt, 20, NULL);
    MUST(drey_session_begin, s, &g, &t->stats);
}

static drey_engine_options chains_of_four(void)
{
    toy_options toy = toy_default();
    toy.n_embd = 128;
    toy.n_ff = 256;
    toys_open_pair(&toy);
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 80, 1);
    o.policy = DREY_POLICY_SEQUENCE;
    o.draft_tokens = 4;
    o.n_sessions = N_TEXTS;
    static const drey_research no_waits = {.without = DREY_WITHOUT(DREY_PART_PROVISIONAL)};
    o.research = &no_waits;
    return o;
}

/* Chains of four, which are the same whatever the time: what each drafts and what of it the target
 * takes do not depend on the others either. */
TEST(test_guesses_stay)
{
    const drey_engine_options o = chains_of_four();
    drey_engine *e = NULL;
    drey_session *s[N_TEXTS];
    text alone[N_TEXTS], shared[N_TEXTS];
    const engine_hooks hooks = {.untimed = true};
    int32_t n_writing;
    MUST(engine_open, &e, &o, &hooks);
    for (int i = 0; i < N_TEXTS; i++)
        MUST(drey_session_open, &s[i], e);
    for (int i = 0; i < N_TEXTS; i++) {
        begin_text(s[i], i, &alone[i]);
        for (bool done = false; !done;)
            MUST(drey_session_step, s[i], &done);
        drey_session_reset(s[i]);
    }
    for (int i = 0; i < N_TEXTS; i++)
        begin_text(s[i], i, &shared[i]);
    do
        MUST(drey_engine_step, e, &n_writing);
    while (n_writing);
    for (int i = 0; i < N_TEXTS; i++) {
        assert_int_equal(alone[i].n, N_PREDICT);
        assert_memory_equal(alone[i].ids, shared[i].ids, sizeof alone[i].ids);
        assert_int_equal(alone[i].stats.drafted, shared[i].stats.drafted);
        assert_int_equal(alone[i].stats.accepted, shared[i].stats.accepted);
        assert_true(alone[i].stats.accepted > 0);
        drey_session_close(&s[i]);
    }
    drey_engine_close(&e);
    toys_close(NULL);
}

/* While a prompt takes many passes, the other text gets a token from each of them. */
TEST(test_nobody_waits_for_a_prompt)
{
    drey_engine_options o = chains_of_four();
    drey_engine *e = NULL;
    drey_session *s[2];
    text first, second;
    int32_t n_writing, n_steps = 0;
    o.draft = NULL;
    o.drafter = DREY_DRAFTER_NONE;
    o.policy = DREY_POLICY_NONE;
    o.prompt_chunk = 4;
    MUST(drey_engine_open, &e, &o);
    for (int i = 0; i < 2; i++)
        MUST(drey_session_open, &s[i], e);
    begin_text(s[0], 0, &first);
    while (first.n == 0)
        MUST(drey_engine_step, e, &n_writing);
    int32_t before = first.n;
    begin_text(s[1], 1, &second);
    while (second.n == 0) {
        MUST(drey_engine_step, e, &n_writing);
        n_steps++;
    }
    assert_int_equal(n_steps, 5); /* 20 tokens, in fours */
    assert_int_equal(first.n, before + n_steps);
    do
        MUST(drey_engine_step, e, &n_writing);
    while (n_writing);
    for (int i = 0; i < 2; i++)
        drey_session_close(&s[i]);
    drey_engine_close(&e);
    toys_close(NULL);
}
