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

static void add_layers(const drey_train_exit_report *r, json_writer *o)
{
    json_put_array(o, "by_layer");
    for (int32_t i = 0; i < r->n_layer_reports; i++) {
        const drey_exit_layer *l = &r->layers[i];
        json_put_object(o, NULL);
        json_put_number(o, "layer", l->layer);
        json_put_number(o, "positive", l->positive);
        json_put_number(o, "precision", l->precision);
        json_put_number(o, "recall", l->recall);
        json_put_number(o, "exits", l->exits);
        json_put_number(o, "final_for_good", l->final_for_good);
        json_put_number(o, "recall_own", l->recall_own);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void add_verdicts(const drey_train_exit_report *r, json_writer *o)
{
    json_put_array(o, "held_out");
    for (int32_t i = 0; i < r->n_verdicts; i++) {
        const drey_exit_verdict *v = &r->verdicts[i];
        json_put_object(o, NULL);
        json_put_text(o, "name", v->name);
        json_put_number(o, "threshold", v->threshold);
        json_put_number(o, "layers", v->layers);
        json_put_number(o, "agreement", v->agreement);
        json_put_number(o, "share_of_oracle", v->share);
        json_put_number(o, "predictors_asked", v->scores);
        json_put_number(o, "heads_in_vain", v->refused);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static drey_status write_json(const training *t, const drey_train_exit_report *r, drey_error *err)
{
    json_buffer b;
    json_writer *root = json_report_begin(&b);
    json_put_text(root, "path", t->output);
    json_put_text(root, "candidates", drey_exit_source_name(r->source));
    json_put_number(root, "candidates_layer", r->source_layer);
    json_put_number(root, "recall_candidates", r->recall_candidates);
    json_put_number(root, "layers", r->n_layers);
    json_put_number(root, "first_layer", r->first);
    json_put_number(root, "oracle_layers", r->oracle_layers);
    json_put_number(root, "train_positions", (double)r->n_train);
    json_put_number(root, "held_out_positions", (double)r->n_held);
    json_put_number(root, "memory_bytes", (double)r->file_bytes);
    json_put_number(root, "write_s", r->write_s);
    json_put_number(root, "look_s", r->gather_s);
    json_put_number(root, "learn_s", r->fit_s);
    json_put_number(root, "seconds", t->seconds);
    add_layers(r, root);
    add_verdicts(r, root);
    return json_write(t->settings->json, &b, err);
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
    o.n_predict = option_given(s, "predict") ? s->text.n_predict : 0;
    o.n_hidden = s->train.n_hidden;
    o.threshold = s->drafting.exit_threshold;
    o.plain = s->train.features == CLI_FEATURES_PLAIN;
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

static drey_status train_all(training *t, const cli_settings *s, drey_train_exit_report *report,
                             drey_error *err)
{
    TRY(training_open(t, s, ".drey-exit", err));
    if (!report)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for a report");
    TRY(train(t, report, err));
    if (!s->quiet)
        show(t, report, s->json && strcmp(s->json, "-") == 0 ? stderr : stdout);
    return s->json ? write_json(t, report, err) : DREY_OK;
}

int train_exit(const cli_settings *settings)
{
    training t;
    drey_error err = {0};
    drey_train_exit_report *report = calloc(1, sizeof *report);
    drey_status status = train_all(&t, settings, report, &err);
    training_close(&t);
    free(report);
    return exit_with(status, &err);
}
