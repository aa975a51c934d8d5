/* drey list: the downloaded models. */
#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/models/model_facts.h"
#include "cli/models/model_store.h"
#include "cli/models/side_files.h"
#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "common/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void put_model(json_writer *w, const stored_model *m, const model_facts *f,
                      const side_files *s, const drey_error *err)
{
    char with[80];
    json_put_object(w, NULL);
    json_put_text(w, "name", m->name);
    json_put_text(w, "path", m->path);
    json_put_number(w, "bytes", (double)m->n_bytes);
    json_put_number(w, "files", m->n_files);
    if (err->code == DREY_OK) {
        json_put_text(w, "title", f->name);
        json_put_text(w, "architecture", f->architecture);
        json_put_text(w, "type", f->type);
        json_put_number(w, "parameters", (double)f->n_parameters);
        json_put_number(w, "context", (double)f->n_context);
        json_put_bool(w, "runs", f->runs);
    } else {
        json_put_text(w, "error", err->message);
    }
    json_put_text(w, "with", side_files_text(with, s));
    json_put_number(w, "used_s", (double)s->used_s);
    json_close(w, '}');
}

static void show_model(FILE *out, const stored_model *m, const model_facts *f, const side_files *s,
                       const drey_error *err, int width)
{
    char size[16], n[16], context[24], with[80], when[24];
    int columns = page_width(m->name, strlen(m->name));
    bool known = err->code == DREY_OK;
    print_clean(out, m->name);
    fprintf(out, "%*s  %6s  %-8s %6s  %7s  %-*s  %s\n", width - columns, "",
            format_bytes(size, (double)m->n_bytes), known && *f->type ? f->type : "-",
            known ? model_parameters(n, f->n_parameters) : "-",
            known ? model_context(context, f->n_context) : "-", 16,
            !known     ? "broken"
            : !f->runs ? "does not run"
                       : side_files_text(with, s),
            s->used_s ? format_age(when, difftime(time(NULL), (time_t)s->used_s)) : "-");
}

static int name_width(const model_store *s)
{
    int most = 4;
    for (size_t i = 0; i < s->n; i++) {
        int n = page_width(s->models[i].name, strlen(s->models[i].name));
        most = n > most ? n : most;
    }
    return most;
}

static void show_names(const model_store *store)
{
    for (size_t i = 0; i < store->n; i++) {
        print_clean(stdout, store->models[i].name);
        putchar('\n');
    }
}

/* Looks at one model after another; w: NULL without JSON. */
static void look_at_all(const model_store *store, json_writer *w, bool shows)
{
    int width = name_width(store);
    if (shows && store->n > 0)
        printf("%-*s  %6s  %-8s %6s  %7s  %-16s  %s\n", width, "NAME", "SIZE", "TYPE", "PARAMS",
               "CONTEXT", "WITH", "USED");
    for (size_t i = 0; i < store->n; i++) {
        model_facts f;
        side_files with;
        drey_error why = {0};
        model_facts_read(&f, store->models[i].path, &why);
        side_files_find(&with, &store->models[i]);
        if (w)
            put_model(w, &store->models[i], &f, &with, &why);
        if (shows)
            show_model(stdout, &store->models[i], &f, &with, &why, width);
    }
}

static drey_status list(const cli_settings *s, const model_store *store, drey_error *err)
{
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    json_buffer b;
    if (!s->json) {
        look_at_all(store, NULL, true);
        return DREY_OK;
    }
    json_writer *w = json_buffer_begin(&b);
    json_put_text(w, "folder", store->folder);
    json_put_array(w, "models");
    look_at_all(store, w, !json_only);
    json_close(w, ']');
    return json_write(s->json, &b, err);
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
