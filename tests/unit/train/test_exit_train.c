/* Positions that predictors are trained on, and their verdicts: positions made by hand, with
 * verdicts worked out by hand, and texts of toys, where a look after layer l equals a toy of l
 * layers. */
#include <limits.h>
#include <unistd.h>

#include "session/session.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "support/bytes_file.h"
#include "support/heads_file.h"
#include "support/predictors.h"
#include "support/scene.h"
#include "train/exit_samples.h"
#include "weights/identity.h"

#define near(got, want) assert_near(got, want, 1e-6 + 1e-6 * fabs((double)(want)))

/* ---- By hand ---- */

enum { LAYERS = 6, FIRST = 3, N_BY_HAND = 8 };

typedef struct by_hand {
    exit_samples samples;
    arena memory;
    exit_predictors p;
} by_hand;

static by_hand b;

/* A position of `prompt` whose candidates are 1, 2, 3, 4 and whose final token is `final`; of each
 * layer from the third on the head's choice, and how far the first candidate's logit is above the
 * others', which are 0. */
static void add(int32_t prompt, int32_t final, const int32_t head[3], const float high[3])
{
    int32_t i = b.samples.n++;
    exit_position *position = &b.samples.position[i];
    *position = (exit_position){.prompt = prompt, .final = final};
    position->guessed = (exit_candidates){.n = 4, .token = {1, 2, 3, 4}, .logp = {-1, -2, -3, -4}};
    for (int32_t layer = FIRST; layer < LAYERS; layer++)
        *exit_look_at(&b.samples, i, layer) =
            (exit_look){.head = head[layer - FIRST], .logit = {high[layer - FIRST]}};
}

/* Every predictor's score is sigmoid(20 (the first candidate's logit - 1)): above a half where that
 * is above 1. */
static void make_by_hand(void)
{
    b = (by_hand){0};
    assert_int_equal(arena_init(&b.memory, exit_samples_bytes(LAYERS, N_BY_HAND), false, NULL), 0);
    exit_samples_init(&b.samples, LAYERS, N_BY_HAND, &b.memory);
    assert_int_equal(b.samples.first, FIRST);
    make_predictors(&b.p, LAYERS, FIRST, 12, 1, 1);
    memset(b.p.memory.base, 0, b.p.memory.used_bytes);
    for (int32_t layer = FIRST; layer < LAYERS; layer++) {
        *(float *)(uintptr_t)b.p.mlp[layer].w1 = 20;
        *(float *)(uintptr_t)b.p.mlp[layer].w2 = 1;
        b.p.mlp[layer].b2 = -20;
    }
    /* Held out: the first leaves after layer 4 with 1, which is right; the second after 3 with 2,
     * which is wrong; the third nowhere, though two scores are high, because the head's choice is
     * no candidate; the fourth nowhere. */
    add(1, 1, (int32_t[]){7, 1, 1}, (float[]){0, 2, 2});
    add(1, 3, (int32_t[]){2, 3, 3}, (float[]){5, 0, 0});
    add(1, 9, (int32_t[]){9, 8, 9}, (float[]){2, 0, 2});
    add(2, 1, (int32_t[]){1, 2, 1}, (float[]){0, 0.5f, 0.9f});
    /* Of a prompt to learn from. */
    add(0, 1, (int32_t[]){1, 1, 1}, (float[]){3, 3, 3});
}

static void free_by_hand(void)
{
    arena_free(&b.memory);
    exit_close(&b.p);
}

TEST(verdicts_by_hand)
{
    exit_judgement j;
    make_by_hand();
    exit_rule rule = {.p = &b.p, .layers = EXIT_EVERY_LAYER, .threshold = 0.5f};
    exit_judge(&b.samples, &rule, true, &j);
    assert_int_equal(j.n, 4);
    assert_int_equal(j.n_agree, 3);
    near(j.sum_layers, 4 + 3 + 6 + 6);
    assert_int_equal(j.n_scores, 2 + 1 + 3 + 3);
    assert_int_equal(j.n_refused, 2);
    assert_memory_equal(j.exits, ((int64_t[]){0, 0, 0, 1, 1, 0, 2}), 7 * sizeof *j.exits);
    exit_judge(&b.samples, &rule, false, &j);
    assert_int_equal(j.n, 1);
    near(j.sum_layers, 3);
    rule.threshold = 1;
    exit_judge(&b.samples, &rule, true, &j);
    assert_int_equal(j.n_agree, 4);
    near(j.sum_layers, 24);
    free_by_hand();
}

TEST(the_schedule_is_followed)
{
    exit_judgement j;
    make_by_hand();
    memset(b.p.offline, 0, sizeof b.p.offline);
    b.p.offline[4] = true;
    exit_rule rule = {.p = &b.p, .layers = EXIT_TWO_LEVELS, .threshold = 0.5f};
    exit_judge(&b.samples, &rule, true, &j);
    /* The first: only after 4, where it leaves; then 3, 4 and 5 are near. The next prompt starts
     * without that. */
    assert_int_equal(j.n_scores, 1 + 1 + 3 + 1);
    near(j.sum_layers, 4 + 3 + 6 + 6);
    free_by_hand();
}

TEST(the_oracle_knows_when_a_token_is_final_for_good)
{
    make_by_hand();
    static const int32_t want[] = {4, 4, 5, 5, 3};
    for (int32_t i = 0; i < 5; i++)
        assert_int_equal(exit_final_layer(&b.samples, i), want[i]);
    exit_look_at(&b.samples, 4, 5)->head = 2;
    assert_int_equal(exit_final_layer(&b.samples, 4), 6);
    free_by_hand();
}

TEST(walks_give_what_predictors_see)
{
    exit_walk w;
    float x[EXIT_FEATURES];
    make_by_hand();
    exit_walk_begin(&w, &b.samples, &b.p, 0);
    exit_walk_next(&w, 3, x);
    near((double)x[4], 0.25);
    exit_walk_next(&w, 4, x); /* logits 2, 0, 0, 0: e^2 / (e^2 + 3) */
    near((double)x[0], 2);
    near((double)x[4], 0.711234594);
    near((double)x[8], 0.461234594);
    near((double)x[13], -2);
    assert_true(exit_walk_takes(&w, 4) && !exit_walk_takes(&w, 5));
    free_by_hand();
}

/* ---- Learning ---- */

enum { N_LEARN = 400 };

/* Tokens leave where the first candidate is ahead by more than one, and are right then. */
TEST(predictors_learn_where_tokens_leave)
{
    b = (by_hand){0};
    size_t bytes = exit_samples_bytes(LAYERS, N_LEARN);
    assert_int_equal(arena_init(&b.memory, bytes, false, NULL), 0);
    exit_samples_init(&b.samples, LAYERS, N_LEARN, &b.memory);
    for (int32_t i = 0; i < N_LEARN; i++) {
        int32_t at = FIRST + i / 2 % 4; /* 6: nowhere */
        float high[3];
        int32_t head[3];
        for (int32_t layer = FIRST; layer < LAYERS; layer++) {
            high[layer - FIRST] = layer >= at ? 3 : -1;
            head[layer - FIRST] = layer >= at ? 1 : 2;
        }
        add(i % 2, 1, head, high); /* prompt 1 is held out */
    }
    exit_training t = {.p = &b.p, .samples = &b.samples, .seed = 1};
    b.p = (exit_predictors){
        .n_layers = LAYERS, .first = FIRST, .n_features = 16, .n_hidden = 8, .threshold = 0.5f};
    MUST(exit_take, &b.p, t.numbers);
    MUST(exit_fit, &t);
    exit_fit_schedule(&b.p, &b.samples);
    for (int32_t layer = FIRST; layer <= LAYERS; layer++)
        near((double)b.p.expected[layer], 0.25);
    assert_memory_equal(b.p.offline, ((bool[]){0, 0, 0, 0, 1, 1, 0}), 7);
    exit_judgement j;
    exit_rule rule = {.p = &b.p, .threshold = 0.5f};
    exit_judge(&b.samples, &rule, true, &j);
    assert_int_equal(j.n_agree, N_LEARN / 2);
    near(j.sum_layers, N_LEARN / 2 * 4.5);
    free_by_hand();
}

/* A wrong token counts as six layers: after four of six a score of a half means that of three
 * tokens two are right, (1 - 2 / 3) 6 = 2. */
TEST(leaving_has_its_price)
{
    exit_predictors p = {.n_layers = 6, .first = 3};
    near((double)exit_price(&p, 3), 0);
    near((double)exit_price(&p, 4), log(2));
    near((double)exit_price(&p, 5), log(5));
}

/* Prompts in turns of two sorts, or in any other order: half of each sort is held out. */
TEST(half_of_the_prompts_are_held_out)
{
    exit_position position[8];
    exit_samples s = {.position = position};
    static const bool want[8] = {0, 1, 1, 0, 0, 1, 1, 0};
    for (int32_t i = 0; i < 8; i++) {
        position[i] = (exit_position){.prompt = i};
        assert_int_equal(exit_is_held_out(&s, i), want[i]);
    }
}

TEST(nothing_is_learnt_from_nothing)
{
    make_by_hand();
    exit_training t = {.p = &b.p, .samples = &b.samples};
    b.samples.position[4].guessed.n = 0;
    REFUSED(DREY_ERR_USAGE, "nothing to learn from", exit_fit, &t);
    free_by_hand();
}

/* ---- Texts of toys ---- */

enum { TOY_LAYERS = 6, N_TEXT = 40, N_PROMPTS = 4 };

static const int32_t words[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101};
static const drey_train_prompt prompts[N_PROMPTS] = {
    {words, 11}, {words + 2, 5}, {words + 6, 1}, {words + 1, 9}};

static drey_model *toy(int32_t n_layers, const char *name)
{
    toy_options o = toy_default();
    o.n_layers = n_layers;
    return toy_open(name, &o);
}

static drey_engine_options engine_options_of(const drey_model *m, const drey_model *draft,
                                             drey_drafter which)
{
    drey_engine_options o = plain_options(m, 64, 2);
    o.draft = draft;
    o.drafter = which;
    return o;
}

static const engine_hooks hooks = {.least_logit_rows = EXIT_LOOK_ROWS, .deferred_rows = 1};

/* A model of `layer` layers has the same logits after each row of a text as the look at that layer
 * in a pass of all layers. */
static void check_layer(const exit_samples *s, const int32_t *ids, int32_t first, int32_t layer)
{
    drey_model *m = toy(layer, "shallow.gguf");
    drey_engine_options o = plain_options(m, 64, 2);
    drey_session *session = open_alone(&o, &hooks);
    for (int32_t i = 0; i < first + s->n; i++) {
        pass_row row = {.token = ids[i], .parent = -1};
        runner *target = probe_target(session);
        float *logits = target->ws->logits;
        MUST(pass_rows, target, &row, 1, HEAD_LAST);
        cache_commit(target->cache, NULL, 1);
        if (i < first)
            continue;
        const exit_position *position = &s->position[i - first];
        int32_t best = (int32_t)session->engine->kernels->arg_max(logits, m->shape.n_vocab);
        if (layer == s->n_layers) {
            assert_int_equal(best, position->final);
            continue;
        }
        const exit_look *look = exit_look_at(s, i - first, layer);
        assert_int_equal(look->head, best);
        for (int32_t k = 0; k < position->guessed.n; k++)
            assert_true(look->logit[k] == logits[position->guessed.token[k]]);
        for (int32_t k = 0; k < position->own.n && layer >= s->own_layer; k++)
            assert_true(look->own[k] == logits[position->own.token[k]]);
    }
    close_alone(&session);
    drey_model_close(&m);
}

TEST(looks_are_those_of_shallow_models)
{
    drey_model *m = toy(TOY_LAYERS, "m.gguf"), *draft = toy(4, "d.gguf");
    drey_engine_options o = engine_options_of(m, draft, DREY_DRAFTER_MODEL);
    exit_samples s;
    arena memory;
    int32_t ids[64];
    exit_gatherer g = {.session = open_alone(&o, &hooks), .samples = &s};
    assert_int_equal(arena_init(&memory, exit_samples_bytes(TOY_LAYERS, N_TEXT), false, NULL), 0);
    exit_samples_init(&s, TOY_LAYERS, N_TEXT, &memory);
    MUST(exit_gather, &g, &prompts[0], 0, N_TEXT);
    assert_true(s.n > 0 && s.n <= N_TEXT);
    memcpy(ids, words, 11 * sizeof *ids);
    int64_t n_right = 0, n_guesses = 0;
    for (int32_t i = 0; i < s.n; i++) {
        const exit_position *p = &s.position[i];
        ids[11 + i] = p->final;
        n_guesses += p->guessed.n;
        for (int32_t k = 0; k < p->guessed.n; k++) {
            n_right += p->guessed.token[k] == p->final;
            assert_true(p->guessed.logp[k] <= 0 && isfinite(p->guessed.logp[k]));
        }
    }
    assert_int_equal(n_guesses, 4 * s.n);
    assert_true(n_right > s.n / 4); /* a draft of the same seed often agrees */
    close_alone(&g.session);
    for (int32_t layer = s.first; layer <= TOY_LAYERS; layer++)
        check_layer(&s, ids, 10, layer);
    arena_free(&memory);
    drey_model_close(&m);
    drey_model_close(&draft);
}

static drey_train_exit_options options_of(const drey_engine_options *engine)
{
    drey_train_exit_options o;
    drey_train_exit_options_init(&o);
    o.engine = engine;
    o.prompts = prompts;
    o.n_prompts = N_PROMPTS;
    o.n_predict = N_TEXT;
    o.n_hidden = 4;
    o.output = temp_path("trained");
    return o;
}

static void train(const drey_train_exit_options *o, drey_train_exit_report *report)
{
    MUST(drey_train_exit, o, report);
    assert_true(report->n_train > 0 && report->n_held > 0);
    assert_true(report->oracle_layers >= 3 && report->oracle_layers <= TOY_LAYERS);
    double oracle = TOY_LAYERS; /* less one for each layer after which a token is final */
    for (int32_t i = 0; i < report->n_layer_reports; i++)
        oracle -= report->layers[i].final_for_good;
    near(oracle, report->oracle_layers);
    assert_true(report->n_verdicts > 8);
    assert_true(report->verdicts[0].layers >= 3 && report->verdicts[0].layers <= TOY_LAYERS);
}

TEST(every_source_makes_a_file)
{
    drey_model *m = toy(TOY_LAYERS, "m.gguf"), *draft = toy(4, "d.gguf");
    static const drey_drafter drafters[] = {DREY_DRAFTER_MODEL, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_NONE, DREY_DRAFTER_MEDUSA};
    static const int32_t n_features[] = {16, 16, 12, 16}, first[] = {3, 3, 5, 3};
    static drey_train_exit_report report;
    uint64_t identity, other;
    MUST(model_identity, draft->file, &identity);
    MUST(model_identity, m->file, &other);
    heads_file heads;
    heads_file_init(&heads, m->file, &m->shape);
    heads_file_write(temp_path("m.gguf.drey-medusa"), &heads);
    for (int i = 0; i < 4; i++) {
        drey_engine_options engine = engine_options_of(m, i == 0 ? draft : NULL, drafters[i]);
        drey_train_exit_options o = options_of(&engine);
        exit_predictors p;
        engine.exit = DREY_EXIT_FAST; /* neither exits with what is there, nor asks for it */
        train(&o, &report);
        MUST(exit_open, &p, o.output, m->file);
        assert_true((int)p.source == i && (int)report.source == i);
        assert_true(p.n_features == n_features[i] && p.first == first[i] && p.n_hidden == 4);
        assert_int_equal(p.source_layer, i == 2 ? 4 : 0);
        near((double)p.threshold, 0.6);
        assert_true(exit_fits_draft(&p, identity) == (i == 0));
        assert_false(exit_fits_draft(&p, other));
        exit_close(&p);
    }
    drey_model_close(&m);
    drey_model_close(&draft);
}

TEST(threads_and_budgets_give_one_file)
{
    static drey_train_exit_report report;
    drey_model *m = toy(TOY_LAYERS, "m.gguf");
    drey_engine_options engine = engine_options_of(m, NULL, DREY_DRAFTER_LOOKUP);
    drey_train_exit_options o = options_of(&engine);
    const char *first = o.output;
    drey_plan plan;
    train(&o, &report);
    o.output = temp_path("other");
    engine.n_threads = 1;
    engine.memory_bytes = 1; /* too little: the least that works is reported */
    REFUSED(DREY_ERR_MEMORY, "", drey_train_exit, &o, &report);
    engine.memory_bytes = DREY_MEMORY_UNLIMITED;
    engine.n_context = 64;
    MUST(drey_plan_make, &engine, NULL, &plan);
    engine.memory_bytes = plan.smallest_budget_bytes + (1 << 20);
    train(&o, &report);
    assert_true(same_files(first, o.output));
    o.seed = 1;
    train(&o, &report);
    assert_false(same_files(first, o.output));
    drey_model_close(&m);
}

static bool stop_soon(void *user)
{
    return --*(int *)user > 0;
}

TEST(training_ends_when_it_is_asked_to)
{
    drey_model *m = toy(TOY_LAYERS, "m.gguf");
    drey_engine_options engine = engine_options_of(m, NULL, DREY_DRAFTER_LOOKUP);
    drey_train_exit_options o = options_of(&engine);
    o.go_on = stop_soon;
    o.output = temp_path("stopped");
    int left = INT_MAX;
    o.user = &left;
    MUST(drey_train_exit, &o, NULL);
    assert_int_equal(unlink(o.output), 0);
    int n_asked = INT_MAX - left;
    assert_true(n_asked > N_PROMPTS * N_TEXT);
    for (int i = 0; i < 7; i++) {
        left = 1 + (n_asked - 1) * i / 7; /* threads ask a few times more or less */
        assert_int_equal(drey_train_exit(&o, NULL, NULL), DREY_ERR_CANCELLED);
        assert_int_not_equal(access(o.output, F_OK), 0);
    }
    drey_model_close(&m);
}

TEST(wrong_options_are_refused)
{
    drey_model *m = toy(TOY_LAYERS, "m.gguf");
    drey_engine_options engine = engine_options_of(m, NULL, DREY_DRAFTER_NONE);
    const drey_train_exit_options good = options_of(&engine);
    drey_train_exit_options o;
#define BROKEN_BY(change, says)                                                                    \
    o = good, change;                                                                              \
    REFUSED(DREY_ERR_USAGE, says, drey_train_exit, &o, NULL)
    static const int32_t beyond[] = {1000000};
    static const drey_train_prompt strange[] = {{words, 3}, {beyond, 1}};
    static const drey_train_prompt empty[] = {{words, 3}, {words, 0}};
    BROKEN_BY(o.n_prompts = 1, "two prompts");
    BROKEN_BY((o.prompts = strange, o.n_prompts = 2), "token id 1000000");
    BROKEN_BY((o.prompts = empty, o.n_prompts = 2), "prompt 2");
    BROKEN_BY(o.n_hidden = 5000, "5000 hidden units");
    BROKEN_BY(o.threshold = 1.5f, "threshold");
    BROKEN_BY((o.n_predict = DREY_MAX_CONTEXT / 2, o.n_prompts = INT32_MAX),
              "too many to train with");
    BROKEN_BY(o.engine = NULL, "no target");
    engine.drafter = DREY_DRAFTER_SELF;
    BROKEN_BY(o.seed = 0, "with the drafter \"self\": it would draft with");
#undef BROKEN_BY
    drey_model_close(&m);
}
