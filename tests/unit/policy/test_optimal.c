/* The best-first policy in turns whose times are made up: how much it drafts where reading, where
 * computing and where the draft binds, and that it stops, and comes back, where it does not pay. */
#include "common/num.h"
#include "policy/policy.h"
#include "support/policy_memory.h"
#include "support/scene.h"
#include "support/tree_path.h"

/* A text in which each token is the one before it plus one, and a draft that knows it with this
 * confidence; where `wrong`, its best guess is another token. */
typedef struct world {
    drafter base;
    float confidence;
    bool wrong;
    int n_steps;                       /* steps of the turn */
    double pass_s, step_s, read_s;     /* times that they really take: one row's, one step's */
    int32_t n_submitted, last_written; /* counts of the last turn */
    double time_s;
    int64_t n_tokens;
} world;

static drey_status world_expand(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    world *w = (world *)d;
    for (int32_t i = 0; i < n; i++) {
        int32_t token = tree->nodes[nodes[i]].token;
        const candidate two[] = {{w->wrong ? token + 50 : token + 1, w->confidence},
                                 {token + 100, (1 - w->confidence) / 2}};
        tree_guess(tree, nodes[i], two, 2);
    }
    w->n_steps++;
    return DREY_OK;
}

static const drafter_class world_class = {.expand = world_expand};

/* The world that a test looks at, and its policy. */
static world w;
static turn_cost cost;
static token_tree grown;

static draft_policy *open_world(float confidence, bool wrong, double pass_s, double step_s,
                                double read_s)
{
    static policy_memory memory;
    w = (world){.base.class = &world_class,
                .confidence = confidence,
                .wrong = wrong,
                .pass_s = pass_s,
                .step_s = step_s,
                .read_s = read_s};
    cost_init(&cost, (uint64_t)(pass_s * 30e9), (uint64_t)(read_s * 2.5e9),
              (uint64_t)(step_s * 30e9), 0);
    draft_policy *p = policy_init(&memory, &policy_optimal, 47, 0);
    p->cost = &cost;
    tree_reset(&grown, 0);
    return p;
}

static void turn(draft_policy *p)
{
    int32_t path[TREE_MAX_NODES], moved[TREE_MAX_NODES], next;
    w.n_steps = 0;
    p->cost->draft_s = 0;
    MUST(draft_grow, &w.base, p, &grown, 100);
    for (int i = 0; i < w.n_steps; i++)
        cost_saw_step(p->cost, 1, w.step_s);
    draft_submit(p, &grown, 100);
    w.n_submitted = -1;
    for (int32_t i = 0; i < grown.n_nodes; i++)
        w.n_submitted += grown.nodes[i].submitted;
    int32_t rows = 1 + w.n_submitted;
    double compute_s = w.pass_s * (rows <= 8 ? 1 + 0.05 * (rows - 1) : 0.075 * rows + 0.875);
    double pass_s = max_f64(compute_s, w.read_s);
    w.time_s += w.n_steps * w.step_s + pass_s;
    cost_saw_pass(p->cost, rows, pass_s, pass_s - compute_s);
    int32_t n = tree_counted(&grown, INT32_MAX, path, &next);
    draft_observe(p, &grown, path, n, next);
    tree_moves(&grown, path, n, next, moved);
    tree_reroot(&grown, next, moved);
    w.last_written = n + 1;
    w.n_tokens += n + 1;
}

static void write_tokens(draft_policy *p, int64_t n)
{
    for (int64_t end = w.n_tokens + n; w.n_tokens < end;)
        turn(p);
}

/* The speed of plain decoding. */
static double plain(void)
{
    return 1 / max_f64(w.pass_s, w.read_s);
}

static double gain(void)
{
    return (double)w.n_tokens / w.time_s / plain();
}

/* Counts from zero: over the next tokens drafting pays. */
static void write_afresh(draft_policy *p)
{
    w.n_tokens = 0;
    w.time_s = 0;
    write_tokens(p, 1000);
    assert_true(gain() > 2);
}

TEST(it_drafts_as_much_as_pays)
{
    const struct {
        float confidence;
        double pass_s, step_s, read_s;
        int32_t least, most; /* nodes */
        double gain;
    } cases[] = {
        {0.99f, 0.1, 0.01, 0, 5, 47, 3},       /* in memory, a sure draft */
        {0.6f, 0.1, 0.01, 0, 1, 12, 1.5},      /* one that is not */
        {0.99f, 0.1, 0.01, 0.4, 20, 47, 10},   /* a disk that binds */
        {0.6f, 0.1, 0.01, 0.4, 8, 47, 3},      /* width costs nothing there */
        {0.99f, 0.02, 0.012, 0, 1, 7, 1.1},    /* a draft not much faster than its target */
        {0.99f, 0.1, 0.00001, 0.4, 47, 47, 16} /* drafting for nothing: all that fits */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        draft_policy *p = open_world(cases[i].confidence, false, cases[i].pass_s, cases[i].step_s,
                                     cases[i].read_s);
        write_tokens(p, 1000);
        if (w.n_submitted < cases[i].least || w.n_submitted > cases[i].most ||
            gain() < cases[i].gain)
            fail_msg("case %zu: %d nodes, gain %.2f", i, w.n_submitted, gain());
    }
}

/* A draft that is sure and always wrong: plain decoding within 2 %, after few turns, in memory and
 * where a draft costs more than a pass. */
TEST(what_does_not_pay_stops)
{
    for (int i = 0; i < 3; i++) {
        draft_policy *p = open_world(0.9f, true, i == 2 ? 0.01 : 0.1, 0.01, i == 1 ? 0.3 : 0);
        int last = 0;
        for (int n = 1; n <= 30; n++) {
            turn(p);
            last = w.n_steps > 0 ? n : last;
        }
        if (i != 1) /* where reading binds, a few steps cost little more than nothing */
            assert_true(last <= 10);
        write_tokens(p, 1000);
        if (gain() < 0.98)
            fail_msg("case %d: %.3f of plain decoding", i, gain());
    }
}

#define PLAIN_S 0.125
#define TURN_S  0.15625

/* A turn that drafted, wrote so many tokens and took so long; whether the next one shall draft. */
static bool next_drafts(draft_policy *p, int32_t n_tokens, double turn_s)
{
    int32_t path[4] = {0}, nodes[DRAFT_MAX_BATCH];
    tree_reset(&grown, 0);
    tree_guess(&grown, 0, NULL, 0);
    for (int32_t i = 0; i + 1 < n_tokens; i++)
        path[i] = tree_push(&grown, path[max_i32(i - 1, 0)], 1, 0.5f);
    p->cost->turn_s = turn_s;
    draft_observe(p, &grown, path, n_tokens - 1, 1);
    tree_reset(&grown, 0);
    return p->class->next(p, &grown, 100, nodes) > 0;
}

static bool next_drafts_after_plain(draft_policy *p, double turn_s)
{
    int32_t nodes[DRAFT_MAX_BATCH];
    tree_reset(&grown, 0);
    assert_int_equal(p->class->next(p, &grown, 100, nodes), 0);
    p->cost->turn_s = turn_s;
    draft_observe(p, &grown, NULL, 0, 1);
    return p->class->next(p, &grown, 100, nodes) > 0;
}

/* A plain turn takes 1/8 s, one that drafts 5/32 s: where it writes a token, 1/4 of a plain turn is
 * lost; where it writes two, 3/4 are won. The first one says nothing; when the others have taken
 * more than six plain turns, one is asked for. */
static draft_policy *begin_text(void)
{
    draft_policy *p = open_world(0.9f, false, PLAIN_S, 0.01, 0);
    cost_saw_step(&cost, 1, 0.01);
    cost.draft_s = 0;
    assert_true(next_drafts(p, 1, 10));
    for (int n = 0; n < 4; n++)
        assert_true(next_drafts(p, 1, TURN_S));
    assert_false(next_drafts(p, 1, TURN_S));
    assert_true(next_drafts_after_plain(p, PLAIN_S));
    return p;
}

/* 3 plain turns may be lost at first, 2 after a pause. */
TEST(losses_are_bounded)
{
    draft_policy *p = begin_text(); /* 1.75 are left */
    for (int n = 0; n < 6; n++)
        assert_true(next_drafts(p, 1, TURN_S));
    assert_true(next_drafts(p, 2, TURN_S)); /* 0.25 and 0.75 */
    for (int n = 0; n < 3; n++)
        assert_true(next_drafts(p, 1, TURN_S));
    assert_false(next_drafts(p, 1, TURN_S));
    for (int i = 0; i < 5; i++) {
        for (int n = 1; n < (i < 3 ? 32 << i : 256); n++)
            assert_false(next_drafts_after_plain(p, PLAIN_S));
        assert_true(next_drafts_after_plain(p, PLAIN_S));
        for (int n = 0; n < 7; n++)
            assert_true(next_drafts(p, 1, TURN_S));
        assert_false(next_drafts(p, 1, TURN_S));
    }
}

/* However much was won, no more than 10 are lost again; and a turn that something held up counts as
 * two. When half of them are gone and nobody has seen a plain turn for long, one is asked for. */
TEST(what_was_won_is_no_hoard)
{
    draft_policy *p = begin_text();
    for (int n = 0; n < 40; n++)
        assert_true(next_drafts(p, 2, TURN_S));
    for (int left = 8; left > 4; left -= 2)
        assert_true(next_drafts(p, 1, 5));
    assert_false(next_drafts(p, 1, 5)); /* 4 */
    assert_true(next_drafts_after_plain(p, PLAIN_S));
    assert_true(next_drafts(p, 1, 5));
    assert_false(next_drafts(p, 1, 5));
    assert_false(next_drafts_after_plain(p, PLAIN_S));
}

/* Guesses of equal confidence, of which every third is right, in no order: some turns win, some
 * lose, and drafting continues, because it wins on average. */
TEST(luck_is_no_reason)
{
    draft_policy *p = open_world(0.35f, false, 0.1, 0.004, 0);
    uint32_t noise = 1;
    int n_drafted = 0;
    tree_reset(&grown, 0);
    for (int n = 0; n < 1000; n++) {
        noise = noise * 1664525u + 1013904223u;
        w.wrong = (noise >> 16) % 3 != 0;
        turn(p);
        n_drafted += w.n_steps > 0;
    }
    if (n_drafted < 950 || gain() < 1.15)
        fail_msg("%d of 1000 turns drafted, gain %.3f", n_drafted, gain());
}

/* After a stretch of text that the draft cannot guess, it is tried again within 256 tokens. */
TEST(it_comes_back)
{
    draft_policy *p = open_world(0.9f, true, 0.1, 0.01, 0);
    write_tokens(p, 2000);
    w.wrong = false;
    write_tokens(p, 1000);
    write_afresh(p);
    assert_true(w.last_written > 3);
}

/* Where not even the first step promises anything, none is taken, and now and then it is tried. */
TEST(a_poor_draft_is_left_alone)
{
    draft_policy *p = open_world(0.2f, true, 0.01, 0.004, 0);
    int n_drafted = 0, n_late = 0;
    for (int n = 0; n < 600; n++) {
        turn(p);
        n_drafted += w.n_steps > 0;
        n_late += n >= 300 && w.n_steps > 0;
    }
    if (n_drafted >= 30 || n_late == 0)
        fail_msg("%d of 600 turns drafted, %d of the last 300", n_drafted, n_late);
    w.wrong = false;
    w.confidence = 0.99f;
    w.step_s = 0.0005;
    write_tokens(p, 2000);
    write_afresh(p);
}

/* Turns without a tree, each of one token, in which nothing is asked of the draft. */
static void write_plain(draft_policy *p, int n)
{
    int32_t nodes[DRAFT_MAX_BATCH];
    for (int i = 0; i < n; i++) {
        assert_int_equal(p->class->next(p, &grown, 100, nodes), 0);
        draft_observe(p, &grown, NULL, 0, 1);
    }
}

/* A first step that promises nothing begins a pause, whatever a step takes in the meantime. */
TEST(a_hopeless_step_is_a_pause)
{
    int32_t nodes[DRAFT_MAX_BATCH];
    draft_policy *p = open_world(0.9f, false, 0.1, 0.01, 0);
    cost_saw_step(&cost, 1, 10);
    assert_int_equal(p->class->next(p, &grown, 100, nodes), 0);
    cost.step = w.step_s;
    write_plain(p, 32);
    assert_int_equal(p->class->next(p, &grown, 100, nodes), 1);
}

/* Where steps cost nothing there is no pause: what is guessed wrongly is not submitted, and the
 * first turns of a copy are noticed. */
TEST(free_steps_never_pause)
{
    draft_policy *p = open_world(0.9f, true, 0.1, 1e-6, 0);
    write_tokens(p, 700);
    assert_true(gain() > 0.98);
    assert_int_equal(w.n_submitted, 0);
    assert_true(w.n_steps > 0);
    w.wrong = false;
    write_tokens(p, 60);
    assert_true(w.last_written > 1);
}

/* What guesses were worth lately ends a tree, and keeps none from beginning: whether they are
 * better here, only the root's step shows. */
TEST(the_root_is_tried)
{
    int32_t nodes[DRAFT_MAX_BATCH];
    draft_policy *p = open_world(0.9f, false, 0.1, 0.01, 0);
    cost_saw_step(&cost, 1, w.step_s);
    tree_reset(&grown, 0);
    tree_guess(&grown, 0, NULL, 0);
    for (int i = 0; i < 40; i++)
        draft_observe(p, &grown, NULL, 0, 1);
    tree_reset(&grown, 0);
    assert_int_equal(p->class->next(p, &grown, 100, nodes), 1);
    tree_guess(&grown, 0, NULL, 0);
    tree_push(&grown, 0, 1, 0.5f);
    assert_int_equal(p->class->next(p, &grown, 100, nodes), 0);
}

/* In shared drafting, which has no pauses: what nobody asked for lately is hoped for again. */
TEST(worth_comes_back)
{
    policy_wish wish;
    draft_policy *p = open_world(0.9f, false, 0.1, 0.01, 0);
    tree_guess(&grown, 0, NULL, 0);
    for (int i = 0; i < 100; i++)
        draft_observe(p, &grown, NULL, 0, 1);
    tree_reset(&grown, 0);
    assert_true(p->class->wish(p, &grown, 100, &wish) && wish.worth[0] < 1e-5f);
    for (int i = 0; i < 128; i++)
        draft_observe(p, &grown, NULL, 0, 1);
    assert_true(p->class->wish(p, &grown, 100, &wish));
    assert_true(wish.worth[0] > 0.47f && wish.worth[0] < 0.48f); /* 0.75 (1 - (127/128)^128) */
}

/* What guesses were worth lately says how deep to draft: a text that cannot be guessed takes the
 * root's step alone, although more would cost little. */
TEST(worth_and_calibration_follow_the_text)
{
    draft_policy *p = open_world(0.12f, true, 0.1, 0.001, 0.15);
    turn(p);
    int first = w.n_steps;
    float before = policy_calibrate(p, 0, 0.12f);
    for (int n = 0; n < 200; n++)
        turn(p);
    assert_true(first > 2);
    assert_true(w.n_steps <= 1);
    assert_true(policy_calibrate(p, 0, 0.12f) < 0.75f * before);
    assert_true(policy_calibrate(p, 0, 0.99f) > 0.98f);
    p->sampled = true; /* counted apart */
    assert_true(policy_calibrate(p, 0, 0.12f) > 0.119f);
}

/* A turn that shares its pass takes an unknown time; it still counts for a pause, which ends. */
TEST(pauses_end_in_company)
{
    draft_policy *p = open_world(0.9f, true, 0.1, 0.01, 0);
    for (int i = 0; i < 2; i++) /* first a plain turn is asked for */
        do
            turn(p);
        while (w.n_steps > 0);
    for (int n = 1; n < 32; n++) {
        cost.turn_s = 0;
        draft_observe(p, &grown, NULL, 0, 1);
    }
    turn(p);
    assert_true(w.n_steps > 0);
}

/* A batch is one node where batching is off; the tree is a chain where branches are. */
TEST(parts_can_be_left_out)
{
    for (int i = 0; i < 2; i++) {
        int32_t nodes[DRAFT_MAX_BATCH];
        draft_policy *p = open_world(0.5f, false, 0.1, 0.001, 0.4);
        cost_saw_step(&cost, 1, 0.001);
        p->without = DREY_WITHOUT(i ? DREY_PART_TREE : DREY_PART_BATCHING);
        tree_reset(&grown, 0);
        MUST(draft_grow, &w.base, p, &grown, 100);
        assert_true(grown.n_nodes > 4);
        for (int32_t j = 1; j < grown.n_nodes && i; j++)
            assert_int_equal(grown.nodes[j].parent, j - 1);
        tree_reset(&grown, 0);
        tree_push(&grown, 0, 1, 0.5f);
        tree_push(&grown, 0, 2, 0.4f);
        grown.nodes[0].expanded = true;
        assert_int_equal(p->class->next(p, &grown, 100, nodes), i ? 2 : 1);
    }
}
