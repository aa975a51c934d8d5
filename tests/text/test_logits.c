/* The engine against an independent float implementation: logits and perplexity.
 *
 * tests/data/logits holds what scripts/make-logit-goldens.py computed (its header has the format).
 * On the "float" tier activations, keys and values stay float, and every logit must come within
 * 1e-3 of the reference. On the best tier activations have 8 bits, and perplexity must come within
 * 0.3 % (of a small model with wide numbers 2 %).
 *
 * Toys are written here; real models are taken from $DREY_MODELS, or skipped. */
#include "session/session.h"
#include "state/cache.h"
#include "support/logit_toys.h"
#include "support/scene.h"

enum { MAX_IDS = 1024 };

/* ---- Golden files ---- */

typedef struct golden {
    FILE *file;
    char word[32]; /* the keyword read last; "" at the end */
} golden;

static void next_word(golden *g)
{
    if (fscanf(g->file, "%31s", g->word) != 1)
        g->word[0] = 0;
}

static golden golden_open(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, TEST_DATA "/logits/%s.txt", name);
    golden g = {.file = fopen(path, "r")};
    assert_non_null(g.file);
    assert_int_equal(fscanf(g.file, "model %*s %*d"), 0);
    next_word(&g);
    return g;
}

static double number(golden *g)
{
    double x;
    assert_int_equal(fscanf(g->file, "%lf", &x), 1);
    return x;
}

static int32_t read_ids(golden *g, int32_t ids[MAX_IDS])
{
    int32_t n = (int32_t)number(g);
    assert_in_range(n, 2, MAX_IDS);
    for (int32_t i = 0; i < n; i++)
        ids[i] = (int32_t)number(g);
    next_word(g);
    return n;
}

/* ---- Engine ---- */

typedef struct bench {
    drey_model *model;
    engine_place at;
    drey_session *session;
} bench;

/* Reads the encoder's input of all of these tests. */
static void read_input(drey_session *s)
{
    int32_t ids[N_INPUT_IDS], n_vocab = s->engine->target.layout.shape.n_vocab;
    for (int32_t i = 0; i < N_INPUT_IDS; i++)
        ids[i] = (i * 6007 + 29) % n_vocab;
    drey_error err;
    assert_int_equal(drey_session_sync(s, ids, N_INPUT_IDS, NULL, &err), DREY_OK);
    assert_int_equal(session_read_input(s, &err), DREY_OK);
    drey_session_reset(s);
}

static bench bench_open(const char *path, const char *tier)
{
    bench b = {0};
    MUST(drey_model_open, &b.model, path);
    drey_engine_options options = plain_options(b.model, MAX_IDS, 2);
    options.cpu_tier = tier;
    b.at = place_open(&options, &(engine_hooks){.least_logit_rows = 32});
    b.session = b.at.session[0];
    if (session_reads_input(b.session))
        read_input(b.session);
    return b;
}

static void bench_close(bench *b)
{
    place_close(&b->at);
    drey_model_close(&b->model);
}

/* [n][V] after each of ids, to be freed. */
static float *all_logits(drey_session *s, const int32_t *ids, int32_t n, int32_t n_vocab)
{
    float *logits = malloc((size_t)n * (size_t)n_vocab * sizeof *logits);
    assert_non_null(logits);
    int64_t ld = pass_logits_stride(&s->target);
    int32_t chunk = s->target.ws->limits.max_logit_rows < s->target.ws->limits.max_rows
                        ? s->target.ws->limits.max_logit_rows
                        : s->target.ws->limits.max_rows;
    for (int32_t from = 0; from < n; from += chunk) {
        int32_t n_rows = n - from < chunk ? n - from : chunk;
        for (int32_t i = 0; i < n_rows; i++)
            s->target.ws->rows[i] = (pass_row){.token = ids[from + i], .parent = i - 1};
        MUST(pass_rows, &s->target, s->target.ws->rows, n_rows, HEAD_ALL);
        cache_commit(&s->target_cache, NULL, n_rows);
        for (int32_t i = 0; i < n_rows; i++)
            memcpy(logits + (int64_t)(from + i) * n_vocab, s->target.ws->logits + i * ld,
                   (size_t)n_vocab * sizeof *logits);
    }
    drey_session_reset(s);
    return logits;
}

static double logprob_sum(drey_session *s, const int32_t *ids, int32_t n)
{
    static float logprob[MAX_IDS];
    MUST(drey_session_score, s, ids, (size_t)n, logprob);
    double sum = 0;
    for (int32_t i = 0; i < n - 1; i++)
        sum += (double)logprob[i];
    return sum;
}

/* ---- Comparisons ---- */

/* Reads the golden logits of one position; returns the largest difference. */
static double worst_difference(golden *g, const float *logits)
{
    double worst = 0;
    int n = 0;
    for (next_word(g); strcmp(g->word, "top") == 0 || strcmp(g->word, "other") == 0; next_word(g)) {
        int32_t id = (int32_t)number(g);
        double difference = fabs(number(g) - (double)logits[id]);
        if (isnan(difference))
            difference = INFINITY; /* NaN would get lost among comparisons */
        worst = fmax(worst, difference);
        n++;
    }
    assert_int_equal(n, 70);
    return worst;
}

/* Compares the golden logits of a prompt's positions and raises *worst to the largest difference.
 * logits NULL: just reads on. Returns how many positions were compared. */
static int compare_positions(golden *g, const float *logits, int32_t n_vocab, double *worst)
{
    static const float nothing[1 << 18];
    int n = 0;
    while (strcmp(g->word, "position") == 0) {
        int32_t position = (int32_t)number(g);
        const float *row = logits ? logits + (int64_t)position * n_vocab : nothing;
        double difference = worst_difference(g, row);
        if (!logits)
            continue;
        n++;
        *worst = fmax(*worst, difference);
    }
    return n;
}

/* Reads the prompts of a golden file and compares, up to the text. */
static void compare_prompts(golden *g, const bench *b, int32_t max_prompt, const char *name)
{
    static int32_t ids[MAX_IDS];
    drey_model_info info;
    drey_model_describe(b->model, &info);
    double worst = 0;
    int n_compared = 0;
    while (strcmp(g->word, "prompt") == 0) {
        int32_t n = read_ids(g, ids);
        float *logits = n <= max_prompt ? all_logits(b->session, ids, n, info.n_vocab) : NULL;
        n_compared += compare_positions(g, logits, info.n_vocab, &worst);
        free(logits);
    }
    print_message("%s: logits at %d positions differ by at most %.2g\n", name, n_compared, worst);
    assert_true(n_compared >= 3);
    assert_true(worst < 1e-3);
}

/* The reference's tokenizer and drey's agree on the text. */
static void check_text_ids(const bench *b, const int32_t *ids, int32_t n)
{
    static char text[1 << 14];
    static int32_t own[MAX_IDS];
    FILE *f = fopen(TEST_DATA "/logits/text.txt", "r");
    assert_non_null(f);
    size_t n_bytes = fread(text, 1, sizeof text, f), n_own;
    fclose(f);
    int flags = DREY_TOKENIZE_BOS; /* where the model wants one */
    MUST(drey_tokenize, b->model, text, n_bytes, flags, own, MAX_IDS, &n_own);
    assert_int_equal(n_own, n);
    assert_memory_equal(own, ids, (size_t)n * sizeof *ids);
}

/* Reads the text; returns the perplexity's ratio to the reference's. real: a real model, whose text
 * is text.txt. */
static double perplexity_ratio(golden *g, const bench *b, bool real)
{
    static int32_t ids[MAX_IDS];
    while (strcmp(g->word, "text") != 0) {
        assert_true(g->word[0]);
        next_word(g);
    }
    int32_t n = read_ids(g, ids);
    if (real)
        check_text_ids(b, ids, n);
    assert_string_equal(g->word, "logprob_sum");
    double expected = number(g);
    return exp((expected - logprob_sum(b->session, ids, n)) / (n - 1));
}

/* ---- Tests ---- */

TEST(toys_on_the_float_tier)
{
    for (int i = 0; i < N_LOGIT_TOYS; i++) {
        toy_options options;
        const char *name = logit_toy(i, &options), *path = temp_path("toy.gguf");
        toy_write(path, &options);
        golden g = golden_open(name);
        bench b = bench_open(path, "float");
        compare_prompts(&g, &b, MAX_IDS, name);
        double ratio = perplexity_ratio(&g, &b, false);
        print_message("%s: perplexity is %.6f of the reference's\n", name, ratio);
        assert_true(fabs(ratio - 1) < 1e-4);
        bench_close(&b);
        fclose(g.file);
    }
}

/* The float tier is slow: only prompts of at most max_prompt tokens. most: of perplexity's change
 * by 8-bit activations. */
static void compare_real(const char *name, const char *file_name, int32_t max_prompt, double most)
{
    const char *path = real_model(file_name);
    golden g = golden_open(name);
    bench b = bench_open(path, "float");
    compare_prompts(&g, &b, max_prompt, name);
    bench_close(&b);
    b = bench_open(path, NULL);
    double ratio = perplexity_ratio(&g, &b, true);
    print_message("%s: perplexity with 8-bit activations is %.5f of the float reference's\n", name,
                  ratio);
    assert_true(fabs(ratio - 1) < most);
    bench_close(&b);
    fclose(g.file);
}

TEST(smol)
{
    compare_real("smol", "SmolLM2-135M-Instruct.Q4_1.gguf", 60, 0.003);
}

TEST(draft)
{
    compare_real("draft", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 20, 0.003);
}

/* Its golden logits are make-toy-goldens.py's; the ids are llama.cpp's. It is small, and its
 * numbers spread widely: 8 bits cost it more than others. */
TEST(gemma)
{
    compare_real("gemma", "gemma-3-270m-q4_k_m.gguf", 60, 0.02);
}
