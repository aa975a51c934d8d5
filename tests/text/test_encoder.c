/* Models with an encoder: what an input is to a session, what is said of files that lack something,
 * and that the memory plan has a line for it. That the text is the same with all drafts, policies,
 * budgets and units is test_matrix.c's, the numbers are test_logits.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/bytes_file.h"
#include "support/logit_toys.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 96, N_INPUT = 60, N_TEXT = 24 };

static int32_t input[N_CONTEXT + 1];

static int open_toys(void **state)
{
    (void)state;
    toy_options toy;
    arch_toy(FIRST_T5_TOY, &toy);
    temp_dir();
    target = toy_open("target.gguf", &toy);
    toy.noise = 0.01f;
    toy.noise_seed = 5;
    draft = toy_open("draft.gguf", &toy);
    for (int32_t i = 0; i <= N_CONTEXT; i++)
        input[i] = 20 + i * 7 % 150;
    return 0;
}

TEST_GROUP(open_toys, toys_close)

/* Writes a text for input[from .. from + n). */
static void write_for(drey_session *s, int32_t from, int32_t n, writing *t)
{
    *t = (writing){.n_ids = 0};
    writing_go_on(t, s, input + from, (size_t)n, N_TEXT, NULL);
    assert_int_equal(t->n_ids, N_TEXT);
}

static int64_t input_rows(const drey_session *s)
{
    return s->input.unread ? 0 : s->input.target.n_committed;
}

TEST(the_text_depends_on_the_input)
{
    static writing first, second, again;
    const int32_t *ids;
    size_t n;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 0, N_INPUT, &first);
    assert_int_equal(first.stats.prompt_tokens, N_INPUT);
    drey_session_timeline(s, &ids, &n);
    assert_true(n == N_TEXT + 1 && ids[0] == 0); /* the start token, then the text */
    assert_memory_equal(ids + 1, first.ids, N_TEXT * sizeof *ids);
    write_for(s, 1, N_INPUT, &second);
    assert_int_not_equal(memcmp(first.ids, second.ids, N_TEXT * sizeof *ids), 0);
    write_for(s, 0, N_INPUT, &again);
    must_be_same(&first, &again, "after another input");
    assert_int_equal(input_rows(s), N_INPUT);
    close_alone(&s);
}

/* The same input is not read again, and a text continues. */
TEST(inputs_are_kept)
{
    static writing whole, parts;
    size_t n_kept = 7;
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    drey_session *s = open_alone(&o, NULL);
    write_for(s, 0, N_INPUT, &whole);
    MUST(drey_session_sync, s, input, N_INPUT, &n_kept);
    assert_true(n_kept == N_INPUT && !s->input.unread && s->n_timeline == 1);
    MUST(drey_session_sync, s, input, N_INPUT - 1, &n_kept);
    assert_true(n_kept == 0 && s->input.unread);
    MUST(drey_session_sync, s, input, N_INPUT, &n_kept);
    parts = (writing){.n_ids = 0};
    writing_go_on(&parts, s, NULL, 0, 10, NULL);
    writing_go_on(&parts, s, NULL, 0, N_TEXT - 10, NULL);
    must_be_same(&whole, &parts, "in two parts");
    drey_session_reset(s);
    REFUSED(DREY_ERR_USAGE, "prompt is empty", drey_session_generate, s, NULL, 0,
            &(drey_generate_options){.n_predict = 1}, NULL);
    close_alone(&s);
}

/* A draft reads the input as well; a saved session reads it again. */
TEST(saved_sessions_continue)
{
    static writing first, second, again;
    drey_saved_session saved;
    for (int i = 0; i < 2; i++) {
        drey_engine_options o = plain_options(target, N_CONTEXT, 1);
        drey_session *s = open_alone(&o, NULL);
        write_for(s, 0, N_INPUT, &first);
        MUST(drey_session_save, s, temp_path("saved"), NULL, 0);
        second = (writing){.n_ids = 0};
        writing_go_on(&second, s, NULL, 0, N_TEXT, NULL);
        close_alone(&s);
        o.drafter = i ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE;
        o.draft = i ? draft : NULL;
        s = open_alone(&o, NULL);
        write_for(s, 3, N_INPUT, &again); /* something else was there */
        MUST(drey_session_load, s, temp_path("saved"), &saved);
        assert_int_equal(saved.n_tokens, 1 + N_TEXT);
        again = (writing){.n_ids = 0};
        writing_go_on(&again, s, NULL, 0, N_TEXT, NULL);
        must_be_same_ids(&second, &again, "loaded");
        close_alone(&s);
    }
    drey_engine_options o = plain_options(target, N_INPUT - 1, 1);
    drey_session *s = open_alone(&o, NULL);
    REFUSED(DREY_ERR_CONTEXT, "60 tokens", drey_session_load, s, temp_path("saved"), NULL);
    close_alone(&s);
}

/* A draft that is the target itself is always right: it has the same input. */
TEST(drafts_read_the_input)
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

/* Sessions that share passes have each their own input. */
TEST(sessions_share_passes)
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
TEST(cancelled_inputs_are_read_later)
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

TEST(bad_inputs)
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
    toy_options plain = toy_usual(), same;
    arch_toy(FIRST_T5_TOY, &same);
    plain.pre = "t5"; /* the same tokens */
    other = toy_open("plain.gguf", &plain);
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = other;
    must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, "only one of target and draft has an encoder");
}

/* The file without a key or tensor: its name is changed in place, of a key the architecture's, of a
 * tensor the end. */
static drey_status open_without(const char *name, drey_error *err)
{
    toy_options toy;
    gguf_writer w = {0};
    arch_toy(FIRST_T5_TOY, &toy);
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
    (void)what;
    ++*(int *)user;
}

TEST(files_that_lack_something)
{
    REFUSED(DREY_ERR_FORMAT, "no relative position buckets", open_without,
            "t5.attention.relative_buckets_count");
    REFUSED(DREY_ERR_FORMAT, "tensor enc.blk.0.attn_rel_b.weight is missing", open_without,
            "enc.blk.0.attn_rel_b.weight");
    REFUSED(DREY_ERR_FORMAT, "no character map", open_without,
            "tokenizer.ggml.precompiled_charsmap");
    REFUSED(DREY_ERR_FORMAT, "dec.blk.1.cross_attn_k.weight is missing", open_without,
            "dec.blk.1.cross_attn_k.weight");
    int n = 0;
    MUST(drey_missing, temp_path("without.gguf"), count, &n);
    assert_int_equal(n, 1);
}

TEST(the_plan_has_lines_for_it)
{
    drey_plan small, large;
    drey_engine_options o = plain_options(target, 64, 1);
    MUST(drey_plan_make, &o, NULL, &small);
    o.n_context = 256;
    o.n_sessions = 2;
    MUST(drey_plan_make, &o, NULL, &large);
    const model_shape *s = &target->shape;
    uint64_t numbers = (uint64_t)(2 * s->n_layers * s->n_heads_kv * s->head_dim);
    assert_true(small.cross_kv_bytes >= 64 * numbers * sizeof(uint16_t));
    assert_true(large.cross_kv_bytes >= 2 * 256 * numbers * sizeof(uint16_t));
    assert_true(small.encoder_bytes > 0 && large.encoder_bytes > small.encoder_bytes);
    drey_model_info info;
    drey_model_describe(target, &info);
    assert_true(info.n_encoder_layers == 3 && info.start_id == 0);
}
