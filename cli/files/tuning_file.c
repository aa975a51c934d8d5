/* Reading and writing what `drey tune` found. */
#include "cli/files/tuning_file.h"

#include <limits.h>
#include <unistd.h>

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

static bool take(const json_value *root, const char *path, const char *cpu_tier,
                 drey_tuning *tuning)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    *tuning = (drey_tuning){0};
    if (!json_member_bool(root, "near_fetch", &tuning->near_fetch) ||
        !json_member_bool(root, "whole_lines", &tuning->whole_lines)) {
        complain("%s is not what drey tune writes, and is passed over", path);
        return false;
    }
    if (!json_member_is(root, "cpu", id) || !json_member_is(root, "version", drey_version())) {
        complain("%s was measured on another processor or by another version, and is passed over; "
                 "drey tune measures again",
                 path);
        return false;
    }
    return json_member_is(root, "cpu_tier", tier_of(cpu_tier));
}

bool tuning_load(const char *cpu_tier, drey_tuning *tuning)
{
    char path[PATH_MAX];
    json_document file;
    if (!tuning_path(path, sizeof path) || access(path, R_OK) != 0)
        return false;
    bool good = take(json_load_file(&file, path, MOST_BYTES), path, cpu_tier, tuning);
    json_free(&file);
    return good;
}

drey_status tuning_save(const char *cpu_tier, const drey_tuning *tuning, drey_error *err)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    json_buffer b;
    json_writer *root = json_buffer_begin(&b);
    json_put_text(root, "cpu", id);
    json_put_text(root, "cpu_tier", tier_of(cpu_tier));
    json_put_text(root, "version", drey_version());
    json_put_bool(root, "near_fetch", tuning->near_fetch);
    json_put_bool(root, "whole_lines", tuning->whole_lines);
    return cache_write(file_name, &b, err);
}
