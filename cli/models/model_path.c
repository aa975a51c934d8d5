/* Models by name, and paths that are no model: see model_path.h. */
#include "cli/models/model_path.h"

#include "cli/models/model_store.h"
#include "cli/pull/hub.h"
#include "cli/terminal/hints.h"
#include "common/path.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool holds_safetensors(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (const struct dirent *e; folder && !found && (e = readdir(folder));)
        found = path_ends(e->d_name, ".safetensors");
    if (folder)
        closedir(folder);
    return found;
}

/* Returns the name in "hf.co/OWNER/NAME", or OWNER/NAME where there is no folder of the owner;
 * NULL: it is no such name. */
static const char *name_on_hub(const char *path)
{
    char owner[128];
    const char *name = hub_after_address(path);
    if (name != path)
        return name;
    const char *slash = strchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= sizeof owner || path[0] == '.' || path[0] == '~' || !slash[1] ||
        strchr(slash + 1, '/') || path_ends(path, ".gguf"))
        return NULL;
    snprintf(owner, sizeof owner, "%.*s", (int)n, path);
    return access(owner, F_OK) == 0 ? NULL : path;
}

/* ---- Names ---- */

enum { MOST_FOUND = 8 };

/* "a, b, c and 4 more" */
static void list_names(char *out, size_t room, const stored_model *const *found, size_t n)
{
    size_t length = 0;
    *out = '\0';
    for (size_t i = 0; i < n && i < MOST_FOUND && length < room; i++)
        length +=
            (size_t)snprintf(out + length, room - length, "%s%s", i ? ", " : "", found[i]->name);
    if (n > MOST_FOUND && length < room)
        snprintf(out + length, room - length, " and %zu more", n - MOST_FOUND);
}

/* out: the path, unless the word means none. */
static drey_status find(const model_store *store, const char *word, char out[PATH_MAX],
                        drey_error *err)
{
    const stored_model *found[MOST_FOUND];
    char names[360];
    size_t n = model_store_find(store, word, found, MOST_FOUND);
    if (n > 1) {
        list_names(names, sizeof names, found, n);
        FAIL(err, DREY_ERR_USAGE, "\"%.60s\" may mean %s: write more of the name", word, names);
    }
    if (n == 1)
        snprintf(out, PATH_MAX, "%s", found[0]->path);
    return DREY_OK;
}

static bool is_name(const char *word)
{
    return word && *word && access(word, F_OK) != 0;
}

drey_status model_path_resolve(cli_settings *s, drey_error *err)
{
    static char paths[3][PATH_MAX];
    const unsigned named = CLI_INSPECT | CLI_PREPARE | CLI_QUANTIZE | CLI_SHOW;
    const char **words[] = {&s->common.model, &s->drafting.draft_path,
                            s->command & named ? &s->operand : NULL};
    model_store store = {.n = 0};
    drey_status status = DREY_OK;
    bool opened = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && status == DREY_OK; i++) {
        if (!words[i] || !is_name(*words[i]))
            continue;
        if (!opened && model_store_open(&store, NULL) != DREY_OK)
            break; /* who opens the file says that it is not there */
        opened = true;
        paths[i][0] = '\0';
        status = find(&store, *words[i], paths[i], err);
        if (paths[i][0])
            *words[i] = paths[i];
    }
    model_store_close(&store);
    return status;
}

/* Finds what was probably meant by a file or name that is not there: a file next to it, or a model
 * of the folder of models. */
static bool find_near(const char *word, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    model_store store;
    size_t n = path_folder_bytes(word);
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? word : ".");
    const stored_model *near = model_store_list(&store, folder, NULL) == DREY_OK
                                   ? model_store_near(&store, path_name(word))
                                   : NULL;
    if (near)
        snprintf(out, PATH_MAX, "%.*s%s", (int)n, word, path_name(near->path));
    model_store_close(&store);
    if (near)
        return true;
    near = model_store_open(&store, NULL) == DREY_OK ? model_store_near(&store, path_name(word))
                                                     : NULL;
    if (near)
        snprintf(out, PATH_MAX, "%s", near->name);
    model_store_close(&store);
    return near != NULL;
}

/* Suggests what there is instead of a name that nothing has. */
static drey_status explain_name(const char *word, drey_status status, drey_error *err)
{
    const stored_model *all[MOST_FOUND] = {NULL};
    char names[300] = "", near[PATH_MAX], folder[PATH_MAX] = "";
    model_store store;
    size_t n = 0;
    if (find_near(word, near))
        FAIL(err, status,
             "there is no file and no model %s; did you mean %s? drey list shows those that are "
             "here, and drey pull OWNER/NAME fetches others",
             SHOWN_PATH(word), SHOWN_PATH(near));
    if (model_store_open(&store, NULL) == DREY_OK)
        for (snprintf(folder, sizeof folder, "%s", store.folder); n < store.n; n++)
            if (n < MOST_FOUND)
                all[n] = &store.models[n];
    list_names(names, sizeof names, all, n);
    model_store_close(&store);
    if (n == 0 && folder[0])
        FAIL(err, status,
             "there is no file and no model %s, and no models are in %s; drey pull OWNER/NAME "
             "fetches one from Hugging Face",
             SHOWN_PATH(word), SHOWN_PATH(folder));
    if (n == 0)
        FAIL(err, status,
             "there is no file and no model %s; drey pull OWNER/NAME fetches one from Hugging Face",
             SHOWN_PATH(word));
    FAIL(
        err, status,
        "there is no file and no model %s; drey list shows those that are here (%s), and drey pull "
        "OWNER/NAME fetches others",
        SHOWN_PATH(word), names);
}

/* ---- Messages ---- */

drey_status model_path_explain(const char *path, drey_status status, drey_error *err)
{
    if (status == DREY_OK || !path)
        return status;
    char near[PATH_MAX];
    const bool there = access(path, F_OK) == 0;
    const char *name = there ? NULL : name_on_hub(path);
    if (name)
        FAIL(err, status, "%s is no file here; drey pull %s fetches it", SHOWN_PATH(path),
             QUOTED(name));
    if (!there && !strchr(path, '/'))
        return explain_name(path, status, err);
    if (!there && find_near(path, near))
        FAIL(err, status, "there is no file %s; did you mean %s?", SHOWN_PATH(path),
             SHOWN_PATH(near));
    if (holds_safetensors(path))
        FAIL(err, status,
             "%s is a folder of safetensors; drey convert %s MODEL.gguf makes the file that drey "
             "reads",
             SHOWN_PATH(path), QUOTED(path));
    if (path_ends(path, ".safetensors") && there) {
        char folder[PATH_MAX];
        size_t n = path_folder_bytes(path);
        snprintf(folder, sizeof folder, "%.*s", (int)(n > 1 ? n - 1 : n), path);
        FAIL(err, status,
             "%s is not a GGUF file; drey convert %s MODEL.gguf makes one of the folder that it "
             "is in",
             SHOWN_PATH(path), *folder ? QUOTED(folder) : ".");
    }
    return status;
}
