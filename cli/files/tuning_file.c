/* Reading and writing what `drey tune` found. */
#include "cli/files/tuning_file.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <string.h>
#include <stdio.h>

#include "cli/files/cache_folder.h"
#include "cli/terminal/terminal.h"

enum { MOST_BYTES = 4096, ID_BYTES = 128 };
static const char file_name[] = "tuning.json";

bool tuning_path(char *out, size_t capacity)
{
    return cache_path(out, capacity, file_name);
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

drey_status tuning_save(const char *cpu_tier, const drey_tuning *tuning, drey_error *err)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "cpu", id);
    cJSON_AddStringToObject(root, "cpu_tier", tier_of(cpu_tier));
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddBoolToObject(root, "near_fetch", tuning->near_fetch);
    cJSON_AddBoolToObject(root, "whole_lines", tuning->whole_lines);
    drey_status status = cache_write(file_name, root, err);
    cJSON_Delete(root);
    return status;
}
