/* The folder of downloaded models: see model_store.h. */
#include "cli/models/model_store.h"

#include "cli/files/cache_folder.h"
#include "cli/models/model_files.h"
#include "cli/pull/hub.h"
#include "common/path.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ending[] = ".gguf", first_part[] = "-00001-of-";

drey_status model_store_folder(char out[PATH_MAX], drey_error *err)
{
    const char *said = getenv("DREY_MODELS");
    char cache[PATH_MAX];
    if (!said || !*said)
        TRY(cache_folder_find(cache, err));
    int n = said && *said ? snprintf(out, PATH_MAX, "%s", said)
                          : snprintf(out, PATH_MAX, "%s/models", cache);
    if (n >= PATH_MAX - 64)
        FAIL(err, DREY_ERR_USAGE, "the path of the folder of models is too long");
    return DREY_OK;
}

/* ---- Parts ---- */

/* Returns how many parts a file is the first of; 1: it is the whole model. */
static int32_t count_parts(const char *file, size_t n_name)
{
    int of = 0;
    const char *part = file + n_name;
    if (strncmp(part, first_part, sizeof first_part - 1) != 0 ||
        sscanf(part + sizeof first_part - 1, "%5d", &of) != 1 || of < 1)
        return 1;
    return of;
}

bool stored_model_part(const stored_model *m, int32_t i, char out[PATH_MAX])
{
    size_t before = path_folder_bytes(m->path) + strlen(m->name);
    int n = m->n_files == 1 ? snprintf(out, PATH_MAX, "%s", m->path)
                            : snprintf(out, PATH_MAX, "%.*s-%05d-of-%05d%s", (int)before, m->path,
                                       i + 1, m->n_files, ending);
    return n < PATH_MAX;
}

static uint64_t bytes_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
}

/* ---- The list ---- */

static drey_status add(void *user, const char *path, const char *name, size_t n, drey_error *err)
{
    model_store *s = user;
    char part[PATH_MAX];
    stored_model *larger = realloc(s->models, (s->n + 1) * sizeof *larger);
    stored_model m = {.path = strdup(path), .n_files = count_parts(name, n)};
    if (larger)
        s->models = larger;
    if (!larger || !m.path) {
        free(m.path);
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the names of models");
    }
    snprintf(m.name, sizeof m.name, "%.*s", (int)n, name);
    for (int32_t i = 0; i < m.n_files && stored_model_part(&m, i, part); i++)
        m.n_bytes += bytes_of(part);
    if (bytes_of(path) == 0)
        free(m.path);
    else
        s->models[s->n++] = m;
    return DREY_OK;
}

drey_status model_store_open(model_store *s, drey_error *err)
{
    char folder[PATH_MAX];
    *s = (model_store){.n = 0};
    TRY(model_store_folder(folder, err));
    return model_store_list(s, folder, err);
}

drey_status model_store_list(model_store *s, const char *folder, drey_error *err)
{
    *s = (model_store){.n = 0};
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    bool none = access(s->folder, F_OK) != 0 && errno == ENOENT;
    return none ? DREY_OK : model_files_visit(s->folder, add, s, err);
}

void model_store_close(model_store *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->models[i].path);
    free(s->models);
    s->models = NULL;
    s->n = 0;
}

/* ---- Names ---- */

/* Meaning of a word: how a name begins, and a word that comes later in it. */
typedef struct wanted {
    char name[NAME_MAX + 1], tag[64];
} wanted;

static bool ends_so(const char *text, size_t n, const char *end)
{
    size_t n_end = strlen(end);
    return n > n_end && strncasecmp(text + n - n_end, end, n_end) == 0;
}

/* False: the word is a path, and no name. */
static bool read_word(const char *word, wanted *w)
{
    *w = (wanted){.name = ""};
    const char *at = hub_after_address(word);
    bool of_hub = at != word;
    const char *slash = strrchr(at, '/');
    if (strchr("./~", *word) || (slash && !of_hub && strchr(at, '/') != slash))
        return false;
    at = slash ? slash + 1 : at;
    const char *colon = strrchr(at, ':');
    size_t n = colon ? (size_t)(colon - at) : strlen(at);
    if (ends_so(at, n, "-gguf"))
        n -= 5;
    else if (ends_so(at, n, ending))
        n -= sizeof ending - 1;
    if (n == 0 || n >= sizeof w->name || (colon && strlen(colon + 1) >= sizeof w->tag))
        return false;
    snprintf(w->name, sizeof w->name, "%.*s", (int)n, at);
    snprintf(w->tag, sizeof w->tag, "%s", colon ? colon + 1 : "");
    return true;
}

static bool begins_so(const stored_model *m, const wanted *w)
{
    size_t n = strlen(w->name);
    return strncasecmp(m->name, w->name, n) == 0 && (!*w->tag || hub_has_word(m->name + n, w->tag));
}

size_t model_store_find(const model_store *s, const char *word, const stored_model **found,
                        size_t room)
{
    wanted w;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(path_name(s->models[i].path), word) == 0 ||
            strcasecmp(s->models[i].name, word) == 0) {
            found[0] = &s->models[i];
            return 1;
        }
    if (!read_word(word, &w))
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (!*w.tag && strcasecmp(s->models[i].name, w.name) == 0) {
            found[0] = &s->models[i];
            return 1;
        }
    for (size_t i = 0; i < s->n; i++)
        if (begins_so(&s->models[i], &w)) {
            if (n < room)
                found[n] = &s->models[i];
            n++;
        }
    return n;
}

/* Letters to insert, remove or change until a word is how a name begins. */
static size_t letters_to_change(const char *word, const char *name)
{
    size_t row[NAME_MAX + 2], n = strlen(name), least = NAME_MAX;
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; word[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 1; k <= n; k++) {
            size_t changed =
                diagonal + (tolower((unsigned char)word[i]) != tolower((unsigned char)name[k - 1]));
            size_t other = 1 + (row[k - 1] < row[k] ? row[k - 1] : row[k]);
            diagonal = row[k];
            row[k] = changed < other ? changed : other;
        }
    }
    for (size_t k = 0; k <= n; k++)
        least = row[k] < least ? row[k] : least;
    return least;
}

const stored_model *model_store_near(const model_store *s, const char *word)
{
    const stored_model *near = NULL;
    wanted w;
    if (!read_word(word, &w) || strlen(w.name) < 3)
        return NULL;
    size_t best = strlen(w.name) / 4 + 1; /* too many */
    best = best > 5 ? 5 : best;
    for (size_t i = 0; i < s->n; i++) {
        size_t n = letters_to_change(w.name, s->models[i].name);
        if (n < best) {
            best = n;
            near = &s->models[i];
        }
    }
    return near;
}
