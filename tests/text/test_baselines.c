/* Baselines of the papers: bld lets likely tokens pass and counts them, draft is the draft's own
 * text, std the target's (in test_matrix.c), with reads and use in turns. */
#include <stdatomic.h>
#include <time.h>

#include "kernel/kernel.h"
#include "policy/policy.h"
#include "support/bytes_file.h"
#include "support/policy_memory.h"
#include "support/toy_models.h"
#include "support/writing.h"
#include "tree/accept.h"
#include "weights/stream.h"

/* ---- bld ---- */

/* Guesses token depth + 1 with a confidence by depth. */
static const float confidences[] = {0.9f, 0.7f, 0.6f, 0.59f, 0.99f};

static drey_status expand_sure(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                               drey_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        tree_node *node = &tree->nodes[nodes[i]];
        node->expanded = true;
        node->n_guesses = 2;
        node->guess[0] = (candidate){node->depth + 1, confidences[node->depth]};
        node->guess[1] = (candidate){node->depth + 100, 0.01f};
    }
    return DREY_OK;
}

TEST(bld_drafts_while_it_is_sure)
{
    policy_memory memory;
    draft_policy *p = policy_init(&memory, policy_class_of(DREY_POLICY_BLD), 32, 0);
    const drafter_class class = {.expand = expand_sure};
    drafter d = {.class = &class};
    token_tree t;
    tree_reset(&t, 0);
    assert_int_equal(draft_grow(&d, p, &t, 20, NULL), DREY_OK);
    assert_int_equal(t.n_nodes, 4); /* 0.9, 0.7, 0.6: not 0.59 */
    assert_int_equal(d.n_steps, 4);
    /* A node that bld did not draft is not submitted. */
    tree_push(&t, 3, 4, 0.59f);
    draft_submit(p, &t, 32);
    assert_true(t.nodes[3].submitted);
    assert_false(t.nodes[4].submitted);
}

/* The target's probabilities: 0.5, 0.3, 0.15, 0.05, everywhere. */
static int32_t accept_one(int32_t token, float rollback, accepted *out)
{
    enum { V = 4, LD = 16 };
    static float logits[3 * LD];
    static const float p[V] = {0.5f, 0.3f, 0.15f, 0.05f};
    for (int row = 0; row < 3; row++)
        for (int i = 0; i < V; i++)
            logits[row * LD + i] = 3 + logf(p[i]);
    arena a;
    sampler s;
    const drey_sampling greedy = {.top_p = 1};
    assert_int_equal(arena_init(&a, sampler_bytes(V), false, NULL), DREY_OK);
    assert_int_equal(sampler_init(&s, &greedy, V, kernel_select("ref"), &a, NULL), DREY_OK);
    token_tree t;
    tree_reset(&t, 0);
    tree_push(&t, tree_push(&t, 0, token, 1), 0, 1);
    tree_submit(&t, 2);
    const int32_t rows[] = {0, 1, 2};
    int32_t n = accept_path(out, &t, &(node_logits){logits, LD, rows}, &s, 7, rollback);
    arena_free(&a);
    return n;
}

TEST(bld_lets_likely_tokens_pass)
{
    accepted a;
    assert_int_equal(accept_one(0, 2, &a), 0); /* its own choice */
    assert_true(a.n_path == 2 && a.next == 0);
    assert_int_equal(accept_one(1, 2, &a), 1); /* -log 0.3 = 1.20 */
    assert_true(a.n_path == 2 && a.next == 0);
    assert_int_equal(accept_one(2, 2, &a), 1); /* 1.90 */
    assert_int_equal(accept_one(3, 2, &a), 0); /* 3.00: taken back, with what follows */
    assert_true(a.n_path == 0 && a.next == 0);
    assert_int_equal(accept_one(1, 1, &a), 0);
    assert_true(a.n_path == 0);
}

/* ---- Texts ---- */

static const int32_t prompt[] = {65, 66, 67, 68, 65, 66};

static drey_engine_options options_of(const drey_model *m, drey_policy policy)
{
    drey_engine_options o = plain_options(m, 128, 2);
    o.policy = policy;
    return o;
}

static void write_text(writing *out, const drey_engine_options *o, double share)
{
    writing_run(out, o, share, prompt, 6, 60, NULL);
}

static bool same(const writing *a, const writing *b)
{
    return a->n_ids == b->n_ids && memcmp(a->ids, b->ids, sizeof *a->ids * (size_t)a->n_ids) == 0;
}

TEST(draft_writes_its_own_text)
{
    static writing alone, baseline, of_target;
    drey_engine_options o = options_of(draft, DREY_POLICY_NONE);
    write_text(&alone, &o, -1);
    o = options_of(target, DREY_POLICY_NONE);
    write_text(&of_target, &o, -1);
    o.policy = DREY_POLICY_DRAFT;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "lets the draft model write");
    o.draft = draft;
    o.drafter = DREY_DRAFTER_MODEL;
    write_text(&baseline, &o, -1);
    assert_true(same(&alone, &baseline));
    assert_false(same(&of_target, &baseline));
    assert_true(drey_policy_is_lossy(DREY_POLICY_DRAFT) && drey_policy_is_lossy(DREY_POLICY_BLD));
    assert_false(drey_policy_is_lossy(DREY_POLICY_STD) || drey_policy_is_lossy(DREY_POLICY_AUTO));
}

/* Each token of a text that bld wrote is compared with the target's choice. */
TEST(bld_counts_what_it_let_pass)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 128, 2);
    o.policy = DREY_POLICY_BLD;
    static writing bld;
    write_text(&bld, &o, -1);
    const drey_speculation c = bld.speculation;
    int32_t text[66];
    memcpy(text, prompt, sizeof prompt);
    memcpy(text + 6, bld.ids, 60 * sizeof *text);
    o = options_of(target, DREY_POLICY_NONE);
    int64_t differed = 0;
    for (int n = 6; n < 66; n++) {
        static writing one;
        writing_run(&one, &o, -1, text, (size_t)n, 1, NULL);
        differed += one.ids[0] != text[n];
    }
    assert_true(c.lossy && differed > 0);
    /* The last pass may have taken more than there was room to write. */
    assert_in_range(c.differed, differed, differed + 1);
}

static writing with_numbers(float bld_fallback, float bld_rollback)
{
    const drey_research research = {.bld_fallback = bld_fallback, .bld_rollback = bld_rollback};
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 128, 2);
    o.policy = DREY_POLICY_BLD;
    o.research = &research;
    writing w = {.n_ids = 0};
    write_text(&w, &o, -1);
    return w;
}

/* The strict end of its curve is the target's text; towards the other end it takes fewer passes and
 * lets more pass. */
TEST(bld_has_a_curve)
{
    static writing of_target, usual, strict, loose;
    const drey_engine_options o = options_of(target, DREY_POLICY_NONE);
    write_text(&of_target, &o, -1);
    usual = with_numbers(0, 0);
    strict = with_numbers(0.6f, 0.001f);
    loose = with_numbers(0.01f, 20);
    assert_true(same(&of_target, &strict) && !same(&of_target, &usual));
    assert_int_equal(strict.speculation.differed, 0);
    assert_true(loose.speculation.differed > usual.speculation.differed);
    assert_true(loose.stats.n_passes < usual.stats.n_passes);
    assert_true(usual.stats.n_passes < strict.stats.n_passes);
    const writing given = with_numbers(0.6f, 2);
    assert_true(same(&given, &usual));
}

/* ---- Reads and use in turns ---- */

enum { PIECES = 40, PIECE = 8192 };
static _Atomic int32_t n_begun;

static int count_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    atomic_fetch_add(&n_begun, 1);
    return 0;
}

static int32_t begun_after_a_while(void)
{
    const struct timespec while_ = {.tv_nsec = 20000000};
    nanosleep(&while_, NULL);
    return atomic_load(&n_begun);
}

TEST(a_ring_is_read_then_used)
{
    static uint8_t bytes[PIECES * PIECE];
    const char *path = temp_path("pieces");
    bytes_file_write(path, bytes, sizeof bytes);
    stream_piece pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (stream_piece){.n_bytes = PIECE, .offset = (uint64_t)i * PIECE};
    enum { RING = 20 * PIECE };
    void *ring = aligned_alloc(4096, RING);
    const char *paths[] = {path};
    const stream_options o = {.paths = paths,
                              .n_paths = 1,
                              .first = pieces,
                              .n_first = PIECES,
                              .ring = ring,
                              .ring_bytes = RING,
                              .io = DREY_IO_PREAD,
                              .in_turns = true,
                              .fault = count_read};
    stream *s;
    MUST(stream_open, &s, &o);
    int64_t next = 0;
    while (next < PIECES) {
        assert_non_null(stream_wait(s, next));
        int32_t n = atomic_load(&n_begun);
        assert_true(n > next + 1 || n == PIECES); /* more than one at a time */
        for (; next < n; next++) {
            assert_true(stream_ready(s, next)); /* all that was asked for is there, */
            if (next % 7 == 0)
                assert_int_equal(begun_after_a_while(), n); /* and nothing else is read */
            stream_release(s, next);
        }
    }
    stream_close(&s);
    free(ring);
}

TEST_GROUP(toys_open, toys_close)
