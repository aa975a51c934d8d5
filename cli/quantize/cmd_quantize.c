/* drey quantize: writes a model with fewer bits per weight.
 *
 * Ctrl-C and kill end it after the rows that are under way, so that what was written is removed. */
#include "cli/commands/commands.h"
#include "cli/models/model_path.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"
#include "drey/quantize.h"

typedef struct quantizing {
    const cli_settings *settings;
    progress progress;
} quantizing;

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    progress_report(&((quantizing *)user)->progress, DREY_PROGRESS_PREPARE, done, total);
}

static void show_report(const cli_settings *s, const drey_quantize_report *r)
{
    char before[16], after[16];
    if (s->quiet)
        return;
    printf("written: %s, from %s; %d of %d tensors have another type\n",
           format_bytes(after, (double)r->output_bytes),
           format_bytes(before, (double)r->input_bytes), r->n_changed, r->n_tensors);
    if (r->n_fallbacks)
        printf("%d of them have rows that are no multiple of 256, which %s cannot have: they got a "
               "type of more bits, so the file is a little larger, and no worse\n",
               r->n_fallbacks, s->quantize.type);
    if (r->n_unimportant)
        printf("%d of them are not in the importance matrix, and were quantised without it: the "
               "text for drey imatrix did not use them\n",
               r->n_unimportant);
}

int quantize_main(const cli_settings *s)
{
    quantizing q = {.settings = s, .progress = {.quiet = s->quiet, .label = "quantizing"}};
    drey_error err = {0};
    drey_quantize_report report = {0};
    drey_quantize_options o;
    drey_quantize_options_init(&o);
    o.input = s->operand;
    o.output = s->output;
    o.type = s->quantize.type;
    o.importance = s->quantize.importance;
    o.requantize = s->quantize.again;
    o.force = s->prepare.force;
    o.memory_bytes = s->common.memory_bytes;
    o.n_threads = s->common.n_threads;
    o.progress = on_progress;
    o.go_on = signals_may_continue;
    o.user = &q;
    signals_note();
    drey_status status = model_path_explain(s->operand, drey_quantize(&o, &report, &err), &err);
    progress_clear(&q.progress);
    if (status == DREY_OK)
        show_report(s, &report);
    return exit_with(status, &err);
}
