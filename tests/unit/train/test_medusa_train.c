/* The trainer of Medusa heads: products against plain sums, gradients against differences of the
 * loss, chances and ranks worked out by hand, what can be learnt is learnt, and a toy from its
 * texts to heads that draft, interrupted and continued. */
#include <sys/stat.h>
#include <unistd.h>

#include "drey/train.h"
#include "engine/config.h"
#include "support/bytes_file.h"
#include "support/writing.h"
#include "train/medusa_trainer.h"
#include "train/self_texts.h"
#include "train/token_slice.h"

static pool *threads;

/* ---- Products ---- */

static void check_product(gemm *g, rng *r, int32_t m, int32_t n, int32_t k, bool turned, bool add)
{
    static float a[64 * 500], b[80 * 500], c[64 * 90];
    const int64_t ldc = n + 3;
    gemm_matrix x = turned ? (gemm_matrix){a, 1, m} : (gemm_matrix){a, k, 1};
    gemm_matrix y = turned ? (gemm_matrix){b, 1, k} : (gemm_matrix){b, n, 1};
    for (int32_t i = 0; i < m * k; i++)
        a[i] = (float)(rng_below(r, 9) - 4);
    for (int32_t i = 0; i < n * k; i++)
        b[i] = (float)(rng_below(r, 9) - 4);
    for (int32_t i = 0; i < m * ldc; i++)
        c[i] = 5;
    gemm_run(g, c, ldc, x, y, m, n, k, add);
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = 0; j < ldc; j++) {
            double sum = add || j >= n ? 5 : 0;
            for (int32_t l = 0; l < k && j < n; l++)
                sum += (double)a[i * x.row + l * x.column] * (double)b[l * y.row + j * y.column];
            assert_true((double)c[i * ldc + j] == sum); /* whole numbers: exact in any order */
        }
}

TEST(products)
{
    static const int32_t sizes[][3] = {{1, 1, 1},     {6, 32, 4},    {7, 33, 5},
                                       {13, 64, 400}, {64, 80, 500}, {5, 31, 384}};
    arena a;
    gemm g;
    rng r = rng_from(1);
    MUST(arena_init, &a, gemm_bytes(64, 80, 500), false);
    gemm_init(&g, 64, 80, 500, threads, &a);
    MUST(arena_check, &a);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turned = 0; turned < 2; turned++)
            check_product(&g, &r, sizes[i][0], sizes[i][1], sizes[i][2], turned, i % 2);
    arena_free(&a);
}

/* ---- Small cases ---- */

typedef struct small_case {
    arena memory;
    self_texts texts;
    uint16_t *head_rows;
    medusa_training about;
    medusa_trainer trainer;
} small_case;

enum { D = 8, IDS = 12, N = 40 };

/* Runs of ten positions with random states; the last run is held. */
static void make_case(small_case *c, int32_t n_batch, int32_t n_drawn)
{
    const kernel_table *k = kernel_select(NULL);
    rng r = rng_from(4);
    float row[D];
    *c = (small_case){.texts = {.n_embd = D, .n = N}};
    c->about = (medusa_training){.n_heads = 2,
                                 .n_embd = D,
                                 .n_ids = IDS,
                                 .n_rows = IDS,
                                 .texts = &c->texts,
                                 .kernels = k,
                                 .pool = threads,
                                 .n_batch = n_batch,
                                 .n_drawn = n_drawn,
                                 .n_steps = 400,
                                 .rate = 0.01f,
                                 .seed = 3};
    size_t bytes = self_texts_bytes(N, D) + arena_size(IDS * D * sizeof(uint16_t)) +
                   medusa_trainer_bytes(&c->about);
    MUST(arena_init, &c->memory, bytes, false);
    c->texts.hidden = arena_take(&c->memory, N * D * sizeof(uint16_t));
    c->texts.token = arena_take(&c->memory, N * sizeof(int32_t));
    c->texts.left = arena_take(&c->memory, N);
    c->texts.held = arena_take(&c->memory, N);
    c->head_rows = arena_take(&c->memory, IDS * D * sizeof(uint16_t));
    c->about.head_rows = c->head_rows;
    for (int32_t i = 0; i < N + IDS; i++) {
        for (int32_t j = 0; j < D; j++)
            row[j] = (float)rng_normal(&r);
        k->to_f16(i < N ? c->texts.hidden + i * D : c->head_rows + (i - N) * D, row, D);
    }
    for (int32_t i = 0; i < N; i++) {
        c->texts.token[i] = rng_below(&r, IDS);
        c->texts.left[i] = (uint8_t)(9 - i % 10);
        c->texts.held[i] = i >= 30;
    }
}

static void begin_case(small_case *c)
{
    MUST(medusa_trainer_init, &c->trainer, &c->about, &c->memory);
}

/* Of ten tokens the four most frequent: of the two that are there twice, the lower one. */
TEST(slice_by_hand)
{
    static const int64_t learnt[10] = {0, 2, 9, 0, 1, 5, 0, 5, 2, 0};
    static const int32_t four[] = {1, 2, 5, 7, 4, 8, 9},
                         all_nine[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    arena a;
    token_slice s;
    MUST(arena_init, &a, token_slice_bytes(10), false);
    token_slice_init(&s, 10, &a);
    for (int32_t i = 0; i < 10; i++) {
        s.learnt[i] = learnt[i];
        s.there[i] = learnt[i] > 0 || i == 9; /* held out alone */
    }
    token_slice_choose(&s, 4);
    assert_int_equal(s.n_ids, 4);
    assert_int_equal(s.n_rows, 7);
    assert_memory_equal(s.id, four, sizeof four);
    for (int32_t i = 0; i < 7; i++)
        assert_int_equal(s.place[four[i]], i);
    assert_true(s.place[0] == -1 && s.place[3] == -1 && s.place[6] == -1);
    token_slice_choose(&s, 9); /* of those that nobody has seen the first ones */
    assert_int_equal(s.n_rows, 10);
    assert_memory_equal(s.id, all_nine, 9 * sizeof *all_nine);
    assert_int_equal(s.place[9], 9);
    arena_free(&a);
}

/* A token that is not guessed is no label, and is an input all the same. */
TEST(tokens_beyond_the_slice)
{
    small_case c;
    make_case(&c, 1, IDS);
    for (int32_t i = 0; i < N; i++)
        c.texts.token[i] = i % 2 ? 1 : IDS - 1;
    c.about.n_ids = IDS - 2;
    begin_case(&c);
    c.trainer.batch[0] = 1; /* said 1; then the token beyond comes, then 1 */
    medusa_trainer_gradient(&c.trainer);
    assert_true(c.trainer.label[0] < 0 && c.trainer.label[1] >= 0);
    float row[D], sum = 0;
    c.about.kernels->from_f16(row, c.head_rows + (IDS - 1) * D, D);
    for (int32_t i = 0; i < D; i++)
        sum += row[i] * row[i];
    for (int32_t i = 0; i < D; i++) /* of the second block */
        assert_true(fabsf(c.trainer.input[3 * D + i] - row[i] / sqrtf(sum / D)) < 1e-4f);
    arena_free(&c.memory);
}

static double loss_with(medusa_trainer *m, int64_t i, float value)
{
    float before = m->parameters[i];
    m->parameters[i] = value;
    medusa_trainer_gradient(m);
    m->parameters[i] = before;
    return m->loss;
}

TEST(gradient_is_the_slope)
{
    small_case c;
    make_case(&c, 5, IDS);
    c.about.soft = 0.4f;
    c.about.pull = 2;
    begin_case(&c);
    medusa_trainer *m = &c.trainer;
    rng r = rng_from(8);
    assert_int_equal(m->n_parameters, 2 * D * (2 * D + 1));
    assert_int_equal(m->taught.n, 27); /* of 30, the last ones of their runs know nothing */
    for (int64_t i = 0; i < m->n_parameters; i++)
        m->parameters[i] = 0.3f * (float)rng_normal(&r);
    for (int32_t i = 0; i < 5; i++)
        m->batch[i] = 2 * i; /* the last one has a label for one head alone */
    static float gradient[2 * D * (2 * D + 1)];
    medusa_trainer_gradient(m);
    memcpy(gradient, m->gradient, sizeof gradient);
    const float step = 0.01f;
    double most = 0;
    for (int64_t i = 0; i < m->n_parameters; i++) {
        float w = m->parameters[i];
        double slope = (loss_with(m, i, w + step) - loss_with(m, i, w - step)) / (2 * (double)step);
        assert_true(fabs(slope - (double)gradient[i]) < 1e-4 + 0.01 * fabs(slope));
        most = fmax(most, fabs(slope));
    }
    assert_true(most > 0.05);
    arena_free(&c.memory);
}

/* z[i] = V h of a position; the logarithm of the sum of their exponentials. */
static double say(const small_case *c, int64_t at, double *z, float *h)
{
    float v[D];
    double sum = 0;
    c->about.kernels->from_f16(h, c->texts.hidden + at * D, D);
    for (int32_t i = 0; i < IDS; i++) {
        c->about.kernels->from_f16(v, c->head_rows + i * D, D);
        z[i] = 0;
        for (int32_t j = 0; j < D; j++)
            z[i] += (double)h[j] * (double)v[j];
        sum += exp(z[i]);
    }
    return log(sum);
}

/* The loss of one position by hand: W = b = 0, so that both heads say softmax(V h). */
TEST(loss_by_hand)
{
    for (int more = 0; more < 2; more++) {
        small_case c;
        make_case(&c, 1, IDS);
        const double soft = 0.25 * more, pull = 3 * more;
        c.about.soft = (float)soft;
        c.about.pull = (float)pull;
        begin_case(&c);
        float h[D], said[D];
        double z[IDS], q[IDS], want = 0, sum = say(&c, 3, z, h);
        for (int32_t k = 0; k < 2; k++) {
            double divisor = say(&c, 4 + k, q, said), cross = 0, squares = 0, distance = 0;
            for (int32_t i = 0; i < IDS; i++)
                cross += exp(q[i] - divisor) * (sum - z[i]);
            for (int32_t i = 0; i < D; i++)
                squares += (double)said[i] * (double)said[i] / D;
            for (int32_t i = 0; i < D; i++) {
                double x = fabs((double)h[i] - (double)said[i]) / sqrt(squares);
                distance += (x < 1 ? x * x / 2 : x - 0.5) / D;
            }
            double loss =
                (1 - soft) * (sum - z[c.texts.token[4 + k]]) + soft * cross + pull * distance;
            want += loss * (k ? 0.8 : 1);
        }
        c.trainer.batch[0] = 3;
        medusa_trainer_gradient(&c.trainer);
        assert_true(fabs(c.trainer.loss - want) < 1e-5 * (1 + want));
        arena_free(&c.memory);
    }
}

/* Of 30 tokens that are learnt from, `count` are this one. 2 * 3 labels and 2 of 4 draws come from
 * texts, 2 from the vocabulary: it is missing with ((30 - count) / 30)^8 (11 / 12)^2. */
TEST(chances_by_hand)
{
    small_case c;
    make_case(&c, 3, 4);
    begin_case(&c);
    for (int32_t token = 0; token < IDS; token++) {
        int32_t count = 0;
        for (int32_t i = 0; i < 30; i++)
            count += c.texts.token[i] == token;
        double absent = pow((30 - count) / 30.0, 8) * pow(11 / 12.0, 2);
        assert_true(fabs((double)c.trainer.log_chance[token] - log(1 - absent)) < 1e-5);
    }
    /* Rows that are there by chance stand for those that are not: over many draws the estimated sum
     * is the whole one. Seen in the loss, which is its logarithm, within its spread. */
    double whole, mean = 0;
    enum { ROUNDS = 2000 };
    small_case all;
    make_case(&all, 3, IDS);
    begin_case(&all);
    for (int32_t i = 0; i < 3; i++)
        c.trainer.batch[i] = all.trainer.batch[i] = 4 * i;
    medusa_trainer_gradient(&all.trainer);
    whole = all.trainer.loss;
    for (int32_t i = 0; i < ROUNDS; i++) {
        c.trainer.step = i;
        medusa_trainer_gradient(&c.trainer);
        mean += c.trainer.loss / ROUNDS;
    }
    assert_true(fabs(mean - whole) < 0.35 * whole);
    arena_free(&c.memory);
    arena_free(&all.memory);
}

/* Rows of V are unit vectors, and so are the states: a state's guesses are the tokens by
 * its numbers. */
TEST(ranks_by_hand)
{
    small_case c;
    make_case(&c, 4, IDS);
    const kernel_table *k = c.about.kernels;
    float row[D], order[D] = {8, 7, 6, 5, 4, 3, 2, 1};
    float accuracy[2][MEDUSA_RANKS];
    int64_t seen[2];
    for (int32_t i = 0; i < IDS; i++) {
        for (int32_t j = 0; j < D; j++)
            row[j] = i == j;
        k->to_f16(c.head_rows + i * D, row, D); /* ids from D on have no weight */
    }
    for (int32_t i = 0; i < N; i++) {
        k->to_f16(c.texts.hidden + i * D, order, D);
        c.texts.token[i] = i % 10; /* of rank i % 10; 8 and 9 are beyond the ranks */
    }
    begin_case(&c);
    medusa_trainer_judge(&c.trainer, true, 100, accuracy, seen);
    assert_int_equal(seen[0], 9);
    assert_int_equal(seen[1], 8);
    for (int32_t r = 0; r < MEDUSA_RANKS; r++) { /* positions 0 .. 8 are asked for 1 .. 9 */
        assert_true(accuracy[0][r] == (r >= 1 ? 1.0f / 9 : 0));
        assert_true(accuracy[1][r] == (r >= 2 ? 1.0f / 8 : 0));
    }
    medusa_trainer_judge(&c.trainer, false, 100, accuracy, seen);
    assert_int_equal(seen[0], 27);
    arena_free(&c.memory);
}

/* Three states that follow each other, as three tokens do. Where tokens are drawn, those that are
 * seldom there are learnt the more slowly. */
TEST(learns)
{
    for (int sampled = 0; sampled < 2; sampled++) {
        small_case c;
        make_case(&c, 16, sampled ? 8 : IDS);
        float accuracy[2][MEDUSA_RANKS];
        int64_t seen[2];
        for (int32_t i = 0; i < N; i++) {
            memmove(c.texts.hidden + i * D, c.texts.hidden + i % 3 * D, D * sizeof(uint16_t));
            c.texts.token[i] = 5 + i % 3;
        }
        c.about.n_steps = sampled ? 2000 : 400;
        begin_case(&c);
        medusa_trainer_step(&c.trainer);
        double first = c.trainer.loss;
        while (c.trainer.step < c.about.n_steps)
            medusa_trainer_step(&c.trainer);
        assert_true(c.trainer.loss < 0.1 * first);
        medusa_trainer_judge(&c.trainer, true, 100, accuracy, seen);
        assert_true(accuracy[0][0] == 1 && accuracy[1][0] == 1);
        arena_free(&c.memory);
    }
}

/* ---- A toy, from its texts to heads that draft ---- */

static int32_t calls_left;

static bool not_for_long(void *user)
{
    return --calls_left > 0;
}

static drey_engine_options engine; /* engine of options_of */

static drey_train_draft_options options_of(const drey_model *m, const char *output)
{
    drey_train_draft_options o;
    drey_engine_options_init(&engine);
    drey_train_draft_options_init(&o);
    engine.target = m;
    engine.memory_bytes = (uint64_t)256 << 20;
    engine.n_threads = 2;
    o.engine = &engine;
    o.n_ids = 200;
    o.n_positions = 3000;
    o.output = output;
    return o;
}

static drey_status train(const drey_model *m, const char *output, int64_t n_positions,
                         drey_train_draft_report *report, drey_error *err)
{
    drey_train_draft_options o = options_of(m, output);
    o.n_heads = 3;
    o.n_positions = n_positions;
    o.n_epochs = 12;
    o.seed = 7;
    o.keep_texts = true;
    o.go_on = not_for_long;
    return drey_train_medusa(&o, report, err);
}

/* Makes a model in a new folder. */
static drey_model *toy_model(void)
{
    temp_dir_remove();
    const toy_options toy = toy_default();
    return toy_open("model.gguf", &toy);
}

static void check_drafting(const drey_model *m)
{
    static writing want, got;
    static const int32_t prompt[] = {72, 101, 108, 108, 111};
    drey_engine_options o = plain_options(m, 160, 2);
    writing_run(&want, &o, -1, prompt, 5, 60, NULL);
    o.drafter = DREY_DRAFTER_MEDUSA;
    o.policy = DREY_POLICY_EDGELLM;
    writing_run(&got, &o, -1, prompt, 5, 60, NULL);
    must_be_same_ids(&want, &got, "heads that were trained");
    assert_true(got.stats.drafted > 0);
}

/* Checks fewer tokens: of texts that were kept the first ones, as many as were asked for; a few
 * tokens are learnt from and judged by all the same. */
static void check_fewer_tokens(const drey_model *m, const char *output)
{
    drey_train_draft_report report;
    static const int64_t few[] = {1000, 100, 8};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        const int64_t n = few[i];
        MUST(train, m, output, n, &report);
        assert_int_equal(report.n_texts, n);
        assert_true(report.n_kept > 3000);
        assert_true(report.n_positions > 0 && report.n_held[0] > 0);
        assert_true(report.n_positions + report.n_held[0] <= n);
    }
}

/* A token that there is not, in texts that are there. */
static void check_damaged_texts(const drey_model *m, const char *output)
{
    size_t n, at = 24; /* after the file's head */
    const char *path = temp_path("again.texts");
    uint8_t *bytes = bytes_file_read(path, &n);
    uint64_t seed;
    while (memcpy(&seed, bytes + at, sizeof seed), seed != 0) { /* the text that counts first */
        int32_t n_tokens;
        memcpy(&n_tokens, bytes + at + 8, sizeof n_tokens);
        at += 16 + (size_t)n_tokens * (4 + 2 * (size_t)m->shape.n_embd);
        assert_true(at < n);
    }
    assert_int_equal(bytes[at + 16 + 3], 0); /* its first token's sign */
    bytes[at + 16 + 3] = 0x80;
    bytes_file_write(path, bytes, n);
    free(bytes);
    REFUSED(DREY_ERR_FORMAT, "is damaged; remove it", train, m, output, 3000, NULL);
}

TEST(toy_is_trained)
{
    drey_model *m = toy_model();
    drey_train_draft_report report;
    const char *heads = temp_path("model.gguf.drey-medusa"), *again = temp_path("again");
    calls_left = 3; /* while texts are being written */
    REFUSED(DREY_ERR_CANCELLED, "", train, m, NULL, 3000, NULL);
    assert_int_not_equal(access(heads, F_OK), 0);
    calls_left = INT32_MAX;
    MUST(train, m, NULL, 3000, &report);
    assert_int_equal(report.n_texts, 3000);
    assert_true(report.n_kept < 3000);
    assert_int_equal(report.n_guesses, 3);
    assert_int_equal(report.n_ids, 200);
    assert_true(report.n_positions > 2000 && report.n_held[0] > 0 && report.loss > 0);
    for (int32_t k = 0; k < 3; k++)
        for (int32_t r = 0; r < MEDUSA_RANKS; r++)
            assert_true(report.accuracy[k][r] >= 0 && report.accuracy[k][r] <= 1);
    assert_true(drey_is_heads_file(heads));
    check_drafting(m);
    /* From the same texts, stopped in the middle of the steps: the same file. */
    size_t n_texts;
    uint8_t *texts = bytes_file_read(temp_path("model.gguf.drey-medusa.texts"), &n_texts);
    bytes_file_write(temp_path("again.texts"), texts, n_texts);
    free(texts);
    calls_left = 3;
    REFUSED(DREY_ERR_CANCELLED, "", train, m, again, 3000, NULL);
    assert_int_equal(access(temp_path("again.checkpoint"), F_OK), 0);
    calls_left = INT32_MAX;
    MUST(train, m, again, 3000, NULL);
    assert_int_not_equal(access(temp_path("again.checkpoint"), F_OK), 0);
    assert_true(same_files(heads, again));
    check_fewer_tokens(m, again);
    check_damaged_texts(m, again);
    drey_model_close(&m);
}

static const int32_t words[] = {72, 101, 108, 108, 111}, more[] = {72, 101, 108, 33}, one[] = {87};
static const drey_train_prompt prompts[] = {{words, 5}, {more, 4}, {one, 1}};

/* Texts that answer three prompts greedily: a prompt's first answer is what the model writes after
 * it, each text's number names its prompt, and a second answer differs from the first. */
static void check_answers(const drey_model *m)
{
    static writing want;
    const drey_engine_options o = plain_options(m, 160, 2);
    size_t n_bytes, n_runs = 0, n_again = 0;
    uint8_t *bytes = bytes_file_read(temp_path("answers.texts"), &n_bytes);
    for (size_t at = 24; at < n_bytes; n_runs++) { /* after the file's head */
        uint64_t seed;
        int32_t n, token[448];
        memcpy(&seed, bytes + at, sizeof seed);
        memcpy(&n, bytes + at + 8, sizeof n);
        assert_true(n > 0 && n <= 448 && seed % 16 < 3);
        memcpy(token, bytes + at + 16, (size_t)n * sizeof *token);
        const drey_train_prompt *p = &prompts[seed % 16];
        writing_run(&want, &o, -1, p->ids, p->n_ids, 40, NULL);
        int32_t most = n < want.n_ids ? n : want.n_ids;
        bool same = memcmp(token, want.ids, (size_t)most * sizeof *token) == 0;
        assert_true(most > 0 && (same || seed >= 16));
        n_again += !same;
        at += 16 + (size_t)n * (4 + 2 * (size_t)m->shape.n_embd);
    }
    assert_true(n_runs >= 16 && n_again > 0);
    free(bytes);
}

TEST(prompts_are_answered)
{
    drey_model *m = toy_model();
    drey_train_draft_report report;
    drey_train_draft_options o = options_of(m, temp_path("answers"));
    o.greedy = true;
    o.keep_texts = true;
    o.prompts = prompts;
    o.n_prompts = 1;
    REFUSED(DREY_ERR_USAGE, "", drey_train_medusa, &o, NULL);
    o.n_prompts = 3;
    MUST(drey_train_medusa, &o, &report);
    assert_true(report.n_positions > 0 && report.n_held[0] > 0);
    check_answers(m);
    o.n_prompts = 2; /* texts of other prompts do not mix */
    REFUSED(DREY_ERR_MISMATCH, "other prompts", drey_train_medusa, &o, NULL);
    o.n_prompts = 0;
    REFUSED(DREY_ERR_MISMATCH, "", drey_train_medusa, &o, NULL);
    drey_model_close(&m);
}

/* Trains a little; stopped by go_on after `calls` of them, and then again after as many more.
 * Returns how often it was stopped. */
static int train_in_parts(const drey_model *m, const char *output, int32_t n_prompts, int32_t calls)
{
    drey_train_draft_options o = options_of(m, output);
    engine.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_heads = 2;
    o.n_positions = 1500;
    o.n_epochs = 2;
    o.seed = 3;
    o.go_on = not_for_long;
    o.prompts = n_prompts ? prompts : NULL;
    o.n_prompts = n_prompts;
    for (int n_stops = 0;; n_stops++) {
        drey_error err = {0};
        calls_left = calls;
        drey_status status = drey_train_medusa(&o, NULL, &err);
        if (status == DREY_OK)
            return n_stops;
        if (status != DREY_ERR_CANCELLED)
            fail_msg("%s", err.message);
        calls += calls;
    }
}

/* Texts that were under way when training was interrupted are written by the next call: what is
 * trained with, and so the file, is that of a training that nobody interrupted. */
TEST(interrupted_texts_are_finished)
{
    drey_model *m = toy_model();
    const char *whole = temp_path("whole"), *parts = temp_path("parts");
    for (int32_t n_prompts = 0; n_prompts <= 3; n_prompts += 3) {
        assert_int_equal(train_in_parts(m, whole, n_prompts, INT32_MAX / 2), 0);
        assert_true(train_in_parts(m, parts, n_prompts, 25) >= 3);
        assert_true(same_files(whole, parts));
    }
    drey_model_close(&m);
}

/* What is known to fail is said before a text is written. */
TEST(known_at_once)
{
    drey_model *m = toy_model();
    drey_error err = {0};
    const char *usual = temp_path("model.gguf.drey-medusa.texts"), *folder = temp_path("folder"),
               *checkpoint = temp_path("folder/heads.checkpoint");
    calls_left = 1; /* a text at most */
    assert_int_equal(train(m, NULL, 20000000, NULL, &err), DREY_ERR_MEMORY);
    const char *said = strstr(err.message, "take at most ");
    assert_non_null(said);
    long long fit = atoll(said + strlen("take at most "));
    assert_true(fit > 3000 && fit < 20000000);
    assert_int_not_equal(access(usual, F_OK), 0);
    /* So many do fit, less a few for what a program's own memory grows by meanwhile. */
    REFUSED(DREY_ERR_CANCELLED, "", train, m, NULL, fit * 9 / 10, NULL);

    assert_int_equal(mkdir(folder, 0777), 0);
    REFUSED(DREY_ERR_IO, "is a folder", train, m, folder, 3000, NULL);
    assert_int_not_equal(access(temp_path("folder.texts"), F_OK), 0);
    REFUSED(DREY_ERR_IO, "", train, m, temp_path("folder/none/heads"), 3000, NULL);
    assert_int_equal(mkdir(checkpoint, 0777), 0);
    REFUSED(DREY_ERR_IO, "", train, m, temp_path("folder/heads"), 3000, NULL);
    assert_int_equal(rmdir(checkpoint), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is in it */
    drey_model_close(&m);
}

TEST(what_cannot_be)
{
    drey_model *m = toy_model();
    drey_train_draft_options o;
    drey_train_draft_options_init(&o);
    REFUSED(DREY_ERR_USAGE, "", drey_train_medusa, &o, NULL);
    o = options_of(m, NULL);
    engine.memory_bytes = 1 << 20;
    REFUSED(DREY_ERR_MEMORY, "", drey_train_medusa, &o, NULL);
    engine.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_heads = 9;
    REFUSED(DREY_ERR_USAGE, "", drey_train_medusa, &o, NULL);
    o.n_heads = 0;
    o.n_ids = m->shape.n_vocab + 1;
    REFUSED(DREY_ERR_USAGE, "", drey_train_medusa, &o, NULL);
    o.n_ids = 0;
    bytes_file_write(temp_path("model.gguf.drey-medusa.texts"), "no texts at all....", 19);
    REFUSED(DREY_ERR_MISMATCH, "no texts of this model", drey_train_medusa, &o, NULL);
    drey_model_close(&m);
}

static int open_threads(void **state)
{
    return pool_open(&threads, 2, NULL) == DREY_OK ? 0 : -1;
}

static int close_threads(void **state)
{
    pool_close(&threads);
    temp_dir_remove();
    return 0;
}

TEST_GROUP(open_threads, close_threads)
