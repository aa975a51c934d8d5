/* drey prepare: writes or checks a model's sidecar.
 *
 * Ctrl-C and kill end it at the next MiB, so that what was written of a sidecar is removed; a
 * second one ends the process at once and leaves the .partial to the next prepare. */
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"

typedef struct preparing {
    const cli_settings *settings;
    progress progress;
} preparing;

static void announce(void *user, const char *path, uint64_t needed_bytes, uint64_t free_bytes)
{
    const preparing *p = user;
    char needed[16], available[16];
    if (p->settings->quiet)
        return;
    print_clean(stderr, path);
    fprintf(stderr, " needs %s of disk space; %s are free\n",
            format_bytes(needed, (double)needed_bytes),
            format_bytes(available, (double)free_bytes));
}

static void on_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    progress_report(&((preparing *)user)->progress, what, done, total);
}

static bool go_on(void *user)
{
    (void)user;
    return signals_exit_code() == 0;
}

static void tell(const preparing *p, const drey_prepare_report *report)
{
    char size[16];
    const cli_settings *s = p->settings;
    if (s->quiet)
        return;
    format_bytes(size, (double)report->sidecar_bytes);
    if (s->check)
        printf("OK: %s, all of it as the model says\n", size);
    else if (report->written)
        printf("written: %s; drey run uses it%s\n", size, s->output ? " with --sidecar" : "");
    else
        printf("nothing to do: a good sidecar of %s is there; --force writes it again\n", size);
}

int prepare_main(const cli_settings *settings)
{
    preparing p = {.settings = settings, .progress.quiet = settings->quiet};
    drey_model *model = NULL;
    drey_error err = {0};
    drey_prepare_report report = {0};
    drey_prepare_options options;
    drey_prepare_options_init(&options);
    drey_status status = drey_model_open(&model, settings->operand, &err);
    options.model = model;
    options.output = settings->output;
    options.check = settings->check;
    options.force = settings->force;
    options.announce = announce;
    options.progress = on_progress;
    options.go_on = go_on;
    options.user = &p;
    if (status == DREY_OK) {
        signals_note();
        status = drey_prepare(&options, &report, &err);
    }
    progress_clear(&p.progress);
    if (status == DREY_OK)
        tell(&p, &report);
    else if (status != DREY_ERR_CANCELLED)
        complain("%s", err.message);
    drey_model_close(&model);
    int interrupted = status == DREY_ERR_CANCELLED ? signals_exit_code() : 0;
    return interrupted ? interrupted : exit_code(status);
}
