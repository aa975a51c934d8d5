/* drey train medusa: heads that guess what the target says next, and how often they are right about
 * texts that they have not seen. */
#include "cli/commands/cmd_train.h"

#include "cli/terminal/format.h"
#include "cli/files/json_file.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

static void show(const training *t, const void *report, FILE *out)
{
    const drey_train_medusa_report *r = report;
    char seconds[2][16];
    fprintf(out, "texts     %lld tokens to learn from, %lld held out; ", (long long)r->n_positions,
            (long long)r->n_held[0]);
    if (r->n_kept >= r->n_texts)
        fprintf(out, "the first %lld of %lld that were kept\n", (long long)r->n_texts,
                (long long)r->n_kept);
    else
        fprintf(out, "written in %s\n", format_seconds(seconds[0], r->write_s));
    fprintf(out, "right     rank 1     2     3     4     5     6     7     8   any, in %%\n");
    for (int32_t k = 0; k < r->n_heads; k++) {
        double any = 0;
        fprintf(out, "head %d   ", k + 1);
        for (int32_t i = 0; i < DREY_MEDUSA_RANKS; i++) {
            any += (double)r->accuracy[k][i];
            fprintf(out, " %5.1f", 100 * (double)r->accuracy[k][i]);
        }
        fprintf(out, " %5.1f\n", 100 * any);
    }
    fprintf(out, "written   ");
    print_clean(out, t->output);
    fprintf(out, ", guessing among %d tokens; trained in %s\n", r->n_ids,
            format_seconds(seconds[1], r->train_s));
}

static void put(const void *report, json_writer *w)
{
    const drey_train_medusa_report *r = report;
    JSON_PUT_EACH(w, {"vocabulary", r->n_ids}, {"kept_tokens", (double)r->n_kept},
                  {"text_tokens", (double)r->n_texts}, {"train_positions", (double)r->n_positions},
                  JSON_OF(r, loss), JSON_OF(r, write_s), JSON_OF(r, train_s));
    json_put_array(w, "heads");
    for (int32_t k = 0; k < r->n_heads; k++) {
        double ranks[DREY_MEDUSA_RANKS];
        for (int32_t i = 0; i < DREY_MEDUSA_RANKS; i++)
            ranks[i] = (double)r->accuracy[k][i];
        json_put_object(w, NULL);
        json_put_numbers(w, "accuracy_by_rank", ranks, DREY_MEDUSA_RANKS);
        json_put_number(w, "held_out_positions", (double)r->n_held[k]);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static drey_status train(training *t, void *report, drey_error *err)
{
    const cli_settings *s = t->settings;
    drey_engine_options engine = models_engine_options(&t->models, s, 2);
    drey_train_medusa_options o;
    drey_train_medusa_options_init(&o);
    o.engine = &engine;
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
    return drey_train_medusa(&o, report, err);
}

const training_kind train_medusa = {.suffix = ".drey-medusa",
                                    .report_bytes = sizeof(drey_train_medusa_report),
                                    .keeps = true,
                                    .train = train,
                                    .show = show,
                                    .put = put};
