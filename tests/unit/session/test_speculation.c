/* Results of drafting: a turn counted by hand, and whole texts whose counts have to agree. */
#include "session/session.h"
#include "support/toy_models.h"
#include "support/tree_path.h"

static void guess(token_tree *t, int32_t node, int32_t a, int32_t b, int32_t c)
{
    tree_guess(t, node, (candidate[]){{a, 0.5f}, {b, 0.3f}, {c, 0.1f}}, 3);
}

/*      root --+-- 11 --+-- 21 (not submitted)     guesses of the root: 11, 12, 13
 *             |        +-- 22 --- 32              of 11: 21, 22, 23; of 22: 31, 32, 33
 *             +-- 12                              12 was not expanded
 *             +-- 99, which was no guess          32 neither
 * The target says 11, 22, 32, then 40. */
TEST(a_turn_by_hand)
{
    drey_session *s = calloc(1, sizeof *s);
    token_tree *t = &s->tree;
    tree_reset(t, 7);
    int32_t a = tree_push(t, 0, 11, 0.5f), unsubmitted;
    tree_push(t, 0, 12, 0.3f);
    tree_push(t, 0, 99, 0.2f);
    int32_t b = tree_push(t, a, 22, 0.3f), c = tree_push(t, b, 32, 0.3f);
    tree_submit(t, t->n_nodes - 1);
    unsubmitted = tree_push(t, a, 21, 0.5f);
    assert_false(t->nodes[unsubmitted].submitted);
    guess(t, 0, 11, 12, 13);
    guess(t, a, 21, 22, 23);
    guess(t, b, 31, 32, 33);
    s->accepted = (accepted){.path = {a, b, c}, .n_path = 3, .next = 40};
    speculation_count(s, 4);
    drey_speculation got;
    drey_session_speculation(s, &got);
    const drey_speculation want = {.depth_submitted = {3, 1, 1},
                                   .depth_accepted = {1, 1, 1},
                                   .rank_submitted = {1, 3, 0, 0, 0, 0, 0, 0, 1},
                                   .rank_accepted = {1, 2},
                                   .rank_chosen = {1, 2}, /* no guesses after 32 */
                                   .passes_writing = {0, 0, 0, 1}};
    assert_memory_equal(&got, &want, sizeof got);
    s->accepted = (accepted){.n_path = 0, .next = 5}; /* a miss: none of the root's guesses */
    speculation_count(s, 1);
    drey_session_speculation(s, &got);
    assert_int_equal(got.rank_chosen[DREY_SPECULATION_RANKS], 1);
    assert_int_equal(got.rank_chosen[0], 1);
    assert_int_equal(got.depth_accepted[0], 1);
    assert_int_equal(got.depth_submitted[0], 6);
    assert_int_equal(got.passes_writing[0], 1);
    free(s);
}

/* Of accepted tokens whose guesses say whose they were. */
TEST(sources_of_what_was_accepted)
{
    drey_session *s = calloc(1, sizeof *s);
    token_tree *t = &s->tree;
    tree_reset(t, 7);
    int32_t path[4] = {0};
    static const uint8_t source[] = {SOURCE_DRAFT, SOURCE_TEXT, SOURCE_DRAFT | SOURCE_TEXT,
                                     SOURCE_TEXT};
    for (int32_t i = 0; i < 4; i++) {
        int32_t above = i ? path[i - 1] : 0;
        path[i] = tree_push(t, above, 10 + i, 0.5f);
        guess(t, above, 50, 10 + i, 51);
        t->nodes[above].source[1] = source[i];
    }
    tree_submit(t, 4);
    s->accepted = (accepted){.path = {path[0], path[1], path[2], path[3]}, .n_path = 4, .next = 9};
    speculation_count(s, 5);
    drey_speculation got;
    drey_session_speculation(s, &got);
    assert_int_equal(got.accepted_of_draft, 1);
    assert_int_equal(got.accepted_of_text, 2);
    assert_int_equal(got.accepted_of_both, 1);
    free(s);
}

/* What lies beyond the last element is counted there. */
TEST(long_paths_are_counted_at_the_end)
{
    drey_session *s = calloc(1, sizeof *s);
    tree_reset(&s->tree, 7);
    for (int32_t i = 0; i < 70; i++)
        s->accepted.path[s->accepted.n_path++] = tree_push(&s->tree, i, 1, 1);
    tree_submit(&s->tree, s->tree.n_nodes - 1);
    speculation_count(s, 71);
    drey_speculation got;
    drey_session_speculation(s, &got);
    assert_int_equal(got.depth_submitted[0], 1);
    assert_int_equal(got.depth_accepted[DREY_SPECULATION_DEPTHS - 1], 70 - 31);
    assert_int_equal(got.depth_submitted[DREY_SPECULATION_DEPTHS - 1], 70 - 31);
    assert_int_equal(got.passes_writing[DREY_SPECULATION_WRITTEN - 1], 1);
    free(s);
}

static int64_t total(const int64_t *count, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += count[i];
    return sum;
}

static void write_text(drey_session *s, drey_statistics *stats, drey_speculation *c)
{
    drey_generate_options g = greedy(48);
    const int32_t prompt[] = {65, 66, 67, 68, 65};
    MUST(drey_session_generate, s, prompt, 5, &g, stats);
    drey_session_speculation(s, c);
}

static void agrees(const drey_statistics *t, const drey_speculation *c)
{
    enum { RANKS = DREY_SPECULATION_RANKS + 1 };
    int64_t submitted = total(c->depth_submitted, DREY_SPECULATION_DEPTHS);
    assert_int_equal(total(c->depth_accepted, DREY_SPECULATION_DEPTHS), t->accepted);
    assert_int_equal(total(c->rank_accepted, RANKS), t->accepted);
    assert_int_equal(total(c->rank_submitted, RANKS), submitted);
    assert_int_equal(total(c->passes_writing, DREY_SPECULATION_WRITTEN), t->n_passes);
    assert_int_equal(submitted, t->drafted);
    int64_t written = 0;
    for (int i = 0; i < DREY_SPECULATION_WRITTEN; i++)
        written += (i + 1) * c->passes_writing[i];
    assert_int_equal(written, t->generated_tokens - 1);
}

TEST(texts_add_up)
{
    for (int with = 0; with < 2; with++) {
        drey_engine_options o = toys_options(with ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE, 128, 1);
        o.policy = with ? DREY_POLICY_EDGELLM : DREY_POLICY_NONE; /* drafts whatever it costs */
        drey_session *s = open_alone(&o, NULL);
        for (int text = 0; text < 2; text++) { /* the second one counts for itself alone */
            drey_statistics stats;
            drey_speculation c;
            write_text(s, &stats, &c);
            agrees(&stats, &c);
            assert_true((c.draft_steps > 0) == with && (c.draft_s > 0) == with);
            assert_true(c.draft_steps <= 2 * 48 * (1 + stats.n_passes));
            assert_true((total(c.rank_chosen, DREY_SPECULATION_RANKS) > 0) == with);
        }
        close_alone(&s);
    }
}

static bool keep_id(void *user, int32_t id)
{
    int32_t **at = user;
    *(*at)++ = id;
    return true;
}

/* A text that is not drafted for is the same, and the ones around it are drafted for as ever. */
TEST(a_text_without_drafts)
{
    for (int with = 0; with < 2; with++) {
        drey_engine_options o =
            toys_options(with ? DREY_DRAFTER_MODEL : DREY_DRAFTER_LOOKUP, 128, 1);
        o.policy = DREY_POLICY_SPECINFER; /* drafts whatever it costs */
        drey_session *s = open_alone(&o, NULL);
        int32_t ids[3][48];
        for (int text = 0; text < 3; text++) {
            drey_statistics stats;
            drey_generate_options g = greedy(48);
            int32_t *at = ids[text];
            const int32_t prompt[] = {65, 66, 67, 68, 65};
            g.on_token = keep_id;
            g.user = &at;
            g.no_draft = text == 1;
            drey_session_reset(s);
            MUST(drey_session_generate, s, prompt, 5, &g, &stats);
            drey_speculation c;
            drey_session_speculation(s, &c);
            assert_int_equal(stats.drafted == 0, text == 1);
            assert_true(text != 1 || (c.draft_steps == 0 && stats.n_passes == 47));
            assert_memory_equal(ids[text], ids[0], sizeof ids[0]);
        }
        close_alone(&s);
    }
}

TEST_GROUP(toys_open, toys_close)
