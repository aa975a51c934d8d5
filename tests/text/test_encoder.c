/* Models with an encoder: what an input is to a session, what is said of files that lack something,
 * and that the memory plan has a line for it. That the text is the same with all drafts, policies,
 * budgets and units is test_matrix.c's, the numbers are test_logits.c's. */
#include "draft/lookup_drafter.h"
#include "session/session.h"
#include "support/logit_toys.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 96, N_INPUT = 60, N_TEXT = 24 };

static int32_t input[N_CONTEXT + 1];

static void open_toys(int first)
{
    toy_options toy;
    arch_toy(first, &toy);
    temp_dir();
    target = toy_open("target.gguf", &toy);
    toy.noise = 0.01f;
    toy.noise_seed = 5;
    draft = toy_open("draft.gguf", &toy);
    for (int32_t i = 0; i <= N_CONTEXT; i++)
        input[i] = 20 + i * 7 % 150;
}

static int open_t5(void **state)
{
    open_toys(FIRST_T5_TOY);
    return 0;
}

static int open_bart(void **state)
{
    open_toys(FIRST_BART_TOY);
    return 0;
}

/* A test of each kind of models. */
#define TEST_OF_EACH(name)                                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        register_test((struct CMUnitTest){#name "_t5", name, open_t5, toys_close, NULL}, __FILE__, \
                      __LINE__);                                                                   \
        register_test((struct CMUnitTest){#name "_bart", name, open_bart, toys_close, NULL},       \
                      __FILE__, __LINE__);                                                         \
    }                                                                                              \
    static void name(void **state)

/* Tokens that a text begins with: the start token, and BART's toy has one more. */
static size_t n_given(void)
{
    return target->shape.encoder.forced_id >= 0 ? 2 : 1;
}

/* Writes a text for input[from .. from + n). */
static void write_for(drey_session *s, int32_t from, int32_t n, writing *t)
{
    *t = (writing){.n_ids = 0};
    writing_continue(t, s, input + from, (size_t)n, N_TEXT, NULL);
    assert_int_equal(t->n_ids, N_TEXT);
}

static int64_t input_rows(const drey_session *s)
{
    return s->input.unread ? 0 : s->input.target.n_committed;
}

TEST_OF_EACH(the_text_depends_on_the_input)
{
    static writing first, second, again;
    const int32_t *ids;
    size_t n;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 0, N_INPUT, &first);
    assert_int_equal(first.stats.prompt_tokens, N_INPUT);
    drey_session_timeline(s, &ids, &n);
    assert_true(n == N_TEXT + n_given() && ids[0] == target->shape.encoder.start_id);
    assert_true(n_given() == 1 || ids[1] == target->shape.encoder.forced_id);
    assert_memory_equal(ids + n_given(), first.ids, N_TEXT * sizeof *ids);
    write_for(s, 1, N_INPUT, &second);
    assert_int_not_equal(memcmp(first.ids, second.ids, N_TEXT * sizeof *ids), 0);
    write_for(s, 0, N_INPUT, &again);
    must_be_same(&first, &again, "after another input");
    assert_int_equal(input_rows(s), N_INPUT);
    close_alone(&s);
}

/* The same input is not read again, and a text continues. */
TEST_OF_EACH(inputs_are_kept)
{
    static writing whole, parts;
    size_t n_kept = 7;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 0, N_INPUT, &whole);
    MUST(drey_session_sync, s, input, N_INPUT, &n_kept);
    assert_true(n_kept == N_INPUT && !s->input.unread && s->n_timeline == (int32_t)n_given());
    MUST(drey_session_sync, s, input, N_INPUT - 1, &n_kept);
    assert_true(n_kept == 0 && s->input.unread);
    MUST(drey_session_sync, s, input, N_INPUT, &n_kept);
    parts = (writing){.n_ids = 0};
    writing_continue(&parts, s, NULL, 0, 10, NULL);
    writing_continue(&parts, s, NULL, 0, N_TEXT - 10, NULL);
    must_be_same(&whole, &parts, "in two parts");
    drey_session_reset(s);
    REFUSED(DREY_ERR_USAGE, "prompt is empty", drey_session_generate, s, NULL, 0,
            &(drey_generate_options){.n_predict = 1}, NULL);
    close_alone(&s);
}

/* A draft reads the input as well; a saved session reads it again. */
TEST_OF_EACH(saved_sessions_continue)
{
    static writing first, second, again;
    drey_saved_session saved;
    for (int i = 0; i < 2; i++) {
        drey_engine_options o = plain_options(target, N_CONTEXT, 1);
        drey_session *s = open_alone(&o, NULL);
        write_for(s, 0, N_INPUT, &first);
        MUST(drey_session_save, s, temp_path("saved"), NULL, 0);
        second = (writing){.n_ids = 0};
        writing_continue(&second, s, NULL, 0, N_TEXT, NULL);
        close_alone(&s);
        o.drafter = i ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE;
        o.draft = i ? draft : NULL;
        s = open_alone(&o, NULL);
        write_for(s, 3, N_INPUT, &again); /* something else was there */
        MUST(drey_session_load, s, temp_path("saved"), &saved);
        assert_int_equal(saved.n_tokens, n_given() + N_TEXT);
        again = (writing){.n_ids = 0};
        writing_continue(&again, s, NULL, 0, N_TEXT, NULL);
        must_be_same_ids(&second, &again, "loaded");
        close_alone(&s);
    }
    drey_engine_options o = plain_options(target, N_INPUT - 1, 1);
    drey_session *s = open_alone(&o, NULL);
    REFUSED(DREY_ERR_CONTEXT, "60 tokens", drey_session_load, s, temp_path("saved"), NULL);
    close_alone(&s);
}

/* A draft that is the target itself is always right: it has the same input. */
TEST_OF_EACH(drafts_read_the_input)
{
    static writing got;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = target;
    o.policy = DREY_POLICY_SEQUENCE;
    o.draft_tokens = 4;
    drey_session *s = open_alone(&o, NULL);
    for (int32_t from = 0; from < 3; from++) {
        write_for(s, from, N_INPUT, &got);
        assert_true(got.stats.accepted > 0 && got.stats.accepted >= got.stats.drafted - 4);
    }
    close_alone(&s);
}

/* Lookup copies from the input that the session has now, and writes the same. */
TEST_OF_EACH(lookup_has_the_input)
{
    static writing want, got;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 2, N_INPUT, &want);
    close_alone(&s);
    o.drafter = DREY_DRAFTER_LOOKUP;
    s = open_alone(&o, NULL);
    for (int32_t from = 0; from < 3; from++) {
        write_for(s, from, N_INPUT, &got);
        const lookup_drafter *d = (const lookup_drafter *)s->drafter;
        assert_int_equal(d->n_input, N_INPUT);
        assert_memory_equal(d->tokens, input + from, N_INPUT * sizeof *input);
        assert_int_equal(d->n_tokens, N_INPUT + s->n_timeline);
    }
    must_be_same_ids(&want, &got, "with lookup");
    close_alone(&s);
}

/* Sessions that share passes have each their own input. */
TEST_OF_EACH(sessions_share_passes)
{
    static writing want[3], got[3];
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    for (int32_t i = 0; i < 3; i++)
        write_for(s, i, N_INPUT - 20 * i, &want[i]);
    close_alone(&s);
    o.n_sessions = 3;
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = draft;
    engine_place p = place_open(&o, NULL);
    for (int32_t i = 0; i < 3; i++) {
        got[i] = (writing){.n_ids = 0};
        drey_generate_options g = writing_into(&got[i], N_TEXT);
        MUST(drey_session_sync, p.session[i], input + i, (size_t)(N_INPUT - 20 * i), NULL);
        MUST(drey_session_begin, p.session[i], &g, NULL);
    }
    for (int32_t n = 1; n > 0;)
        MUST(drey_engine_step, p.engine, &n);
    for (int32_t i = 0; i < 3; i++)
        must_be_same(&want[i], &got[i], "in shared passes");
    place_close(&p);
}

/* A cancel while the encoder reads leaves the input unread; the next text reads it. */
TEST_OF_EACH(cancelled_inputs_are_read_later)
{
    static writing want, got;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 0, N_INPUT, &want);
    MUST(drey_session_sync, s, input + 1, N_INPUT, NULL);
    drey_generate_options g = greedy(N_TEXT);
    MUST(drey_session_begin, s, &g, NULL);
    drey_session_cancel(s);
    bool done;
    drey_error err;
    assert_int_equal(drey_session_step(s, &done, &err), DREY_ERR_CANCELLED);
    assert_true(s->input.unread);
    write_for(s, 0, N_INPUT, &got);
    must_be_same(&want, &got, "after a cancel");
    close_alone(&s);
}

TEST_OF_EACH(bad_inputs)
{
    float logprob[4];
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    drey_generate_options g = greedy(4);
    REFUSED(DREY_ERR_CONTEXT, "the input has 97 tokens", drey_session_generate, s, input,
            N_CONTEXT + 1, &g, NULL);
    REFUSED(DREY_ERR_CONTEXT, "lets the encoder read 96", drey_session_sync, s, input,
            N_CONTEXT + 1, NULL);
    REFUSED(DREY_ERR_USAGE, "the session has none", drey_session_score, s, input, 3, logprob);
    MUST(drey_session_generate, s, input, N_CONTEXT, &g, NULL);
    MUST(drey_session_score, s, input, 3, logprob);
    close_alone(&s);
    toy_options plain = toy_default();
    plain.pre = target->shape.encoder.n_buckets ? "t5" : "gpt-2"; /* the same tokens */
    other = toy_open("plain.gguf", &plain);
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = other;
    must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, "only one of target and draft has an encoder");
}

/* The file without a key or tensor: its name is changed in place, of a key the architecture's, of a
 * tensor the end. */
static drey_status open_without(int which, const char *name, drey_error *err)
{
    toy_options toy;
    gguf_writer w = {0};
    arch_toy(which, &toy);
    toy_build(&w, &toy, 0);
    size_t n = strlen(name);
    for (size_t i = 0; i + n <= w.n; i++)
        if (memcmp(w.bytes + i, name, n) == 0)
            w.bytes[strstr(name, ".weight") ? i + n - 1 : i] = '_';
    assert_true(writer_save(&w, temp_path("without.gguf")));
    writer_free(&w);
    drey_model *m = NULL;
    drey_status status = drey_model_open(&m, temp_path("without.gguf"), err);
    if (status == DREY_OK) {
        drey_engine_options o = plain_options(m, 64, 1);
        drey_engine *e = NULL;
        status = drey_engine_open(&e, &o, err);
        drey_engine_close(&e);
    }
    drey_model_close(&m);
    return status;
}

static void count(void *user, const char *what)
{
    ++*(int *)user;
}

TEST(files_that_lack_something)
{
    REFUSED(DREY_ERR_FORMAT, "no relative position buckets", open_without, FIRST_T5_TOY,
            "t5.attention.relative_buckets_count");
    REFUSED(DREY_ERR_FORMAT, "tensor enc.blk.0.attn_rel_b.weight is missing", open_without,
            FIRST_T5_TOY, "enc.blk.0.attn_rel_b.weight");
    REFUSED(DREY_ERR_FORMAT, "no character map", open_without, FIRST_T5_TOY,
            "tokenizer.ggml.precompiled_charsmap");
    REFUSED(DREY_ERR_FORMAT, "dec.blk.1.cross_attn_k.weight is missing", open_without, FIRST_T5_TOY,
            "dec.blk.1.cross_attn_k.weight");
    int n = 0;
    MUST(drey_missing, temp_path("without.gguf"), count, &n);
    assert_int_equal(n, 1);
    REFUSED(DREY_ERR_FORMAT, "tensor dec.position_embd.weight is missing", open_without,
            FIRST_BART_TOY, "dec.position_embd.weight");
    REFUSED(DREY_ERR_FORMAT, "tensor enc.position_embd.weight is missing", open_without,
            FIRST_BART_TOY, "enc.position_embd.weight");
    REFUSED(DREY_ERR_FORMAT, "dec.token_embd_norm.weight is missing", open_without, FIRST_BART_TOY,
            "dec.token_embd_norm.weight");
}

/* Learned positions: a file for fewer, and inputs and contexts that are longer than them. */
TEST_WITH(positions_end, open_bart, toys_close)
{
    toy_options toy;
    arch_toy(FIRST_BART_TOY, &toy);
    toy.n_context = 32;
    other = toy_open("short.gguf", &toy);
    drey_engine_options o = plain_options(other, 33, 1);
    must_refuse_engine(&o, NULL, DREY_ERR_UNSUPPORTED, "has positions for 32 tokens only");
    o.n_context = 32;
    drey_session *s = open_alone(&o, NULL);
    drey_generate_options g = greedy(4);
    REFUSED(DREY_ERR_CONTEXT, "the model has positions for 32 only", drey_session_generate, s,
            input, 33, &g, NULL);
    MUST(drey_session_generate, s, input, 32, &g, NULL);
    close_alone(&s);
    o.n_context = 1;
    s = open_alone(&o, NULL);
    REFUSED(DREY_ERR_CONTEXT, "begin with 2 tokens", drey_session_generate, s, input, 1, &g, NULL);
    close_alone(&s);
}

/* The file says that there are more positions than it has. */
TEST(positions_of_another_shape)
{
    static const char key[] = "bart.context_length";
    toy_options toy;
    gguf_writer w = {0};
    drey_model *m = NULL;
    drey_engine *e = NULL;
    arch_toy(FIRST_BART_TOY, &toy);
    toy.n_context = 32;
    toy_build(&w, &toy, 0);
    for (size_t i = 0, n = sizeof key - 1; i + n <= w.n; i++)
        if (memcmp(w.bytes + i, key, n) == 0)
            w.bytes[i + n + 4] = 40; /* after the value's type */
    assert_true(writer_save(&w, temp_path("shape.gguf")));
    writer_free(&w);
    MUST(drey_model_open, &m, temp_path("shape.gguf"));
    drey_engine_options o = plain_options(m, 32, 1);
    REFUSED(DREY_ERR_FORMAT, "dec.position_embd.weight has shape [64, 32] instead of [64, 40]",
            drey_engine_open, &e, &o);
    drey_model_close(&m);
}

TEST_OF_EACH(the_plan_has_lines_for_it)
{
    drey_plan small, large;
    drey_engine_options o = plain_options(target, 64, 1);
    MUST(drey_plan_make, &o, NULL, &small);
    o.n_context = 256;
    o.n_sessions = 2;
    MUST(drey_plan_make, &o, NULL, &large);
    const model_shape *s = &target->shape;
    uint64_t numbers = (uint64_t)(2 * s->n_layers * attention_keys(&s->attention[0]));
    assert_true(small.cross_kv_bytes >= 64 * numbers * sizeof(uint16_t));
    assert_true(large.cross_kv_bytes >= 2 * 256 * numbers * sizeof(uint16_t));
    assert_true(small.encoder_bytes > 0 && large.encoder_bytes > small.encoder_bytes);
    drey_model_info info;
    drey_model_describe(target, &info);
    assert_true(info.n_encoder_layers == 3 && info.start_id == target->shape.encoder.start_id);
}
