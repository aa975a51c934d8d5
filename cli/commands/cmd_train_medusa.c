/* drey train medusa: heads that guess what the target says next, and how often they are right about
 * texts that they have not seen. */
#include "cli/commands/cmd_train.h"

#include "cli/terminal/format.h"
#include "cli/files/json_file.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

static void show(const training *t, const drey_train_medusa_report *r, FILE *out)
{
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

static drey_status write_json(const training *t, const drey_train_medusa_report *r, drey_error *err)
{
    json_buffer b;
    json_writer *root = json_report_begin(&b);
    json_put_text(root, "path", t->output);
    json_put_number(root, "vocabulary", r->n_ids);
    json_put_number(root, "kept_tokens", (double)r->n_kept);
    json_put_number(root, "text_tokens", (double)r->n_texts);
    json_put_number(root, "train_positions", (double)r->n_positions);
    json_put_number(root, "loss", r->loss);
    json_put_number(root, "write_s", r->write_s);
    json_put_number(root, "train_s", r->train_s);
    json_put_number(root, "seconds", t->seconds);
    json_put_array(root, "heads");
    for (int32_t k = 0; k < r->n_heads; k++) {
        double ranks[DREY_MEDUSA_RANKS];
        for (int32_t i = 0; i < DREY_MEDUSA_RANKS; i++)
            ranks[i] = (double)r->accuracy[k][i];
        json_put_object(root, NULL);
        json_put_numbers(root, "accuracy_by_rank", ranks, DREY_MEDUSA_RANKS);
        json_put_number(root, "held_out_positions", (double)r->n_held[k]);
        json_close(root, '}');
    }
    json_close(root, ']');
    return json_write(t->settings->json, &b, err);
}

static drey_status train(training *t, drey_train_medusa_report *report, drey_error *err)
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
    o.progress = training_progress;
    o.go_on = training_go_on;
    o.user = t;
    signals_note();
    double begun_s = progress_clock_s();
    drey_status status = drey_train_medusa(&o, report, err);
    t->seconds = progress_clock_s() - begun_s;
    progress_clear(&t->progress);
    return status;
}

static drey_status train_all(training *t, const cli_settings *s, drey_error *err)
{
    drey_train_medusa_report report;
    TRY(training_open(t, s, ".drey-medusa", err));
    TRY(train(t, &report, err));
    if (!s->quiet)
        show(t, &report, s->json && strcmp(s->json, "-") == 0 ? stderr : stdout);
    return s->json ? write_json(t, &report, err) : DREY_OK;
}

int train_medusa(const cli_settings *settings)
{
    training t;
    drey_error err = {0};
    drey_status status = train_all(&t, settings, &err);
    if (status == DREY_ERR_CANCELLED && !settings->quiet)
        complain_error(&err); /* what is kept of it */
    training_close(&t);
    return exit_with(status, &err);
}
