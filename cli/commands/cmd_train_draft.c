/* drey train medusa, drey train eagle: heads, or a layer after the target, that guess what it
 * writes next, and how often they are right about texts that they have not seen. */
#include "cli/commands/cmd_train.h"

#include "cli/terminal/format.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

static bool trains_layer(const training *t)
{
    return t->settings->command == CLI_TRAIN_EAGLE;
}

/* ---- The report ---- */

static void show_texts(const drey_train_draft_report *r, FILE *out)
{
    char seconds[16];
    fprintf(out, "texts     %lld tokens to learn from, %lld held out; ", (long long)r->n_positions,
            (long long)r->n_held[0]);
    if (r->n_kept >= r->n_texts)
        fprintf(out, "the first %lld of %lld that were kept\n", (long long)r->n_texts,
                (long long)r->n_kept);
    else
        fprintf(out, "written in %s\n", format_seconds(seconds, r->write_s));
    fprintf(out, "right     rank 1     2     3     4     5     6     7     8   any, in %%\n");
}

/* A share in percent for each rank, and their sum. */
static void show_ranks(const char *name, const float share[DREY_GUESS_RANKS], FILE *out)
{
    double any = 0;
    fprintf(out, "%-9s", name);
    for (int32_t i = 0; i < DREY_GUESS_RANKS; i++) {
        any += (double)share[i];
        fprintf(out, " %5.1f", 100 * (double)share[i]);
    }
    fprintf(out, " %5.1f\n", 100 * any);
}

static void show(const training *t, const void *report, FILE *out)
{
    const drey_train_draft_report *r = report;
    char seconds[16], name[24];
    show_texts(r, out);
    for (int32_t k = 0; k < r->n_guesses; k++) {
        snprintf(name, sizeof name, "%s %d", trains_layer(t) ? "guess" : "head", k + 1);
        show_ranks(name, r->accuracy[k], out);
    }
    fprintf(out, "written   ");
    print_clean(out, t->output);
    fprintf(out, ", guessing among %d tokens; trained in %s\n", r->n_ids,
            format_seconds(seconds, r->train_s));
}

static void put_guess(const drey_train_draft_report *r, int32_t k, json_writer *w)
{
    double ranks[DREY_GUESS_RANKS];
    for (int32_t i = 0; i < DREY_GUESS_RANKS; i++)
        ranks[i] = (double)r->accuracy[k][i];
    json_put_object(w, NULL);
    json_put_numbers(w, "accuracy_by_rank", ranks, DREY_GUESS_RANKS);
    json_put_number(w, "held_out_positions", (double)r->n_held[k]);
    json_close(w, '}');
}

static void put(const training *t, const void *report, json_writer *w)
{
    const drey_train_draft_report *r = report;
    JSON_PUT_EACH(w, {"vocabulary", r->n_ids}, {"kept_tokens", (double)r->n_kept},
                  {"text_tokens", (double)r->n_texts}, {"train_positions", (double)r->n_positions},
                  JSON_OF(r, loss), JSON_OF(r, write_s), JSON_OF(r, train_s));
    json_put_array(w, trains_layer(t) ? "guesses" : "heads");
    for (int32_t k = 0; k < r->n_guesses; k++)
        put_guess(r, k, w);
    json_close(w, ']');
}

/* ---- Training ---- */

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
    o.go_on = signals_may_continue;
    o.user = &t->progress;
    return o;
}

static drey_status train(training *t, void *report, drey_error *err)
{
    const drey_engine_options engine = models_engine_options(&t->models, t->settings, 2);
    const drey_train_draft_options o = options_of(t, &engine);
    return trains_layer(t) ? drey_train_eagle(&o, report, err) : drey_train_medusa(&o, report, err);
}

#define DRAFT_KIND(ending)                                                                         \
    {                                                                                              \
        .suffix = ending, .report_bytes = sizeof(drey_train_draft_report), .keeps = true,          \
        .train = train, .show = show, .put = put                                                   \
    }
const training_kind train_medusa = DRAFT_KIND(".drey-medusa");
const training_kind train_eagle = DRAFT_KIND(".eagle.gguf");
