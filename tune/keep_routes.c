/* Routes of a mixture of experts in a cache folder: a file for each model. See drey/tune.h. */
#include "drey/tune.h"
#include "tune/measured.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "common/num.h"
#include "common/path.h"
#include "tune/cache_file.h"

static bool take(const json_value *root, void *out)
{
    return routes_parse(root, out);
}

static const cache_kind kind = {.format = "drey routes 1", .take = take};

static drey_status name_of(char out[CACHE_NAME_BYTES], const drey_model *target, drey_error *err)
{
    uint64_t identity;
    TRY(drey_model_identity(target, &identity, err));
    snprintf(out, CACHE_NAME_BYTES, "routes/%016llx.json", (unsigned long long)identity);
    return DREY_OK;
}

/* Distances that there can be. */
static int n_distances(const drey_routes *r)
{
    return min_i32(r->n_experts, DREY_ROUTE_SLOTS);
}

void routes_put(json_writer *w, const drey_model *target, const drey_routes *r)
{
    double distance[DREY_ROUTE_SLOTS];
    for (int i = 0; i < n_distances(r); i++)
        distance[i] = r->distance[i];
    cache_put_origin(w, &kind, NULL, 0);
    json_put_text(w, "target", path_name(model_path(target)));
    json_put_number(w, "experts", r->n_experts);
    json_put_number(w, "tokens", (double)r->n_tokens);
    json_put_numbers(w, "distance", distance, n_distances(r));
}

bool routes_parse(const json_value *root, drey_routes *r)
{
    double n_experts = 0, tokens = 0, distance[DREY_ROUTE_SLOTS];
    *r = (drey_routes){.n_tokens = 0};
    if (!cache_take_whole(root, "experts", 1, 1 << 20, &n_experts) ||
        !cache_take_whole(root, "tokens", 1, 1e15, &tokens))
        return false;
    r->n_experts = (int32_t)n_experts;
    r->n_tokens = (int64_t)tokens;
    if (!cache_take_numbers(root, "distance", distance, n_distances(r)))
        return false;
    for (int i = 0; i < n_distances(r); i++)
        r->distance[i] = (uint32_t)distance[i];
    return drey_routes_are_sound(r);
}

drey_status drey_routes_load(const drey_model *target, const char *folder, drey_routes *routes,
                             drey_error *err)
{
    char name[CACHE_NAME_BYTES], path[PATH_MAX];
    drey_experts experts;
    bool any = folder && snprintf(path, sizeof path, "%s/routes", folder) < PATH_MAX &&
               access(path, R_OK | X_OK) == 0; /* to know which model it is takes some reading */
    if (!any || !drey_model_experts(target, &experts) || name_of(name, target, NULL) != DREY_OK)
        return cache_missing(err);
    TRY(cache_read(folder, name, &kind, NULL, routes, err));
    return routes->n_experts == experts.n_experts ? DREY_OK : cache_missing(err);
}

drey_status drey_routes_store(const drey_model *target, const char *folder,
                              const drey_routes *routes, drey_error *err)
{
    char name[CACHE_NAME_BYTES];
    json_buffer b;
    TRY(name_of(name, target, err));
    routes_put(json_buffer_begin(&b), target, routes);
    return cache_write(folder, name, &b, err);
}
