/* An engine and its sessions at their edges: what is refused, tokens that only the target knows,
 * passes that were given up, and continuing after a stop. */
#include "session/session.h"
#include "support/writing.h"

enum { N_TEXT = 12 };

static drey_engine_options engine_of(const drey_model *target)
{
    return plain_options(target, 64, 2);
}

static void refused(const drey_engine_options *o, drey_status status, const char *says)
{
    must_refuse_engine(o, NULL, status, says);
}

TEST(refuses_rope_factors_of_another_shape)
{
    toy_options toy = toy_default();
    toy.rope_freqs = true;
    toy.rope_freqs_rows = 4096; /* the first row alone would be right */
    drey_model *m = toy_open("factors.gguf", &toy);
    drey_engine_options o = engine_of(m);
    refused(&o, DREY_ERR_FORMAT, "rope_freqs.weight has shape [8, 4096] instead of [8, 1]");
    drey_model_close(&m);
}

TEST(refuses_q8_caches_of_narrow_heads)
{
    toy_options toy;
    toy = toy_default(); /* heads of 16 */
    drey_model *m = toy_open("narrow.gguf", &toy);
    drey_engine_options o = engine_of(m);
    o.kv = DREY_KV_Q8_0;
    refused(&o, DREY_ERR_UNSUPPORTED, "a multiple of 32 numbers; the target's have 16; use f16");
    o.kv = (drey_kv)7;
    refused(&o, DREY_ERR_USAGE, "is not one of those in drey.h");
    drey_model_close(&m);
}

TEST(plans_say_what_q8_caches_save)
{
    toy_options toy = toy_default();
    toy.n_embd = 256; /* heads of 64 */
    drey_model *m = toy_open("wide.gguf", &toy);
    drey_engine_options o = engine_of(m);
    o.n_context = 4096;
    drey_plan f16, q8;
    MUST(drey_plan_make, &o, 0, &f16);
    o.kv = DREY_KV_Q8_0;
    MUST(drey_plan_make, &o, 0, &q8);
    assert_true(f16.kv == DREY_KV_F16 && f16.kv_saved_bytes == 0);
    assert_true(q8.kv == DREY_KV_Q8_0 && q8.kv_bytes + q8.kv_saved_bytes == f16.kv_bytes);
    assert_true(fabs((double)q8.kv_bytes / (double)f16.kv_bytes - 17.0 / 32) < 0.01);
    drey_model_close(&m);
}

TEST(refuses_contexts_beyond_counting)
{
    toy_options toy = toy_default();
    drey_model *m = toy_open("context.gguf", &toy);
    drey_engine_options o = engine_of(m);
    const int32_t bad[] = {INT32_MIN, -1, 0, (1 << 30) + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.n_context = bad[i];
        refused(&o, DREY_ERR_USAGE, "is not possible (1 to 1073741824)");
    }
    o.n_context = 1 << 30;
    o.memory_bytes = 1 << 30;
    refused(&o, DREY_ERR_MEMORY, "the smallest that works here is");
    drey_model_close(&m);
}

/* Padding that the target has and the draft lacks: in the prompt, and in what the target writes. */
TEST(tokens_that_only_the_target_has)
{
    toy_options toy = toy_default();
    drey_model *small = toy_open("small.gguf", &toy);
    toy.n_padded = 700; /* likely to be chosen now and then */
    drey_model *large = toy_open("large.gguf", &toy);
    drey_model_info info;
    drey_model_describe(large, &info);
    const int32_t prompt[] = {5, info.n_vocab - 1, 7, info.n_vocab - 2, info.n_vocab - 3};
    static writing want, got;
    drey_engine_options o = engine_of(large);
    drey_sampling warm = {.temperature = 3.0f, .top_p = 1.0f, .seed = 4};
    writing_run(&want, &o, -1, prompt, 5, N_TEXT, &warm);
    int32_t n_padding = 0;
    for (int32_t i = 0; i < want.n_ids; i++)
        n_padding += want.ids[i] >= info.n_vocab - 700;
    assert_true(n_padding > 0);
    o.draft = small;
    o.drafter = DREY_DRAFTER_MODEL;
    writing_run(&got, &o, -1, prompt, 5, N_TEXT, &warm);
    must_be_same(&want, &got, "padding");
    drey_model_close(&large);
    drey_model_close(&small);
}

static void write_text(drey_session *s, const int32_t *ids, size_t n)
{
    const drey_generate_options g = greedy(N_TEXT);
    drey_statistics stats;
    MUST(drey_session_generate, s, ids, n, &g, &stats);
    assert_int_equal(stats.generated_tokens, N_TEXT);
}

/* A pass without its head that is given up, as a cancelled prompt leaves it, over and over while
 * its reads are under way; the text after it is the same, in this session and in the next. */
TEST(passes_given_up_leave_no_trace)
{
    toy_options toy = toy_default();
    toy.n_embd = 256;
    toy.n_ff = 4096;
    toy.n_layers = 5;
    toy.n_padded = 6000; /* a head that is streamed too */
    drey_model *m = toy_open("abandon.gguf", &toy);
    drey_engine_options o = engine_of(m);
    drey_plan plan;
    o.memory_bytes = smallest_budget(&o, NULL) + (2 << 20);
    drey_engine *e;
    MUST(drey_engine_open, &e, &o);
    const int32_t prompt[] = {1, 2, 3};
    int32_t want[3 + N_TEXT];
    for (int turn = 0; turn < 3; turn++) {
        drey_session *s;
        MUST(drey_session_open, &s, e);
        write_text(s, prompt, 3);
        if (turn == 0)
            memcpy(want, s->timeline, sizeof want);
        assert_memory_equal(s->timeline, want, sizeof want);
        for (int i = 0; i < 40; i++) {
            MUST(weights_pass_begin, &e->target.weights, false);
            weights_pass_leave(&e->target.weights);
        }
        drey_session_reset(s);
        write_text(s, prompt, 3);
        assert_memory_equal(s->timeline, want, sizeof want);
        drey_session_close(&s);
    }
    drey_engine_plan(e, &plan);
    assert_true(plan.streamed_bytes_per_pass > 0);
    drey_engine_close(&e);
    drey_model_close(&m);
}

/* No new tokens: the text continues where it stopped. All places of the context may be used. */
TEST(continues_without_new_tokens)
{
    toy_options toy = toy_default();
    drey_model *m = toy_open("on.gguf", &toy);
    drey_engine_options o = engine_of(m);
    o.drafter = DREY_DRAFTER_LOOKUP;
    o.n_context = 1 + 2 * N_TEXT;
    const int32_t prompt = 65;
    static writing whole;
    writing_run(&whole, &o, -1, &prompt, 1, 2 * N_TEXT, NULL);
    assert_int_equal(whole.n_ids, 2 * N_TEXT);
    drey_error err = {0};
    engine_place p = place_open(&o, NULL);
    drey_session *s = p.session[0];
    write_text(s, &prompt, 1);
    write_text(s, NULL, 0);
    assert_int_equal(s->n_timeline, o.n_context);
    assert_memory_equal(s->timeline + 1, whole.ids, sizeof *whole.ids * 2 * N_TEXT);
    const drey_generate_options g = greedy(1);
    assert_int_equal(drey_session_generate(s, NULL, 0, &g, NULL, &err), DREY_ERR_CONTEXT);
    place_close(&p);
    drey_model_close(&m);
}

/* With a draft or lookup alone: the text is the same with a prediction that is right, wrong, or
 * longer than the room for it, also where the text needs that room; the right one saves passes. */
TEST(a_prediction_is_copied_from)
{
    enum { N = 120, N_LONG = 400 };
    toy_options toy = toy_default();
    drey_model *m = toy_open("predicted.gguf", &toy);
    const int32_t prompt[] = {65, 66, 67};
    static int32_t many[N_LONG];
    static writing plain, predicted;
    drey_error err = {0};
    for (int32_t i = 0; i < N_LONG; i++)
        many[i] = 65 + i % 7;
    for (int with_model = 0; with_model < 2; with_model++) {
        drey_engine_options o = engine_of(m);
        o.drafter = with_model ? DREY_DRAFTER_MODEL : DREY_DRAFTER_LOOKUP;
        o.draft = with_model ? m : NULL;
        o.research = with_model ? &looked_up : NULL;
        if (!with_model) /* by the clock, copying may not be worth its rows */
            o.policy = DREY_POLICY_SEQUENCE;
        o.n_context = 3 + N + 1;
        engine_place p = place_open(&o, NULL);
        drey_session *s = p.session[0];
        for (int kind = 0; kind < 5; kind++) {
            writing *w = kind ? &predicted : &plain;
            *w = (writing){.n_ids = 0};
            drey_session_reset(s);
            if (kind == 1 || kind == 4)
                MUST(drey_session_predict, s, plain.ids, (size_t)plain.n_ids);
            if (kind == 2)
                MUST(drey_session_predict, s, many, N_LONG);
            writing_continue(w, s, prompt, 3, N, NULL);
            if (kind)
                must_be_same_ids(&plain, &predicted, "a prediction");
            if (kind == 1 && !with_model)
                assert_true(predicted.stats.n_passes < plain.stats.n_passes);
        }
        const int32_t wrong = -5;
        assert_int_equal(drey_session_predict(s, &wrong, 1, &err), DREY_ERR_USAGE);
        place_close(&p);
    }
    drey_model_close(&m);
}

TEST(closing_nothing)
{
    drey_session *s = NULL;
    drey_session_close(&s);
    drey_session_close(NULL);
    drey_engine_close(NULL);
    drey_model_close(NULL);
}

TEST_GROUP(temp_dir_set_up, temp_dir_tear_down)
