/* Log-probabilities of a written text equal those of scoring it, bit for bit, with any drafter;
 * biases change the choice and never those numbers. */
#include "session/session.h"
#include "support/toy_models.h"

enum { N_TEXT = 40, N_PROMPT = 5, N_TOP = 4 };

static const int32_t prompt[N_PROMPT] = {84, 104, 101, 32, 113};

typedef struct heard {
    int32_t ids[N_TEXT];
    float logprob[N_TEXT];
    drey_logprob top[N_TEXT][N_TOP];
    int32_t n, n_tokens;
} heard;

static void on_logprobs(void *user, const drey_logprob *written, const drey_logprob *top,
                        int32_t n_top)
{
    heard *h = user;
    assert_int_equal(h->n, h->n_tokens); /* before on_token */
    assert_true(h->n < N_TEXT);
    assert_int_equal(n_top, N_TOP);
    h->ids[h->n] = written->id;
    h->logprob[h->n] = written->logprob;
    memcpy(h->top[h->n++], top, sizeof h->top[0]);
}

static bool on_token(void *user, int32_t id)
{
    heard *h = user;
    assert_int_equal(h->ids[h->n_tokens++], id);
    return true;
}

/* Ignores tokens: a given text has none to take. */
static void on_given(void *user, const drey_logprob *token, const drey_logprob *top, int32_t n_top)
{
    heard *h = user;
    h->n_tokens = h->n;
    on_logprobs(user, token, top, n_top);
}

static void on_none(void *user, const drey_logprob *token, const drey_logprob *top, int32_t n_top)
{
    assert_true(token->logprob <= 0 && n_top == 0);
}

static drey_session *open_session(bool drafts)
{
    drey_engine_options o = toys_options(drafts ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE, 128, 1);
    o.policy = drafts ? DREY_POLICY_SPECINFER : DREY_POLICY_NONE;
    return open_alone(&o, NULL);
}

static void write_text(drey_session *s, float temperature, const drey_bias *biases,
                       int32_t n_biases, heard *out)
{
    drey_generate_options g = greedy(N_TEXT);
    g.sampling.temperature = temperature;
    g.sampling.seed = 7;
    g.biases = biases;
    g.n_biases = n_biases;
    g.n_top = N_TOP;
    g.on_logprobs = on_logprobs;
    g.on_token = on_token;
    g.user = out;
    *out = (heard){.n = 0};
    drey_session_reset(s);
    MUST(drey_session_generate, s, prompt, N_PROMPT, &g, NULL);
    assert_int_equal(out->n, N_TEXT);
    assert_int_equal(out->n_tokens, N_TEXT);
}

/* Compares with the scores of the same text. */
static void check_scores(drey_session *s, const heard *h)
{
    int32_t ids[N_PROMPT + N_TEXT];
    float logprob[N_PROMPT + N_TEXT];
    memcpy(ids, prompt, sizeof prompt);
    memcpy(ids + N_PROMPT, h->ids, sizeof h->ids);
    MUST(drey_session_score, s, ids, N_PROMPT + N_TEXT, logprob);
    assert_memory_equal(logprob + N_PROMPT - 1, h->logprob, sizeof h->logprob);
}

TEST(logprobs_are_the_scores)
{
    static heard plain, drafted;
    drey_session *alone = open_session(false), *with = open_session(true);
    static const float temperatures[] = {0, 0.8f};
    for (int i = 0; i < 2; i++) {
        write_text(alone, temperatures[i], NULL, 0, &plain);
        write_text(with, temperatures[i], NULL, 0, &drafted);
        check_scores(alone, &plain);
        assert_memory_equal(plain.ids, drafted.ids, sizeof plain.ids);
        assert_memory_equal(plain.logprob, drafted.logprob, sizeof plain.logprob);
        assert_memory_equal(plain.top, drafted.top, sizeof plain.top);
        for (int k = 0; k < N_TEXT; k++) {
            for (int j = 1; j < N_TOP; j++)
                assert_true(plain.top[k][j - 1].logprob >= plain.top[k][j].logprob);
            assert_true(plain.top[k][0].logprob >= plain.logprob[k]);
            if (temperatures[i] == 0)
                assert_int_equal(plain.top[k][0].id, plain.ids[k]);
        }
    }
    close_alone(&alone);
    close_alone(&with);
}

/* A given text's numbers are those of the same text as it was written; it then continues without
 * another look at it. */
TEST(a_given_text_has_the_same_numbers)
{
    static heard written, given, after;
    drey_session *s = open_session(true);
    int32_t ids[N_PROMPT + N_TEXT];
    size_t n_kept;
    write_text(s, 0.8f, NULL, 0, &written);
    memcpy(ids, prompt, sizeof prompt);
    memcpy(ids + N_PROMPT, written.ids, sizeof written.ids);
    MUST(drey_session_score_top, s, ids, N_TEXT + 1, N_TOP, on_given, &given);
    assert_int_equal(given.n, N_TEXT);
    const int n_same = N_TEXT - N_PROMPT + 1;
    assert_memory_equal(given.ids + N_PROMPT - 1, written.ids, (size_t)n_same * sizeof *ids);
    assert_memory_equal(given.logprob + N_PROMPT - 1, written.logprob,
                        (size_t)n_same * sizeof(float));
    assert_memory_equal(given.top + N_PROMPT - 1, written.top,
                        (size_t)n_same * sizeof written.top[0]);
    MUST(drey_session_sync, s, ids, N_TEXT + 1, &n_kept);
    assert_int_equal(n_kept, N_TEXT);
    MUST(drey_session_score_top, s, prompt, N_PROMPT, 0, on_none, NULL);
    drey_generate_options g = greedy(N_TEXT);
    g.sampling = (drey_sampling){.temperature = 0.8f, .seed = 7, .top_p = 1};
    g.n_top = N_TOP;
    g.on_logprobs = on_logprobs;
    g.on_token = on_token;
    g.user = &after;
    MUST(drey_session_sync, s, prompt, N_PROMPT, &n_kept);
    assert_int_equal(n_kept, N_PROMPT - 1);
    after = (heard){.n = 0};
    MUST(drey_session_generate, s, NULL, 0, &g, NULL);
    assert_memory_equal(after.ids, written.ids, sizeof written.ids);
    REFUSED(DREY_ERR_USAGE, "0 to 20", drey_session_score_top, s, prompt, N_PROMPT, 21, on_none,
            NULL);
    REFUSED(DREY_ERR_USAGE, "at least two", drey_session_score_top, s, prompt, 1, 0, on_none, NULL);
    close_alone(&s);
}

TEST(biases_decide)
{
    static heard plain, h, drafted;
    drey_session *alone = open_session(false), *with = open_session(true);
    write_text(alone, 0, NULL, 0, &plain);
    const drey_bias never[] = {{plain.ids[0], -INFINITY}, {plain.ids[1], -INFINITY}};
    const drey_bias twice[] = {{65, 500}, {65, 500}, {66, 900}};
    static const float temperatures[] = {0, 0.8f};
    for (int i = 0; i < 2; i++) {
        write_text(alone, temperatures[i], never, 2, &h);
        write_text(with, temperatures[i], never, 2, &drafted);
        assert_memory_equal(h.ids, drafted.ids, sizeof h.ids);
        check_scores(alone, &h); /* the numbers are those without biases */
        for (int k = 0; k < N_TEXT; k++)
            assert_true(h.ids[k] != plain.ids[0] && h.ids[k] != plain.ids[1]);
        write_text(alone, temperatures[i], twice, 3, &h);
        for (int k = 0; k < N_TEXT; k++)
            assert_int_equal(h.ids[k], 65);
    }
    write_text(alone, 0, NULL, 0, &h); /* they end with their text */
    assert_memory_equal(h.ids, plain.ids, sizeof h.ids);
    close_alone(&alone);
    close_alone(&with);
}

/* What the file suppresses is as if every text had biases against it. */
TEST(suppressed_tokens_never_come)
{
    static heard plain, h, never;
    drey_session *alone = open_session(false);
    write_text(alone, 0, NULL, 0, &plain);
    const drey_bias biases[] = {{plain.ids[0], -INFINITY}, {66, -1}};
    write_text(alone, 0, biases, 2, &never);
    close_alone(&alone);
    toy_options toy = toy_default();
    toy.keys =
        (const toy_key[]){{"/tokenizer.ggml.suppress_tokens", GGUF_ARRAY, plain.ids[0], NULL}, {0}};
    drey_model *kept = target;
    target = toy_open("suppressed.gguf", &toy);
    for (int drafts = 0; drafts < 2; drafts++) {
        drey_session *s = open_session(drafts);
        write_text(s, 0, biases + 1, 1, &h);
        assert_memory_equal(h.ids, never.ids, sizeof h.ids);
        close_alone(&s);
    }
    drey_model_close(&target);
    target = kept;
}

TEST(what_makes_no_sense_is_refused)
{
    drey_session *s = open_session(false);
    drey_generate_options g;
    drey_error err = {0};
    static const drey_bias bad[] = {{-1, 1}, {1 << 30, 1}, {3, NAN}};
    for (int i = 0; i < 4; i++) {
        drey_generate_options_init(&g);
        g.biases = i < 3 ? &bad[i] : NULL;
        g.n_biases = i < 3;
        g.n_top = i < 3 ? 0 : DREY_MAX_TOP + 1;
        assert_int_equal(drey_session_generate(s, prompt, N_PROMPT, &g, NULL, &err),
                         DREY_ERR_USAGE);
        assert_true(strlen(err.message) > 20);
    }
    close_alone(&s);
}

TEST(counts_and_prompts)
{
    drey_session *s = open_session(false);
    drey_generate_options g = greedy(4);
    drey_counts before, after;
    int64_t done, total;
    drey_session_prompt(s, &done, &total);
    assert_int_equal(total, 0);
    drey_engine_count(s->engine, &before);
    assert_int_equal(before.rows, 0);
    MUST(drey_session_sync, s, prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, s, &g, NULL);
    drey_session_prompt(s, &done, &total);
    assert_int_equal(done, 0);
    assert_int_equal(total, N_PROMPT);
    for (bool ended = false; !ended;)
        MUST(drey_session_step, s, &ended);
    drey_engine_count(s->engine, &after);
    assert_int_equal(after.prompt_rows, N_PROMPT);
    assert_int_equal(after.passes, 3); /* the prompt's pass writes the first token */
    assert_int_equal(after.rows, 3);
    assert_true(after.read_bytes > 0 && after.peak_memory_bytes > 0);
    close_alone(&s);
}

/* What the caller holds is a part of the budget. */
TEST(held_bytes_are_planned)
{
    drey_engine_options o = plain_options(target, 128, 1);
    drey_plan without, with;
    drey_error err = {0};
    o.memory_bytes = 200 << 20;
    MUST(drey_plan_make, &o, NULL, &without);
    o.held_bytes = 20 << 20;
    MUST(drey_plan_make, &o, NULL, &with);
    assert_int_equal(with.held_bytes, o.held_bytes);
    assert_true(with.smallest_budget_bytes >= without.smallest_budget_bytes + (20 << 20));
    assert_true(with.spare_bytes + (20 << 20) <= without.spare_bytes + (2 << 20));
    const drey_plan *p = &with;
    assert_int_equal(p->budget_bytes, p->pinned_bytes + p->draft_bytes + p->ring_bytes +
                                          p->kv_bytes + p->work_bytes + p->held_bytes +
                                          p->program_bytes + p->tokenizer_bytes + p->stack_bytes +
                                          p->queue_bytes + p->reserve_bytes + p->spare_bytes);
    o.held_bytes = UINT64_MAX; /* no sum of bytes wraps */
    assert_int_equal(drey_plan_make(&o, NULL, &with, &err), DREY_ERR_MEMORY);
}

TEST_GROUP(toys_open, toys_close)
