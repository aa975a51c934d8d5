/* drey show: what a model is, whether it fits here, and what drafts for it. */
#include "cli/commands/commands.h"
#include "cli/files/cache_folder.h"
#include "cli/models/draft_family.h"
#include "cli/models/model_facts.h"
#include "cli/models/model_path.h"
#include "cli/models/next_draft.h"
#include "cli/models/side_files.h"
#include "cli/terminal/terminal.h"
#include "common/path.h"
#include "common/size_text.h"
#include "drey/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(const char *label, const char *text)
{
    printf("  %-13s", label);
    print_clean(stdout, text);
    putchar('\n');
}

/* ---- Memory ---- */

static void show_memory(const drey_plan *p)
{
    char text[200], a[16], b[16], c[16];
    format_bytes(b, (double)p->budget_bytes);
    if (p->streamed_bytes_per_pass == 0)
        snprintf(text, sizeof text, "it stays in memory here: %s of the %s that are free",
                 format_bytes(a, (double)(p->budget_bytes - p->spare_bytes)), b);
    else
        snprintf(text, sizeof text, "%s of its %s stay in the %s that are free here",
                 format_bytes(a, (double)p->pinned_bytes), format_bytes(c, (double)p->target_bytes),
                 b);
    line("memory", text);
}

/* ---- The draft ---- */

/* One that is next to it, or the hint of its family. */
static void show_draft(const char *path, const drey_model *draft, uint64_t streamed_bytes)
{
    char hint[300];
    drey_model_info info;
    if (draft) {
        drey_model_describe(draft, &info);
        snprintf(hint, sizeof hint, "%.200s, which is next to it", path_name(info.path));
    } else {
        draft_family_hint(path, streamed_bytes, hint, sizeof hint);
    }
    if (*hint)
        line("draft", hint);
}

static void show_plan(const char *path)
{
    char place[PATH_MAX];
    drey_model *model = NULL;
    drey_engine_options o;
    drey_plan plan;
    drey_draft_choice choice = {.draft = NULL};
    drey_error err = {0};
    if (drey_model_open(&model, path, &err) != DREY_OK) {
        line("runs", err.message);
        return;
    }
    next_draft_options(&o, model);
    if (drey_plan_make(&o, NULL, &plan, &err) != DREY_OK) {
        line("memory", err.message);
    } else {
        show_memory(&plan);
        if (drey_choose_draft(&o, cache_folder(place), &choice, NULL) == DREY_OK)
            show_draft(path, choice.draft, plan.streamed_bytes_per_pass);
        drey_draft_choice_close(&choice);
    }
    drey_model_close(&model);
}

int show_main(const cli_settings *s)
{
    model_facts f;
    drey_error err = {0};
    char with[80];
    side_files files;
    stored_model m = {.path = strdup(s->operand), .n_files = 1};
    drey_status status =
        model_path_explain(s->operand, model_facts_read(&f, s->operand, &err), &err);
    if (status == DREY_OK && m.path) {
        model_facts_head(stdout, &f, s->operand);
        side_files_find(&files, &m);
        if (*side_files_text(with, &files))
            line("next to it", with);
        line("file", s->operand);
        show_plan(s->operand);
    }
    free(m.path);
    return exit_with(status, &err);
}
