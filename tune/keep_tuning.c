/* Tunings in a cache folder: see drey/tune.h. */
#include "drey/tune.h"
#include "tune/cache_file.h"

static const char name[] = "tuning.json";

static bool take(const json_value *root, void *out)
{
    drey_tuning *tuning = out;
    *tuning = (drey_tuning){0};
    const char *fetch = json_member_text(root, "fetch"), *tile = json_member_text(root, "tile");
    return drey_fetch_parse(fetch, &tuning->fetch) && drey_tile_parse(tile, &tuning->tile) &&
           json_member_bool(root, "early_amx", &tuning->early_amx);
}

static const cache_kind kind = {.take = take};

drey_status drey_tuning_load(const char *cpu_tier, const char *folder, drey_tuning *tuning,
                             drey_error *err)
{
    return cache_read(folder, name, &kind, cpu_tier, tuning, err);
}

drey_status drey_tuning_store(const char *cpu_tier, const char *folder, const drey_tuning *tuning,
                              drey_error *err)
{
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    cache_put_origin(w, &kind, cpu_tier, 0);
    json_put_text(w, "fetch", drey_fetch_name(tuning->fetch));
    json_put_text(w, "tile", drey_tile_name(tuning->tile));
    json_put_bool(w, "early_amx", tuning->early_amx);
    return cache_write(folder, name, &b, err);
}
