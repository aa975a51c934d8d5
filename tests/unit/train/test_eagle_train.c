/* The trainer of an EAGLE layer: gradients against differences of the loss, and what can be learnt
 * is learnt, as far as passes go; and a toy from its texts to a layer that drafts, interrupted and
 * continued. */
#include <unistd.h>

#include "drey/train.h"
#include "support/bytes_file.h"
#include "support/writing.h"
#include "train/eagle_trainer.h"

#ifdef TESTS_SANITIZED /* the same steps, fewer of them, with which a toy learns nothing */
enum { N_TEXT_IDS = 1500, N_EPOCHS = 2 };
#else
enum { N_TEXT_IDS = 6000, N_EPOCHS = 14 };
#endif
enum { D = 8, IDS = 12, N = 120, RUN = 20 };

typedef struct small_case {
    arena memory;
    pool *pool;
    self_texts texts;
    uint16_t *rows;
    float norm[D];
    eagle_training about;
    eagle_trainer trainer;
} small_case;

static void make_case(small_case *c, int32_t n_windows, int32_t n_window, int32_t n_passes)
{
    const kernel_table *k = kernel_select(NULL);
    rng r = rng_from(4);
    float row[D];
    *c = (small_case){.texts = {.n_embd = D, .n = N}};
    MUST(pool_open, &c->pool, 1);
    c->about = (eagle_training){.n_embd = D,
                                .n_heads = 4,
                                .n_heads_kv = 2,
                                .head_dim = 4,
                                .n_ff = 6,
                                .norm_eps = 1e-5f,
                                .rope_base = 10000,
                                .n_ids = IDS,
                                .n_rows = IDS,
                                .final_norm = c->norm,
                                .texts = &c->texts,
                                .kernels = k,
                                .pool = c->pool,
                                .n_windows = n_windows,
                                .n_window = n_window,
                                .n_passes = n_passes,
                                .n_steps = 400,
                                .rate = 0.01f,
                                .seed = 3};
    size_t bytes = self_texts_bytes(N, D) + arena_size(IDS * D * sizeof(uint16_t)) +
                   eagle_trainer_bytes(&c->about);
    MUST(arena_init, &c->memory, bytes, false);
    c->texts.hidden = arena_take(&c->memory, N * D * sizeof(uint16_t));
    c->texts.token = arena_take(&c->memory, N * sizeof(int32_t));
    c->texts.left = arena_take(&c->memory, N);
    c->texts.held = arena_take(&c->memory, N);
    c->rows = arena_take(&c->memory, IDS * D * sizeof(uint16_t));
    c->about.head_rows = c->about.embeddings = c->rows;
    for (int32_t i = 0; i < N + IDS; i++) {
        for (int32_t j = 0; j < D; j++)
            row[j] = (float)rng_normal(&r);
        k->to_f16(i < N ? c->texts.hidden + i * D : c->rows + (i - N) * D, row, D);
    }
    for (int32_t i = 0; i < D; i++)
        c->norm[i] = 1 + 0.3f * (float)rng_normal(&r);
    for (int32_t i = 0; i < N; i++) {
        c->texts.token[i] = rng_below(&r, IDS);
        c->texts.left[i] = (uint8_t)(RUN - 1 - i % RUN);
        c->texts.held[i] = i >= N - RUN;
    }
}

static void begin_case(small_case *c)
{
    MUST(eagle_trainer_init, &c->trainer, &c->about, &c->memory);
}

static void end_case(small_case *c)
{
    arena_free(&c->memory);
    pool_close(&c->pool);
}

static double loss_with(eagle_trainer *m, int64_t i, float value)
{
    float before = m->parameters[i];
    m->parameters[i] = value;
    eagle_trainer_gradient(m);
    m->parameters[i] = before;
    return m->loss;
}

/* Checks the gradient of every parameter. What passes feed to the next ones is no function of
 * them. */
static void check_gradient(int32_t n_passes)
{
    static float gradient[2000];
    small_case c;
    make_case(&c, 2, 5, n_passes);
    c.about.soft = 0.4f;
    c.about.pull = 2;
    c.about.n_ids = IDS - 1; /* a token that is not guessed */
    begin_case(&c);
    eagle_trainer *m = &c.trainer;
    rng r = rng_from(8);
    assert_true(m->n_parameters <= 2000);
    for (int64_t i = 0; i < m->n_parameters; i++)
        m->parameters[i] = 0.4f * (float)rng_normal(&r);
    m->batch[0] = 3;
    m->batch[1] = RUN - 3; /* a run that ends within the window */
    eagle_trainer_gradient(m);
    memcpy(gradient, m->gradient, (size_t)m->n_parameters * sizeof *gradient);
    m->keeps_fed = true;
    const float step = 0.01f;
    double most = 0;
    for (int64_t i = 0; i < m->n_parameters; i++) {
        float w = m->parameters[i];
        double slope = (loss_with(m, i, w + step) - loss_with(m, i, w - step)) / (2 * (double)step);
        if (fabs(slope - (double)gradient[i]) > 2e-4 + 0.01 * fabs(slope))
            fail_msg("%d passes, parameter %d: %g instead of %g", n_passes, (int)i,
                     (double)gradient[i], slope);
        most = fmax(most, fabs(slope));
    }
    assert_true(most > 0.05);
    end_case(&c);
}

TEST(gradient_is_the_slope)
{
    check_gradient(1);
    check_gradient(3);
}

/* The token two places back says what follows, and the state is noise: attention has to find it,
 * and later passes as well. */
TEST(learns)
{
    float before[EAGLE_MAX_PASSES][EAGLE_RANKS], after[EAGLE_MAX_PASSES][EAGLE_RANKS];
    int64_t seen[EAGLE_MAX_PASSES];
    small_case c;
    make_case(&c, 8, 10, 3);
    c.about.n_steps = 1500;
    c.about.soft = 0;
    c.about.pull = 0;
    for (int32_t i = 0; i < N; i++)
        c.texts.token[i] = i % RUN < 2 ? i % IDS : (c.texts.token[i - 2] * 5 + 1) % IDS;
    begin_case(&c);
    eagle_trainer_judge(&c.trainer, true, 1000, before, seen);
    assert_true(seen[0] == RUN - 1 && seen[1] < seen[0] && seen[2] < seen[1]);
    while (c.trainer.step < c.about.n_steps)
        eagle_trainer_step(&c.trainer);
    eagle_trainer_judge(&c.trainer, false, 1000, after, seen);
    for (int32_t p = 0; p < 3; p++) {
        print_message("pass %d: %.2f, then %.2f\n", p, (double)before[p][0], (double)after[p][0]);
        assert_true(after[p][0] > 0.8f);
    }
    end_case(&c);
}

/* ---- A toy, from its texts to a layer that drafts ---- */

static int32_t calls_left;

static bool not_for_long(void *user)
{
    return --calls_left > 0;
}

static drey_status train(const drey_model *m, const char *output, drey_train_draft_report *report,
                         drey_error *err)
{
    drey_engine_options engine = plain_options(m, 64, 1);
    drey_train_draft_options o;
    drey_train_draft_options_init(&o);
    engine.memory_bytes = (uint64_t)256 << 20;
    o.engine = &engine;
    o.n_ids = 250;
    o.n_positions = N_TEXT_IDS;
    o.n_epochs = N_EPOCHS;
    o.rate = 0.004f;
    o.greedy = true;
    o.seed = 7;
    o.keep_texts = true;
    o.output = output;
    o.go_on = not_for_long;
    return drey_train_eagle(&o, report, err);
}

static double tokens_per_pass(const drey_model *m, const char *path)
{
    static writing want, got;
    static const int32_t prompt[] = {72, 101, 108, 108, 111};
    drey_model *layer;
    drey_engine_options o = plain_options(m, 160, 2);
    writing_run(&want, &o, -1, prompt, 5, 80, NULL);
    MUST(drey_model_open, &layer, path);
    o.draft = layer;
    o.drafter = DREY_DRAFTER_EAGLE;
    o.policy = DREY_POLICY_SPECINFER;
    writing_run(&got, &o, -1, prompt, 5, 80, NULL);
    must_be_same_ids(&want, &got, "a layer that was trained");
    drey_model_close(&layer);
    return 80.0 / (double)got.stats.n_passes;
}

/* Interrupted while texts are written, and while it is trained: the file is that of a training
 * without interruption. */
TEST(toy_is_trained)
{
    toy_options toy = toy_default();
    drey_train_draft_report report;
    size_t n, n_again;
    toy.layer_gain = 0.1f;
    temp_dir();
    drey_model *m = toy_open("model.gguf", &toy);
    const char *usual = "model.gguf.eagle.gguf", *again = "again.gguf";
    calls_left = 3;
    REFUSED(DREY_ERR_CANCELLED, "", train, m, NULL, NULL);
    calls_left = INT32_MAX;
    MUST(train, m, NULL, &report);
    for (int32_t p = 0; p < DREY_EAGLE_PASSES; p++)
        print_message("pass %d: %.2f of %d\n", p, (double)report.accuracy[p][0],
                      (int)report.n_held[p]);
    assert_true(report.n_kept < N_TEXT_IDS && report.n_texts == N_TEXT_IDS && report.n_ids == 250);
    double got = tokens_per_pass(m, temp_path(usual));
    print_message("%.2f tokens per pass\n", got);
    assert_true(N_EPOCHS < 14 || (report.accuracy[2][0] > 0.4f && got > 1.3));
    uint8_t *texts = bytes_file_read(temp_path("model.gguf.eagle.gguf.texts"), &n);
    bytes_file_write(temp_path("again.gguf.texts"), texts, n);
    free(texts);
    calls_left = N_EPOCHS < 14 ? 1 : 8;
    REFUSED(DREY_ERR_CANCELLED, "continues from", train, m, temp_path(again), NULL);
    assert_int_equal(access(temp_path("again.gguf.checkpoint"), F_OK), 0);
    calls_left = INT32_MAX;
    MUST(train, m, temp_path(again), NULL);
    uint8_t *first = bytes_file_read(temp_path(usual), &n);
    uint8_t *second = bytes_file_read(temp_path(again), &n_again);
    assert_true(n == n_again && memcmp(first, second, n) == 0);
    free(first);
    free(second);
    REFUSED(DREY_ERR_USAGE, "is no layer that drey trained", train, m, temp_path("model.gguf"),
            NULL);
    drey_model_close(&m);
    /* Of another model of the same shape. */
    toy.seed = 2;
    m = toy_open("other.gguf", &toy);
    drey_model *layer;
    MUST(drey_model_open, &layer, temp_path(usual));
    drey_engine_options o = plain_options(m, 64, 2);
    o.draft = layer;
    o.drafter = DREY_DRAFTER_EAGLE;
    must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, "was trained for another model");
    drey_model_close(&layer);
    drey_model_close(&m);
    temp_dir_remove();
}
