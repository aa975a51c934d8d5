/* Passes that are stopped at a layer, and rows that later passes carry on: keys, values and logits
 * have the bits of passes that went to their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/toy.h"

enum { N_LAYERS = 5, N_PROMPT = 70, N_TEXT = 12, MAX_DEFERRED = 8, MAX_VOCAB = 2048 };

typedef struct bench {
    drey_model *model;
    drey_engine *engine;
    drey_session *session;
} bench;

typedef struct bench_options {
    const char *architecture;
    uint32_t type;
    const char *tier;
    double streamed; /* share of the weights that passes read */
    int32_t n_threads;
} bench_options;

static void open_bench(bench *b, const bench_options *options)
{
    drey_error err = {0};
    toy_options toy;
    toy_options_init(&toy);
    toy.architecture = options->architecture;
    toy.type = options->type;
    toy.biases = true;
    toy.n_layers = N_LAYERS;
    toy.n_embd = 256;
    toy.n_ff = 512;
    const char *path = temp_path("model.gguf");
    toy_write(path, &toy);
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = 200;
    o.n_threads = options->n_threads ? options->n_threads : 2;
    o.cpu_tier = options->tier;
    o.read_bytes = DREY_MIN_READ_BYTES;
    engine_tuning tuning = {.least_logit_rows = 24,
                            .deferred_rows = MAX_DEFERRED,
                            .set_share = options->streamed > 0,
                            .share = 1 - options->streamed};
    drey_status status = drey_model_open(&b->model, path, &err);
    o.target = b->model;
    if (status == DREY_OK)
        status = engine_open(&b->engine, &o, &tuning, &err);
    if (status == DREY_OK)
        status = drey_session_open(&b->session, b->engine, &err);
    if (status != DREY_OK)
        fail_msg("%s", err.message);
    assert_true(b->engine->target.layout.shape.n_vocab <= MAX_VOCAB);
}

static void close_bench(bench *b)
{
    drey_session_close(&b->session);
    drey_engine_close(&b->engine);
    drey_model_close(&b->model);
}

static size_t logits_bytes(const bench *b)
{
    return (size_t)b->engine->target.layout.shape.n_vocab * sizeof(float);
}

static int32_t text_token(int32_t i)
{
    return (i * 53 + 17) % 256;
}

/* A new text behind a prompt that every test has. */
static void start(bench *b)
{
    int32_t tokens[N_PROMPT];
    drey_error err;
    for (int32_t i = 0; i < N_PROMPT; i++)
        tokens[i] = (i * 37 + 5) % 256;
    kv_truncate(&b->session->target_kv, 0);
    deferred_cut(&b->session->deferred, N_PROMPT + N_TEXT);
    assert_int_equal(
        pass_prompt(&b->session->target, tokens, N_PROMPT, 16, HEAD_NONE, NULL, NULL, &err),
        DREY_OK);
}

static pass_group group_of(bench *b, const pass_row *rows, int32_t n, pass_head head)
{
    return (pass_group){.kv = &b->session->target_kv,
                        .rows = rows,
                        .n = n,
                        .head = head,
                        .deferred = &b->session->deferred};
}

/* A pass up to `layer`, and stopped there; past the last layer: to its end. */
static void run_to(bench *b, model_pass *p, pass_group *groups, int32_t n, int32_t layer)
{
    drey_error err = {0};
    runner *r = &b->session->target;
    drey_status status = pass_begin(p, r, groups, n, &err);
    for (pass_state state = PASS_GOES_ON; status == DREY_OK && state != PASS_DONE;) {
        status = pass_step(p, 0, &state, &err);
        if (status == DREY_OK && state == PASS_STARVED)
            pass_wait(p);
        if (status == DREY_OK && pass_at_layer(p) && pass_layers_done(p) == layer) {
            assert_true(pass_can_stop(p));
            status = pass_stop(p, &err);
            break;
        }
        assert_false(status == DREY_OK && state == PASS_GOES_ON && !pass_at_layer(p));
    }
    if (status == DREY_OK && layer > N_LAYERS)
        status = pass_end(p, &err);
    if (status != DREY_OK)
        fail_msg("%s", err.message);
    assert_true(weights_is_valid(r->weights));
}

static void to_the_end(bench *b, pass_group *groups, int32_t n)
{
    model_pass p;
    run_to(b, &p, groups, n, N_LAYERS + 1);
}

/* What full passes, token by token, leave: the answer. */
typedef struct answer {
    float logits[N_TEXT][MAX_VOCAB];
    kv_cache kv; /* its numbers are copies */
} answer;

static size_t side_bytes(const kv_cache *kv)
{
    return (size_t)kv->n_layers * (size_t)kv->n_heads_kv * kv->head_bytes;
}

static void make_answer(bench *b, answer *a)
{
    start(b);
    for (int32_t i = 0; i < N_TEXT; i++) {
        pass_group g = group_of(b, &(pass_row){text_token(i), -1}, 1, HEAD_ALL);
        to_the_end(b, &g, 1);
        memcpy(a->logits[i], g.logits, logits_bytes(b));
        kv_commit(g.kv, NULL, 1);
    }
    a->kv = b->session->target_kv;
    a->kv.keys = malloc(side_bytes(&a->kv));
    a->kv.values = malloc(side_bytes(&a->kv));
    memcpy(a->kv.keys, b->session->target_kv.keys, side_bytes(&a->kv));
    memcpy(a->kv.values, b->session->target_kv.values, side_bytes(&a->kv));
}

static void free_answer(answer *a)
{
    free(a->kv.keys);
    free(a->kv.values);
}

typedef void move_slot(kv_format format, uint8_t *side, int32_t to, int32_t from, int32_t head_dim);

/* A slot's numbers, alone in a group of zeros: slots of a group are interleaved. */
static const uint8_t *slot_alone(const kv_cache *kv, const uint8_t *head, int32_t slot,
                                 move_slot *move, uint8_t *groups)
{
    size_t bytes = kv_head_bytes(kv->format, KV_GROUP, kv->head_dim);
    memcpy(groups, head + (size_t)(slot / KV_GROUP) * bytes, bytes);
    memset(groups + bytes, 0, bytes);
    move(kv->format, groups, KV_GROUP, slot % KV_GROUP, kv->head_dim);
    return groups + bytes;
}

/* Positions [0, n) of all heads. */
static void assert_same_cache(const kv_cache *kv, const answer *a, int32_t n)
{
    size_t bytes = kv_head_bytes(kv->format, KV_GROUP, kv->head_dim);
    uint8_t *one = malloc(2 * bytes), *other = malloc(2 * bytes);
    assert_true(kv_is_valid(kv) && kv->head_bytes == a->kv.head_bytes && kv->n_committed == n);
    for (int32_t head = 0; head < kv->n_layers * kv->n_heads_kv; head++)
        for (int32_t i = 0; i < n; i++) {
            size_t at = kv_at(kv, 0, head);
            assert_memory_equal(slot_alone(kv, kv->keys + at, i, kv_move_key, one),
                                slot_alone(kv, a->kv.keys + at, i, kv_move_key, other), bytes);
            assert_memory_equal(slot_alone(kv, kv->values + at, i, kv_move_value, one),
                                slot_alone(kv, a->kv.values + at, i, kv_move_value, other), bytes);
        }
    free(one);
    free(other);
}

/* Logits of the deferred rows that a full pass carried on: those of text tokens [from, from + n). */
static void assert_deferred_logits(const bench *b, const pass_group *g, const answer *a,
                                   int32_t from, int32_t n)
{
    assert_int_equal(g->n_deferred, n);
    assert_int_equal(g->deferred->n, 0);
    for (int32_t i = 0; i < n; i++)
        assert_memory_equal(g->deferred_logits + i * pass_logits_stride(&b->session->target),
                            a->logits[from + i], logits_bytes(b));
}

/* One token a pass: each pass stops at a layer of its own, every third goes to the end and carries
 * all before it on, whatever layers they stand at. */
static void stop_token_by_token(bench *b, const answer *a, rng *r, bool bare)
{
    start(b);
    int32_t from = 0;
    for (int32_t i = 0; i < N_TEXT; i++) {
        model_pass p;
        bool whole = !bare && (rng_below(r, 4) == 0 || b->session->deferred.n == MAX_DEFERRED);
        pass_group g = group_of(b, &(pass_row){text_token(i), -1}, 1, HEAD_ALL);
        run_to(b, &p, &g, 1, whole ? N_LAYERS + 1 : 1 + rng_below(r, N_LAYERS));
        if (whole) {
            assert_memory_equal(g.logits, a->logits[i], logits_bytes(b));
            assert_deferred_logits(b, &g, a, from, i - from);
            from = i + 1;
        } else {
            assert_null(g.logits);
            pass_defer(&p, &g, NULL, 1);
        }
        kv_commit(g.kv, NULL, 1);
        if (bare && (b->session->deferred.n == MAX_DEFERRED || rng_below(r, 3) == 0)) {
            g = group_of(b, NULL, 0, HEAD_ALL);
            to_the_end(b, &g, 1);
            assert_null(g.logits);
            assert_deferred_logits(b, &g, a, from, i + 1 - from);
            from = i + 1;
        }
    }
    pass_group g = group_of(b, NULL, 0, HEAD_NONE);
    if (from < N_TEXT)
        to_the_end(b, &g, 1);
    assert_same_cache(g.kv, a, N_PROMPT + N_TEXT);
}

static void test_token_by_token(void **state)
{
    (void)state;
    static answer a;
    const bench_options cases[] = {{"qwen2", TOY_TYPE_MIXED, NULL, 0, 2},
                                   {"llama", TYPE_Q8_0, NULL, 0.7, 2},
                                   {"qwen2", TYPE_Q4_K, "ref", 1, 1}};
    temp_dir();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b = {0};
        open_bench(&b, &cases[i]);
        make_answer(&b, &a);
        rng r = rng_from(i);
        for (int round = 0; round < 6; round++)
            stop_token_by_token(&b, &a, &r, round % 2);
        free_answer(&a);
        close_bench(&b);
    }
    temp_dir_remove();
}

/* Looks at every layer, and at the end: they change nothing, and behind the last layer they see what
 * the pass's own head says. */
static void look_at_layer(bench *b, model_pass *p, int32_t n, rng *r, float *whole)
{
    enum { N_IDS = 5 };
    static float logits[N_TEXT][N_IDS];
    int64_t ids[N_TEXT][N_IDS], stride = pass_logits_stride(&b->session->target);
    int32_t rows[N_TEXT], n_vocab = b->engine->target.layout.shape.n_vocab;
    pass_look looks[N_TEXT];
    for (int32_t i = 0; i < n; i++) {
        rows[i] = n - 1 - i;
        for (int32_t j = 0; j < N_IDS; j++)
            ids[i][j] = rng_below(r, n_vocab);
        looks[i] = (pass_look){.row = rows[i], .n_ids = N_IDS, .ids = ids[i], .logits = logits[i]};
    }
    assert_true(pass_can_look(p));
    pass_look_ids(p, looks, n);
    const float *head = pass_look_head(p, rows, n);
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < N_IDS; j++)
            assert_memory_equal(&logits[i][j], &head[i * stride + ids[i][j]], sizeof(float));
        memcpy(whole + rows[i] * MAX_VOCAB, head + i * stride, logits_bytes(b));
    }
    pass_look_ids(p, &looks[n / 2], 1);
    assert_memory_equal(&logits[n / 2][0], &head[n / 2 * stride + ids[n / 2][0]], sizeof(float));
}

static void test_looks(void **state)
{
    (void)state;
    static answer a;
    static float whole[N_TEXT][MAX_VOCAB];
    bench b = {0};
    rng r = rng_from(1);
    temp_dir();
    open_bench(&b, &(bench_options){"qwen2", TOY_TYPE_MIXED, NULL, 0.5, 2});
    make_answer(&b, &a);
    start(&b);
    pass_row rows[N_TEXT];
    for (int32_t i = 0; i < N_TEXT; i++)
        rows[i] = (pass_row){text_token(i), i - 1};
    pass_group g = group_of(&b, rows, N_TEXT, HEAD_ALL);
    model_pass p;
    assert_int_equal(pass_begin(&p, &b.session->target, &g, 1, NULL), DREY_OK);
    assert_false(pass_can_look(&p) || pass_can_stop(&p));
    for (pass_state now = PASS_GOES_ON; now != PASS_DONE;) {
        assert_int_equal(pass_step(&p, 0, &now, NULL), DREY_OK);
        if (now == PASS_STARVED)
            pass_wait(&p);
        if (pass_at_layer(&p))
            look_at_layer(&b, &p, N_TEXT, &r, whole[0]);
    }
    assert_int_equal(pass_end(&p, NULL), DREY_OK);
    for (int32_t i = 0; i < N_TEXT; i++) {
        assert_memory_equal(whole[i], a.logits[i], logits_bytes(&b));
        assert_memory_equal(g.logits + i * pass_logits_stride(&b.session->target), a.logits[i],
                            logits_bytes(&b));
    }
    kv_commit(g.kv, NULL, N_TEXT);
    assert_same_cache(g.kv, &a, N_PROMPT + N_TEXT);
    free_answer(&a);
    close_bench(&b);
    temp_dir_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_by_token),
        cmocka_unit_test(test_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
