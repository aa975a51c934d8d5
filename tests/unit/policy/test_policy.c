/* Growth policies against a brute-force restatement of their rules.
 *
 * The scripted drafter's candidates are a function of the path alone, so the restatement, which
 * keeps branches as lists of tokens and no tree, can ask the same script. */
#include "tree/calibration.h"
#include "policy/policy.h"
#include "policy/provisional.h"
#include "support/policy_memory.h"
#include "support/scene.h"
#include "support/tree_path.h"

enum { MAX_DEPTH = 32 };

typedef struct scripted {
    drafter base;
    uint64_t seed;
    int n_expanded;
    int fails_at; /* expansion that fails; 0: none */
} scripted;

/* Proposal of the script after path[0..depth). */
static int32_t script(uint64_t seed, const int32_t *path, int32_t depth, candidate *out)
{
    rng r = {seed * 2 + 1};
    for (int32_t i = 0; i < depth; i++)
        r.state = (rng_next(&r) + (uint64_t)path[i] + 1) | 1;
    rng_next(&r);
    int32_t n = rng_below(&r, 12) == 0 ? 0 : 1 + rng_below(&r, 8);
    float left = 1;
    for (int32_t i = 0; i < n; i++) {
        left *= (float)(0.3 + 0.69 * rng_unit(&r));
        float confidence = i == 0 ? left : left * 0.8f;
        if (i > 0 && confidence > out[i - 1].confidence)
            confidence = out[i - 1].confidence;
        if (seed % 4 == 0) /* ties: the oldest branch goes first */
            confidence = i < 2 ? 0.5f : 0.0f;
        out[i] = (candidate){.token = rng_below(&r, 6), .confidence = confidence};
    }
    return n;
}

static drey_status scripted_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                   drey_error *err)
{
    scripted *s = (scripted *)base;
    if (++s->n_expanded == s->fails_at)
        FAIL(err, DREY_ERR_IO, "the draft cannot be read");
    for (int32_t i = 0; i < n; i++) {
        assert_false(tree->nodes[nodes[i]].expanded); /* nobody pays twice */
        int32_t parent = tree->nodes[nodes[i]].parent;
        assert_true(parent < 0 || tree->nodes[parent].expanded);
        int32_t path[TREE_MAX_NODES];
        candidate all[TREE_MAX_GUESSES];
        tree_guess(tree, nodes[i], all,
                   script(s->seed, path, tree_path(tree, nodes[i], path), all));
    }
    return DREY_OK;
}

static const drafter_class scripted_class = {.expand = scripted_expand};

/* ---- The rules once more ---- */

typedef struct branch {
    int32_t token[MAX_DEPTH];
    int32_t length;
    float confidence;
    bool grown; /* asked for continuations: no longer a branch's end */
} branch;

typedef struct forest {
    branch all[TREE_MAX_NODES]; /* [0] is the root, with no token */
    int32_t n;
} forest;

static bool same_words(const branch *a, const branch *b)
{
    return a->length == b->length &&
           memcmp(a->token, b->token, (size_t)a->length * sizeof(int32_t)) == 0;
}

static void add(forest *f, const branch *stem, candidate c)
{
    branch b = *stem;
    b.token[b.length++] = c.token;
    b.confidence *= c.confidence;
    b.grown = false;
    for (int32_t i = 0; i < f->n; i++)
        if (same_words(&f->all[i], &b))
            return;
    f->all[f->n++] = b;
}

/* A tree is grown by LLMCad's pacer (normalised) or EdgeLLM's. True: it ended because no branch was
 * a good guess any more. */
static bool restate_pacer(forest *f, uint64_t seed, bool normalised, int32_t size,
                          int32_t max_depth)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < size) {
        branch *ends[TREE_MAX_NODES];
        int n_ends = 0;
        float best = 0, sum = 0;
        for (int32_t i = 0; i < f->n; i++) {
            branch *b = &f->all[i];
            if (b->grown || b->length >= max_depth)
                continue;
            ends[n_ends++] = b;
            best = b->confidence > best ? b->confidence : best;
            sum += b->confidence;
        }
        if (n_ends == 0 || best < 0.01f)
            return n_ends > 0;
        /* The distance of each from its expected length; the first of the largest. */
        branch *next = NULL;
        float most = 0;
        for (int i = 0; i < n_ends; i++) {
            float c = ends[i]->confidence / (normalised ? sum : 1);
            float lag = (float)(f->n - 1) * c - (float)ends[i]->length;
            if (!next || lag > most) {
                next = ends[i];
                most = lag;
            }
        }
        candidate c[8];
        int32_t n = script(seed, next->token, next->length, c);
        next->grown = true;
        for (int32_t i = 0; i < n && f->n - 1 < size; i++)
            if (i == 0 || c[i].confidence >= (normalised ? 0.3f : 0.1f))
                add(f, next, c[i]);
    }
    return false;
}

static int by_falling_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The values of all but the root, falling. */
static int32_t falling_values(const forest *f, float *value)
{
    for (int32_t i = 1; i < f->n; i++)
        value[i - 1] = f->all[i].confidence;
    qsort(value, (size_t)(f->n - 1), sizeof *value, by_falling_value);
    return f->n - 1;
}

/* One node at a time, always the best one that is left, as long as what follows it could be among
 * the `size` best: value[0..return) are theirs. */
static int32_t restate_optimal(forest *f, uint64_t seed, int32_t size, int32_t max_depth,
                               float *value)
{
    const calibration nothing_known = {.sampled = true};
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    for (;;) {
        int32_t n = falling_values(f, value);
        float least = size == 0 || n < size || value[size - 1] < 0.002f ? 0.002f : value[size - 1];
        branch *next = NULL;
        for (int32_t i = 0; i < f->n; i++) {
            branch *b = &f->all[i];
            bool open = !b->grown && b->length < max_depth && b->confidence > least;
            if (open && (!next || b->confidence > next->confidence))
                next = b;
        }
        if (size == 0 || !next)
            return n < size ? n : size;
        candidate c[8];
        n = script(seed, next->token, next->length, c);
        next->grown = true;
        for (int32_t i = 0; i < n; i++) {
            c[i].confidence = calibration_value(&nothing_known, i, c[i].confidence);
            if (next->confidence * c[i].confidence > least)
                add(f, next, c[i]);
        }
    }
}

static void restate_sequence(forest *f, uint64_t seed, int32_t size, int32_t max_depth)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < size && f->n - 1 < max_depth) {
        candidate c[8];
        branch *last = &f->all[f->n - 1];
        if (script(seed, last->token, last->length, c) == 0)
            return;
        add(f, last, c[0]);
    }
}

static void compare(const token_tree *t, const forest *f)
{
    assert_int_equal(t->n_nodes, f->n);
    for (int32_t i = 0; i < f->n; i++) {
        int32_t path[TREE_MAX_NODES];
        assert_int_equal(tree_path(t, i, path), f->all[i].length);
        assert_memory_equal(path, f->all[i].token, (size_t)f->all[i].length * sizeof(int32_t));
        assert_true(t->nodes[i].cumulative == f->all[i].confidence);
    }
}

static policy_memory memory; /* memory of one policy at a time */

static const policy_class *class_of(const char *name)
{
    drey_policy which;
    assert_true(drey_policy_parse(name, &which));
    return policy_class_of(which);
}

/* Grows a tree from nothing with the policy of this name. */
static drey_status grow(drafter *d, const char *name, int32_t size, int32_t max_depth,
                        token_tree *t, drey_error *err)
{
    draft_policy *p = policy_init(&memory, class_of(name), size, 0);
    tree_reset(t, 99);
    return draft_grow(d, p, t, max_depth, err);
}

static void check_pacer(const char *name, bool normalised)
{
    rng r = {7};
    static forest f;
    int branched = 0, full = 0, gave_up = 0;
    for (uint64_t seed = 1; seed < 3000; seed++) {
        int32_t size = rng_below(&r, 120);
        int32_t max_depth = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : MAX_DEPTH;
        scripted s = {.base.class = &scripted_class, .seed = seed};
        static token_tree t;
        MUST(grow, &s.base, name, size, max_depth, &t);
        gave_up += restate_pacer(&f, seed, normalised, size, max_depth);
        compare(&t, &f);
        full += size > 0 && t.n_nodes - 1 == size;
        branched += t.n_nodes > 2 && t.nodes[2].parent != 1;
    }
    assert_true(branched > 100 && full > 100 && gave_up > 100); /* the script is not a bore */
}

TEST(pacers_follow_their_rules)
{
    check_pacer("llmcad", true);
    check_pacer("edgellm", false);
}

TEST(optimal_submits_the_best)
{
    rng r = {17};
    static forest f;
    static token_tree t;
    int full = 0;
    for (uint64_t seed = 1; seed < 2000; seed++) {
        float want[TREE_MAX_NODES], got[TREE_MAX_NODES];
        int32_t size = rng_below(&r, 24), n_got = 0;
        int32_t max_depth = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : MAX_DEPTH;
        int32_t n = restate_optimal(&f, seed, size, max_depth, want);
        draft_policy *p = policy_init(&memory, &policy_optimal, size,
                                      seed % 3 ? 0 : DREY_WITHOUT(DREY_PART_BATCHING));
        p->sampled = true; /* confidence is what it says */
        scripted s = {.base.class = &scripted_class, .seed = seed};
        tree_reset(&t, 99);
        MUST(draft_grow, &s.base, p, &t, max_depth);
        draft_submit(p, &t, 100);
        assert_true(t.nodes[0].submitted);
        for (int32_t i = 1; i < t.n_nodes; i++)
            if (t.nodes[i].submitted)
                got[n_got++] = t.nodes[i].cumulative;
        qsort(got, (size_t)n_got, sizeof *got, by_falling_value);
        assert_int_equal(n_got, n);
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
        full += size > 0 && n == size;
    }
    assert_true(full > 1000);
}

TEST(sequence_is_a_chain)
{
    static forest f;
    for (uint64_t seed = 1; seed < 500; seed++) {
        int32_t size = (int32_t)(seed % 12), max_depth = seed % 5 == 0 ? 3 : MAX_DEPTH;
        scripted s = {.base.class = &scripted_class, .seed = seed};
        static token_tree t;
        MUST(grow, &s.base, "sequence", size, max_depth, &t);
        restate_sequence(&f, seed, size, max_depth);
        compare(&t, &f);
    }
}

static bool is_five(const void *user, int32_t token)
{
    return token == 5;
}

/* Drafting ahead leaves an end of the text out, so that a node of the second guess is the older
 * one: the chain is the first guess's all the same. */
TEST(what_was_drafted_ahead_is_no_chain)
{
    const policy_class *const classes[] = {&policy_sequence, &policy_bld};
    for (int i = 0; i < 2; i++) {
        static token_tree t;
        int32_t nodes[DRAFT_MAX_BATCH];
        const provisional_rules rules = {
            .max_depth = MAX_DEPTH, .batch = 8, .ranks = 8, .is_end = is_five};
        scripted s = {.base.class = &scripted_class};
        draft_policy *p = policy_init(&memory, classes[i], 1, 0);
        tree_reset(&t, 99);
        tree_guess(&t, 0, (candidate[]){{5, 0.7f}, {6, 0.65f}}, 2);
        assert_int_equal(provisional_next(&rules, &t, nodes), 1);
        assert_int_equal(t.nodes[1].token, 6);
        MUST(draft_grow, &s.base, p, &t, MAX_DEPTH);
        draft_submit(p, &t, 8);
        assert_int_equal(t.n_nodes, 3);
        assert_false(t.nodes[1].submitted);
        assert_true(t.nodes[2].submitted && t.nodes[2].token == 5);
    }
}

/* A node that the draft was unsure of may be there: bld does not draft below it. */
TEST(bld_stops_where_others_continued)
{
    static token_tree t;
    scripted s = {.base.class = &scripted_class};
    draft_policy *p = policy_init(&memory, &policy_bld, 8, 0);
    tree_reset(&t, 99);
    tree_guess(&t, 0, (candidate[]){{5, 0.3f}}, 1);
    tree_push(&t, 0, 5, 0.3f);
    MUST(draft_grow, &s.base, p, &t, MAX_DEPTH);
    assert_int_equal(s.n_expanded, 0);
    draft_submit(p, &t, 8);
    assert_true(t.nodes[0].submitted && !t.nodes[1].submitted);
}

/* Guesses at the root's next token, none of which is submitted; its best one waits to be
 * the root. */
TEST(single_asks_and_submits_nothing)
{
    static token_tree t;
    scripted s = {.base.class = &scripted_class, .seed = 3};
    draft_policy *p = policy_init(&memory, &policy_single, 1, 0);
    tree_reset(&t, 99);
    MUST(draft_grow, &s.base, p, &t, 0);
    assert_true(s.n_expanded == 0 && t.n_nodes == 1);
    MUST(draft_grow, &s.base, p, &t, 1);
    assert_true(s.n_expanded == 1 && t.nodes[0].n_guesses > 0 && t.n_nodes == 2);
    assert_int_equal(t.nodes[1].token, t.nodes[0].guess[0].token);
    draft_submit(p, &t, TREE_MAX_DRAFTED);
    assert_true(t.nodes[0].submitted && !t.nodes[1].submitted);
    MUST(draft_grow, &s.base, p, &t, 9);
    assert_true(s.n_expanded == 1 && t.n_nodes == 2);
}

static const char *const names[] = {"sequence", "llmcad", "edgellm", "optimal", "static"};

/* A policy may begin with a tree that was drafted in the turn before: growing in two parts gives
 * the same tree as growing at once. */
TEST(a_tree_continues_to_grow)
{
    rng r = {11};
    for (uint64_t seed = 1; seed < 600; seed++) {
        static token_tree once, twice;
        const char *name = names[seed % 5];
        int32_t size = 1 + rng_below(&r, 40);
        scripted s = {.base.class = &scripted_class, .seed = seed};
        MUST(grow, &s.base, name, size, MAX_DEPTH, &once);
        draft_policy *p = policy_init(&memory, class_of(name), size, 0);
        scripted again = {.base.class = &scripted_class, .seed = seed};
        again.fails_at = 1 + rng_below(&r, 20);
        tree_reset(&twice, 99);
        drey_status status = draft_grow(&again.base, p, &twice, MAX_DEPTH, NULL);
        assert_true(tree_is_valid(&twice));
        if (status != DREY_OK)
            status = draft_grow(&again.base, p, &twice, MAX_DEPTH, NULL);
        assert_int_equal(status, DREY_OK);
        assert_int_equal(twice.n_nodes, once.n_nodes);
        for (int32_t i = 0; i < once.n_nodes; i++) {
            assert_int_equal(twice.nodes[i].parent, once.nodes[i].parent);
            assert_int_equal(twice.nodes[i].token, once.nodes[i].token);
        }
    }
}

/* A drafter that always says "1" at 0.9 and "2" at 0.5. */
static drey_status eager_expand(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    const candidate two[2] = {{1, 0.9f}, {2, 0.5f}};
    for (int32_t i = 0; i < n; i++)
        tree_guess(tree, nodes[i], two, 2);
    return DREY_OK;
}

static const drafter_class eager_class = {.expand = eager_expand};
static drafter eager = {.class = &eager_class};

/* The tree that the policy grows with an eager draft has nodes below these. */
static void grows_to(const char *name, int32_t size, uint64_t without, const int32_t *parents,
                     int32_t n)
{
    static token_tree t;
    draft_policy *p = policy_init(&memory, class_of(name), size, without);
    tree_reset(&t, 99);
    MUST(draft_grow, &eager, p, &t, 100);
    assert_int_equal(t.n_nodes, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(t.nodes[i].parent, parents[i]);
}

TEST(examples_by_hand)
{
    /* Root gives A .9, B .5 (M = 2): A lags by 2 * .9 - 1 = .8, B by 0: A next, giving AA .81 and
     * AB .45 (M = 4): B lags by 4 * .5 - 1 = 1, AA by 4 * .81 - 2 = 1.24, AB by -.2: AA next
     * (M = 6), giving AAA .729 and AAB: B 2, AB .7, AAA 1.374, AAB -.57: B next. */
    const int32_t edgellm[] = {-1, 0, 0, 1, 1, 3, 3, 2, 2};
    grows_to("edgellm", 8, 0, edgellm, 9);
    /* Of a sum of 1.4, A lags by 2 * .9 / 1.4 - 1 = .29, B by -.29: A next. Of 1.76, B lags by
     * 4 * .5 / 1.76 - 1 = .14, AA 4 * .81 / 1.76 - 2 = -.16, AB -.98: B next, giving BA .45 and BB
     * .25. Of 1.96, AA lags by 6 * .81 / 1.96 - 2 = .48, AB and BA by -.62: AA next. */
    const int32_t llmcad[] = {-1, 0, 0, 1, 1, 2, 2, 3, 3};
    grows_to("llmcad", 8, 0, llmcad, 9);
    /* Two guesses where three are wanted. */
    const int32_t specinfer[] = {-1, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    grows_to("specinfer", 20, 0, specinfer, 15);
    grows_to("si", 9, 0, specinfer, 10);
    const int32_t chain[] = {-1, 0, 1, 2, 3, 4};
    grows_to("optimal", 5, DREY_WITHOUT(DREY_PART_TREE), chain, 6);
    grows_to("edgellm", 5, DREY_WITHOUT(DREY_PART_TREE), chain, 6);
    grows_to("sp", 5, 0, chain, 6);
}

/* .9, .81 ... .531 down the best branch, then B .5, then .478. */
TEST(optimal_by_hand)
{
    static token_tree t;
    draft_policy *p = policy_init(&memory, &policy_optimal, 8, 0);
    p->sampled = true; /* confidence is what it says */
    tree_reset(&t, 99);
    MUST(draft_grow, &eager, p, &t, 100);
    draft_submit(p, &t, 100);
    int32_t n_at[9] = {0};
    for (int32_t i = 1; i < t.n_nodes; i++)
        if (t.nodes[i].submitted) {
            assert_true(t.nodes[i].depth < 8);
            n_at[t.nodes[i].depth]++;
        }
    assert_int_equal(tree_n_submitted(&t), 8);
    assert_int_equal(n_at[1], 2);
    for (int i = 2; i < 8; i++)
        assert_int_equal(n_at[i], 1);
    draft_submit(p, &t, 3); /* less room in the pass */
    assert_int_equal(tree_n_submitted(&t), 3);
}

#define near(got, want) assert_near(got, want, 1e-4 * (want))

/* root -+- A .9 --- AA .72 --- AAA .36
 *       +- B .5 --- BB .45 */
static void five_guesses(token_tree *t)
{
    tree_reset(t, 0);
    int32_t a = tree_push(t, 0, 1, 0.9f), b = tree_push(t, 0, 2, 0.5f);
    int32_t aa = tree_push(t, a, 1, 0.8f);
    assert_int_equal(tree_push(t, aa, 1, 0.5f), 4);
    assert_int_equal(tree_push(t, b, 2, 0.9f), 5);
}

enum { A = 1, B, AA, AAA, BB };
static const int32_t a_to_aaa[] = {A, AA, AAA}, b_to_bb[] = {B, BB};

static float printed(float alpha, float confidence, int32_t n_all, int32_t n_correct)
{
    const fallback_state f = {DREY_FALLBACK_PRINTED, alpha, fallback_most_printed, fallback_step};
    return fallback_printed(&f, confidence, n_all, n_correct);
}

static float mean(float alpha, float of, int32_t n_all, int32_t n_correct)
{
    const fallback_state f = {DREY_FALLBACK_MEAN, alpha, fallback_most, fallback_step};
    return fallback_mean(&f, of, n_all, n_correct);
}

static float learnt(drey_fallback rule, float alpha, const token_tree *tree, const int32_t *path,
                    int32_t n_path)
{
    fallback_state f = {rule, alpha, fallback_most_printed, fallback_step};
    fallback_learn(&f, tree, path, n_path);
    return f.alpha;
}

/* EdgeLLM Eq. 3. */
TEST(printed_fallback_by_hand)
{
    near(printed(0.01f, 0.008f, 8, 6), 0.033437); /* 0.01 / 0.008^(2/8) */
    near(printed(0.01f, 0.008f, 8, 8), 0.005);
    near(printed(0.5f, 0.01f, 4, 0), 0.99); /* 50, which no confidence reaches */
    near(printed(1.5e-6f, 0.5f, 1, 1), 1e-6);
    near(printed(0.01f, 0, 2, 1), 0.99);
    token_tree t;
    five_guesses(&t);
    const drey_fallback rule = DREY_FALLBACK_PRINTED;
    near(learnt(rule, 0.01f, &t, NULL, 0), 0.01); /* nothing was verified */
    tree_submit(&t, 5);
    near(learnt(rule, 0.01f, &t, a_to_aaa, 2), 0.01305); /* / .45^(1/3) */
    near(learnt(rule, 0.01f, &t, a_to_aaa, 1), 0.01703); /* / .45^(2/3) */
    near(learnt(rule, 0.01f, &t, a_to_aaa, 3), 0.005);   /* all of it */
    near(learnt(rule, 0.01f, &t, b_to_bb, 2), 0.005);    /* of the shorter branch */
    near(learnt(rule, 0.01f, &t, NULL, 0), 0.0222222);   /* / .45: both are wrong */
    tree_submit(&t, 4); /* AAA is not verified: AA is a leaf, and Tc */
    near(learnt(rule, 0.01f, &t, a_to_aaa, 2), 0.005);
    near(learnt(rule, 0.01f, &t, a_to_aaa, 1), 0.0117851); /* / .72^(1/2) */
}

/* EdgeLLM's text. */
TEST(mean_fallback_by_hand)
{
    near(mean(0.004f, 0.4f, 8, 6), 0.01);
    near(mean(0.004f, 0.4f, 8, 8), 0.002);
    near(mean(0.01f, 0.2f, 8, 0), 0.015); /* .05, where trees would be small for long */
    near(mean(1.5e-6f, 0.5f, 1, 1), 1e-6);
    near(mean(0.01f, 0, 2, 1), 0.015);
    token_tree t;
    five_guesses(&t);
    const drey_fallback rule = DREY_FALLBACK_MEAN;
    near(learnt(rule, 0.002f, &t, NULL, 0), 0.002); /* nothing was verified */
    tree_submit(&t, 5);
    near(learnt(rule, 0.002f, &t, a_to_aaa, 2), 0.004); /* AAA itself: .36 / .72 */
    near(learnt(rule, 0.002f, &t, a_to_aaa, 1), 0.005); /* AAA, seen from A: .36 / .9 */
    near(learnt(rule, 0.002f, &t, a_to_aaa, 3), 0.001);
    near(learnt(rule, 0.002f, &t, b_to_bb, 2), 0.001);
    near(learnt(rule, 0.002f, &t, NULL, 0), 0.00444444); /* BB, of the surer leaf: .45 */
    tree_submit(&t, 4);
    near(learnt(rule, 0.002f, &t, a_to_aaa, 1), 0.0025); /* AA itself: .72 / .9 */
    near(learnt(rule, 0.002f, &t, NULL, 0), 0.00277778); /* AA, from the root: .72 */
    int32_t last = AAA;
    for (int i = 0; i < 2; i++)
        last = tree_push(&t, last, 1, 0.5f); /* .18 and .09 */
    tree_submit(&t, 7);
    near(learnt(rule, 0.002f, &t, a_to_aaa, 2), 0.0106667); /* (.18 + .09) / 2 / .72 */
}

TEST(first_alpha_is_the_users)
{
    draft_policy p;
    policy_init(&p, &policy_edgellm, 8, 0);
    policy_set_numbers(&p, &(drey_research){.fallback = DREY_FALLBACK_PRINTED});
    near(p.fallback.alpha, 0.01);
    assert_int_equal(p.fallback.rule, DREY_FALLBACK_PRINTED);
    policy_set_numbers(&p, &(drey_research){.alpha = 0.2f});
    near(p.fallback.alpha, 0.2);
    policy_init(&p, &policy_sequence, 8, 0);
    policy_set_numbers(&p, &(drey_research){.alpha = 0.2f});
    assert_true(p.fallback.alpha == 0); /* it has no fallback */
}

/* Alpha after each of several turns. A letter is a turn, of a guess of confidence 0.5: r for right,
 * w for wrong. */
TEST(alpha_over_several_turns)
{
    const drey_fallback formula = DREY_FALLBACK_PRINTED;
    static const struct {
        const policy_class *class;
        drey_research numbers;
        const char *turns;
        double alpha[5];
    } cases[] = {
        {&policy_edgellm, {.alpha = 0}, "wwrw", {0.015, 0.015, 0.0075, 0.015}},
        {&policy_edgellm, {.alpha = 0.3f}, "wrrww", {0.3, 0.15, 0.075, 0.15, 0.3}}, /* the user's */
        {&policy_edgellm, {.alpha = 0.001f}, "wwww", {0.002, 0.004, 0.008, 0.015}},
        {&policy_edgellm, {.alpha = 0.3f, .fallback_step = 0.1f}, "rrw", {0.03, 0.003, 0.006}},
        {&policy_edgellm, {.fallback_step = 1}, "rrr", {0.01, 0.01, 0.01}},
        {&policy_edgellm,
         {.fallback = formula},
         "wwwr",
         {0.02, 0.04, 0.08, 0.04}}, /* the papers' bound */
        {&policy_edgellm, {.fallback = formula, .alpha = 0.3f}, "wwwr", {0.6, 0.99, 0.99, 0.495}},
        {&policy_llmcad, {.alpha = 0}, "wwwr", {0.02, 0.04, 0.08, 0.04}},
        {&policy_llmcad, {.alpha = 0.3f}, "wwwr", {0.6, 0.99, 0.99, 0.495}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        draft_policy p;
        policy_init(&p, cases[i].class, 8, 0);
        policy_set_numbers(&p, &cases[i].numbers);
        for (int turn = 0; cases[i].turns[turn]; turn++) {
            token_tree t;
            tree_reset(&t, 0);
            const int32_t path[] = {tree_push(&t, 0, 1, 0.5f)};
            draft_submit(&p, &t, 8);
            draft_observe(&p, &t, path, cases[i].turns[turn] == 'r', 5);
            near(p.fallback.alpha, cases[i].alpha[turn]);
        }
    }
}

/* The papers' numbers only where a policy follows them to the letter, and the user's always. */
TEST(numbers_of_policies)
{
    const drey_fallback formula = DREY_FALLBACK_PRINTED;
    static const struct {
        const policy_class *class;
        drey_research numbers;
        double ahead, sure, rollback;
    } cases[] = {
        {&policy_optimal, {.alpha = 0}, 0.1, 0.6, 0},
        {&policy_optimal, {.fallback = formula}, 0.1, 0.6, 0},
        {&policy_optimal, {.ahead = 0.001f}, 0.001, 0.6, 0},
        {&policy_edgellm, {.alpha = 0}, 0.1, 0.6, 0},
        {&policy_edgellm, {.fallback = formula}, 0.001, 0.6, 0},
        {&policy_edgellm, {.fallback = formula, .ahead = 0.2f}, 0.2, 0.6, 0},
        {&policy_llmcad, {.alpha = 0}, 0.001, 0.6, 0},
        {&policy_llmcad, {.ahead = 1}, 1, 0.6, 0},
        {&policy_bld, {.alpha = 0}, 0.1, 0.6, 2},
        {&policy_bld, {.bld_fallback = 0.3f, .bld_rollback = 5}, 0.1, 0.3, 5},
        {&policy_sequence, {.bld_fallback = 0.3f, .bld_rollback = 5}, 0.1, 0.3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        draft_policy *p = policy_init(&memory, cases[i].class, 8, 0);
        policy_set_numbers(p, &cases[i].numbers);
        near(p->ahead, cases[i].ahead);
        near(p->sure, cases[i].sure);
        near(p->rollback, cases[i].rollback);
    }
}

/* The chain that bld submits follows its number. */
TEST(bld_is_as_sure_as_asked)
{
    static const float sure[] = {0.9f, 0.5f, 0.25f};
    static const int32_t n_submitted[] = {0, 1, 3};
    for (int i = 0; i < 3; i++) {
        static token_tree t;
        scripted s = {.base.class = &scripted_class};
        draft_policy *p = policy_init(&memory, &policy_bld, 3, 0);
        policy_set_numbers(p, &(drey_research){.bld_fallback = sure[i]});
        tree_reset(&t, 99);
        const float confidence[] = {0.7f, 0.4f, 0.3f};
        for (int32_t node = 0; node < 3; node++) {
            tree_guess(&t, node, (candidate[]){{5 + node, confidence[node]}}, 1);
            tree_push(&t, node, 5 + node, confidence[node]);
        }
        tree_guess(&t, 3, NULL, 0);
        MUST(draft_grow, &s.base, p, &t, MAX_DEPTH);
        draft_submit(p, &t, 8);
        for (int32_t node = 1; node <= 3; node++)
            assert_int_equal(t.nodes[node].submitted, node <= n_submitted[i]);
    }
}

/* A draft that is right is trusted longer, and "fallback" off changes nothing. */
TEST(alpha_follows_the_outcome)
{
    for (int i = 0; i < 4; i++) {
        uint64_t without = i % 2 ? DREY_WITHOUT(DREY_PART_FALLBACK) : 0;
        draft_policy p;
        policy_init(&p, i < 2 ? &policy_llmcad : &policy_edgellm, 8, without);
        assert_true(p.fallback.alpha == 0.01f);
        token_tree t;
        tree_reset(&t, 0);
        const int32_t path[] = {tree_push(&t, 0, 1, 0.9f)};
        draft_submit(&p, &t, 8);
        draft_observe(&p, &t, path, 1, 5);
        near(p.fallback.alpha, without ? 0.01 : 0.005);
    }
}

TEST(the_tree_never_overflows)
{
    for (int i = 0; i < 4; i++) {
        static token_tree t;
        MUST(grow, &eager, names[i], 100000, 100000, &t);
        assert_true(t.n_nodes >= TREE_MAX_ROWS && t.n_nodes <= TREE_MAX_NODES);
    }
}

TEST(errors_pass)
{
    for (int i = 0; i < 4; i++) {
        static token_tree t;
        scripted s = {.base.class = &scripted_class, .seed = 3, .fails_at = 2};
        drey_error err;
        assert_int_equal(grow(&s.base, names[i], 8, 8, &t, &err), DREY_ERR_IO);
        assert_string_equal(err.message, "the draft cannot be read");
    }
}

TEST(names_and_bounds)
{
    int n = 0, n_drafting = 0;
    for (; drey_policy_name((drey_policy)n); n++) {
        drey_policy found = DREY_POLICY_AUTO;
        assert_true(drey_policy_parse(drey_policy_name((drey_policy)n), &found));
        assert_int_equal(found, n);
        drey_engine_options o = {.policy = found};
        bool drafts = policy_class_of(found) != NULL;
        assert_true(drafts ? policy_size(&o) >= 1 && policy_size(&o) <= TREE_MAX_DRAFTED
                           : policy_size(&o) == 0);
        n_drafting += drafts;
    }
    assert_int_equal(n, DREY_POLICY_STATIC + 1);
    assert_int_equal(n_drafting, 8);
    /* Help texts have these (test_cli_options.c). */
    assert_int_equal(policy_size(&(drey_engine_options){.policy = DREY_POLICY_SEQUENCE}), 8);
    assert_int_equal(policy_size(&(drey_engine_options){.policy = DREY_POLICY_OPTIMAL}), 47);
    drey_policy found = DREY_POLICY_OPTIMAL;
    assert_false(drey_policy_parse("tree", &found));
    assert_int_equal(found, DREY_POLICY_OPTIMAL);
    assert_true(drey_policy_parse("sp", &found) && found == DREY_POLICY_SEQUENCE);
    assert_true(drey_policy_parse("si", &found) && found == DREY_POLICY_SPECINFER);
    assert_true(drey_policy_parse("spl", &found) && found == DREY_POLICY_NONE);
    drey_engine_options o = {.policy = DREY_POLICY_SEQUENCE, .draft_tokens = 5, .tree_nodes = 9};
    assert_int_equal(policy_size(&o), 5);
    o.policy = DREY_POLICY_EDGELLM;
    assert_int_equal(policy_size(&o), 9);
    for (int i = 0; i <= DREY_PART_LOOKUP; i++) {
        drey_part part = DREY_PART_SLICE;
        assert_true(drey_part_parse(drey_part_name((drey_part)i), &part) && (int)part == i);
    }
    assert_null(drey_part_name(DREY_PART_LOOKUP + 1));
    for (int i = 0; i <= DREY_DRAFTER_LOOKUP; i++)
        assert_non_null(drey_drafter_name((drey_drafter)i));
    assert_null(drey_drafter_name(DREY_DRAFTER_MTP + 1));
}
