/* Files of a cache folder that are of one model, or of the machine: see measured.h. Files are named
 * by what the model is, and those of a folder begin with that. */
#include "tune/measured.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"

static void visit_file(const char *folder, const char *name, measured_file_fn *visit, void *user)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX && access(path, F_OK) == 0)
        visit(user, path);
}

static void visit_all(const char *folder, const char *part, const char *begins,
                      measured_file_fn *visit, void *user)
{
    char path[PATH_MAX];
    struct dirent **files = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, part) >= PATH_MAX)
        return;
    int n = scandir(path, &files, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = files[i]->d_name, *end = strrchr(name, '.');
        if (strncmp(name, begins, strlen(begins)) == 0 && end && strcmp(end, ".json") == 0)
            visit_file(path, name, visit, user);
        free(files[i]);
    }
    free(files);
}

drey_status measured_files(const drey_model *target, const char *folder, measured_file_fn *visit,
                           void *user, drey_error *err)
{
    static const char *const parts[] = {"profiles", "routes", "units"};
    uint64_t identity;
    char begins[24];
    if (!target) {
        visit_file(folder, "tuning.json", visit, user);
        return DREY_OK;
    }
    TRY(drey_model_identity(target, &identity, err));
    snprintf(begins, sizeof begins, "%016llx", (unsigned long long)identity);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        visit_all(folder, parts[i], begins, visit, user);
    return DREY_OK;
}
