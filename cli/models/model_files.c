/* The models of a folder: see model_files.h. */
#include "cli/models/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char gguf_end[] = ".gguf", any_part[] = "-00001-of-00002";

/* The bytes of "-00001-of-00002" at the end of text[0..n); 0: it is no part of a model. *first: it
 * is the first one. */
static size_t part_length(const char *text, size_t n, bool *first)
{
    size_t n_part = sizeof any_part - 1;
    if (n <= n_part)
        return 0;
    const char *part = text + n - n_part;
    for (size_t i = 0; i < n_part; i++) {
        bool digit = part[i] >= '0' && part[i] <= '9';
        bool wants_digit = any_part[i] >= '0' && any_part[i] <= '9';
        if (wants_digit ? !digit : part[i] != any_part[i])
            return 0;
    }
    *first = strncmp(part, any_part, strlen("-00001")) == 0;
    return n_part;
}

size_t model_name_length(const char *file)
{
    size_t n = strlen(file), n_end = sizeof gguf_end - 1;
    const char *end = strstr(file, gguf_end);
    bool first = true;
    if (!end || end == file || end + n_end != file + n || file[0] == '.')
        return 0;
    size_t n_part = part_length(file, n - n_end, &first);
    return first ? n - n_end - n_part : 0;
}

static int may_be_model(const struct dirent *entry)
{
    return model_name_length(entry->d_name) > 0;
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Returns whether a file of the folder has the name that a split model would have. */
static bool is_taken(const char *folder, const char *name, size_t n)
{
    char *path = NULL;
    bool taken = asprintf(&path, "%s/%.*s%s", folder, (int)n, name, gguf_end) >= 0 && is_file(path);
    free(path);
    return taken;
}

static drey_status visit_file(const char *folder, const char *file, model_visit *visit, void *user,
                              drey_error *err)
{
    char *path = NULL;
    size_t n = model_name_length(file), n_stem = strlen(file) - (sizeof gguf_end - 1);
    drey_status status = DREY_OK;
    if (n < n_stem && is_taken(folder, file, n))
        n = n_stem;
    if (asprintf(&path, "%s/%s", folder, file) < 0)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the names of models");
    if (is_file(path))
        status = visit(user, path, file, n, err);
    free(path);
    return status;
}

drey_status model_files_visit(const char *folder, model_visit *visit, void *user, drey_error *err)
{
    struct dirent **files = NULL;
    int n = scandir(folder, &files, may_be_model, alphasort);
    if (n < 0)
        FAIL(err, DREY_ERR_IO, "cannot read the folder %s: %s", SHOWN_PATH(folder),
             strerror(errno));
    drey_status status = DREY_OK;
    for (int i = 0; i < n; i++) {
        if (status == DREY_OK)
            status = visit_file(folder, files[i]->d_name, visit, user, err);
        free(files[i]);
    }
    free(files);
    return status;
}
