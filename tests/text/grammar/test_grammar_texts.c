/* Texts with a grammar: they are texts of it, end where it says, and are the same with every draft,
 * sampled or not. The matrix has more combinations. */
#include "engine/config.h"
#include "support/faults/disk.h"
#include "support/grammar/grammar_text.h"
#include "support/toy_models.h"
#include "support/writing.h"

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":6},"
    "\"return\":"
    "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":150},\"tree\":{\"type\":\"array\",\"items\":"
    "{\"enum\":[\"the\",\"tree\",\"token\"]},\"maxItems\":3},\"print\":{\"type\":\"boolean\"}},"
    "\"required\":[\"name\",\"return\",\"print\"]}";

enum { N_MOST = 90, N_PROMPT = 8 };
static const int32_t prompt[N_PROMPT] = {65, 66, 67, 68, 65, 66, 67, 68};

TEST_GROUP(toys_open, toys_close)

static drey_grammar *open_grammar(drey_grammar_kind kind, const char *text)
{
    drey_grammar *g;
    MUST(drey_grammar_open, &g, target, kind, text, strlen(text));
    return g;
}

static drey_generate_options options(writing *into, drey_grammar *g, const drey_sampling *s)
{
    memset(into, 0, sizeof *into);
    drey_generate_options o = writing_into(into, N_MOST);
    o.ignore_eos = false;
    o.grammar = g;
    if (s)
        o.sampling = *s;
    return o;
}

static void write_text(writing *w, drey_session *session, drey_grammar *g, const drey_sampling *s)
{
    drey_generate_options o = options(w, g, s);
    MUST(drey_session_sync, session, prompt, N_PROMPT, NULL);
    MUST(drey_session_generate, session, NULL, 0, &o, &w->stats);
}

/* With a model, lookup, both and nobody, greedy and with seeds. Without a grammar none of these
 * toys would write JSON. */
TEST(texts_are_json_of_the_schema_and_the_same_with_every_draft)
{
    enum { N_SEEDS = 12 };
    static writing want[N_SEEDS], got;
    test_grammar *bytes = test_grammar_of(DREY_GRAMMAR_JSON_SCHEMA, schema);
    drey_grammar *g = open_grammar(DREY_GRAMMAR_JSON_SCHEMA, schema);
    int n_whole = 0;
    int64_t n_accepted = 0;
    static const drey_drafter kinds[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_MODEL, DREY_DRAFTER_LOOKUP,
                                         DREY_DRAFTER_MODEL};
    for (int kind = 0; kind < 4; kind++) {
        drey_engine_options o = toys_options(kinds[kind], N_PROMPT + N_MOST, 2);
        o.research = kind == 3 ? &looked_up : NULL;
        engine_place p = place_open(&o, NULL);
        for (int seed = 0; seed < N_SEEDS; seed++) {
            drey_sampling s = {.temperature = seed ? 0.9f : 0, .top_p = 1, .seed = (uint64_t)seed};
            if (seed % 3 == 2)
                s = (drey_sampling){.temperature = 1.2f,
                                    .top_k = 30,
                                    .top_p = 0.9f,
                                    .min_p = 0.01f,
                                    .seed = (uint64_t)seed};
            writing *w = kind ? &got : &want[seed];
            write_text(w, p.session[0], g, &s);
            n_accepted += w->stats.accepted;
            if (kind) {
                must_be_same(&want[seed], w, "a text with a grammar");
                assert_int_equal(w->stats.finish, want[seed].stats.finish);
                continue;
            }
            bool whole;
            size_t n = test_grammar_takes(bytes, w->text, w->n_bytes, &whole);
            if (n != w->n_bytes || whole != (w->stats.finish == DREY_FINISH_STOP))
                fail_msg("seed %d: %.*s", seed, (int)w->n_bytes, w->text);
            n_whole += whole;
        }
        place_close(&p);
    }
    assert_true(n_whole >= N_SEEDS / 2 && n_accepted > 0);
    free(bytes);
    drey_grammar_close(&g);
}

/* What is certain is guessed without a drafter's steps: lookup has seen nothing of it. */
TEST(what_a_grammar_forces_is_drafted)
{
    static writing w;
    drey_grammar *g = open_grammar(DREY_GRAMMAR_CHOICES,
                                   "[\"import def return print hello: system user system\"]");
    drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, N_PROMPT + N_MOST, 2);
    engine_place p = place_open(&o, NULL);
    write_text(&w, p.session[0], g, NULL);
    assert_int_equal(w.stats.finish, DREY_FINISH_STOP);
    assert_memory_equal(w.text, "import def return print hello: system user system", 49);
    assert_true(w.stats.accepted > 0);
    place_close(&p);
    drey_grammar_close(&g);
}

/* The text ends with its last byte, or where it may end and the model wants to, or is cut. */
TEST(a_text_ends_where_its_grammar_does)
{
    static writing w;
    static const struct {
        const char *grammar;
        drey_finish finish;
        const char *text; /* NULL: any */
    } cases[] = {{"[\"the tree\"]", DREY_FINISH_STOP, "the tree"},
                 {"[\"a\"]", DREY_FINISH_STOP, "a"}};
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_PROMPT + N_MOST, 2);
    engine_place p = place_open(&o, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drey_grammar *g = open_grammar(DREY_GRAMMAR_CHOICES, cases[i].grammar);
        write_text(&w, p.session[0], g, NULL);
        assert_int_equal(w.stats.finish, cases[i].finish);
        assert_int_equal(w.stats.stop_text, 0);
        assert_int_equal(w.n_bytes, strlen(cases[i].text));
        assert_memory_equal(w.text, cases[i].text, w.n_bytes);
        drey_grammar_close(&g);
    }
    drey_grammar *endless = open_grammar(DREY_GRAMMAR_REGEX, "[a-z]{500}");
    write_text(&w, p.session[0], endless, NULL);
    assert_int_equal(w.stats.finish, DREY_FINISH_LENGTH);
    assert_int_equal(w.n_ids, N_MOST);
    drey_grammar_close(&endless);
    place_close(&p);
}

TEST(a_grammar_has_one_text_at_a_time)
{
    static writing w;
    drey_grammar *g = open_grammar(DREY_GRAMMAR_REGEX, "[a-z ]{1,400}");
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, N_PROMPT + N_MOST, 2);
    o.n_sessions = 2;
    engine_place p = place_open(&o, NULL);
    drey_generate_options t = options(&w, g, NULL);
    for (int i = 0; i < 2; i++)
        MUST(drey_session_sync, p.session[i], prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, p.session[0], &t, NULL);
    REFUSED(DREY_ERR_USAGE, "open one for each", drey_session_begin, p.session[1], &t, NULL);
    bool done;
    for (int i = 0; i < 5; i++)
        MUST(drey_session_step, p.session[0], &done);
    drey_session_end(p.session[0]);
    MUST(drey_session_begin, p.session[1], &t, NULL);
    MUST(drey_session_step, p.session[1], &done);
    drey_session_cancel(p.session[1]);
    assert_int_equal(drey_session_step(p.session[1], &done, NULL), DREY_ERR_CANCELLED);
    MUST(drey_session_begin, p.session[0], &t, NULL);
    drey_session_close(&p.session[0]); /* in the middle of its text */
    MUST(drey_session_begin, p.session[1], &t, NULL);
    t.ignore_eos = true;
    drey_session_end(p.session[1]);
    REFUSED(DREY_ERR_USAGE, "do not ignore", drey_session_begin, p.session[1], &t, NULL);
    place_close(&p);
    drey_grammar_close(&g);
}

static bool never(void *user, int32_t layer, int32_t position)
{
    return false;
}

TEST(what_does_not_go_with_a_grammar_is_refused)
{
    static writing w;
    drey_grammar *of_draft;
    MUST(drey_grammar_open, &of_draft, draft, DREY_GRAMMAR_REGEX, "a", 1);
    drey_grammar *g = open_grammar(DREY_GRAMMAR_REGEX, "a+");
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, N_PROMPT + N_MOST, 2);
    o.exit = DREY_EXIT_EXACT;
    engine_place p = place_open(&o, &(engine_hooks){.exit_here = never});
    MUST(drey_session_sync, p.session[0], prompt, N_PROMPT, NULL);
    drey_generate_options t = options(&w, g, NULL);
    REFUSED(DREY_ERR_UNSUPPORTED, "early exits", drey_session_begin, p.session[0], &t, NULL);
    t.grammar = of_draft;
    REFUSED(DREY_ERR_USAGE, "another model", drey_session_begin, p.session[0], &t, NULL);
    drey_error err;
    drey_grammar *none;
    assert_int_equal(drey_grammar_open(&none, target, (drey_grammar_kind)9, "a", 1, &err),
                     DREY_ERR_USAGE);
    place_close(&p);
    drey_grammar_close(&g);
    drey_grammar_close(&of_draft);
}

/* While a pass waits for the disk, the masks are made that filters need after it. */
TEST(masks_are_made_while_a_pass_waits)
{
    static writing want, got;
    const drey_sampling s = {.temperature = 0.9f, .top_k = 30, .top_p = 0.95f, .seed = 4};
    static disk slow = {.slow_of = 1, .slow_us = 20000};
    int64_t n_prepared[2];
    for (int i = 0; i < 2; i++) {
        drey_grammar *g = open_grammar(DREY_GRAMMAR_JSON_SCHEMA, schema);
        drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, N_PROMPT + N_MOST, 1);
        engine_hooks hooks = {
            .set_share = true, .share = 0.3, .fault = disk_read, .fault_user = &slow};
        o.read_bytes = 64 << 10;
        o.io = DREY_IO_PREAD;
        if (i)
            o.memory_bytes = smallest_budget(&o, NULL) + (4 << 20);
        engine_place p = place_open(&o, i ? &hooks : NULL);
        write_text(i ? &got : &want, p.session[0], g, &s);
        n_prepared[i] = grammar_n_prepared(g);
        place_close(&p);
        drey_grammar_close(&g);
    }
    must_be_same(&want, &got, "with masks made ahead");
    assert_int_equal(n_prepared[0], 0);
    assert_true(n_prepared[1] > 0);
}

/* A session that was loaded writes what the saved one would have. */
TEST(a_loaded_session_writes_the_same_text)
{
    static writing want, got;
    drey_grammar *g = open_grammar(DREY_GRAMMAR_JSON_SCHEMA, schema);
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, N_PROMPT + N_MOST, 2);
    engine_place p = place_open(&o, NULL);
    const char *path = temp_path("session");
    MUST(drey_session_sync, p.session[0], prompt, N_PROMPT, NULL);
    MUST(drey_session_save, p.session[0], path, NULL, 0);
    write_text(&want, p.session[0], g, NULL);
    MUST(drey_session_load, p.session[0], path, NULL);
    drey_generate_options t = options(&got, g, NULL);
    MUST(drey_session_generate, p.session[0], NULL, 0, &t, &got.stats);
    must_be_same(&want, &got, "after loading");
    place_close(&p);
    drey_grammar_close(&g);
}

/* A prediction that is right, wrong from its middle on, or that the grammar forbids is copied from
 * as far as it serves, and changes no text. */
TEST(a_prediction_next_to_a_grammar)
{
    enum { RIGHT, WRONG_SOON, FORBIDDEN, N_KINDS };
    static const drey_sampling sampled = {.temperature = 0.9f, .top_p = 1, .seed = 5};
    static writing want, got;
    drey_grammar *g = open_grammar(DREY_GRAMMAR_JSON_SCHEMA, schema);
    drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, N_PROMPT + 2 * N_MOST, 2);
    o.policy = DREY_POLICY_SEQUENCE; /* by the clock, copying may not be worth its rows */
    engine_place p = place_open(&o, NULL);
    for (int seeded = 0; seeded < 2; seeded++) {
        const drey_sampling *s = seeded ? &sampled : NULL;
        drey_session_reset(p.session[0]);
        write_text(&want, p.session[0], g, s);
        assert_true(want.n_ids > 8);
        for (int kind = RIGHT; kind < N_KINDS; kind++) {
            int32_t said[sizeof want.ids / sizeof *want.ids];
            for (int32_t i = 0; i < want.n_ids; i++)
                said[i] = kind == FORBIDDEN || (kind == WRONG_SOON && i > want.n_ids / 2)
                              ? 97 + i % 7
                              : want.ids[i];
            drey_session_reset(p.session[0]);
            MUST(drey_session_predict, p.session[0], said, (size_t)want.n_ids);
            write_text(&got, p.session[0], g, s);
            must_be_same(&want, &got, "with a prediction and a grammar");
            if (kind == RIGHT)
                assert_true(got.stats.n_passes < want.stats.n_passes);
        }
    }
    place_close(&p);
    drey_grammar_close(&g);
}
