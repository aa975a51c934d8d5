/* A pair of toys is measured, and a session that begins with what was found writes the
 * same text. */
#include "draft/medusa_drafter.h"
#include "drey/tune.h"
#include "engine/engine.h"
#include "tune/heads_truth.h"
#include "support/heads_file.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_PROMPT = 12, N_PREDICT = 40 };

static int32_t prompt[N_PROMPT];

static int open_toys(void **state)
{
    toy_options toy = toy_default();
    toy.n_layers = 4;
    toys_open_pair(&toy);
    for (int i = 0; i < N_PROMPT; i++)
        prompt[i] = 40 + 7 * i;
    return 0;
}

static const drey_tune_prompt prompts[] = {{prompt, N_PROMPT}, {prompt, N_PROMPT / 2}};
static const drey_tune_options tune = {.prompts = prompts, .n_prompts = 2, .n_predict = N_PREDICT};

static void measure(const drey_engine_options *o, drey_pair_report *report)
{
    MUST(drey_tune_pair, o, &tune, report);
}

static void rises(const double *seconds, int n)
{
    for (int i = 0; i < n; i++)
        if (!(seconds[i] > 0) || (i && seconds[i] < seconds[i - 1]))
            fail_msg("%d: %g s after %g s", i + 1, seconds[i], i ? seconds[i - 1] : 0);
}

/* Checks what is counted, whatever the clock says. */
static void check_trees(const drey_pair_report *r)
{
    assert_int_equal(r->trees.n_trees, DREY_STATIC_TREES);
    assert_true(r->trees.best >= 0 && r->trees.best < r->trees.n_trees);
    for (int32_t i = 0; i < r->trees.n_trees; i++) {
        const drey_static_tree *t = &r->trees.tree[i];
        assert_int_equal(t->width, 1 << i);
        assert_true(t->n >= 1 && t->n <= t->width && t->expected_tokens >= 1);
        assert_true(t->measured_tokens >= 1 && t->measured_tokens <= t->n);
        assert_true(i == 0 || t->expected_tokens >= r->trees.tree[i - 1].expected_tokens);
        assert_true(t->tokens_per_s <= r->trees.tree[r->trees.best].tokens_per_s);
        assert_true(fabs(t->tokens_per_s * (t->pass_s + t->draft_s) - t->measured_tokens) < 1e-6);
        for (int32_t node = 1; node < t->n; node++)
            assert_true(t->parent[node] >= 0 && t->parent[node] < node && t->rank[node] >= 0 &&
                        t->rank[node] < DREY_STATIC_RANKS);
    }
    /* A second node is the best guess after the root, right as often as it was counted. */
    assert_true(fabs(r->trees.tree[1].expected_tokens - 1 - r->trees.share[0][0]) < 1e-6);
}

static void check_counts(const drey_pair_report *r)
{
    float guessed = 0, right = 0;
    for (int rank = 0; rank < DREY_PROFILE_RANKS; rank++)
        for (int bin = 0; bin < DREY_PROFILE_BINS; bin++) {
            assert_true(r->profile.right[rank][bin] <= r->profile.guessed[rank][bin]);
            guessed += r->profile.guessed[rank][bin];
            right += r->profile.right[rank][bin];
        }
    assert_true(guessed >= (float)r->n_places && right > 0 && right <= (float)r->n_places);
    assert_true(r->n_places > 0 && r->n_places <= r->n_tokens);
    assert_int_equal(r->n_tokens, 2 * N_PREDICT);
}

/* Checks that this profile writes the same as one of nobody who drafts. */
static void writes_the_same(const drey_engine_options *with, const drey_profile *profile)
{
    static writing plain, known;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    writing_run(&plain, &o, -1, prompt, N_PROMPT, 60, NULL);
    o = *with;
    o.profile = profile;
    writing_run(&known, &o, -1, prompt, N_PROMPT, 60, NULL);
    assert_int_equal(plain.n_ids, known.n_ids);
    assert_memory_equal(plain.ids, known.ids, (size_t)plain.n_ids * sizeof *plain.ids);
}

TEST(with_a_model)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    drey_pair_report r, again;
    measure(&o, &r);
    rises(r.profile.pass_s, DREY_PROFILE_ROWS);
    rises(r.profile.step_s, DREY_PROFILE_NODES);
    check_counts(&r);
    check_trees(&r);
    measure(&o, &again); /* what was guessed and came has nothing to do with clocks */
    assert_memory_equal(r.trees.share, again.trees.share, sizeof r.trees.share);
    assert_memory_equal(r.profile.right, again.profile.right, sizeof r.profile.right);
    writes_the_same(&o, &r.profile);
}

/* Lookup takes no time, nothing drafts nothing; both have passes. */
TEST(without_a_model)
{
    drey_pair_report r;
    drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, 256, 1);
    measure(&o, &r);
    rises(r.profile.pass_s, DREY_PROFILE_ROWS);
    assert_true(r.profile.step_s[0] == 0 && r.trees.n_trees == DREY_STATIC_TREES);
    o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    measure(&o, &r);
    rises(r.profile.pass_s, DREY_PROFILE_ROWS);
    assert_int_equal(r.trees.n_trees, 0);
    assert_int_equal(r.n_tokens, 0);
}

/* Returns the tokens of a tree no deeper than two: a step over the root, and one over its children
 * that have some. */
static double two_steps(const drey_static_tree *t, const double *step_s)
{
    bool expands[64] = {false};
    int32_t n = 0;
    for (int32_t i = 1; i < t->n; i++) {
        n += t->parent[i] > 0 && !expands[t->parent[i]];
        expands[t->parent[i]] = true;
    }
    assert_true(n <= DREY_PROFILE_NODES);
    return (t->n > 1 ? step_s[0] : 0) + (n > 0 ? step_s[n - 1] : 0);
}

/* Two heads guess two tokens ahead: no tree is deeper. */
TEST(with_heads)
{
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    heads_file_write(temp_path("target.gguf.drey-medusa"), &h);
    drey_engine_options o = toys_options(DREY_DRAFTER_MEDUSA, 256, 1);
    drey_pair_report r;
    measure(&o, &r);
    rises(r.profile.pass_s, DREY_PROFILE_ROWS);
    rises(r.profile.step_s, DREY_PROFILE_NODES);
    assert_int_equal(r.trees.n_trees, DREY_STATIC_TREES);
    assert_true(r.n_places > 0 && r.n_places <= r.n_tokens);
    for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
        assert_true(r.trees.share[2][rank] == 0);
    for (int32_t i = 0; i < r.trees.n_trees; i++)
        assert_true(fabs(r.trees.tree[i].draft_s - two_steps(&r.trees.tree[i], r.profile.step_s)) <
                    1e-9);
    writes_the_same(&o, &r.profile);
}

/* ---- Ranks of heads ---- */

/* Two heads: what follows token t is 10 t to the first one, else 10 t + 1; then come 10 t + 2 and
 * 10 t + 3. The row that said the root holds the root. */
static drey_status expand_by_hand(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                  drey_error *err)
{
    const medusa_drafter *m = (const medusa_drafter *)d;
    assert_true(m->seen_for == m->n_tokens - 1);
    assert_true(m->hidden[1] == (float)tree->nodes[0].token);
    for (int32_t i = 0; i < n; i++) {
        tree_node *node = &tree->nodes[nodes[i]];
        const int32_t last[] = {node->depth, 2, 3};
        node->n_guesses = node->depth < 2 ? 3 : 0;
        for (int32_t r = 0; r < node->n_guesses; r++)
            node->guess[r] = (candidate){.token = 10 * node->token + last[r], .confidence = 0.5f};
    }
    return DREY_OK;
}

static drey_status begin_by_hand(drafter *d, const int32_t *tokens, int32_t n, drey_error *err)
{
    ((medusa_drafter *)d)->n_tokens = n;
    return DREY_OK;
}

static void take_hidden_by_hand(drafter *d, int32_t position, const float *hidden)
{
    medusa_drafter *m = (medusa_drafter *)d;
    memcpy(m->hidden, hidden, 2 * sizeof *hidden);
    m->seen_for = position + 1;
}

TEST(ranks_after_what_came)
{
    static const drafter_listener listener = {.take_hidden = take_hidden_by_hand};
    static const drafter_class by_hand = {
        .begin = begin_by_hand, .expand = expand_by_hand, .listener = &listener};
    /* After 7 came 72, the second guess, and after that 721, the first guess of the second head:
     * after the best guess, 70, the second head would have guessed 701. */
    static const int32_t text[] = {1, 7, 72, 721, 9, 90};
    static const int8_t want[][2] = {{1, 0}, {-1}, {-1}, {0}};
    static const int32_t n_want[] = {2, 1, 1, 0}; /* of the last one the text ends too early */
    static token_tree tree;
    float hidden[2];
    arena a;
    heads_places p;
    medusa_drafter d = {.base = {.class = &by_hand}, .hidden = hidden};
    MUST(arena_init, &a, heads_places_bytes(4, 2), false);
    heads_places_init(&p, 4, 2, &a);
    MUST(arena_check, &a);
    for (int32_t root = 0; root < 6; root++) { /* none of the first, and no room for the last */
        hidden[1] = (float)text[root];
        d.seen_for = root;
        heads_places_keep(&p, &d, root);
    }
    assert_int_equal(p.n, 4);
    p.text = text;
    p.n_text = 6;
    for (int32_t i = 0; i < 4; i++) {
        heads_answer answer = {.n = 7};
        MUST(heads_ranks, &d.base, &p, i, &tree, &answer);
        assert_int_equal(answer.n, n_want[i]);
        assert_memory_equal(answer.rank, want[i], (size_t)answer.n);
    }
    d.seen_for = 4; /* of another row */
    p.n = 0;
    heads_places_keep(&p, &d, 5);
    assert_int_equal(p.n, 0);
    arena_free(&a);
}

static void refuses(const drey_profile *profile)
{
    drey_engine *e = NULL;
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    o.profile = profile;
    REFUSED(DREY_ERR_USAGE, "profile", drey_engine_open, &e, &o);
    assert_null(e);
}

TEST(what_is_no_profile)
{
    drey_profile p;
#define BROKEN_BY(change) drey_profile_init(&p), change, refuses(&p)
    BROKEN_BY(p.pass_s[63] = -1);
    BROKEN_BY(p.pass_s[63] = NAN);
    BROKEN_BY(p.pass_s[63] = 1e-30);
    BROKEN_BY(p.step_s[0] = INFINITY);
    BROKEN_BY(p.right[2][15] = 1);
    BROKEN_BY(p.guessed[2][15] = NAN);
#undef BROKEN_BY
    drey_pair_report r;
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    REFUSED(DREY_ERR_USAGE, "", drey_tune_pair, &o, &(drey_tune_options){.n_prompts = 0}, &r);
}

TEST_GROUP(open_toys, toys_close)
