/* Early exits in the engine. What a predictor says is made up here, so that passes stop anywhere
 * and what left is right or wrong, or comes from a file. Fast exits write one text for any budget,
 * tier, number of threads and disk; texts end as they would without exits. test_matrix.c has exact
 * exits with everything else. */
#include "session/logprobs.h"
#include "session/session.h"
#include "exit/exit_file.h"
#include "state/cache.h"
#include "support/drafts/eagle_file.h"
#include "support/faults/disk.h"
#include "support/heads_file.h"
#include "support/predictors.h"
#include "support/toy_models.h"
#include "support/writing.h"
#include "text/tokenizer.h"
#include "weights/identity.h"

#ifdef TESTS_SANITIZED
enum { EVERY = 3 }; /* step through the cases */
#else
enum { EVERY = 1 };
#endif
enum { N_TEXT = 24, N_PROMPT = 12, N_LAYERS = 6 };

static const int32_t prompt[N_PROMPT] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 32, 116, 104};
static drey_model *shallow; /* the target's first layers: guesses what its head says after them */
static drey_model *eagle;   /* after the target, whose middle and last layers it reads */

/* ---- Made up predictors ---- */

typedef struct oracle {
    uint64_t seed;
    double often; /* share of the layers at which a token scores */
    int32_t from; /* the first one */
} oracle;

static bool exit_here(void *user, int32_t layer, int32_t position)
{
    const oracle *o = user;
    rng r = rng_from(o->seed + 1000 * (uint64_t)position + (uint64_t)layer);
    return layer >= o->from && rng_unit(&r) < o->often;
}

static oracle oracles[] = {{1, 0, 1}, {2, 1, 1}, {3, 0.3, 1}, {4, 0.6, 4}, {5, 1, N_LAYERS - 1}};
enum { N_ORACLES = sizeof oracles / sizeof *oracles };

/* ---- Models ---- */

static int open_models(void **state)
{
    toy_options t = toy_default();
    temp_dir();
    t.architecture = "qwen2";
    t.n_layers = N_LAYERS;
    target = toy_open("target.gguf", &t);
    t.n_layers = 4;
    shallow = toy_open("shallow.gguf", &t);
    t.n_layers = N_LAYERS;
    t.noise = 0.01f;
    t.noise_seed = 3;
    draft = toy_open("draft.gguf", &t);
    eagle_file e;
    eagle_file_init_knowing(&e, &t, target->file, &target->shape);
    eagle_file_write(temp_path("layer.gguf"), &e);
    MUST(drey_model_open, &eagle, temp_path("layer.gguf"));
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    h.spread = 0.002f;
    heads_file_write(temp_path("target.gguf.drey-medusa"), &h);
    return 0;
}

static int close_models(void **state)
{
    drey_model_close(&shallow);
    drey_model_close(&eagle);
    return toys_close(state);
}

static drey_engine_options plain(void)
{
    drey_engine_options o = plain_options(target, 96, 1);
    o.cpu_tier = "ref";
    return o;
}

typedef struct guesser {
    drey_drafter drafter;
    drey_policy policy;
} guesser;

static const guesser guessers[] = {
    {DREY_DRAFTER_NONE, DREY_POLICY_NONE},       {DREY_DRAFTER_LOOKUP, DREY_POLICY_SINGLE},
    {DREY_DRAFTER_MODEL, DREY_POLICY_SINGLE},    {DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL},
    {DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL},   {DREY_DRAFTER_MODEL, DREY_POLICY_SEQUENCE},
    {DREY_DRAFTER_MODEL, DREY_POLICY_SPECINFER}, {DREY_DRAFTER_MODEL, DREY_POLICY_LLMCAD},
    {DREY_DRAFTER_MODEL, DREY_POLICY_EDGELLM},   {DREY_DRAFTER_LOOKUP, DREY_POLICY_EDGELLM},
    {DREY_DRAFTER_MEDUSA, DREY_POLICY_SINGLE},   {DREY_DRAFTER_MEDUSA, DREY_POLICY_OPTIMAL},
    {DREY_DRAFTER_EAGLE, DREY_POLICY_SINGLE},    {DREY_DRAFTER_EAGLE, DREY_POLICY_SPECINFER},
};
enum { N_GUESSERS = sizeof guessers / sizeof *guessers };

/* Options with the best kernels: against texts of the plain ones. */
static drey_engine_options with_exits(const guesser *g, drey_exit exit)
{
    drey_engine_options o = toys_options(g->drafter, 96, 1);
    if (g->drafter == DREY_DRAFTER_EAGLE)
        o.draft = eagle;
    o.policy = g->policy;
    o.exit = exit;
    return o;
}

/* says: NULL: what predictors say that the options name. */
static void write_with(writing *w, const drey_engine_options *o, oracle *says, double share,
                       const drey_sampling *sampling)
{
    disk slow = {.slow_of = 32, .slow_us = 1000};
    const engine_hooks hooks = {.set_share = share >= 0,
                                .share = share,
                                .fault = disk_read,
                                .fault_user = &slow,
                                .exit_here = says ? exit_here : NULL,
                                .exit_user = says};
    writing_run_tuned(w, o, &hooks, prompt, N_PROMPT, N_TEXT, sampling);
    must(w->status, &w->error);
}

static const drey_sampling sampled = {.temperature = 0.8f, .top_p = 1.0f, .seed = 11};
static const double shares[] = {-1, 0.5, 0};

static int count_tiers(void)
{
    int n = 0;
    while (strcmp(drey_cpu_tiers()[n], "float") != 0)
        n++;
    return n;
}

/* ---- Fast ---- */

TEST(fast_exits_write_one_text)
{
    static writing want, got;
    int64_t left = 0, agreed = 0, compared = 0;
    const char *const *tiers = drey_cpu_tiers();
    int n_tiers = count_tiers(), n = 0, n_cases = 0;
    for (int g = 0; g < N_GUESSERS; g++)
        for (int i = 1; i < N_ORACLES - 1; i++) {
            if ((n_cases++ + g) % EVERY) /* another oracle for each guesser */
                continue;
            const drey_sampling *sampling = n % 3 == 2 ? &sampled : NULL;
            drey_engine_options o = with_exits(&guessers[g], DREY_EXIT_FAST);
            write_with(&want, &o, &oracles[i], -1, sampling);
            for (int j = 1; j < 3; j++) {
                o.n_threads = 1 + j % 2;
                o.cpu_tier = tiers[(n + j) % n_tiers];
                write_with(&got, &o, &oracles[i], shares[j], sampling);
                char what[120];
                snprintf(what, sizeof what, "%s, %s, oracle %d, share %g, tier %s",
                         drey_drafter_name(o.drafter), drey_policy_name(o.policy), i, shares[j],
                         o.cpu_tier);
                must_be_same(&want, &got, what);
                assert_int_equal(got.exits.left, want.exits.left);
                assert_int_equal(got.exits.agreed, want.exits.agreed);
                assert_int_equal(got.exits.taken_back, 0);
            }
            left += want.exits.left;
            agreed += want.exits.agreed;
            compared += want.exits.compared;
            n++;
        }
    assert_true(left > 0 && agreed > 0 && agreed < compared); /* or it would be exact */
}

/* ---- Predictors that were read from a file ---- */

typedef struct judged {
    drey_exit_source source;
    int32_t first, n_features;
    bool leaves; /* seldom where a path has to leave, or the text knows little */
    guesser by;
} judged;

static const judged files[] = {
    {DREY_EXIT_FROM_DRAFT, 2, 16, true, {DREY_DRAFTER_MODEL, DREY_POLICY_SINGLE}},
    {DREY_EXIT_FROM_DRAFT, 2, 12, false, {DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL}},
    {DREY_EXIT_FROM_TEXT, 2, 16, false, {DREY_DRAFTER_LOOKUP, DREY_POLICY_SINGLE}},
    {DREY_EXIT_FROM_TARGET, 4, 12, true, {DREY_DRAFTER_NONE, DREY_POLICY_NONE}},
    {DREY_EXIT_FROM_HEADS, 2, 16, true, {DREY_DRAFTER_MEDUSA, DREY_POLICY_SINGLE}},
    {DREY_EXIT_FROM_DRAFT, 2, 16, true, {DREY_DRAFTER_EAGLE, DREY_POLICY_SINGLE}},
    {DREY_EXIT_FROM_DRAFT, 2, 12, false, {DREY_DRAFTER_EAGLE, DREY_POLICY_OPTIMAL}},
};

static drey_engine_options with_file(const judged *j, const char *path, drey_exit exit)
{
    exit_predictors p;
    make_predictors(&p, N_LAYERS, j->first, j->n_features, 8, 12);
    p.source = j->source;
    p.source_layer = j->source == DREY_EXIT_FROM_TARGET ? j->first - 1 : 0;
    for (int32_t layer = j->first; layer < N_LAYERS; layer++)
        p.offline[layer] = true;
    p.drafter_identity = 0;
    const drey_model *guesses = j->by.drafter == DREY_DRAFTER_EAGLE ? eagle : shallow;
    if (j->source == DREY_EXIT_FROM_DRAFT)
        MUST(model_identity, guesses->file, &p.drafter_identity);
    else
        p.drafter[0] = 0;
    MUST(exit_write, &p, path, target->file);
    exit_close(&p);
    drey_engine_options o = with_exits(&j->by, exit);
    o.draft = o.draft ? guesses : NULL;
    o.exit_file = path;
    o.exit_threshold = 0.02f;
    return o;
}

/* With each source of candidates, looks and scores depend on no tier, budget, disk or number of
 * threads: fast exits always write the same text, and exact ones write the target's. */
TEST(each_source_keeps_the_promise)
{
    static writing plainly, want, got;
    const char *path = temp_path("source");
    const char *const *tiers = drey_cpu_tiers();
    int n_tiers = count_tiers();
    drey_engine_options o = plain();
    writing_run(&plainly, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
        char what[80];
        o = with_file(&files[i], path, DREY_EXIT_FAST);
        write_with(&want, &o, NULL, -1, NULL);
        assert_true(want.exits.looks > 0);
        assert_true(want.exits.left > 0 || !files[i].leaves);
        int64_t n_exact = 0, left_exact = 0;
        for (int n = i % EVERY; n < 2 * n_tiers; n += EVERY) {
            o.exit = n % 2 ? DREY_EXIT_FAST : DREY_EXIT_EXACT;
            o.cpu_tier = tiers[n / 2];
            o.n_threads = 1 + n / 2 % 2;
            write_with(&got, &o, NULL, shares[n % 3], NULL);
            snprintf(what, sizeof what, "file %d, exits %s, tier %s, share %g", i,
                     drey_exit_name(o.exit), o.cpu_tier, shares[n % 3]);
            must_be_same(n % 2 ? &want : &plainly, &got, what);
            if (n % 2)
                assert_memory_equal(got.exits.at_layer, want.exits.at_layer,
                                    sizeof want.exits.at_layer);
            n_exact += n % 2 == 0;
            left_exact += n % 2 == 0 ? got.exits.left : 0;
        }
        assert_true(n_exact == 0 || left_exact > 0 || !files[i].leaves);
    }
}

/* ---- Scores of a given text ---- */

enum { N_SCORED = N_PROMPT + N_TEXT };

/* A session whose weights have been read, so that the first token after a single one is a turn's;
 * what lookup remembers of that is the same in each. */
static drey_session *open_that_read(const drey_engine_options *o)
{
    writing first = {.n_ids = 0};
    drey_session *s = open_alone(o, NULL);
    writing_continue(&first, s, prompt, N_PROMPT, 1, NULL);
    drey_session_reset(s);
    return s;
}

/* A text that fast exits wrote is scored as it was written: the same passes stop at the same
 * layers, and each token is the likeliest. */
TEST(a_written_text_is_scored_as_it_was_written)
{
    drey_exit_score score[N_TEXT];
    int64_t left = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        writing w = {.n_ids = 0};
        int32_t ids[N_TEXT + 1] = {prompt[0]};
        if (files[i].by.policy == DREY_POLICY_OPTIMAL)
            continue;
        drey_engine_options o = with_file(&files[i], temp_path("source"), DREY_EXIT_FAST);
        drey_session *s = open_that_read(&o);
        drey_generate_options g = writing_into(&w, N_TEXT);
        g.ignore_eos = false; /* tokens that end a text do not leave */
        MUST(drey_session_generate, s, ids, 1, &g, NULL);
        drey_session_exits(s, &w.exits);
        close_alone(&s);
        assert_true(w.n_ids > 1);
        memcpy(ids + 1, w.ids, (size_t)w.n_ids * sizeof *ids);
        s = open_that_read(&o);
        MUST(drey_session_score_exits, s, ids, (size_t)w.n_ids + 1, score);
        drey_exits exits;
        drey_session_exits(s, &exits);
        for (int32_t k = 0; k < w.n_ids; k++)
            assert_int_equal(score[k].early_top, ids[k + 1]);
        if (w.n_ids == N_TEXT) { /* else one more token ended it */
            assert_memory_equal(exits.at_layer, w.exits.at_layer, sizeof exits.at_layer);
            assert_int_equal(exits.compared, w.exits.compared);
            assert_int_equal(exits.agreed, w.exits.agreed);
        }
        left += exits.left;
        close_alone(&s);
    }
    assert_true(left > 0);
}

/* [layer] of ids[i + 1] after so many layers, by a pass of one row after another. */
typedef struct layer_scores {
    float logprob[N_LAYERS + 1];
    int32_t top[N_LAYERS + 1];
} layer_scores;

static void take_layer(const drey_session *s, layer_scores *to, int32_t layer, const float *logits,
                       int32_t next)
{
    int32_t top = 0;
    for (int32_t id = 1; id < tokenizer_n_vocab(target->tokenizer); id++)
        top = logits[id] > logits[top] ? id : top;
    to->top[layer] = top;
    to->logprob[layer] = logprob_of(s, logits, next);
}

static void look_at_layers(drey_session *s, const int32_t *ids, int32_t n, layer_scores *out)
{
    const int32_t only = 0;
    for (int32_t i = 0; i + 1 < n; i++) {
        pass_row row = {.token = ids[i], .parent = -1};
        pass_group group = {.cache = &s->target_cache, .rows = &row, .n = 1, .head = HEAD_ALL};
        model_pass p;
        pass_state state = PASS_CONTINUES;
        MUST(pass_begin, &p, &s->target, &group, 1);
        while (state != PASS_DONE) {
            MUST(pass_step, &p, 0, &state);
            if (state == PASS_CONTINUES && pass_at_layer(&p) && pass_layers_done(&p) > 0)
                take_layer(s, &out[i], pass_layers_done(&p), pass_look_head(&p, &only, 1),
                           ids[i + 1]);
        }
        MUST(pass_end, &p);
        take_layer(s, &out[i], N_LAYERS, group.logits, ids[i + 1]);
        cache_commit(&s->target_cache, NULL, 1);
    }
    drey_session_reset(s);
}

/* Returns how many left. */
static int32_t check_scores(const drey_exit_score *score, const layer_scores *layers,
                            const float *logprob, int32_t n, const judged *j)
{
    int32_t n_left = 0;
    for (int32_t i = 0; i + 1 < n; i++) {
        int32_t layer = score[i].n_layers;
        assert_true(layer >= j->first && layer <= N_LAYERS);
        assert_memory_equal(&score[i].whole, &logprob[i], sizeof *logprob);
        assert_memory_equal(&score[i].early, &layers[i].logprob[layer], sizeof *logprob);
        assert_int_equal(score[i].whole_top, layers[i].top[N_LAYERS]);
        assert_int_equal(score[i].early_top, layers[i].top[layer]);
        n_left += layer < N_LAYERS;
    }
    return n_left;
}

/* Of a text that it would not have written: each score is that of the layer where the pass ended.
 * With a threshold that nothing exceeds, all are the whole model's. */
TEST(scores_are_those_of_the_layer_where_a_token_left)
{
    static drey_exit_score score[N_SCORED];
    static layer_scores layers[N_SCORED];
    static float logprob[N_SCORED];
    int32_t ids[N_SCORED];
    for (int32_t i = 0; i < N_SCORED; i++)
        ids[i] = i % 3 ? prompt[i % N_PROMPT] : prompt[i / 3 % N_PROMPT];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].by.policy == DREY_POLICY_OPTIMAL)
            continue;
        drey_engine_options o = with_file(&files[i], temp_path("source"), DREY_EXIT_FAST);
        for (int never = 0; never < 2; never++) {
            o.exit_threshold = never ? 1 : 0.02f;
            o.n_threads = 1 + (int32_t)i % 2;
            drey_session *s = open_alone(&o, NULL);
            double whole = 0, early = 0;
            MUST(drey_session_score, s, ids, N_SCORED, logprob);
            look_at_layers(s, ids, N_SCORED, layers);
            MUST(drey_session_score_exits, s, ids, N_SCORED, score);
            int32_t n_left = check_scores(score, layers, logprob, N_SCORED, &files[i]);
            for (int32_t k = 0; k < N_SCORED - 1; k++) {
                whole += (double)score[k].whole;
                early += (double)score[k].early;
            }
            assert_true(never || n_left > 0 || !files[i].leaves);
            assert_true(!never || n_left == 0);
            assert_true((n_left == 0) == (whole == early));
            close_alone(&s);
        }
    }
}

TEST(scores_with_exits_need_fast_ones_and_one_token_per_pass)
{
    static const char *const needs = "fast exits and one token per pass";
    drey_exit_score score[N_PROMPT];
    const engine_hooks hooks = {.exit_here = exit_here, .exit_user = &oracles[2]};
    drey_engine_options options[] = {plain(), with_exits(&guessers[0], DREY_EXIT_EXACT),
                                     with_exits(&guessers[4], DREY_EXIT_FAST)};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        drey_session *s = open_alone(&options[i], &hooks);
        REFUSED(DREY_ERR_USAGE, needs, drey_session_score_exits, s, prompt, N_PROMPT, score);
        close_alone(&s);
    }
    drey_engine_options o = with_exits(&guessers[0], DREY_EXIT_FAST);
    drey_session *s = open_alone(&o, &hooks);
    REFUSED(DREY_ERR_USAGE, "at least two", drey_session_score_exits, s, prompt, 1, score);
    MUST(drey_session_score_exits, s, prompt, N_PROMPT, score);
    assert_true(session_is_valid(s) && s->n_timeline == 0 && s->deferred.n == 0);
    close_alone(&s);
}

/* ---- How texts end ---- */

typedef struct text {
    writing w; /* first: what callbacks get */
    seen_text seen;
} text;

static void keep_event(void *user, const drey_event *e)
{
    seen_text_take(&((text *)user)->seen, e);
}

typedef struct ending {
    int32_t n_predict, refuse_at, n_context;
    const char *stop;
    bool eos;
} ending;

typedef struct kept {
    int32_t tokens[256], n, n_turns, skip; /* counts of turns after the first `skip` */
} kept;

static void keep_turn(void *user, const drey_trace_turn *turn)
{
    kept *k = user;
    if (k->n_turns++ < k->skip)
        return;
    int32_t end = k->n + turn->n_written;
    for (int32_t i = 1; i < turn->n_nodes && k->n < end; i++)
        if (turn->nodes[i].accepted)
            k->tokens[k->n++] = turn->nodes[i].token;
    if (k->n < end)
        k->tokens[k->n++] = turn->next;
    assert_int_equal(k->n, end);
}

/* The kept turns are those of the verified text, with an end's token beyond it. The first token may
 * be the prompt's. */
static int32_t check_turns(const drey_session *s, const text *t, int32_t skip)
{
    static kept k;
    k = (kept){.skip = skip};
    drey_session_trace(s, &(drey_trace_visitor){.turn = keep_turn, .user = &k});
    int32_t first = k.n < t->w.n_ids || k.tokens[0] != t->w.ids[0];
    int32_t n = t->w.n_ids > first ? t->w.n_ids - first : 0;
    assert_true(k.n >= n && k.n <= n + 1);
    assert_memory_equal(k.tokens, t->w.ids + first, (size_t)n * sizeof *t->w.ids);
    return k.n_turns;
}

/* Two texts of a session: the second one continues where the first one ended. */
static void write_twice(text out[2], const drey_engine_options *options, oracle *says,
                        const ending *end)
{
    drey_error err = {0};
    drey_engine_options o = *options;
    const engine_hooks hooks = {.exit_here = says ? exit_here : NULL, .exit_user = says};
    int32_t n_turns = 0;
    o.n_context = end->n_context;
    o.trace_spans = 20000;
    engine_place p = place_open(&o, &hooks);
    drey_session *s = p.session[0];
    memset(out, 0, 2 * sizeof *out);
    for (int i = 0; i < 2; i++) {
        writing *w = &out[i].w;
        drey_generate_options g = writing_into(w, end->n_predict);
        g.ignore_eos = !end->eos;
        g.stops = &end->stop;
        g.n_stops = end->stop != NULL;
        g.on_event = keep_event;
        w->refuse_at = end->refuse_at;
        drey_status status =
            drey_session_generate(s, prompt, i ? 0 : N_PROMPT, &g, &w->stats, &err);
        if (status != DREY_ERR_CONTEXT)
            must(status, &err);
        if (status == DREY_OK)
            n_turns = check_turns(s, &out[i], n_turns);
        assert_int_equal(w->stats.generated_tokens, w->n_ids);
        assert_int_equal(out[i].seen.n_shown, out[i].seen.n_verified);
        assert_int_equal(out[i].seen.n_verified, w->n_bytes);
        assert_memory_equal(out[i].seen.shown, w->text, w->n_bytes);
        assert_true(session_is_valid(s) && s->deferred.n == 0);
        assert_int_equal(p.engine->target.weights.pass.hold, -1); /* no read waits for others */
    }
    place_close(&p);
}

TEST(texts_end_as_they_would)
{
    static text want[2], got[2];
    static const ending endings[] = {
        {1, 0, 96, NULL, false},  {2, 0, 96, NULL, false},  {7, 0, 96, NULL, false},
        {8, 0, 96, NULL, true},   {9, 0, 96, NULL, false},  {20, 5, 96, NULL, false},
        {20, 0, 17, NULL, false}, {20, 0, 24, NULL, false}, {20, 0, 96, "e", false},
        {30, 0, 96, "a", true},
    };
    int n_cases = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        drey_engine_options o = plain();
        write_twice(want, &o, NULL, &endings[i]);
        for (int g = (int)i % EVERY; g < N_GUESSERS; g += EVERY) {
            oracle *says = &oracles[1 + (g + (int)i) % (N_ORACLES - 1)];
            o = with_exits(&guessers[g], DREY_EXIT_EXACT);
            write_twice(got, &o, says, &endings[i]);
            for (int k = 0; k < 2; k++) {
                must_be_same(&want[k].w, &got[k].w, drey_policy_name(o.policy));
                assert_int_equal(got[k].w.stats.finish, want[k].w.stats.finish);
            }
            if (n_cases++ % EVERY)
                continue;
            o.exit = DREY_EXIT_FAST;
            write_twice(got, &o, says, &endings[i]);
        }
    }
}

/* ---- Names, and what is refused (test_config.c has what does not go together) ---- */

TEST(exits_have_names)
{
    for (int i = 0; i <= DREY_EXIT_EXACT; i++) {
        drey_exit found = DREY_EXIT_OFF;
        assert_true(drey_exit_parse(drey_exit_name((drey_exit)i), &found) && (int)found == i);
    }
    assert_null(drey_exit_name(DREY_EXIT_EXACT + 1));
}

/* A file may say that it is this model's, and hold those of another. */
TEST(predictors_of_other_layers_are_refused)
{
    static const int32_t n_layers[] = {N_LAYERS - 1, N_LAYERS, N_LAYERS + 1, EXIT_LAYERS};
    const char *path = temp_path("other.drey-exit");
    for (int i = 0; i < 4; i++) {
        drey_engine *e = NULL;
        drey_error err = {0};
        exit_predictors p;
        make_predictors(&p, n_layers[i], 2, 12, 4, 7);
        p.source = DREY_EXIT_FROM_TARGET;
        p.source_layer = 1;
        MUST(exit_write, &p, path, target->file);
        exit_close(&p);
        drey_engine_options o = with_exits(&guessers[0], DREY_EXIT_EXACT);
        o.exit_file = path;
        drey_status status = drey_engine_open(&e, &o, &err);
        if (n_layers[i] == N_LAYERS)
            must(status, &err);
        else
            must_refuse(status, DREY_ERR_MISMATCH, "and this one has 6", &err);
        assert_true(status == DREY_OK || err.hint == DREY_HINT_EXIT_FILE);
        drey_engine_close(&e);
    }
}

/* Three passes of 100 bytes at most that used 210. */
TEST(the_ceiling_counts_what_passes_read)
{
    assert_int_equal(statistics_pass_bytes(100, true, 210, 3), 70);
    assert_int_equal(statistics_pass_bytes(100, false, 210, 3), 100);
    assert_int_equal(statistics_pass_bytes(100, true, 210, 0), 100);
    assert_int_equal(statistics_pass_bytes(100, true, 400, 3), 100); /* read ahead */
}

/* Drafts that share a name are different drafts, and the message names both. */
TEST(predictors_know_their_draft)
{
    const char *path = temp_path("draft.drey-exit");
    exit_predictors p;
    uint64_t identity;
    MUST(model_identity, draft->file, &identity);
    const struct {
        uint64_t identity;
        const char *file, *name, *says;
    } cases[] = {
        {identity, "draft.gguf", "toy", NULL},
        {identity + 1, "other.gguf", "toy",
         "guesses of other.gguf (\"toy\"), and draft.gguf (\"toy\") "
         "guesses here; take the former"},
        {identity + 1, "", "",
         "of a draft (a model without a name), and draft.gguf (\"toy\") guesses"},
        {identity + 1, "draft.gguf", "toy", "guesses here, which is another model of that name;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drey_engine *e = NULL;
        make_predictors(&p, N_LAYERS, 2, 16, 4, 7);
        p.drafter_identity = cases[i].identity;
        snprintf(p.drafter_file, sizeof p.drafter_file, "%s", cases[i].file);
        snprintf(p.drafter, sizeof p.drafter, "%s", cases[i].name);
        MUST(exit_write, &p, path, target->file);
        exit_close(&p);
        drey_engine_options o = with_exits(&guessers[2], DREY_EXIT_EXACT);
        o.exit_file = path;
        if (cases[i].says)
            must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, cases[i].says);
        else
            MUST(drey_engine_open, &e, &o);
        drey_engine_close(&e);
    }
}

TEST_GROUP(open_models, close_models)
