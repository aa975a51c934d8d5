/* Static trees: values made by hand, and every tree there is for small widths as the other side. */
#include "tree/static_tree.h"
#include "support/rng.h"
#include "support/test.h"

#define near(got, want) assert_near(got, want, 1e-6)

/* "0.0 1.0 0.1": parent and rank of each node below the root. */
static void looks_like(const static_tree *t, const char *want)
{
    char got[400] = "";
    size_t n = 0;
    for (int32_t i = 1; i < t->n; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d.%d", i > 1 ? " " : "", t->parent[i],
                              t->rank[i]);
    assert_string_equal(got, want);
}

static const rank_shares two_heads = {
    .n_depths = 2, .n_ranks = 3, .share = {{0.6f, 0.2f, 0.1f}, {0.5f, 0.1f, 0.05f}}};

TEST(grown_by_hand)
{
    static const struct {
        int32_t width;
        const char *nodes;
        double tokens;
    } want[] = {
        {1, "", 1},
        {2, "0.0", 1.6},
        {3, "0.0 1.0", 1.9},         /* .6 x .5 = .3 before .2 */
        {4, "0.0 0.1 1.0", 2.1},     /* then .2 */
        {5, "0.0 0.1 0.2 1.0", 2.2}, /* .1 at the root before .2 x .5 below */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        static_tree t = static_tree_grow(&two_heads, want[i].width);
        looks_like(&t, want[i].nodes);
        near(static_tree_expected(&t, &two_heads), want[i].tokens);
    }
    static_tree t = static_tree_grow(&two_heads, 64); /* 1 + 3 + 9 places */
    assert_int_equal(t.n, 13);
    near(static_tree_expected(&t, &two_heads), 1 + 0.9 + 0.9 * 0.65);
}

TEST(nothing_is_right)
{
    rank_shares none = {.n_depths = 1, .n_ranks = 2};
    static_tree t = static_tree_grow(&none, 8);
    assert_int_equal(t.n, 1);
    truth_node memory[4];
    truth_log log;
    truth_init(&log, memory, 4);
    near(static_tree_measured(&t, &log), 1);
    truth_shares(&log, &none);
    assert_int_equal(none.n_depths, 0);
    assert_int_equal(static_tree_refine(&t, &log), 0);
}

/* Ten places: rank 1 then 1 three times, 1 then 2 twice, 1 then none once, 2 then 3 three times,
 * none once. Shares say that depth 2 is mostly rank 1; below rank 2 it never is. */
static void fill(truth_log *log)
{
    static const int8_t came[10][2] = {{0, 0},  {0, 0}, {0, 0}, {0, 1}, {0, 1},
                                       {0, -1}, {1, 2}, {1, 2}, {1, 2}, {-1, 0}};
    for (int i = 0; i < 10; i++)
        assert_true(truth_add(log, came[i], 2));
}

TEST(records_by_hand)
{
    truth_node memory[6];
    truth_log log;
    rank_shares shares;
    truth_init(&log, memory, 6);
    fill(&log);
    assert_int_equal(log.n, 6);
    truth_shares(&log, &shares);
    assert_int_equal(shares.n_depths, 2);
    near(shares.share[0][0], 0.6);
    near(shares.share[0][1], 0.3);
    near(shares.share[1][0], 3 / 9.);
    near(shares.share[1][1], 2 / 9.);
    near(shares.share[1][2], 3 / 9.);
    static_tree t = static_tree_grow(&shares, 4); /* .6, .3, then .2 below rank 1 */
    looks_like(&t, "0.0 0.1 1.0");
    near(static_tree_expected(&t, &shares), 2.1);
    near(static_tree_measured(&t, &log), 1 + (6 + 3 + 3) / 10.);
    assert_int_equal(static_tree_refine(&t, &log), 0);
    t = static_tree_grow(&shares, 5); /* rank 3 below rank 1 ties with rank 1: never came */
    looks_like(&t, "0.0 0.1 1.0 1.2");
    near(static_tree_measured(&t, &log), 2.2);
    assert_int_equal(static_tree_refine(&t, &log), 1);
    looks_like(&t, "0.0 0.1 1.0 2.2");
    near(static_tree_measured(&t, &log), 1 + (6 + 3 + 3 + 3) / 10.);
}

/* Steps are levels, those of more than eight nodes more than one. */
TEST(steps_by_hand)
{
    int32_t nodes[STATIC_WIDEST];
    static_tree t = static_tree_grow(&two_heads, 1);
    assert_int_equal(static_tree_steps(&t, nodes), 0);
    t = static_tree_grow(&two_heads, 4);
    assert_int_equal(static_tree_steps(&t, nodes), 2);
    assert_true(nodes[0] == 1 && nodes[1] == 1);
    t = static_tree_grow(&two_heads, 13);
    assert_int_equal(static_tree_steps(&t, nodes), 2);
    assert_true(nodes[0] == 1 && nodes[1] == 3);
    rank_shares alike = {.n_depths = 3, .n_ranks = 3};
    for (int d = 0; d < 3; d++)
        for (int rank = 0; rank < 3; rank++)
            alike.share[d][rank] = 0.3f;
    t = static_tree_grow(&alike, 40); /* all of three levels */
    assert_int_equal(static_tree_steps(&t, nodes), 4);
    assert_true(nodes[0] == 1 && nodes[1] == 3 && nodes[2] == 8 && nodes[3] == 1);
}

TEST(no_room_notes_nothing)
{
    truth_node memory[3];
    truth_log log;
    const int8_t one[] = {0, 0}, other[] = {0, 1}, deep[] = {1, 0, 0};
    truth_init(&log, memory, 3);
    assert_true(truth_add(&log, one, 2));
    assert_false(truth_add(&log, other, 2));
    assert_false(truth_add(&log, deep, 3));
    assert_int_equal(log.nodes[0].count, 1);
    assert_true(truth_add(&log, one, 1));
    assert_int_equal(log.nodes[0].count, 2);
    assert_int_equal(log.nodes[2].count, 1);
}

/* ---- Every tree there is ---- */

enum { DEPTHS = 3, RANKS = 3 };

typedef struct best {
    const rank_shares *shares;
    const truth_log *log;
    int32_t width;
    double expected, measured;
    int64_t n_trees;
} best;

/* Nodes join in the order of (parent, rank), so that each tree comes once. */
static void try_all(best *b, static_tree *t)
{
    if (t->n == b->width) {
        b->n_trees++;
        b->expected = fmax(b->expected, static_tree_expected(t, b->shares));
        b->measured = fmax(b->measured, static_tree_measured(t, b->log));
        return;
    }
    int32_t last = t->n - 1;
    for (int32_t parent = t->n > 1 ? t->parent[last] : 0; parent < t->n; parent++) {
        int32_t rank = t->n > 1 && parent == t->parent[last] ? t->rank[last] + 1 : 0;
        for (; t->depth[parent] < DEPTHS && rank < RANKS; rank++) {
            t->parent[t->n] = (int8_t)parent;
            t->rank[t->n] = (int8_t)rank;
            t->depth[t->n] = (int8_t)(t->depth[parent] + 1);
            t->n++;
            try_all(b, t);
            t->n--;
        }
    }
}

TEST(against_every_tree)
{
    rng r = rng_from(7);
    truth_node memory[200];
    for (int round = 0; round < 20; round++) {
        truth_log log;
        rank_shares shares;
        truth_init(&log, memory, 200);
        for (int i = 0; i < 60; i++) { /* ranks that depend on those before them */
            int8_t came[DEPTHS];
            int32_t from = 0;
            for (int d = 0; d < DEPTHS; d++) {
                from = (from + rng_below(&r, 4)) % 4;
                came[d] = (int8_t)(from < RANKS ? from : -1);
            }
            assert_true(truth_add(&log, came, DEPTHS));
        }
        truth_shares(&log, &shares);
        for (int32_t width = 2; width <= 7; width++) {
            best b = {.shares = &shares, .log = &log, .width = width};
            static_tree root = {.n = 1, .parent = {-1}};
            try_all(&b, &root);
            static_tree t = static_tree_grow(&shares, width);
            assert_int_equal(t.n, width);
            near(static_tree_expected(&t, &shares), b.expected);
            static_tree_refine(&t, &log);
            assert_int_equal(t.n, width);
            near(static_tree_measured(&t, &log), b.measured);
            if (width == 4)
                assert_int_equal(b.n_trees, 55); /* as ternary trees of 4 nodes */
        }
    }
}

TEST(widths)
{
    const double tokens[] = {1, 2, 3, 3.5}, flat[] = {1, 1, 1, 1}, steps[] = {1, 1.1, 1.6, 2},
                 even[] = {1, 2, 3, 3.5};
    assert_int_equal(width_choose(tokens, flat, 4), 3);
    assert_int_equal(width_choose(tokens, steps, 4), 2); /* 1, 1.818, 1.875, 1.75 */
    assert_int_equal(width_choose(tokens, even, 4), 0);
    assert_int_equal(width_choose(tokens, steps, 1), 0);
}
