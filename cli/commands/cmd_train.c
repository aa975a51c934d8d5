/* drey train: side files that a model's own text teaches. */
#include "cli/commands/cmd_train.h"

#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

static drey_status read_prompts(training *t, drey_error *err)
{
    const cli_settings *s = t->settings;
    TRY(prompts_read(&t->list, s->prompts, training_prompts, s->common.memory_bytes, err));
    TRY(prompts_tokenize(&t->list, t->models.target, err));
    t->prompts = calloc((size_t)t->list.n, sizeof *t->prompts);
    if (!t->prompts)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the prompts");
    for (int i = 0; i < t->list.n; i++)
        t->prompts[i] =
            (drey_train_prompt){.ids = t->list.prompts[i].ids, .n_ids = t->list.prompts[i].n_ids};
    return DREY_OK;
}

/* Opens the models, reads the prompts (--prompts, or the usual ones; for heads and layers none) and
 * tokenizes them. training_close takes a half-opened one as well. */
static drey_status training_open(training *t, const training_kind *kind, drey_error *err)
{
    const cli_settings *s = t->settings;
    size_t n = strlen(s->common.model) + strlen(kind->suffix) + 1;
    t->output = s->output ? strdup(s->output) : malloc(n);
    if (!t->output)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the name of a file");
    if (!s->output)
        snprintf(t->output, n, "%s%s", s->common.model, kind->suffix);
    TRY(json_check_path(s->json, err));
    TRY(models_open(&t->models, s, err));
    if (s->command != CLI_TRAIN_EXIT && !s->prompts)
        return DREY_OK; /* the model asks itself */
    return read_prompts(t, err);
}

static void training_close(training *t)
{
    free(t->prompts);
    free(t->output);
    prompts_free(&t->list);
    models_close(&t->models);
}

static drey_status write_json(const training *t, const training_kind *kind, const void *report,
                              drey_error *err)
{
    json_buffer b;
    json_writer *w = json_report_begin(&b);
    json_put_text(w, "path", t->output);
    json_put_number(w, "seconds", t->seconds);
    kind->put(t, report, w);
    return json_write(t->settings->json, &b, err);
}

static drey_status train_all(training *t, const training_kind *kind, void *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    if (!report)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for a report");
    TRY(training_open(t, kind, err));
    signals_note();
    double begun_s = progress_clock_s();
    drey_status status = kind->train(t, report, err);
    t->seconds = progress_clock_s() - begun_s;
    progress_clear(&t->progress);
    TRY(status);
    if (!s->quiet)
        kind->show(t, report, s->json && strcmp(s->json, "-") == 0 ? stderr : stdout);
    return s->json ? write_json(t, kind, report, err) : DREY_OK;
}

int train_main(const cli_settings *settings)
{
    const training_kind *kind = settings->command == CLI_TRAIN_MEDUSA  ? &train_medusa
                                : settings->command == CLI_TRAIN_EAGLE ? &train_eagle
                                                                       : &train_exit;
    training t = {.settings = settings, .progress.quiet = settings->quiet};
    drey_error err = {0};
    void *report = calloc(1, kind->report_bytes);
    drey_status status = train_all(&t, kind, report, &err);
    if (status == DREY_ERR_CANCELLED && kind->keeps && !settings->quiet)
        complain_error(&err);
    training_close(&t);
    free(report);
    return exit_with(status, &err);
}
