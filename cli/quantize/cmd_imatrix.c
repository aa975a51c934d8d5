/* drey imatrix: how much the columns of a model's matrices matter for a text, for drey quantize.
 *
 * Ctrl-C and kill end it after the product that is under way, and nothing is written. */
#include "cli/commands/commands.h"
#include "cli/commands/models.h"
#include "cli/files/input.h"
#include "cli/terminal/hints.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/path.h"
#include "drey/quantize.h"

#include <stdlib.h>

typedef struct measuring {
    const cli_settings *settings;
    models models;
    int32_t *ids; /* [n_ids] */
    size_t n_ids;
    progress progress;
} measuring;

static void on_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    progress *p = &((measuring *)user)->progress;
    p->label = what == DREY_PROGRESS_PROMPT ? "reading" : NULL;
    progress_report(p, what, done, total);
}

static void show_report(const cli_settings *s, const drey_imatrix_report *r)
{
    if (s->quiet)
        return;
    printf(
        "written: %d matrices, over %lld tokens in %d window%s; drey quantize %s NEW.gguf Q4_K_M "
        "--imatrix %s takes it\n",
        r->n_matrices, (long long)r->n_tokens, r->n_windows, r->n_windows == 1 ? "" : "s",
        terminal_model(), s->output ? QUOTED(s->output) : "FILE");
    if (r->n_unused)
        printf("%d of %d experts have read nothing of this text, and would be quantised without "
               "it: a longer or more varied one measures them\n",
               r->n_unused, r->n_experts);
}

static drey_status measure(measuring *m, drey_error *err)
{
    const cli_settings *s = m->settings;
    drey_imatrix_report report;
    drey_imatrix_options o;
    TRY(models_open(&m->models, s, err));
    TRY(input_text_tokens(m->models.target, s->text.file, s->common.memory_bytes, 0, &m->ids,
                          &m->n_ids, err));
    if (m->n_ids == 0)
        FAIL(err, DREY_ERR_USAGE, "the text is empty: give one with -f FILE, or on standard input");
    const drey_engine_options engine = models_engine_options(&m->models, s, 0);
    drey_imatrix_options_init(&o);
    o.engine = &engine;
    o.ids = m->ids;
    o.n_ids = m->n_ids;
    o.window = s->scoring.window;
    o.dataset = s->text.file ? path_name(s->text.file) : NULL;
    o.output = s->output;
    o.force = s->prepare.force;
    o.progress = on_progress;
    o.go_on = signals_may_continue;
    o.user = m;
    signals_note();
    TRY(drey_imatrix(&o, &report, err));
    progress_clear(&m->progress);
    show_report(s, &report);
    return DREY_OK;
}

int imatrix_main(const cli_settings *s)
{
    measuring m = {.settings = s, .progress.quiet = s->quiet};
    drey_error err = {0};
    drey_status status = measure(&m, &err);
    progress_clear(&m.progress);
    models_close(&m.models);
    free(m.ids);
    return exit_with(status, &err);
}
