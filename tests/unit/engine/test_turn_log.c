/* Kept turns and spans: what is kept is what was, the oldest goes first, and a text's spans fit
 * together. */
#include <string.h>

#include "session/session.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"

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

TEST(a_turn_by_hand)
{
    arena memory;
    MUST(arena_init, &memory, turn_log_bytes(10), false);
    turn_log log;
    turn_log_init(&log, 10, &memory);
    MUST(arena_check, &memory);
    token_tree t;
    tree_reset(&t, 7);
    int32_t a = tree_push(&t, 0, 11, 0.75f), b = tree_push(&t, 0, 12, 0.25f);
    t.nodes[0].expanded = true;
    t.nodes[0].n_guesses = 2;
    t.nodes[0].guess[0].token = 12;
    t.nodes[0].guess[1].token = 11;
    tree_submit(&t, 2);
    int32_t c = tree_push(&t, a, 13, 0.5f);
    assert_int_equal(c, 3);
    const accepted path = {.path = {b}, .n_path = 1, .next = 40};
    log.since_ns = 100;
    turn_log_add(&log, &t, &path, 5, 17, 2, 900);
    drey_trace_visitor visitor = {.turn = see_turn, .user = &got};
    got.n_turns = got.n_nodes = 0;
    turn_log_visit(&log, &visitor);
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
    assert_int_equal(log.since_ns, 900);
    arena_free(&memory);
}

/* Four turns behind one of a text before: the tokens 18 to 22 are written, then 20 becomes 99, and
 * 19 and what follows it goes. */
TEST(what_is_taken_back_is_cut)
{
    arena memory;
    turn_log log;
    MUST(arena_init, &memory, turn_log_bytes(10), false);
    turn_log_init(&log, 10, &memory);
    token_tree t;
    tree_reset(&t, 7);
    int32_t a = tree_push(&t, 0, 11, 0.75f), b = tree_push(&t, a, 12, 0.25f);
    const accepted path = {.path = {a, b}, .n_path = 2, .next = 40}, miss = {.next = 41};
    turn_log_add(&log, &t, &miss, 0, 50, 1, 1);
    turn_log_begin(&log, 1);
    turn_log_add(&log, &t, &miss, 0, 17, 1, 2);
    turn_log_add(&log, &t, &path, 1, 18, 3, 3);
    turn_log_add(&log, &t, &miss, 2, 21, 1, 4);
    turn_log_add(&log, &t, &miss, 3, 22, 1, 5);
    const drey_trace_visitor visitor = {.turn = see_turn, .user = &got};
    static const struct {
        int32_t n, last, n_turns, n_written, n_accepted;
    } cuts[] = {{24, 41, 5, 1, 0}, {22, 40, 3, 3, 2}, {21, 99, 3, 2, 1},
                {20, 12, 3, 1, 0}, {19, 41, 2, 1, 0}, {3, 5, 1, 1, 0}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        turn_log_cut(&log, cuts[i].n, cuts[i].last);
        got.n_turns = got.n_nodes = 0;
        turn_log_visit(&log, &visitor);
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
    arena memory;
    turn_log log;
    token_tree t;
    tree_reset(&t, 7);
    MUST(arena_init, &memory, turn_log_bytes(10), false);
    turn_log_init(&log, 10, &memory);
    const accepted miss = {.next = 41};
    int32_t n = 3 * log.n_turns;
    for (int32_t i = 0; i < n; i++)
        turn_log_add(&log, &t, &miss, i, i, 1, i + 1);
    turn_log_cut(&log, n - 3, 41);
    const drey_trace_visitor visitor = {.turn = see_turn, .user = &got};
    got.n_turns = got.n_nodes = 0;
    turn_log_visit(&log, &visitor);
    assert_int_equal(got.n_turns, log.n_turns - 4);
    for (int32_t i = 0; i < got.n_turns; i++)
        assert_int_equal(got.turns[i].number, n - log.n_turns + i);
    arena_free(&memory);
}

/* Trees of all sizes, against a list of everything that was added. */
TEST(the_latest_turns_stay)
{
    rng r = rng_from(11);
    for (int round = 0; round < 30; round++) {
        int32_t keep = round == 0 ? 0 : 1 + rng_below(&r, 3000);
        arena memory;
        MUST(arena_init, &memory, turn_log_bytes(keep) + 64, false);
        turn_log log;
        turn_log_init(&log, keep, &memory);
        all.n_turns = all.n_nodes = got.n_turns = got.n_nodes = 0;
        int32_t n = rng_below(&r, 300), most = 1 + rng_below(&r, TREE_MAX_NODES);
        for (int32_t i = 0; i < n; i++) {
            static token_tree t;
            tree_reset(&t, i);
            for (int32_t k = rng_below(&r, most); k > 0; k--)
                tree_push(&t, rng_below(&r, t.n_nodes), rng_below(&r, 1 << 20), 0.5f);
            const accepted miss = {.next = rng_below(&r, 1000)};
            int64_t before = log.since_ns;
            turn_log_add(&log, &t, &miss, i, 3 * i, 1, 10 * i + 5);
            drey_trace_turn turn = {.number = i,
                                    .t0_ns = before,
                                    .t1_ns = 10 * i + 5,
                                    .n_written = 1,
                                    .position = 3 * i,
                                    .next = miss.next,
                                    .n_nodes = t.n_nodes};
            static drey_trace_node nodes[TREE_MAX_NODES];
            for (int32_t k = 0; k < t.n_nodes; k++)
                nodes[k] = (drey_trace_node){.token = t.nodes[k].token,
                                             .parent = t.nodes[k].parent,
                                             .confidence = t.nodes[k].confidence};
            turn.nodes = nodes;
            see_turn(&all, &turn);
        }
        drey_trace_visitor visitor = {.turn = see_turn, .user = &got};
        turn_log_visit(&log, &visitor);
        assert_true(got.n_turns <= n && (n == 0 || (got.n_turns > 0) == (keep > 0)));
        for (int32_t i = 0; i < got.n_turns; i++)
            same_turns(&got.turns[i], &all.turns[n - got.n_turns + i]);
        /* What is not kept would not have fitted: two of the largest trees' room may be lost. */
        int32_t nodes = 0;
        for (int32_t i = n - got.n_turns - 1; i >= 0 && i < n; i++)
            nodes += all.turns[i].n_nodes;
        if (keep && got.n_turns < n && got.n_turns < log.n_turns)
            assert_true(nodes > log.n_nodes - TREE_MAX_NODES);
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

/* Spans of the caller's thread follow each other or lie in each other; turns follow each other and
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

static void write_traced(const drey_model *target, const drey_model *draft, int32_t n_spans)
{
    drey_engine_options o = plain_options(target, 128, 2);
    o.draft = draft;
    o.drafter = DREY_DRAFTER_MODEL;
    o.trace_spans = n_spans;
    engine_tuning tuning = {.set_share = true, .share = 0.3, .untimed = true};
    drey_engine *e;
    drey_session *s;
    drey_statistics stats;
    drey_generate_options g = greedy(48);
    const int32_t prompt[] = {65, 66, 67, 68, 65};
    MUST(engine_open, &e, &o, &tuning);
    MUST(drey_session_open, &s, e);
    MUST(drey_session_generate, s, prompt, 5, &g, &stats);
    got.n_turns = got.n_nodes = got.n_spans = 0;
    const drey_trace_visitor visitor = {.turn = see_turn, .span = see_span, .user = &got};
    drey_session_trace(s, &visitor);
    if (n_spans > 1000)
        fits_together(&stats, o.n_context);
    else
        assert_true((got.n_spans == 0) == (n_spans == 0) && got.n_spans <= 3 * n_spans &&
                    (got.n_turns == 0) == (n_spans == 0));
    drey_session_close(&s);
    drey_engine_close(&e);
}

TEST(texts_are_traced)
{
    toy_options toy = toy_usual();
    drey_model *target, *draft;
    toy_write(temp_path("target.gguf"), &toy);
    toy.n_layers = 2;
    toy_write(temp_path("draft.gguf"), &toy);
    MUST(drey_model_open, &target, temp_path("target.gguf"));
    MUST(drey_model_open, &draft, temp_path("draft.gguf"));
    write_traced(target, draft, 100000);
    write_traced(target, draft, 7);
    write_traced(target, draft, 0);
    drey_model_close(&target);
    drey_model_close(&draft);
}

/* What a trace takes is in the plan. */
TEST(plans_count_it)
{
    drey_error err = {0};
    toy_options toy = toy_usual();
    drey_model *target;
    target = toy_open("target.gguf", &toy);
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = target;
    o.n_context = 128;
    o.memory_bytes = 1 << 30;
    drey_plan without, with;
    assert_int_equal(drey_plan_make(&o, NULL, &without, &err), DREY_OK);
    o.trace_spans = 10000;
    assert_int_equal(drey_plan_make(&o, NULL, &with, &err), DREY_OK);
    uint64_t more = 3 * 10000 * sizeof(trace_span) + turn_log_bytes(10000);
    /* The process itself may have grown between the two. */
    uint64_t rest = without.spare_bytes + without.process_bytes;
    assert_in_range(rest - with.spare_bytes - with.process_bytes, more, more + 8192);
    o.trace_spans = DREY_MAX_TRACE_SPANS + 1;
    assert_int_equal(drey_plan_make(&o, NULL, &with, &err), DREY_ERR_USAGE);
    drey_model_close(&target);
}

TEST_GROUP(temp_dir_set_up, temp_dir_tear_down)
