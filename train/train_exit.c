/* drey_train_exit: gathers, learns, judges, writes. See drey/train.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/path.h"
#include "draft/drafter_kind.h"
#include "engine/config.h"
#include "engine/engine.h"
#include "exit/exit_file.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "train/exit_samples.h"
#include "train/prompt_check.h"
#include "weights/identity.h"

enum {
    FIT_SHARE = 16, /* progress steps for training, of those of all prompts */
    USUAL_PREDICT = 128,
    MOST_POSITIONS = 1 << 24
};

typedef struct trainer {
    const drey_train_exit_options *o;
    drey_train_exit_report *report;
    exit_samples samples;
    arena memory;                     /* the samples' */
    exit_predictors main, plain, own; /* predictors that judge the file's, and others */
    exit_predictors whole;            /* the file's: of all prompts */
    int32_t n_predict;
    int64_t n_done, n_text, n_all; /* steps: so far, of all texts, of all */
    int64_t prompt_end;            /* n_done at the end of this prompt */
    int32_t n_fits, n_fitted;
} trainer;

void drey_train_exit_options_init(drey_train_exit_options *options)
{
    *options = (drey_train_exit_options){0};
}

const char *drey_exit_source_name(drey_exit_source source)
{
    return exit_source_name(source);
}

/* ---- Options ---- */

static drey_status check_options(const drey_train_exit_options *o, drey_error *err)
{
    if (!o->engine || !o->engine->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    const drafter_kind *kind = drafter_kind_of(o->engine->drafter);
    if (kind && kind->exit_conflict)
        FAIL(err, DREY_ERR_USAGE,
             "predictors cannot be trained with the drafter \"%s\": %s; name a draft model or "
             "heads, "
             "or let candidates be looked up",
             kind->name, kind->exit_conflict);
    int32_t n_layers = o->engine->target->shape.n_layers;
    if (n_layers < 4 || n_layers > EXIT_LAYERS)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a model of %d layers can have no predictors (4 to %d layers)", n_layers, EXIT_LAYERS);
    if (o->engine->target->shape.streams.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "predictors look at one residual stream between layers, and this model has %d",
             o->engine->target->shape.streams.n);
    if (o->n_hidden < 0 || o->n_hidden > EXIT_HIDDEN)
        FAIL(err, DREY_ERR_USAGE, "predictors of %d hidden units are not possible (1 to %d)",
             o->n_hidden, EXIT_HIDDEN);
    if (!(o->threshold >= 0 && o->threshold <= 1))
        FAIL(err, DREY_ERR_USAGE, "a threshold is a number from 0 to 1");
    if (o->n_predict < 0 || o->n_predict > DREY_MAX_CONTEXT / 2)
        FAIL(err, DREY_ERR_USAGE, "texts of %d tokens are not possible", o->n_predict);
    int64_t n_predict = o->n_predict ? o->n_predict : USUAL_PREDICT;
    if (n_predict * o->n_prompts > MOST_POSITIONS)
        FAIL(err, DREY_ERR_USAGE,
             "%d texts of %lld tokens are too many to train with; take fewer prompts or shorter "
             "texts",
             o->n_prompts, (long long)n_predict);
    return train_check_prompts(o->prompts, o->n_prompts, o->engine->target->shape.n_vocab, err);
}

/* ---- Progress ---- */

static void report_progress(trainer *t)
{
    if (t->o->progress)
        t->o->progress(t->o->user, DREY_PROGRESS_TRAIN, (uint64_t)min_i64(t->n_done, t->n_all),
                       (uint64_t)t->n_all);
}

static bool may_continue(void *user)
{
    const trainer *t = user;
    return !t->o->go_on || t->o->go_on(t->o->user);
}

static void text_progress(void *user, int32_t n)
{
    trainer *t = user;
    t->n_done = min_i64(t->n_done + n, t->prompt_end);
    report_progress(t);
}

static bool fit_progress(void *user, double part)
{
    trainer *t = user;
    double all = (t->n_fitted + part) / t->n_fits;
    t->n_done = t->n_text + (int64_t)(all * (double)(t->n_all - t->n_text));
    report_progress(t);
    return may_continue(t);
}

/* ---- Gathering ---- */

static void loading_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    const trainer *t = user;
    if (t->o->progress && what != DREY_PROGRESS_PROMPT)
        t->o->progress(t->o->user, what, done, total);
}

static drey_status gather_all(trainer *t, drey_engine *e, drey_error *err)
{
    const drey_train_exit_options *o = t->o;
    exit_gatherer g = {
        .samples = &t->samples, .go_on = may_continue, .progress = text_progress, .user = t};
    drey_status status = drey_session_open(&g.session, e, err);
    for (int32_t i = 0; i < o->n_prompts && status == DREY_OK; i++) {
        t->prompt_end = 2 * (int64_t)t->n_predict * (i + 1);
        status = exit_gather(&g, &o->prompts[i], i, t->n_predict, err);
        t->n_done = t->prompt_end; /* a text may have ended early */
        report_progress(t);
    }
    t->report->write_s = (double)g.write_ns * 1e-9;
    t->report->gather_s = (double)g.gather_ns * 1e-9;
    drey_session_close(&g.session);
    return status;
}

/* The engine is closed before training begins, which needs less memory. */
static drey_status gather(trainer *t, drey_error *err)
{
    const drey_train_exit_options *o = t->o;
    drey_engine_options options = *o->engine;
    engine_hooks hooks = {.least_logit_rows = EXIT_LOOK_ROWS, .deferred_rows = 1};
    drey_engine *e = NULL;
    size_t longest = 0;
    int32_t n_layers = options.target->shape.n_layers;
    for (int32_t i = 0; i < o->n_prompts; i++)
        longest = max_size(longest, o->prompts[i].n_ids);
    options.n_context = (int32_t)longest + t->n_predict;
    options.n_sessions = 1;
    /* Trees that depend on time would bring different rows into the draft's slice in each run. */
    options.policy = options.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_AUTO : DREY_POLICY_SEQUENCE;
    options.exit = DREY_EXIT_OFF;
    options.progress = loading_progress;
    options.progress_user = t;
    size_t bytes = exit_samples_bytes(n_layers, o->n_prompts * t->n_predict);
    hooks.more_bytes = bytes;
    TRY(arena_init(&t->memory, bytes, false, err));
    exit_samples_init(&t->samples, n_layers, o->n_prompts * t->n_predict, &t->memory);
    TRY(arena_check(&t->memory, err));
    TRY(engine_open(&e, &options, &hooks, err));
    drey_status status = gather_all(t, e, err);
    drey_engine_close(&e);
    if (status == DREY_OK && t->samples.n == 0)
        FAIL(err, DREY_ERR_USAGE, "the model wrote nothing; give other prompts");
    return status;
}

/* ---- Learning ---- */

static drey_status fit(trainer *t, exit_predictors *p, drey_exit_source source, int32_t n_features,
                       drey_error *err)
{
    const exit_samples *s = &t->samples;
    exit_training training = {
        .p = p, .samples = s, .seed = t->o->seed, .progress = fit_progress, .user = t};
    bool own = source == DREY_EXIT_FROM_TARGET;
    *p = (exit_predictors){.source = source,
                           .source_layer = own ? s->own_layer : 0,
                           .n_layers = s->n_layers,
                           .n_features = n_features,
                           .n_hidden = t->o->n_hidden ? t->o->n_hidden : 64,
                           .threshold = t->o->threshold > 0 ? t->o->threshold : 0.6f};
    p->first = p->source_layer ? p->source_layer + 1 : s->first;
    if (p->first >= p->n_layers)
        p->first = p->source_layer = p->n_layers - 1;
    if (source == DREY_EXIT_FROM_DRAFT) {
        const drey_model *draft = t->o->engine->draft;
        snprintf(p->drafter, sizeof p->drafter, "%s", draft->name);
        snprintf(p->drafter_file, sizeof p->drafter_file, "%s",
                 path_name(gguf_shard_path(draft->file, 0)));
        TRY(model_identity(draft->file, &p->drafter_identity, err));
    }
    TRY(exit_take(p, training.numbers, err));
    TRY(exit_fit(&training, err));
    exit_fit_schedule(p, s);
    t->n_fitted++;
    return DREY_OK;
}

static drey_exit_source source_of(const drey_engine_options *o)
{
    const drafter_kind *kind = drafter_kind_of(o->drafter);
    return kind ? kind->exit_source : DREY_EXIT_FROM_TARGET;
}

static drey_status fit_all(trainer *t, drey_error *err)
{
    drey_exit_source source = source_of(t->o->engine);
    bool guessed = source != DREY_EXIT_FROM_TARGET;
    t->n_fits = guessed ? 4 : 2;
    TRY(fit(t, &t->own, DREY_EXIT_FROM_TARGET, 12, err));
    if (!guessed)
        return DREY_OK;
    TRY(fit(t, &t->plain, source, 12, err));
    return fit(t, &t->main, source, 16, err);
}

/* The predictors by which the file's are judged: they were trained with half of the prompts. */
static const exit_predictors *chosen(const trainer *t)
{
    if (source_of(t->o->engine) == DREY_EXIT_FROM_TARGET)
        return &t->own;
    return t->o->plain ? &t->plain : &t->main;
}

/* After judging, the other half is used for training as well: more prompts make better
 * predictors. */
static drey_status fit_whole(trainer *t, drey_error *err)
{
    exit_predictors *p = &t->whole;
    exit_training training = {.p = p,
                              .samples = &t->samples,
                              .all = true,
                              .seed = t->o->seed,
                              .progress = fit_progress,
                              .user = t};
    *p = *chosen(t);
    p->memory = (arena){0};
    TRY(exit_take(p, training.numbers, err));
    TRY(exit_fit(&training, err));
    t->n_fitted++;
    return DREY_OK;
}

/* ---- Judging ---- */

static double oracle_layers(const exit_samples *s)
{
    double sum = 0;
    int64_t n = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (exit_is_held_out(s, i)) {
            sum += exit_final_layer(s, i);
            n++;
        }
    return n > 0 ? sum / (double)n : s->n_layers;
}

static void add_verdict(trainer *t, const char *name, const exit_rule *rule)
{
    drey_train_exit_report *r = t->report;
    exit_judgement j;
    if (r->n_verdicts == DREY_EXIT_VERDICTS)
        return;
    exit_judge(&t->samples, rule, true, &j);
    double n = j.n > 0 ? (double)j.n : 1, saved = r->n_layers - j.sum_layers / n;
    double possible = r->n_layers - r->oracle_layers;
    drey_exit_verdict *v = &r->verdicts[r->n_verdicts++];
    *v = (drey_exit_verdict){.threshold = (double)rule->threshold,
                             .layers = j.sum_layers / n,
                             .agreement = (double)j.n_agree / n,
                             .share = possible > 0 ? saved / possible : 0,
                             .scores = (double)j.n_scores / n,
                             .refused = (double)j.n_refused / n};
    snprintf(v->name, sizeof v->name, "%s", name);
}

/* One threshold on the probability that a token is final, whatever leaving saves. */
static void judge_unpriced(trainer *t, const exit_predictors *priced)
{
    exit_predictors *p = malloc(sizeof *p);
    if (!p)
        return;
    *p = *priced;
    for (int32_t layer = p->first; layer < p->n_layers; layer++)
        p->mlp[layer].b2 += exit_price(p, layer);
    exit_rule rule = {.p = p, .threshold = 0.9f};
    add_verdict(t, "one threshold for all layers", &rule);
    rule.threshold = 0.95f;
    add_verdict(t, "one threshold for all layers", &rule);
    free(p);
}

static void judge_all(trainer *t)
{
    static const float thresholds[] = {0.4f, 0.5f, 0.7f, 0.8f, 0.9f};
    const exit_predictors *p = chosen(t);
    exit_rule rule = {.p = p, .threshold = p->threshold, .seed = t->o->seed};
    add_verdict(t, "the file's, every layer", &rule);
    rule.layers = EXIT_TWO_LEVELS;
    add_verdict(t, "the file's, two levels", &rule);
    rule.layers = EXIT_RANDOM_LAYERS;
    add_verdict(t, "the file's, random layers", &rule);
    rule.layers = EXIT_EVERY_LAYER;
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        rule.threshold = thresholds[i];
        add_verdict(t, "the file's, every layer", &rule);
    }
    judge_unpriced(t, p);
    if (t->plain.n_layers && p != &t->plain) {
        rule = (exit_rule){.p = &t->plain, .threshold = t->plain.threshold};
        add_verdict(t, "12 features, every layer", &rule);
    }
    rule = (exit_rule){.p = &t->own, .threshold = t->own.threshold};
    add_verdict(t, "the target's own four, every layer", &rule);
    rule = (exit_rule){.p = p, .threshold = 0.9f, .random = true, .seed = t->o->seed};
    add_verdict(t, "random scores", &rule);
}

static bool is_guessed(const exit_samples *s, const exit_predictors *p, int32_t i, int32_t token)
{
    exit_walk w;
    exit_walk_begin(&w, s, p, i);
    return exit_walk_takes(&w, token);
}

/* One layer's figures at the file's threshold, except for the exits. */
static void judge_layer(trainer *t, int32_t layer, drey_exit_layer *out)
{
    const exit_samples *s = &t->samples;
    const exit_predictors *p = chosen(t);
    int64_t n = 0, n_positive = 0, n_high = 0, n_right = 0, n_final = 0, n_own = 0;
    for (int32_t i = 0; i < s->n; i++) {
        float x[EXIT_FEATURES], score = 0;
        exit_walk w;
        if (!exit_is_held_out(s, i))
            continue;
        const exit_look *look = exit_look_at(s, i, layer);
        exit_walk_begin(&w, s, p, i);
        bool asked = layer >= p->first && w.candidates->n > 0;
        for (int32_t before = p->first; asked && before <= layer; before++)
            exit_walk_next(&w, before, x);
        if (asked)
            score = exit_score_of(p, layer, x);
        bool positive = look->head == s->position[i].final && exit_walk_takes(&w, look->head);
        n++;
        n_positive += positive;
        n_high += score > p->threshold;
        n_right += score > p->threshold && positive;
        n_final += exit_final_layer(s, i) <= layer;
        n_own += look->own_hit;
    }
    double all = n > 0 ? (double)n : 1;
    *out = (drey_exit_layer){.layer = layer,
                             .positive = (double)n_positive / all,
                             .precision = n_high > 0 ? (double)n_right / (double)n_high : 1,
                             .recall = n_positive > 0 ? (double)n_right / (double)n_positive : 0,
                             .final_for_good = (double)n_final / all,
                             .recall_own = (double)n_own / all};
}

static void report_layers(trainer *t)
{
    drey_train_exit_report *r = t->report;
    exit_judgement j;
    exit_rule rule = {.p = chosen(t), .threshold = chosen(t)->threshold};
    exit_judge(&t->samples, &rule, true, &j);
    for (int32_t layer = t->samples.first; layer < t->samples.n_layers; layer++) {
        drey_exit_layer *out = &r->layers[r->n_layer_reports++];
        judge_layer(t, layer, out);
        out->exits = j.n > 0 ? (double)j.exits[layer] / (double)j.n : 0;
    }
}

static void report_all(trainer *t)
{
    drey_train_exit_report *r = t->report;
    const exit_samples *s = &t->samples;
    const exit_predictors *p = chosen(t);
    int64_t n_guessed = 0;
    for (int32_t i = 0; i < s->n; i++) {
        bool held = exit_is_held_out(s, i);
        r->n_held += held;
        r->n_train += !held;
        n_guessed += held && is_guessed(s, p, i, s->position[i].final);
    }
    r->source = p->source;
    r->n_layers = s->n_layers;
    r->first = p->first;
    r->source_layer = p->source_layer;
    r->recall_candidates = r->n_held > 0 ? (double)n_guessed / (double)r->n_held : 0;
    r->oracle_layers = oracle_layers(s);
    r->file_bytes = exit_memory_bytes(p);
    report_layers(t);
    judge_all(t);
}

/* ---- All of it ---- */

static drey_status train(trainer *t, const char *path, drey_error *err)
{
    TRY(exit_check_place(path, err));
    TRY(gather(t, err));
    int64_t begun_ns = clock_ns();
    TRY(fit_all(t, err));
    report_all(t);
    TRY(fit_whole(t, err));
    t->report->fit_s = (double)(clock_ns() - begun_ns) * 1e-9;
    t->n_done = t->n_all;
    report_progress(t);
    return exit_write(&t->whole, path, t->o->engine->target->file, err);
}

drey_status drey_train_exit(const drey_train_exit_options *options, drey_train_exit_report *report,
                            drey_error *err)
{
    TRY(check_options(options, err));
    trainer t = {.o = options,
                 .report = calloc(1, sizeof *report),
                 .n_predict = options->n_predict ? options->n_predict : USUAL_PREDICT};
    if (!t.report)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a report");
    t.n_text = 2 * (int64_t)t.n_predict * options->n_prompts;
    t.n_all = t.n_text + t.n_text / FIT_SHARE;
    char *path = options->output ? strdup(options->output)
                                 : path_with(gguf_shard_path(options->engine->target->file, 0),
                                             EXIT_FILE_ENDING);
    float_mode caller = float_mode_enter();
    drey_status status = path ? train(&t, path, err)
                              : error_set(err, DREY_ERR_MEMORY, "no memory for a file's name");
    float_mode_leave(caller);
    free(path);
    if (report)
        *report = *t.report;
    free(t.report);
    exit_predictors *all[] = {&t.main, &t.plain, &t.own, &t.whole};
    for (int i = 0; i < 4; i++)
        exit_close(all[i]);
    arena_free(&t.memory);
    return status;
}
