/* drey train exit: predictors of early exits, and how well they do on prompts that they have not
 * seen. */
#include "cli/commands/cmd_train.h"

#include "cli/terminal/format.h"
#include "cli/files/json_file.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is said ---- */

static void show_layers(const drey_train_exit_report *r, FILE *out)
{
    fprintf(out, "layer  final here   exits  precision  recall  own four\n");
    for (int32_t i = 0; i < r->n_layer_reports; i++) {
        const drey_exit_layer *l = &r->layers[i];
        fprintf(out, "%5d  %8.1f %%  %4.1f %%  %7.1f %%  %4.0f %%  %6.1f %%\n", l->layer,
                100 * l->final_for_good, 100 * l->exits, 100 * l->precision, 100 * l->recall,
                100 * l->recall_own);
    }
}

static void show_verdicts(const drey_train_exit_report *r, FILE *out)
{
    fprintf(out, "%-36s  above  layers  agree     of the oracle  asked  heads in vain\n",
            "held-out prompts");
    for (int32_t i = 0; i < r->n_verdicts; i++) {
        const drey_exit_verdict *v = &r->verdicts[i];
        fprintf(out, "%-36s  %5.2f  %6.2f  %5.1f %%  %11.0f %%  %5.1f  %13.2f\n", v->name,
                v->threshold, v->layers, 100 * v->agreement, 100 * v->share, v->scores, v->refused);
    }
}

static void show(const training *t, const drey_train_exit_report *r, FILE *out)
{
    char size[16], seconds[16];
    fprintf(out, "positions   %lld to learn from, %lld held out\n", (long long)r->n_train,
            (long long)r->n_held);
    fprintf(out, "candidates  of the %s", drey_exit_source_name(r->source));
    if (r->source_layer)
        fprintf(out, " behind %d layers", r->source_layer);
    fprintf(out, ", right in %.1f %%\n", 100 * r->recall_candidates);
    fprintf(out, "oracle      leaves behind %.2f of %d layers\n", r->oracle_layers, r->n_layers);
    show_layers(r, out);
    show_verdicts(r, out);
    fprintf(out, "written     ");
    print_clean(out, t->output);
    fprintf(out, ", %s in memory; took %s\n", format_bytes(size, (double)r->file_bytes),
            format_seconds(seconds, t->seconds));
}

/* ---- JSON ---- */

static void add_layers(const drey_train_exit_report *r, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "by_layer");
    for (int32_t i = 0; i < r->n_layer_reports; i++) {
        const drey_exit_layer *l = &r->layers[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "layer", l->layer);
        cJSON_AddNumberToObject(o, "positive", l->positive);
        cJSON_AddNumberToObject(o, "precision", l->precision);
        cJSON_AddNumberToObject(o, "recall", l->recall);
        cJSON_AddNumberToObject(o, "exits", l->exits);
        cJSON_AddNumberToObject(o, "final_for_good", l->final_for_good);
        cJSON_AddNumberToObject(o, "recall_own", l->recall_own);
        cJSON_AddItemToArray(list, o);
    }
}

static void add_verdicts(const drey_train_exit_report *r, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "held_out");
    for (int32_t i = 0; i < r->n_verdicts; i++) {
        const drey_exit_verdict *v = &r->verdicts[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", v->name);
        cJSON_AddNumberToObject(o, "threshold", v->threshold);
        cJSON_AddNumberToObject(o, "layers", v->layers);
        cJSON_AddNumberToObject(o, "agreement", v->agreement);
        cJSON_AddNumberToObject(o, "share_of_oracle", v->share);
        cJSON_AddNumberToObject(o, "predictors_asked", v->scores);
        cJSON_AddNumberToObject(o, "heads_in_vain", v->refused);
        cJSON_AddItemToArray(list, o);
    }
}

static drey_status write_json(const training *t, const drey_train_exit_report *r, drey_error *err)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddItemToObject(root, "machine", json_machine());
    cJSON_AddStringToObject(root, "path", t->output);
    cJSON_AddStringToObject(root, "candidates", drey_exit_source_name(r->source));
    cJSON_AddNumberToObject(root, "candidates_layer", r->source_layer);
    cJSON_AddNumberToObject(root, "recall_candidates", r->recall_candidates);
    cJSON_AddNumberToObject(root, "layers", r->n_layers);
    cJSON_AddNumberToObject(root, "first_layer", r->first);
    cJSON_AddNumberToObject(root, "oracle_layers", r->oracle_layers);
    cJSON_AddNumberToObject(root, "train_positions", (double)r->n_train);
    cJSON_AddNumberToObject(root, "held_out_positions", (double)r->n_held);
    cJSON_AddNumberToObject(root, "memory_bytes", (double)r->file_bytes);
    cJSON_AddNumberToObject(root, "write_s", r->write_s);
    cJSON_AddNumberToObject(root, "look_s", r->gather_s);
    cJSON_AddNumberToObject(root, "learn_s", r->fit_s);
    cJSON_AddNumberToObject(root, "seconds", t->seconds);
    add_layers(r, root);
    add_verdicts(r, root);
    drey_status status = json_write(t->settings->json, root, err);
    cJSON_Delete(root);
    return status;
}

/* ---- Training ---- */

static drey_status train(training *t, drey_train_exit_report *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    drey_engine_options engine = models_engine_options(&t->models, s, 2);
    if (!option_given(s, "draft"))
        engine.drafter = DREY_DRAFTER_LOOKUP;
    drey_train_exit_options o;
    drey_train_exit_options_init(&o);
    o.engine = &engine;
    o.prompts = t->prompts;
    o.n_prompts = t->list.n;
    o.n_predict = option_given(s, "predict") ? s->n_predict : 0;
    o.n_hidden = s->n_hidden;
    o.threshold = s->exit_threshold;
    o.plain = s->features == CLI_FEATURES_PLAIN;
    o.confidence = s->features == CLI_FEATURES_CONFIDENCE;
    o.seed = s->sampling.seed;
    o.output = t->output;
    o.progress = training_progress;
    o.go_on = training_go_on;
    o.user = t;
    signals_note();
    double begun_s = progress_clock_s();
    drey_status status = drey_train_exit(&o, report, err);
    t->seconds = progress_clock_s() - begun_s;
    progress_clear(&t->progress);
    return status;
}

int train_exit(const cli_settings *settings)
{
    training t;
    drey_error err = {0};
    drey_train_exit_report *report = calloc(1, sizeof *report);
    FILE *out = settings->json && strcmp(settings->json, "-") == 0 ? stderr : stdout;
    drey_status status = training_open(&t, settings, ".drey-exit", &err);
    if (status == DREY_OK && !report)
        status = fail(&err, DREY_ERR_MEMORY, "out of memory for a report");
    if (status == DREY_OK)
        status = train(&t, report, &err);
    if (status == DREY_OK && !settings->quiet)
        show(&t, report, out);
    if (status == DREY_OK && settings->json)
        status = write_json(&t, report, &err);
    if (status != DREY_OK && status != DREY_ERR_CANCELLED)
        complain_error(&err);
    training_close(&t);
    free(report);
    int interrupted = status == DREY_ERR_CANCELLED ? signals_exit_code() : 0;
    return interrupted ? interrupted : exit_code(status);
}
