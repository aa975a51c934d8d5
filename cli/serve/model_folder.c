/* A folder of models: see model_folder.h. */
#include "cli/serve/model_folder.h"

#include "cli/args/other_names.h"
#include "cli/models/model_files.h"
#include "cli/models/model_store.h"
#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_listed(const model_folder *f, const char *path, const char *name, size_t n)
{
    for (int32_t i = 0; i < f->n; i++) {
        const router_model *m = &f->models[i];
        if (strcmp(m->path, path) == 0 || (strncmp(m->name, name, n) == 0 && m->name[n] == '\0'))
            return true;
    }
    return false;
}

static drey_status add(void *user, const char *path, const char *name, size_t n, drey_error *err)
{
    model_folder *f = user;
    char *own_path = NULL, *own_name = NULL;
    if (n >= ROUTER_NAME_BYTES || is_listed(f, path, name, n))
        return DREY_OK;
    if (f->n == ROUTER_MAX_MODELS)
        FAIL(err, DREY_ERR_USAGE, "the folder \"%.200s\" holds more models than the %d of a server",
             f->path, ROUTER_MAX_MODELS);
    own_path = strdup(path);
    own_name = strndup(name, n);
    if (!own_path || !own_name) {
        free(own_path);
        free(own_name);
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the names of models");
    }
    f->models[f->n] = (router_model){own_name, own_path, f->checks[f->n].why, 0};
    f->n++;
    return DREY_OK;
}

/* ---- What they hold ---- */

/* Notes the first reason. */
static void note_missing(void *user, const char *what)
{
    char *why = user;
    if (!why[0])
        snprintf(why, PROCESS_WHY_BYTES, "%s", what);
}

static void note_side_file(void *user, const char *name, const char *type, const char *value)
{
    (void)type;
    if (strcmp(name, "general.architecture") == 0 && strncmp(value, "drey-", 5) == 0)
        note_missing(user, "it holds a model's heads or predictors, and no model");
}

/* Checks a model by its header: what is missing or not supported is seen without loading it. */
static void check(router_model *m, char *why)
{
    drey_error err = {0};
    const drey_inspector inspector = {.key = note_side_file, .user = why};
    why[0] = '\0';
    m->n_checks++;
    if (drey_missing(m->path, note_missing, why, &err) != DREY_OK ||
        drey_inspect(m->path, &inspector, &err) != DREY_OK)
        note_missing(why, err.message);
}

static void check_changed(model_folder *f)
{
    for (int32_t i = 0; i < f->n; i++) {
        struct stat now = {0};
        stat(f->models[i].path, &now);
        bool same = f->models[i].n_checks > 0 && now.st_size == f->checks[i].n_bytes &&
                    now.st_mtim.tv_sec == f->checks[i].changed.tv_sec &&
                    now.st_mtim.tv_nsec == f->checks[i].changed.tv_nsec;
        f->checks[i].changed = now.st_mtim;
        f->checks[i].n_bytes = now.st_size;
        if (!same)
            check(&f->models[i], f->checks[i].why);
    }
}

void model_folder_look(model_folder *f)
{
    model_files_visit(f->path, add, f, NULL);
    check_changed(f);
}

/* ---- What a text means ---- */

/* A part of the name, or near to its beginning. */
static bool is_near(const char *text, const char *name)
{
    size_t n = strlen(text), n_name = strlen(name);
    char begin[ROUTER_NAME_BYTES];
    if (n < 3)
        return false;
    if (strcasestr(name, text) || words_are_near(text, name))
        return true;
    for (size_t k = n - 1; k <= n + 1 && k <= n_name; k++) {
        snprintf(begin, sizeof begin, "%.*s", (int)k, name);
        if (words_are_near(text, begin))
            return true;
    }
    return false;
}

int32_t model_folder_mean(const model_folder *f, const char *text, int32_t *found, int32_t room,
                          int32_t *near)
{
    static const char default_tag[] = ":latest";
    stored_model models[ROUTER_MAX_MODELS];
    const stored_model *meant[ROUTER_MAX_MODELS];
    char word[ROUTER_NAME_BYTES];
    size_t n = strlen(text), n_tag = sizeof default_tag - 1;
    if (n > n_tag && strcmp(text + n - n_tag, default_tag) == 0)
        n -= n_tag;
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    for (int32_t i = 0; i < f->n; i++) {
        models[i] = (stored_model){.path = (char *)f->models[i].path, .n_files = 1};
        snprintf(models[i].name, sizeof models[i].name, "%s", f->models[i].name);
    }
    const model_store store = {.models = models, .n = (size_t)f->n};
    size_t n_meant = *word ? model_store_find(&store, word, meant, ROUTER_MAX_MODELS) : 0;
    for (size_t i = 0; i < n_meant && i < (size_t)room; i++)
        found[i] = (int32_t)(meant[i] - models);
    *near = -1;
    for (int32_t i = f->n; n_meant == 0 && i-- > 0;)
        if (is_near(word, f->models[i].name))
            *near = i;
    return (int32_t)n_meant;
}

/* ---- The folder ---- */

static drey_status make_sockets(model_folder *f, drey_error *err)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    if (!run || strlen(run) > 40 || access(run, W_OK) != 0)
        run = "/tmp";
    snprintf(f->sockets, sizeof f->sockets, "%s/drey-XXXXXX", run);
    if (mkdtemp(f->sockets))
        return DREY_OK;
    f->sockets[0] = '\0';
    FAIL(err, DREY_ERR_IO, "cannot make a folder in %s: %s", run, strerror(errno));
}

drey_status model_folder_open(model_folder *f, const char *path, drey_error *err)
{
    *f = (model_folder){.path = path};
    TRY(model_files_visit(path, add, f, err));
    if (f->n == 0)
        FAIL(err, DREY_ERR_USAGE, "the folder \"%.200s\" holds no *.gguf files", path);
    check_changed(f);
    return make_sockets(f, err);
}

void model_folder_close(model_folder *f)
{
    for (int32_t i = 0; i < f->n; i++) {
        free((char *)f->models[i].name);
        free((char *)f->models[i].path);
    }
    if (f->sockets[0])
        rmdir(f->sockets);
    f->sockets[0] = '\0';
    f->n = 0;
}

uint64_t model_bytes(const drey_plan *p)
{
    const uint64_t mib = 1 << 20;
    uint64_t n = p->process_bytes + p->pinned_bytes + p->draft_bytes + p->ring_bytes + p->kv_bytes +
                 p->work_bytes + p->held_bytes + p->prefix_bytes + p->encoder_bytes +
                 p->expert_bytes;
    /* Another process holds a little more or less before its plan. */
    n += n / 64;
    return (n + mib - 1) / mib * mib;
}
