/* drey prepare: writes or checks a model's sidecar.
 *
 * Ctrl-C and kill end it at the next MiB, so that what was written of a sidecar is removed; a
 * second one ends the process at once and leaves the .partial to the next prepare. */
#include "cli/commands/commands.h"
#include "cli/models/model_path.h"
#include "cli/terminal/hints.h"
#include "cli/files/json_file.h"
#include "drey/drey_engine.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"

#include <stdlib.h>
#include <string.h>

typedef struct preparing {
    const cli_settings *settings;
    drey_model *model;
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

static void on_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    progress_report(&((preparing *)user)->progress, what, done, total);
}

static void show_report(const cli_settings *s, const drey_prepare_report *report)
{
    char size[16];
    FILE *out = s->json && strcmp(s->json, "-") == 0 ? stderr : stdout;
    if (s->quiet)
        return;
    format_bytes(size, (double)report->sidecar_bytes);
    if (s->prepare.check)
        fprintf(out, "OK: %s, all of it as the model says\n", size);
    else if (report->written)
        fprintf(out, "written: %s; drey run -m %s%s%s uses it\n", size, terminal_model(),
                s->output ? " --sidecar " : "", s->output ? QUOTED(s->output) : "");
    else
        fprintf(
            out,
            "nothing to do: a good sidecar of %s is there%s; drey prepare%s --force %s writes it "
            "again\n",
            size, s->prepare.planes ? ", with planes" : "", s->prepare.planes ? " --planes" : "",
            terminal_model());
}

/* Returns the path of the sidecar: named, or MODEL.drey. The caller frees; NULL when memory is
 * short. */
static char *path_of(const cli_settings *s)
{
    size_t n = strlen(s->operand) + sizeof ".drey";
    char *path = s->output ? strdup(s->output) : malloc(n);
    if (path && !s->output)
        snprintf(path, n, "%s.drey", s->operand);
    return path;
}

static drey_status write_json(const cli_settings *s, const drey_prepare_report *report,
                              double seconds, drey_error *err)
{
    json_buffer b;
    json_writer *root = json_report_begin(&b);
    char *path = path_of(s);
    json_put_text(root, "path", path ? path : "");
    json_put_number(root, "sidecar_bytes", (double)report->sidecar_bytes);
    json_put_bool(root, "written", report->written);
    json_put_bool(root, "checked", s->prepare.check);
    json_put_number(root, "seconds", seconds);
    free(path);
    return json_write(s->json, &b, err);
}

static drey_status prepare(preparing *p, drey_error *err)
{
    const cli_settings *s = p->settings;
    drey_prepare_report report = {0};
    TRY(json_check_path(s->json, err));
    TRY(model_path_explain(s->operand, drey_model_open(&p->model, s->operand, err), err));
    drey_prepare_options options;
    drey_prepare_options_init(&options);
    options.model = p->model;
    options.output = s->output;
    options.check = s->prepare.check;
    options.force = s->prepare.force;
    options.planes = s->prepare.planes;
    options.announce = announce;
    options.progress = on_progress;
    options.go_on = signals_may_continue;
    options.user = p;
    signals_note();
    double begun_s = progress_clock_s();
    drey_status status = drey_prepare(&options, &report, err);
    double seconds = progress_clock_s() - begun_s;
    progress_clear(&p->progress);
    TRY(status);
    show_report(s, &report);
    return s->json ? write_json(s, &report, seconds, err) : DREY_OK;
}

int prepare_main(const cli_settings *settings)
{
    preparing p = {.settings = settings, .progress.quiet = settings->quiet};
    drey_error err = {0};
    drey_status status = prepare(&p, &err);
    drey_model_close(&p.model);
    return exit_with(status, &err);
}
