/* drey train medusa, drey train eagle: heads, or a layer after the target, that guess what it
 * writes next, and how often they are right about texts that they have not seen. */
#include "cli/commands/cmd_train.h"

#include "cli/files/json_file.h"
#include "cli/terminal/format.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

/* guess: what a line of the report is about. */
static void show(const training *t, const drey_train_draft_report *r, const char *guess, FILE *out)
{
    char seconds[16], name[16];
    show_texts(out, r->n_positions, r->n_held[0], r->n_kept, r->n_texts, r->write_s);
    for (int32_t k = 0; k < r->n_guesses; k++) {
        snprintf(name, sizeof name, "%s %d", guess, k + 1);
        show_ranks(out, name, r->accuracy[k], DREY_GUESS_RANKS);
    }
    fprintf(out, "written   ");
    print_clean(out, t->output);
    fprintf(out, ", guessing among %d tokens; trained in %s\n", r->n_ids,
            format_seconds(seconds, r->train_s));
}

static void put(const drey_train_draft_report *r, const char *guesses, json_writer *w)
{
    JSON_PUT_EACH(w, {"vocabulary", r->n_ids}, {"kept_tokens", (double)r->n_kept},
                  {"text_tokens", (double)r->n_texts}, {"train_positions", (double)r->n_positions},
                  JSON_OF(r, loss), JSON_OF(r, write_s), JSON_OF(r, train_s));
    json_put_array(w, guesses);
    for (int32_t k = 0; k < r->n_guesses; k++)
        put_ranks(w, r->accuracy[k], DREY_GUESS_RANKS, r->n_held[k]);
    json_close(w, ']');
}

static drey_train_draft_options options_of(training *t, const drey_engine_options *engine)
{
    const cli_settings *s = t->settings;
    drey_train_draft_options o;
    drey_train_draft_options_init(&o);
    o.engine = engine;
    o.prompts = t->prompts;
    o.n_prompts = t->list.n;
    o.n_heads = s->train.n_heads;
    o.n_ids = s->train.n_vocabulary;
    o.n_positions = option_given(s, "predict") ? s->text.n_predict : 0;
    o.n_epochs = s->train.n_epochs;
    o.rate = s->train.rate;
    o.temperature = s->sampling.temperature;
    o.greedy = option_given(s, "temp") && s->sampling.temperature <= 0;
    o.keep_texts = s->train.keep_texts;
    o.seed = s->sampling.seed;
    o.output = t->output;
    o.progress = progress_report;
    o.go_on = signals_go_on;
    o.user = &t->progress;
    return o;
}

/* ---- Heads ---- */

static drey_status train_heads(training *t, void *report, drey_error *err)
{
    const drey_engine_options engine = models_engine_options(&t->models, t->settings, 2);
    const drey_train_draft_options o = options_of(t, &engine);
    return drey_train_medusa(&o, report, err);
}

static void show_heads(const training *t, const void *report, FILE *out)
{
    show(t, report, "head", out);
}

static void put_heads(const void *report, json_writer *w)
{
    put(report, "heads", w);
}

const training_kind train_medusa = {.suffix = ".drey-medusa",
                                    .report_bytes = sizeof(drey_train_draft_report),
                                    .keeps = true,
                                    .train = train_heads,
                                    .show = show_heads,
                                    .put = put_heads};

/* ---- A layer ---- */

static drey_status train_layer(training *t, void *report, drey_error *err)
{
    const drey_engine_options engine = models_engine_options(&t->models, t->settings, 2);
    const drey_train_draft_options o = options_of(t, &engine);
    return drey_train_eagle(&o, report, err);
}

static void show_layer(const training *t, const void *report, FILE *out)
{
    show(t, report, "guess", out);
}

static void put_layer(const void *report, json_writer *w)
{
    put(report, "guesses", w);
}

const training_kind train_eagle = {.suffix = ".eagle.gguf",
                                   .report_bytes = sizeof(drey_train_draft_report),
                                   .keeps = true,
                                   .train = train_layer,
                                   .show = show_layer,
                                   .put = put_layer};
