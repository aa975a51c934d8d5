/* drey tune -m: what drafting with a pair of models costs and is worth here, kept for drey run. */
#include "cli/commands/cmd_tune.h"

#include "cli/commands/auto_draft.h"
#include "cli/files/cache_folder.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/files/profile_file.h"
#include "cli/terminal/progress.h"
#include "cli/files/prompts.h"
#include "cli/terminal/report.h"
#include "cli/terminal/terminal.h"
#include "cli/files/units_file.h"

#include <stdlib.h>
#include <string.h>

/* What people ask models for, where no prompts are named: code, chat, sums and prose. */
static const char calibration[] =
    "{\"turns\": [\"Write a Python function that returns the n-th Fibonacci number, with "
    "tests.\"]}\n"
    "{\"turns\": [\"Explain to a child why the sky is blue.\"]}\n"
    "{\"turns\": [\"A train leaves at 9:40 and drives 150 km at 60 km/h. When does it arrive?\"]}\n"
    "{\"turns\": [\"Write a C function that reverses a linked list in place.\"]}\n"
    "{\"turns\": [\"Plan a weekend in Lisbon for two people who like food and walking.\"]}\n"
    "{\"turns\": [\"Write a short story about a squirrel who builds a nest high in a tree.\"]}\n"
    "{\"turns\": [\"Write a SQL query for the ten customers with the largest orders, and say how "
    "it "
    "works.\"]}\n"
    "{\"turns\": [\"What are the arguments for and against working from home?\"]}\n"
    "{\"turns\": [\"If 3 pens and 2 books cost 23 and a book costs 7, what does a pen cost?\"]}\n"
    "{\"turns\": [\"Translate into French: The library opens at nine and closes at six.\"]}\n"
    "{\"turns\": [\"Summarise how photosynthesis works in five sentences.\"]}\n"
    "{\"turns\": [\"Give me a regular expression for dates such as 2024-05-31, and explain "
    "it.\"]}\n";

enum { CONTEXT = 1024 }; /* that -d auto is chosen for: a text of usual length */

typedef struct session {
    const cli_settings *settings;
    models models;
    prompt_list prompts;
    drey_tune_prompt *list; /* [prompts.n] */
    progress bar;
    units_measured units; /* with --units */
} session;

static void tell_stage(void *user, const char *what)
{
    session *t = user;
    progress_clear(&t->bar);
    if (!t->settings->quiet)
        fprintf(stderr, "measuring %s\n", what);
}

static drey_status open_all(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    TRY(models_open(&t->models, s, err));
    auto_draft_choose(&t->models, s, CONTEXT);
    if (!s->quiet)
        report_draft(stderr, t->models.why);
    return DREY_OK;
}

static drey_status take_prompts(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    TRY(s->prompts ? prompts_read(&t->prompts, s->prompts, s->memory_bytes, err)
                   : prompts_parse(&t->prompts, calibration, err));
    TRY(prompts_tokenize(&t->prompts, t->models.target, err));
    t->list = calloc((size_t)t->prompts.n, sizeof *t->list);
    if (!t->list)
        FAIL(err, DREY_ERR_MEMORY, "out of memory while reading the prompts");
    for (int i = 0; i < t->prompts.n; i++)
        t->list[i] = (drey_tune_prompt){t->prompts.prompts[i].ids, t->prompts.prompts[i].n_ids};
    return DREY_OK;
}

/* First, as all else is measured with what came out. */
static drey_status measure_units(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    drey_engine_options options = models_engine_options(&t->models, s, CONTEXT);
    const units_steps steps = {.stage = tell_stage, .user = t, .most_positions = s->n_context};
    options.progress = progress_report;
    options.progress_user = &t->bar;
    drey_status status = units_measure(t->models.target, &options, &steps, &t->units, err);
    progress_clear(&t->bar);
    TRY(status);
    TRY(units_save(t->models.target, s, &t->units, err));
    t->models.divided = true;
    t->models.shares = t->units.products.shares;
    return DREY_OK;
}

static drey_status measure(session *t, drey_pair_report *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    char name[100];
    TRY(take_prompts(t, err));
    if (s->units)
        TRY(measure_units(t, err));
    drey_engine_options options = models_engine_options(&t->models, s, CONTEXT);
    options.progress = progress_report;
    options.progress_user = &t->bar;
    drey_tune_options tune = {
        .prompts = t->list, .n_prompts = t->prompts.n, .stage = tell_stage, .user = t};
    drey_status status = drey_tune_pair(&options, &tune, report, err);
    progress_clear(&t->bar);
    TRY(status);
    if (!profile_name(name, sizeof name, &t->models, s))
        FAIL(err, DREY_ERR_IO, "cannot read the models again to know them by");
    json_buffer b;
    profile_put(json_buffer_begin(&b), &t->models, s, report);
    return cache_write(name, &b, err);
}

static drey_status show(session *t, const drey_pair_report *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    if (s->units)
        units_table(json_only ? stderr : stdout, &t->units);
    tune_table(json_only ? stderr : stdout, report);
    if (report->n_tokens > 0 && !s->quiet)
        fputs("runs of these models begin with the times and shares above, in the place of what is "
              "assumed of any machine\n",
              stderr);
    if (!s->json)
        return DREY_OK;
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    profile_put(w, &t->models, s, report);
    if (s->units) {
        json_put_object(w, "division");
        units_put(w, s, &t->units);
        json_close(w, '}');
    }
    return json_write(s->json, &b, err);
}

static drey_status tune_all(session *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    drey_pair_report report;
    TRY(json_check_path(s->json, err));
    TRY(open_all(t, err));
    if (!s->show)
        TRY(measure(t, &report, err));
    else if ((s->units && !units_load(t->models.target, s, &t->units)) ||
             !profile_load(&t->models, s, &report))
        FAIL(err, DREY_ERR_IO,
             "nothing was measured of these models with this tier and number of threads, or with "
             "these units: drey tune -m without --show does that");
    return show(t, &report, err);
}

drey_status tune_models(const cli_settings *s, drey_error *err)
{
    session t = {.settings = s, .bar.quiet = s->quiet};
    drey_status status = tune_all(&t, err);
    free(t.list);
    prompts_free(&t.prompts);
    models_close(&t.models);
    return status;
}
