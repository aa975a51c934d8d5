/* Names in the user's cache folder: see cache_folder.h. */
#include "cli/files/cache_folder.h"

#include "cli/files/json_file.h"
#include "cli/terminal/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cache_path(char *out, size_t capacity, const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(out, capacity, "%s/drey/%s", cache, name);
    else if (home && home[0] == '/')
        n = snprintf(out, capacity, "%s/.cache/drey/%s", home, name);
    return n > 0 && (size_t)n < capacity;
}

/* Makes the folders that a path names before its last part. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* what is not there is told when the file is written */
        *slash = '/';
    }
}

drey_status cache_place(char *out, size_t capacity, const char *name, drey_error *err)
{
    if (!cache_path(out, capacity, name))
        FAIL(err, DREY_ERR_USAGE,
             "there is no cache directory to write to: set HOME or XDG_CACHE_HOME");
    make_folders(out);
    return DREY_OK;
}

drey_status cache_write(const char *name, json_buffer *b, drey_error *err)
{
    char path[PATH_MAX];
    drey_status status = cache_place(path, sizeof path, name, err);
    if (status == DREY_OK)
        return json_write(path, b, err);
    free(json_buffer_end(b));
    return status;
}
