/* drey rm: removes downloaded models. Only what is in the folder of models is removed: a word that
 * names no model of it is refused before anything is. */
#include "cli/commands/commands.h"
#include "cli/models/ask_yes.h"
#include "cli/models/model_store.h"
#include "cli/models/side_files.h"
#include "cli/typing/ask_line.h"
#include "cli/terminal/hints.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/path.h"
#include "common/size_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct removing {
    const cli_settings *settings;
    model_store store;
    const stored_model *models[CLI_MAX_NAMES]; /* [n] */
    size_t n;
    uint64_t n_bytes;
    int n_others; /* files besides the model's own */
    char others[300];
    drey_status status;
    drey_error *err;
} removing;

static drey_status find_one(removing *r, const char *word, drey_error *err)
{
    const stored_model *found[2];
    size_t n = model_store_find(&r->store, word, found, 2);
    if (n > 1)
        FAIL(err, DREY_ERR_USAGE, "\"%.60s\" may mean %s, %s%s: write more of the name", word,
             found[0]->name, found[1]->name, n > 2 ? " and others" : "");
    if (n == 0 && access(word, F_OK) == 0)
        FAIL(err, DREY_ERR_USAGE,
             "%s is no model of the folder %s, and nothing else is removed: give a name that drey "
             "list shows",
             SHOWN_PATH(word), SHOWN_PATH(r->store.folder));
    if (n == 0)
        FAIL(err, DREY_ERR_USAGE,
             "there is no model %s in %s; drey list shows those that there are", SHOWN_PATH(word),
             SHOWN_PATH(r->store.folder));
    for (size_t i = 0; i < r->n; i++)
        if (r->models[i] == found[0])
            return DREY_OK;
    r->models[r->n++] = found[0];
    return DREY_OK;
}

/* ---- What goes ---- */

static void count_file(void *user, const char *path, bool part)
{
    removing *r = user;
    struct stat s;
    if (stat(path, &s) == 0)
        r->n_bytes += (uint64_t)s.st_size;
    size_t n = strlen(r->others);
    if (!part && path_name(path)[0] != '.') {
        snprintf(r->others + n, sizeof r->others - n, "%s%s", n ? ", " : "", path_name(path));
        r->n_others++;
    }
}

static bool may_remove(removing *r, const stored_model *m)
{
    char question[800], size[16], parts[40] = "";
    r->n_bytes = 0;
    r->n_others = 0;
    r->others[0] = '\0';
    side_files_visit(m, count_file, r);
    if (m->n_files > 1)
        snprintf(parts, sizeof parts, ", %d files", m->n_files);
    snprintf(question, sizeof question, "remove %s (%s%s%s%s)?", m->name,
             format_bytes(size, (double)r->n_bytes), parts, r->n_others ? ", with " : "",
             r->others);
    return r->settings->prepare.force || ask_yes(question, false);
}

static void remove_file(void *user, const char *path, bool part)
{
    removing *r = user;
    (void)part;
    if (r->status == DREY_OK && unlink(path) != 0)
        r->status = error_set(r->err, DREY_ERR_IO, "cannot remove %s: %s", SHOWN_PATH(path),
                              strerror(errno));
}

static drey_status remove_model(removing *r, const stored_model *m, drey_error *err)
{
    char size[16];
    if (!may_remove(r, m))
        return signals_exit_code() ? DREY_ERR_CANCELLED : DREY_OK;
    r->status = DREY_OK;
    r->err = err;
    side_files_forget_use(m->path);
    side_files_visit(m, remove_file, r);
    TRY(r->status);
    if (!r->settings->quiet) {
        fputs("removed ", stdout);
        print_clean(stdout, m->name);
        printf(": %s%s\n", format_bytes(size, (double)r->n_bytes),
               r->n_others ? ", with what drey made for it" : "");
    }
    return DREY_OK;
}

static drey_status remove_all(removing *r, drey_error *err)
{
    const cli_settings *s = r->settings;
    TRY(model_store_open(&r->store, err));
    for (size_t i = 0; i < s->prepare.n_names; i++)
        TRY(find_one(r, s->prepare.names[i], err));
    if (!s->prepare.force && !asker_at_terminal())
        FAIL(err, DREY_ERR_USAGE,
             "drey rm asks on a terminal; drey rm --force %s%s removes without asking",
             QUOTED(s->prepare.names[0]), s->prepare.n_names > 1 ? " ..." : "");
    for (size_t i = 0; i < r->n; i++)
        TRY(remove_model(r, r->models[i], err));
    return DREY_OK;
}

int rm_main(const cli_settings *settings)
{
    removing r = {.settings = settings};
    drey_error err = {0};
    signals_note();
    drey_status status = remove_all(&r, &err);
    model_store_close(&r.store);
    return exit_with(status, &err);
}
