/* Paths that are no model: see model_path.h. */
#include "cli/files/model_path.h"

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
    static const char *const hubs[] = {"https://huggingface.co/", "https://hf.co/",
                                       "huggingface.co/", "hf.co/"};
    char owner[128];
    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        if (strncmp(path, hubs[i], strlen(hubs[i])) == 0)
            return path + strlen(hubs[i]);
    const char *slash = strchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= sizeof owner || path[0] == '.' || path[0] == '~' || !slash[1] ||
        strchr(slash + 1, '/') || path_ends(path, ".gguf"))
        return NULL;
    snprintf(owner, sizeof owner, "%.*s", (int)n, path);
    return access(owner, F_OK) == 0 ? NULL : path;
}

drey_status model_path_explain(const char *path, drey_status status, drey_error *err)
{
    if (status == DREY_OK || !path)
        return status;
    const char *name = access(path, F_OK) != 0 ? name_on_hub(path) : NULL;
    if (name)
        FAIL(err, status, "%s is no file here; drey pull %s fetches it", SHOWN_PATH(path),
             SHOWN_PATH(name));
    if (holds_safetensors(path))
        FAIL(err, status,
             "%s is a folder of safetensors; drey convert %s MODEL.gguf makes the file that drey "
             "reads",
             SHOWN_PATH(path), SHOWN_PATH(path));
    if (path_ends(path, ".safetensors") && access(path, F_OK) == 0) {
        const char *slash = strrchr(path, '/');
        FAIL(err, status,
             "%s is not a GGUF file; drey convert %.*s MODEL.gguf makes one of the folder that it "
             "is in",
             SHOWN_PATH(path), slash ? (int)(slash - path) : 1, slash ? path : ".");
    }
    return status;
}
