/* The user's cache folder: see cache_folder.h. */
#include "cli/files/cache_folder.h"

#include "cli/terminal/terminal.h"
#include "common/new_file.h"

#include <stdlib.h>

const char *cache_folder(char out[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/drey", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/.cache/drey", home);
    return n > 0 && n < PATH_MAX ? out : NULL;
}

drey_status cache_folder_find(char out[PATH_MAX], drey_error *err)
{
    if (!cache_folder(out))
        FAIL(err, DREY_ERR_USAGE,
             "there is no cache directory to write to: set HOME or XDG_CACHE_HOME");
    return DREY_OK;
}

drey_status cache_place(char *out, size_t capacity, const char *name, drey_error *err)
{
    char folder[PATH_MAX];
    TRY(cache_folder_find(folder, err));
    if ((size_t)snprintf(out, capacity, "%s/%s", folder, name) >= capacity)
        FAIL(err, DREY_ERR_USAGE, "the path of the cache directory is too long: %s", folder);
    new_file_make_folders(out);
    return DREY_OK;
}
