/* drey train exit: predictors of early exits, and how well they do on prompts that they have not
 * seen. */
#include "cli/commands/cmd_train.h"

#include "cli/terminal/format.h"
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

static void show(const training *t, const void *report, FILE *out)
{
    const drey_train_exit_report *r = report;
    char size[16], seconds[16];
    fprintf(out, "positions   %lld to learn from, %lld held out\n", (long long)r->n_train,
            (long long)r->n_held);
    fprintf(out, "candidates  of the %s", drey_exit_source_name(r->source));
    if (r->source_layer)
        fprintf(out, " after %d layers", r->source_layer);
    fprintf(out, ", right in %.1f %%\n", 100 * r->recall_candidates);
    fprintf(out, "oracle      leaves after %.2f of %d layers\n", r->oracle_layers, r->n_layers);
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
        JSON_PUT_EACH(o, JSON_OF(l, layer), JSON_OF(l, positive), JSON_OF(l, precision),
                      JSON_OF(l, recall), JSON_OF(l, exits), JSON_OF(l, final_for_good),
                      JSON_OF(l, recall_own));
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
        JSON_PUT_EACH(o, JSON_OF(v, threshold), JSON_OF(v, layers), JSON_OF(v, agreement),
                      {"share_of_oracle", v->share}, {"predictors_asked", v->scores},
                      {"heads_in_vain", v->refused});
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void put(const training *t, const void *report, json_writer *w)
{
    (void)t;
    const drey_train_exit_report *r = report;
    json_put_text(w, "candidates", drey_exit_source_name(r->source));
    JSON_PUT_EACH(w, {"candidates_layer", r->source_layer}, JSON_OF(r, recall_candidates),
                  {"layers", r->n_layers}, {"first_layer", r->first}, JSON_OF(r, oracle_layers),
                  {"train_positions", (double)r->n_train},
                  {"held_out_positions", (double)r->n_held},
                  {"memory_bytes", (double)r->file_bytes}, JSON_OF(r, write_s),
                  {"look_s", r->gather_s}, {"learn_s", r->fit_s});
    add_layers(r, w);
    add_verdicts(r, w);
}

/* ---- Training ---- */

static drey_status train(training *t, void *report, drey_error *err)
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
    o.progress = progress_report;
    o.go_on = signals_may_continue;
    o.user = &t->progress;
    return drey_train_exit(&o, report, err);
}

const training_kind train_exit = {.suffix = ".drey-exit",
                                  .report_bytes = sizeof(drey_train_exit_report),
                                  .keeps = false,
                                  .train = train,
                                  .show = show,
                                  .put = put};
