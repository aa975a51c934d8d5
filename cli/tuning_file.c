/* Reading and writing what `drey tune` found. */
#include "cli/tuning_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/json_file.h"
#include "cli/terminal.h"

enum { MOST_BYTES = 4096, ID_BYTES = 128 };

bool tuning_path(char *out, size_t capacity)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(out, capacity, "%s/drey/tuning.json", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, capacity, "%s/.cache/drey/tuning.json", home);
    return n > 0 && (size_t)n < capacity;
}

static const char *tier_of(const char *cpu_tier)
{
    return cpu_tier ? cpu_tier : drey_cpu_tiers()[0];
}

static bool says(const cJSON *root, const char *key, const char *wanted)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    return cJSON_IsString(item) && strcmp(item->valuestring, wanted) == 0;
}

static bool read_flag(const cJSON *root, const char *key, bool *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    *value = cJSON_IsTrue(item);
    return cJSON_IsBool(item);
}

static bool take(const cJSON *root, const char *path, const char *cpu_tier, drey_tuning *tuning)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    *tuning = (drey_tuning){0};
    if (!read_flag(root, "near_fetch", &tuning->near_fetch) ||
        !read_flag(root, "whole_lines", &tuning->whole_lines)) {
        complain("%s is not what drey tune writes, and is passed over", path);
        return false;
    }
    if (!says(root, "cpu", id) || !says(root, "version", drey_version())) {
        complain("%s was measured on another processor or by another version, and is passed over; "
                 "drey tune measures again",
                 path);
        return false;
    }
    return says(root, "cpu_tier", tier_of(cpu_tier));
}

bool tuning_load(const char *cpu_tier, drey_tuning *tuning)
{
    char path[PATH_MAX], text[MOST_BYTES + 1];
    FILE *file = tuning_path(path, sizeof path) ? fopen(path, "rb") : NULL;
    if (!file)
        return false;
    size_t n = fread(text, 1, MOST_BYTES, file);
    fclose(file);
    text[n] = '\0';
    cJSON *root = cJSON_ParseWithLength(text, n);
    bool good = take(root, path, cpu_tier, tuning);
    cJSON_Delete(root);
    return good;
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

drey_status tuning_save(const char *cpu_tier, const drey_tuning *tuning, drey_error *err)
{
    char path[PATH_MAX], id[ID_BYTES];
    if (!tuning_path(path, sizeof path))
        return fail(err, DREY_ERR_USAGE,
                    "there is no cache directory to write to: set HOME or XDG_CACHE_HOME");
    make_folders(path);
    drey_cpu_id(id, sizeof id);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "cpu", id);
    cJSON_AddStringToObject(root, "cpu_tier", tier_of(cpu_tier));
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddBoolToObject(root, "near_fetch", tuning->near_fetch);
    cJSON_AddBoolToObject(root, "whole_lines", tuning->whole_lines);
    drey_status status = json_write(path, root, err);
    cJSON_Delete(root);
    return status;
}
