/* drey list: the downloaded models. */
#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/models/model_facts.h"
#include "cli/models/model_store.h"
#include "cli/models/model_table.h"
#include "cli/models/next_draft.h"
#include "cli/models/side_files.h"
#include "cli/terminal/format.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Facts about a model. */
typedef struct looked_at {
    model_facts facts;
    side_files with;
    drey_error why; /* its file is broken */
    char draft[NAME_MAX + 1];
} looked_at;

static void put_model(json_writer *w, const stored_model *m, const looked_at *l)
{
    const model_facts *f = &l->facts;
    const side_files *s = &l->with;
    char with[80];
    json_put_object(w, NULL);
    json_put_text(w, "name", m->name);
    json_put_text(w, "path", m->path);
    json_put_number(w, "bytes", (double)m->n_bytes);
    json_put_number(w, "files", m->n_files);
    if (l->why.code == DREY_OK) {
        json_put_text(w, "title", f->name);
        json_put_text(w, "architecture", f->architecture);
        json_put_text(w, "type", f->type);
        json_put_number(w, "parameters", (double)f->n_parameters);
        json_put_number(w, "context", (double)f->n_context);
        json_put_bool(w, "runs", f->runs);
        if (l->draft[0])
            json_put_text(w, "draft", l->draft);
    } else {
        json_put_text(w, "error", l->why.message);
    }
    json_put_text(w, "with", side_files_text(with, s));
    json_put_number(w, "used_s", (double)s->used_s);
    json_close(w, '}');
}

/* ---- For people ---- */

static void set(model_row *row, model_column column, const char *text)
{
    snprintf(row->cell[column], sizeof row->cell[column], "%s", text);
}

static void fill_row(model_row *row, const stored_model *m, const looked_at *l)
{
    char size[16], n[16], context[24], with[80], when[24];
    const model_facts *f = &l->facts;
    bool known = l->why.code == DREY_OK;
    set(row, MODEL_NAME, m->name);
    set(row, MODEL_SIZE, format_bytes(size, (double)m->n_bytes));
    set(row, MODEL_DRAFT, l->draft);
    set(row, MODEL_WITH,
        !known     ? "broken"
        : !f->runs ? "does not run"
                   : side_files_text(with, &l->with));
    if (known) {
        set(row, MODEL_TYPE, f->type);
        set(row, MODEL_PARAMETERS, model_parameters(n, f->n_parameters));
        set(row, MODEL_CONTEXT, model_context(context, f->n_context));
    }
    if (l->with.used_s)
        set(row, MODEL_USED, format_age(when, difftime(time(NULL), (time_t)l->with.used_s)));
}

static void show_names(const model_store *store)
{
    for (size_t i = 0; i < store->n; i++) {
        print_clean(stdout, store->models[i].name);
        putchar('\n');
    }
}

/* ---- All ---- */

/* Another one is small enough and splits texts in the same way: whether its tokens are the same is
 * seen when it is opened, which takes time. */
static bool may_have_draft(const model_store *store, const looked_at *all, size_t i)
{
    const looked_at *l = &all[i];
    bool may = l->with.heads || l->with.eagle;
    for (size_t k = 0; k < store->n && !may; k++)
        may = store->models[k].n_bytes <= store->models[i].n_bytes / 2 && all[k].facts.runs &&
              all[k].facts.has_spm == l->facts.has_spm &&
              strcmp(all[k].facts.pre, l->facts.pre) == 0;
    return may && l->facts.runs;
}

static void look_at_all(const model_store *store, looked_at *all)
{
    for (size_t i = 0; i < store->n; i++) {
        model_facts_read(&all[i].facts, store->models[i].path, &all[i].why);
        side_files_find(&all[i].with, &store->models[i]);
    }
    for (size_t i = 0; i < store->n; i++)
        if (may_have_draft(store, all, i))
            next_draft_name(store->models[i].path, all[i].draft);
}

static drey_status show(const model_store *store, const looked_at *all, drey_error *err)
{
    model_row *rows = calloc(store->n, sizeof *rows);
    if (!rows && store->n > 0)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to list the models");
    for (size_t i = 0; i < store->n; i++)
        fill_row(&rows[i], &store->models[i], &all[i]);
    if (store->n > 0)
        model_table_write(stdout, rows, store->n, page_columns(stdout));
    free(rows);
    return DREY_OK;
}

static drey_status write_json(const char *path, const model_store *store, const looked_at *all,
                              drey_error *err)
{
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    json_put_text(w, "folder", store->folder);
    json_put_array(w, "models");
    for (size_t i = 0; i < store->n; i++)
        put_model(w, &store->models[i], &all[i]);
    json_close(w, ']');
    return json_write(path, &b, err);
}

static drey_status list(const cli_settings *s, const model_store *store, drey_error *err)
{
    progress bar = {.quiet = s->quiet};
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    looked_at *all = calloc(store->n + 1, sizeof *all);
    if (!all)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to look at the models");
    progress_wait(&bar, "looking at the models");
    look_at_all(store, all);
    progress_clear(&bar);
    drey_status status = json_only ? DREY_OK : show(store, all, err);
    if (status == DREY_OK && s->json)
        status = write_json(s->json, store, all, err);
    free(all);
    return status;
}

static void say_empty(const char *folder)
{
    FILE *page = page_of(stderr);
    fputs("there are no models in ", page);
    print_clean(page, folder);
    fputs("; drey pull OWNER/NAME fetches one from Hugging Face\n", page);
}

int list_main(const cli_settings *s)
{
    drey_error err = {0};
    model_store store = {.n = 0};
    drey_status status = json_check_path(s->json, &err);
    if (status == DREY_OK)
        status = model_store_open(&store, &err);
    if (status == DREY_OK && s->quiet)
        show_names(&store);
    else if (status == DREY_OK)
        status = list(s, &store, &err);
    if (status == DREY_OK && store.n == 0 && !s->quiet)
        say_empty(store.folder);
    model_store_close(&store);
    return exit_with(status, &err);
}
