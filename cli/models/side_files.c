/* Files next to a model: see side_files.h.
 *
 * When a model was used is the time of an empty file in the cache folder, used/HASH, whose name is
 * the hash of the model's path: the folder of models may be another user's, and file systems do not
 * keep when files were read. */
#include "cli/models/side_files.h"

#include "cli/files/cache_folder.h"
#include "common/hash.h"
#include "common/new_file.h"
#include "common/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Endings of what drey prepare and train write next to a model, and of what they leave when they
 * are interrupted. */
static const char *const endings[] = {".drey", ".drey-medusa", ".drey-exit", ".eagle.gguf"};
static const char *const leavings[] = {"", ".texts", ".checkpoint", ".partial"};

static bool has(const char *path, const char *ending)
{
    char *name = path_with(path, ending);
    bool there = name && access(name, F_OK) == 0;
    free(name);
    return there;
}

/* ---- Profiles ---- */

/* Returns whether drey tune -m has measured it: a file of the folder begins with its identity. */
static bool has_profile(const char *path)
{
    char folder[PATH_MAX], place[PATH_MAX], begin[24];
    drey_model *model = NULL;
    uint64_t identity;
    bool found = false;
    if (!cache_folder(folder) || snprintf(place, PATH_MAX, "%s/profiles", folder) >= PATH_MAX)
        return false;
    DIR *all = opendir(place);
    if (!all)
        return false;
    if (drey_model_open(&model, path, NULL) == DREY_OK &&
        drey_model_identity(model, &identity, NULL) == DREY_OK) {
        int n = snprintf(begin, sizeof begin, "%016llx-", (unsigned long long)identity);
        for (const struct dirent *e; !found && (e = readdir(all));)
            found = strncmp(e->d_name, begin, (size_t)n) == 0;
    }
    drey_model_close(&model);
    closedir(all);
    return found;
}

/* ---- When it was used ---- */

/* The file whose time says that; false: there is no cache folder. */
static bool use_path(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], *real = realpath(path, NULL);
    const char *name = real ? real : path;
    uint64_t hash = hash64_of(name, strlen(name));
    free(real);
    return cache_folder(folder) &&
           snprintf(out, PATH_MAX, "%s/used/%016llx", folder, (unsigned long long)hash) < PATH_MAX;
}

static bool is_of_store(const char *path)
{
    char folder[PATH_MAX], own[PATH_MAX];
    size_t n = path_folder_bytes(path);
    snprintf(own, sizeof own, "%.*s", (int)n, n ? path : "");
    return model_store_folder(folder, NULL) == DREY_OK && path_same_file(n ? own : ".", folder);
}

void side_files_note_use(const char *path)
{
    char note[PATH_MAX];
    if (!is_of_store(path) || !use_path(path, note))
        return;
    new_file_make_folders(note);
    int fd = open(note, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    futimens(fd, NULL);
    close(fd);
}

void side_files_forget_use(const char *path)
{
    char note[PATH_MAX];
    if (use_path(path, note))
        unlink(note);
}

/* ---- Both ---- */

void side_files_find(side_files *found, const stored_model *m)
{
    char note[PATH_MAX];
    struct stat s;
    *found = (side_files){.sidecar = has(m->path, ".drey"),
                          .heads = has(m->path, ".drey-medusa"),
                          .exits = has(m->path, ".drey-exit"),
                          .eagle = has(m->path, ".eagle.gguf"),
                          .profile = has_profile(m->path)};
    if (use_path(m->path, note) && stat(note, &s) == 0)
        found->used_s = (int64_t)s.st_mtime;
}

const char *side_files_text(char out[80], const side_files *s)
{
    const struct {
        bool there;
        const char *name;
    } all[] = {{s->sidecar, "sidecar"},
               {s->heads, "heads"},
               {s->exits, "exits"},
               {s->eagle, "EAGLE"},
               {s->profile, "profile"}};
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].there)
            n += (size_t)snprintf(out + n, 80 - n, "%s%s", n ? ", " : "", all[i].name);
    return out;
}

static void visit_one(char *path, void (*visit)(void *user, const char *path, bool part),
                      void *user, bool part)
{
    struct stat s;
    if (path && lstat(path, &s) == 0 && !S_ISDIR(s.st_mode))
        visit(user, path, part);
    free(path);
}

void side_files_visit(const stored_model *m, void (*visit)(void *user, const char *path, bool part),
                      void *user)
{
    char part[PATH_MAX], ending[40];
    for (int32_t i = 0; i < m->n_files; i++)
        if (stored_model_part(m, i, part))
            visit_one(strdup(part), visit, user, true);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (size_t k = 0; k < sizeof leavings / sizeof *leavings; k++) {
            snprintf(ending, sizeof ending, "%s%s", endings[i], leavings[k]);
            visit_one(path_with(m->path, ending), visit, user, false);
        }
    for (int32_t i = 0; i < m->n_files; i++) { /* that a file was checked (scripts/get-models.sh) */
        char *mark = NULL;
        if (stored_model_part(m, i, part) &&
            asprintf(&mark, "%.*s.%s.ok", (int)path_folder_bytes(part), part, path_name(part)) >= 0)
            visit_one(mark, visit, user, false);
    }
}
