/* Kept turns and spans: what is kept is what was, the oldest goes first, and a text's spans fit
 * together. */
#include "session/session.h"
#include "support/toy_models.h"
#include "support/tree_path.h"

enum { MOST_TURNS = 4000, MOST_NODES = 400000 };

typedef struct seen {
    drey_trace_turn turns[MOST_TURNS];
    drey_trace_node nodes[MOST_NODES];
    drey_trace_span spans[MOST_NODES];
    int32_t n_turns, n_nodes, n_spans;
} seen;

static seen got, all;

static void see_turn(void *user, const drey_trace_turn *turn)
{
    seen *s = user;
    assert_true(s->n_turns < MOST_TURNS && s->n_nodes + turn->n_nodes <= MOST_NODES);
    s->turns[s->n_turns] = *turn;
    s->turns[s->n_turns++].nodes = &s->nodes[s->n_nodes];
    memcpy(&s->nodes[s->n_nodes], turn->nodes, sizeof *turn->nodes * (size_t)turn->n_nodes);
    s->n_nodes += turn->n_nodes;
}

static void see_span(void *user, const drey_trace_span *span)
{
    seen *s = user;
    assert_true(s->n_spans < MOST_NODES);
    s->spans[s->n_spans++] = *span;
}

static void same_turns(const drey_trace_turn *a, const drey_trace_turn *b)
{
    assert_true(a->number == b->number && a->t0_ns == b->t0_ns && a->t1_ns == b->t1_ns);
    assert_true(a->position == b->position && a->next == b->next && a->n_nodes == b->n_nodes);
    assert_true(a->n_written == b->n_written);
    assert_memory_equal(a->nodes, b->nodes, sizeof *a->nodes * (size_t)a->n_nodes);
}

/* A test's log, its memory, and the tree that turns submit. */
static turn_log kept;
static arena memory;
static token_tree tree;

static void start_log(int32_t keep, int32_t root)
{
    MUST(arena_init, &memory, turn_log_bytes(keep) + (keep ? 0 : 64), false);
    turn_log_init(&kept, keep, &memory);
    tree_reset(&tree, root);
}

static void see_log(void)
{
    const drey_trace_visitor visitor = {.turn = see_turn, .user = &got};
    got.n_turns = got.n_nodes = 0;
    turn_log_visit(&kept, &visitor);
}

TEST(a_turn_by_hand)
{
    start_log(10, 7);
    MUST(arena_check, &memory);
    int32_t a = tree_push(&tree, 0, 11, 0.75f), b = tree_push(&tree, 0, 12, 0.25f);
    tree_guess(&tree, 0, (candidate[]){{12, 0.25f}, {11, 0.75f}}, 2);
    tree_submit(&tree, 2);
    int32_t c = tree_push(&tree, a, 13, 0.5f);
    assert_int_equal(c, 3);
    const accepted path = {.path = {b}, .n_path = 1, .next = 40};
    kept.since_ns = 100;
    turn_log_add(&kept, &tree, &path, 5, 17, 2, 900);
    see_log();
    assert_int_equal(got.n_turns, 1);
    const drey_trace_node nodes[] = {{.token = 7, .parent = -1, .confidence = 1, .submitted = true},
                                     {11, 0, 0.75f, 2, true, false, false},
                                     {12, 0, 0.25f, 1, true, true, false},
                                     {13, a, 0.5f, 0, false, false, false}};
    drey_trace_turn want = {.number = 5,
                            .t0_ns = 100,
                            .t1_ns = 900,
                            .position = 17,
                            .next = 40,
                            .n_written = 2,
                            .n_nodes = 4,
                            .nodes = nodes};
    same_turns(&got.turns[0], &want);
    assert_int_equal(kept.since_ns, 900);
    arena_free(&memory);
}

/* Four turns after one of an earlier text; then the token at 20 becomes 99, and in the end the one
 * at 19 and what follows it are removed. */
TEST(what_is_taken_back_is_cut)
{
    start_log(10, 7);
    int32_t a = tree_push(&tree, 0, 11, 0.75f), b = tree_push(&tree, a, 12, 0.25f);
    const accepted path = {.path = {a, b}, .n_path = 2, .next = 40}, miss = {.next = 41};
    turn_log_add(&kept, &tree, &miss, 0, 50, 1, 1);
    turn_log_begin(&kept, 1);
    turn_log_add(&kept, &tree, &miss, 0, 17, 1, 2);
    turn_log_add(&kept, &tree, &path, 1, 18, 3, 3);
    turn_log_add(&kept, &tree, &miss, 2, 21, 1, 4);
    turn_log_add(&kept, &tree, &miss, 3, 22, 1, 5);
    static const struct {
        int32_t n, last, n_turns, n_written, n_accepted;
    } cuts[] = {{24, 41, 5, 1, 0}, {22, 40, 3, 3, 2}, {21, 99, 3, 2, 1},
                {20, 12, 3, 1, 0}, {19, 41, 2, 1, 0}, {3, 5, 1, 1, 0}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        turn_log_cut(&kept, cuts[i].n, cuts[i].last);
        see_log();
        assert_int_equal(got.n_turns, cuts[i].n_turns);
        const drey_trace_turn *turn = &got.turns[got.n_turns - 1];
        assert_int_equal(turn->n_written, cuts[i].n_written);
        assert_int_equal(turn->next, i == 5 ? 41 : cuts[i].last);
        assert_int_equal(turn->nodes[a].accepted + turn->nodes[b].accepted, cuts[i].n_accepted);
    }
    arena_free(&memory);
}

/* Of a full ring the oldest turns do not come back when the latest go. */
TEST(what_was_overwritten_stays_away)
{
    start_log(10, 7);
    const accepted miss = {.next = 41};
    int32_t n = 3 * kept.n_turns;
    for (int32_t i = 0; i < n; i++)
        turn_log_add(&kept, &tree, &miss, i, i, 1, i + 1);
    turn_log_cut(&kept, n - 3, 41);
    see_log();
    assert_int_equal(got.n_turns, kept.n_turns - 4);
    for (int32_t i = 0; i < got.n_turns; i++)
        assert_int_equal(got.turns[i].number, n - kept.n_turns + i);
    arena_free(&memory);
}

/* Trees of all sizes, against a list of everything that was added. */
TEST(the_latest_turns_stay)
{
    rng r = rng_from(11);
    for (int round = 0; round < 30; round++) {
        int32_t keep = round == 0 ? 0 : 1 + rng_below(&r, 3000);
        start_log(keep, 0);
        all.n_turns = all.n_nodes = 0;
        int32_t n = rng_below(&r, 300), most = 1 + rng_below(&r, TREE_MAX_NODES);
        for (int32_t i = 0; i < n; i++) {
            tree_reset(&tree, i);
            for (int32_t k = rng_below(&r, most); k > 0; k--)
                tree_push(&tree, rng_below(&r, tree.n_nodes), rng_below(&r, 1 << 20), 0.5f);
            const accepted miss = {.next = rng_below(&r, 1000)};
            int64_t before = kept.since_ns;
            turn_log_add(&kept, &tree, &miss, i, 3 * i, 1, 10 * i + 5);
            drey_trace_turn turn = {.number = i,
                                    .t0_ns = before,
                                    .t1_ns = 10 * i + 5,
                                    .n_written = 1,
                                    .position = 3 * i,
                                    .next = miss.next,
                                    .n_nodes = tree.n_nodes};
            static drey_trace_node nodes[TREE_MAX_NODES];
            for (int32_t k = 0; k < tree.n_nodes; k++)
                nodes[k] = (drey_trace_node){.token = tree.nodes[k].token,
                                             .parent = tree.nodes[k].parent,
                                             .confidence = tree.nodes[k].confidence};
            turn.nodes = nodes;
            see_turn(&all, &turn);
        }
        see_log();
        assert_true(got.n_turns <= n && (n == 0 || (got.n_turns > 0) == (keep > 0)));
        for (int32_t i = 0; i < got.n_turns; i++)
            same_turns(&got.turns[i], &all.turns[n - got.n_turns + i]);
        /* What is not kept would not have fitted: two of the largest trees' room may be lost. */
        int32_t nodes = 0;
        for (int32_t i = n - got.n_turns - 1; i >= 0 && i < n; i++)
            nodes += all.turns[i].n_nodes;
        if (keep && got.n_turns < n && got.n_turns < kept.n_turns)
            assert_true(nodes > kept.n_nodes - TREE_MAX_NODES);
        arena_free(&memory);
    }
}

static bool inside(const drey_trace_span *span, const char *const *what)
{
    for (int32_t i = 0; i < got.n_spans; i++)
        for (int k = 0; what[k]; k++)
            if (strcmp(got.spans[i].what, what[k]) == 0 && got.spans[i].t0_ns <= span->t0_ns &&
                span->t1_ns <= got.spans[i].t1_ns)
                return true;
    return false;
}

/* Spans of the caller's thread follow each other or are nested; turns follow each other and
 * hold one verification each. */
static void fits_together(const drey_statistics *stats, int32_t n_context)
{
    static const char *const holders[] = {"load", "prompt", "verify", "draft", "provisional", NULL};
    int64_t verified = 0, read = 0, end = 0;
    for (int32_t i = 0; i < got.n_spans; i++) {
        const drey_trace_span *s = &got.spans[i];
        assert_true(s->t0_ns <= s->t1_ns);
        verified += strcmp(s->what, "verify") == 0;
        read += strncmp(s->what, "read", 4) == 0 ? s->amount : 0;
        if (strcmp(s->what, "stall") == 0 && s->t0_ns >= got.turns[0].t0_ns)
            assert_true(inside(s, holders));
    }
    assert_int_equal(verified, stats->n_passes);
    assert_int_equal(got.n_turns, stats->n_passes);
    assert_true(read >= (int64_t)(stats->load_bytes + stats->read_bytes));
    int64_t written = 0;
    for (int32_t i = 0; i < got.n_turns; i++) {
        const drey_trace_turn *t = &got.turns[i];
        assert_true(t->t0_ns < t->t1_ns && (i == 0 || t->t0_ns == end));
        assert_true(t->number == i && t->position < n_context);
        end = t->t1_ns;
        written += t->n_written;
    }
    assert_int_equal(written, stats->generated_tokens - 1);
}

static void write_traced(int32_t n_spans)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 128, 2);
    o.trace_spans = n_spans;
    engine_hooks hooks = {.set_share = true, .share = 0.3, .untimed = true};
    drey_session *s = open_alone(&o, &hooks);
    drey_statistics stats;
    drey_generate_options g = greedy(48);
    const int32_t prompt[] = {65, 66, 67, 68, 65};
    MUST(drey_session_generate, s, prompt, 5, &g, &stats);
    got.n_turns = got.n_nodes = got.n_spans = 0;
    const drey_trace_visitor visitor = {.turn = see_turn, .span = see_span, .user = &got};
    drey_session_trace(s, &visitor);
    if (n_spans > 1000)
        fits_together(&stats, o.n_context);
    else
        assert_true((got.n_spans == 0) == (n_spans == 0) && got.n_spans <= 3 * n_spans &&
                    (got.n_turns == 0) == (n_spans == 0));
    close_alone(&s);
}

TEST(texts_are_traced)
{
    write_traced(100000);
    write_traced(7);
    write_traced(0);
}

/* What a trace takes is in the plan. */
TEST(plans_count_it)
{
    drey_error err = {0};
    drey_engine_options o = plain_options(target, 128, 0);
    o.memory_bytes = 1 << 30;
    drey_plan without, with;
    MUST(drey_plan_make, &o, NULL, &without);
    o.trace_spans = 10000;
    MUST(drey_plan_make, &o, NULL, &with);
    uint64_t more = 3 * 10000 * sizeof(trace_span) + turn_log_bytes(10000);
    /* The process itself may have grown between the two. */
    uint64_t rest = without.spare_bytes + without.process_bytes;
    assert_in_range(rest - with.spare_bytes - with.process_bytes, more, more + 8192);
    o.trace_spans = DREY_MAX_TRACE_SPANS + 1;
    assert_int_equal(drey_plan_make(&o, NULL, &with, &err), DREY_ERR_USAGE);
}

TEST_GROUP(toys_open, toys_close)
