/* drey tune -m: what drafting with a pair of models costs and is worth here, kept for drey run. */
#include "cli/commands/cmd_tune.h"

#include "cli/files/cache_folder.h"
#include "cli/files/json_file.h"
#include "cli/commands/counted_work.h"
#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/terminal.h"
#include "tune/measured.h"

#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 1024 }; /* context that -d auto is chosen for: a text of usual length */

typedef struct session {
    const cli_settings *settings;
    models models;
    prompt_list prompts;
    drey_tune_prompt *list; /* [prompts.n] */
    progress bar;
    counted_work work;
    char stage[120]; /* "measuring passes of 1 to 64 rows" */
} session;

static void show_stage(void *user, const char *what)
{
    session *t = user;
    progress_clear(&t->bar);
    counted_work_end(&t->work);
    snprintf(t->stage, sizeof t->stage, "measuring %s", what);
    if (!t->settings->quiet && !terminal_attended())
        fprintf(stderr, "%s\n", t->stage);
    counted_work_show(&t->work, t->stage, 0);
}

static void show_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    session *t = user;
    if (what == DREY_PROGRESS_MEASURE) {
        counted_work_show(&t->work, t->stage, (double)done / (double)total);
        return;
    }
    counted_work_end(&t->work); /* the stage's time begins after loading */
    progress_report(&t->bar, what, done, total);
}

/* Clears the lines that a stage left on the terminal. */
static void clear_lines(session *t)
{
    progress_clear(&t->bar);
    counted_work_end(&t->work);
}

static drey_status open_all(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    TRY(models_open(&t->models, s, err));
    TRY(models_choose_draft(&t->models, s, CONTEXT, err));
    if (!s->quiet)
        report_draft(page_of(stderr), t->models.why);
    return DREY_OK;
}

static drey_status take_prompts(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    TRY(prompts_read(&t->prompts, s->prompts, tuning_prompts, s->common.memory_bytes, err));
    TRY(prompts_tokenize(&t->prompts, t->models.target, err));
    t->list = calloc((size_t)t->prompts.n, sizeof *t->list);
    if (!t->list)
        FAIL(err, DREY_ERR_MEMORY, "out of memory while reading the prompts");
    for (int i = 0; i < t->prompts.n; i++)
        t->list[i] = (drey_tune_prompt){t->prompts.prompts[i].ids, t->prompts.prompts[i].n_ids};
    return DREY_OK;
}

/* ---- Units ---- */

typedef struct stage_words {
    session *session;
    const char *form; /* format of a number, and the ending of its plural */
} stage_words;

static void show_number(void *user, int32_t n)
{
    const stage_words *w = user;
    char what[80];
    snprintf(what, sizeof what, w->form, n, n == 1 ? "" : "s");
    show_stage(w->session, what);
}

static int32_t attending_of(const drey_units_report *r)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_units; i++)
        n += r->units[i].attends > 0;
    return n;
}

/* Returns the positions that the model was made for, without the tree's rows. */
static int32_t positions_of(const drey_model *target, int32_t most)
{
    enum { USUAL = 4096, TREE = 65 };
    drey_model_info info;
    drey_model_describe(target, &info);
    most = most ? most : USUAL;
    return info.n_context_train > 0 && info.n_context_train - TREE < most
               ? info.n_context_train - TREE
               : most;
}

/* Attention's boundaries are in the units' shares as well. */
static drey_status measure_boundaries(session *t, drey_engine_options *options, drey_error *err)
{
    drey_boundaries_report *out = &t->models.attention;
    drey_unit_shares *shares = &t->models.units.shares;
    stage_words words = {t, "units, attention after %d position%s"};
    const drey_boundaries_options attention = {
        .most_positions = positions_of(t->models.target, t->settings->common.n_context),
        .stage = show_number,
        .user = &words};
    if (attention.most_positions < DREY_UNIT_CONTEXT) {
        complain("attention's boundary was not measured: attention is divided after %d "
                 "positions and more, and the context is to hold %d",
                 DREY_UNIT_CONTEXT, attention.most_positions);
        return DREY_OK;
    }
    options->unit_shares = shares;
    drey_status status = drey_tune_boundaries(options, &attention, out, err);
    if (status == DREY_ERR_MEMORY) {
        complain("attention's boundary was not measured after %d positions: %s",
                 attention.most_positions, err->message);
        return DREY_OK;
    }
    shares->n_boundaries = out->n_contexts;
    for (int32_t i = 0; i < shares->n_boundaries; i++)
        shares->boundary[i] = out->contexts[i].boundary;
    return status;
}

static drey_status measure_division(session *t, drey_engine_options *options, drey_error *err)
{
    stage_words words = {t, "units, passes of %d row%s"};
    const drey_units_options products = {.stage = show_number, .user = &words};
    t->models.attention = (drey_boundaries_report){.n_contexts = 0};
    TRY(drey_tune_units(options, &products, &t->models.units, err));
    return attending_of(&t->models.units) < 2 ? DREY_OK : measure_boundaries(t, options, err);
}

static drey_engine_options options_of(session *t)
{
    drey_engine_options options = models_engine_options(&t->models, t->settings, CONTEXT);
    options.progress = show_progress;
    options.progress_user = t;
    return options;
}

/* First, as all else is measured with what came out. */
static drey_status measure_units(session *t, drey_error *err)
{
    char folder[PATH_MAX];
    models *m = &t->models;
    m->divided = false;
    drey_engine_options options = options_of(t);
    drey_status status = measure_division(t, &options, err);
    clear_lines(t);
    TRY(status);
    TRY(cache_folder_find(folder, err));
    TRY(drey_units_store(&options, folder, &m->units, &m->attention, err));
    m->divided = true;
    return DREY_OK;
}

/* ---- All of it ---- */

static drey_tune_options tune_options(session *t)
{
    return (drey_tune_options){
        .prompts = t->list, .n_prompts = t->prompts.n, .stage = show_stage, .user = t};
}

/* Plans go by them, for any draft. */
static drey_status measure_routes(session *t, drey_error *err)
{
    char folder[PATH_MAX];
    models *m = &t->models;
    m->routed = false;
    const drey_engine_options options = options_of(t);
    const drey_tune_options tune = tune_options(t);
    drey_status status = drey_tune_routes(&options, &tune, &m->routes, err);
    clear_lines(t);
    TRY(status);
    TRY(cache_folder_find(folder, err));
    TRY(drey_routes_store(m->target, folder, &m->routes, err));
    m->routed = true;
    return DREY_OK;
}

static drey_status measure(session *t, drey_pair_report *report, drey_error *err)
{
    char folder[PATH_MAX];
    drey_experts experts;
    TRY(take_prompts(t, err));
    if (!t->settings->quiet)
        tune_warn_of_load();
    if (t->settings->common.units)
        TRY(measure_units(t, err));
    if (drey_model_experts(t->models.target, &experts))
        TRY(measure_routes(t, err));
    const drey_engine_options options = options_of(t);
    const drey_tune_options tune = tune_options(t);
    drey_status status = drey_tune_pair(&options, &tune, report, err);
    clear_lines(t);
    TRY(status);
    TRY(cache_folder_find(folder, err));
    return drey_profile_store(&options, folder, report, err);
}

/* Loads the earlier measurements. */
static drey_status load(session *t, drey_pair_report *report, drey_error *err)
{
    char folder[PATH_MAX], line[TUNE_LINE_BYTES];
    const drey_engine_options options = options_of(t);
    if ((t->settings->common.units && !t->models.divided) ||
        !models_loaded(drey_profile_load(&options, cache_folder(folder), report, err), err,
                       models_tune_line(&t->models, t->settings, line)))
        FAIL(err, DREY_ERR_IO,
             "nothing was measured of these models with this tier and number of threads, or with "
             "these units: %s does that",
             models_tune_line(&t->models, t->settings, line));
    return DREY_OK;
}

static drey_status show(session *t, const drey_pair_report *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    const models *m = &t->models;
    if (s->common.units)
        units_table(json_only ? stderr : stdout, &m->units, &m->attention);
    if (m->routed)
        routes_table(json_only ? stderr : stdout, &m->routes);
    tune_table(json_only ? stderr : stdout, report);
    tune_verdict(json_only ? stderr : stdout, report);
    if (s->tune.show && !s->quiet)
        TRY(tune_show_files(stderr, t->models.target, err));
    if (!s->json)
        return DREY_OK;
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    const drey_engine_options options = options_of(t);
    profile_put(w, &options, report);
    if (m->routed) {
        json_put_object(w, "routes");
        routes_put(w, m->target, &m->routes);
        json_close(w, '}');
    }
    if (s->common.units) {
        json_put_object(w, "division");
        units_put(w, &options, &m->units, &m->attention);
        json_close(w, '}');
    }
    return json_write(s->json, &b, err);
}

static drey_status forget(session *t, drey_error *err)
{
    TRY(drey_model_open(&t->models.target, t->settings->common.model, err));
    return tune_forget(t->models.target, err);
}

static drey_status tune_all(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    drey_pair_report report;
    TRY(json_check_path(s->json, err));
    if (s->tune.forget)
        return forget(t, err);
    TRY(open_all(t, err));
    TRY(s->tune.show ? load(t, &report, err) : measure(t, &report, err));
    return show(t, &report, err);
}

drey_status tune_models(const cli_settings *s, drey_error *err)
{
    session t = {.settings = s, .bar.quiet = s->quiet, .work.quiet = s->quiet};
    drey_status status = tune_all(&t, err);
    free(t.list);
    prompts_free(&t.prompts);
    models_close(&t.models);
    return status;
}
