/* drey convert: a model's folder becomes a GGUF file.
 *
 * Ctrl-C and kill end it at the next MiB, so that nothing is left of the file. */
#include "cli/commands/commands.h"
#include "cli/terminal/hints.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"
#include "drey/convert.h"

#include <stdio.h>

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    progress_report(user, DREY_PROGRESS_PREPARE, done, total);
}

static bool may_continue(void *user)
{
    return signals_may_continue(user);
}

static drey_status convert(const cli_settings *s, progress *p, drey_error *err)
{
    drey_convert_options options;
    drey_convert_report report;
    char size[16];
    drey_convert_options_init(&options);
    options.folder = s->operand;
    options.output = s->output;
    options.type = s->bench.type;
    options.force = s->prepare.force;
    options.progress = on_progress;
    options.go_on = may_continue;
    options.user = p;
    signals_note();
    drey_status status = drey_convert(&options, &report, err);
    progress_clear(p);
    if (status == DREY_OK && !s->quiet)
        printf("written: %s, %s, %lld tensors, %s\n",
               format_bytes(size, (double)report.output_bytes), report.architecture,
               (long long)report.n_tensors, report.type);
    if (status == DREY_OK && !s->quiet && report.n_left_out > 0)
        printf("the text part alone: %lld tensors for images, sounds or multi-token prediction "
               "are left out\n",
               (long long)report.n_left_out);
    if (status == DREY_OK && !s->quiet && report.type[0] != 'q')
        printf("drey chat -m %s takes it as it is; drey quantize %s NEW.gguf Q4_K_M makes it three "
               "to four times smaller\n",
               QUOTED(s->output), QUOTED(s->output));
    return status;
}

int convert_main(const cli_settings *settings)
{
    progress p = {.quiet = settings->quiet, .label = "converting"};
    drey_error err = {0};
    drey_status status = convert(settings, &p, &err);
    return exit_with(status, &err);
}
