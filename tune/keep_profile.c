/* Profiles in a cache folder: a file for each target with each draft, tier and number of threads,
 * named by what the models are. See drey/tune.h. */
#include "drey/drey_engine.h"
#include "drey/tune.h"
#include "tune/measured.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/path.h"
#include "os/pool.h"
#include "tune/cache_file.h"

enum {
    WIDEST = DREY_STATIC_ROWS,
    N_COUNTS = DREY_PROFILE_RANKS * DREY_PROFILE_BINS,
    N_SHARES = DREY_STATIC_DEPTHS * DREY_STATIC_RANKS
};

static bool take(const json_value *root, void *out)
{
    return profile_parse(root, out);
}

static const cache_kind kind = {.format = "drey profile 1", .take = take};

/* ---- The name ---- */

/* Units say themselves how many they have: 0. */
static int32_t threads_of(const drey_engine_options *o)
{
    if (o->units)
        return 0;
    return o->n_threads ? o->n_threads : pool_default_threads();
}

bool profile_any(const char *folder)
{
    char path[PATH_MAX];
    return folder && snprintf(path, sizeof path, "%s/profiles", folder) < PATH_MAX &&
           access(path, R_OK | X_OK) == 0;
}

/* false: the file cannot be read. */
static bool hash_file(const char *path, uint64_t *hash)
{
    unsigned char bytes[1 << 14];
    hash64 h;
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    hash64_init(&h);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        hash64_add(&h, bytes, n);
    bool good = !ferror(file);
    fclose(file);
    *hash = hash64_get(&h);
    return good;
}

bool draft_file_path(char out[PATH_MAX], const drey_model *target, const char *ending)
{
    return snprintf(out, PATH_MAX, "%s%s", model_path(target), ending) < PATH_MAX;
}

/* The drafter's file: the one that was named, or the usual one. */
static bool hash_own_file(const drey_engine_options *o, const char *ending, uint64_t *hash)
{
    char usual[PATH_MAX];
    if (o->heads)
        return hash_file(o->heads, hash);
    return draft_file_path(usual, o->target, ending) && hash_file(usual, hash);
}

static bool name_of(char out[CACHE_NAME_BYTES], const drey_engine_options *o, uint64_t target)
{
    uint64_t hash = 0;
    char drafter[24];
    drey_drafter_info info;
    drey_drafter_describe(o->drafter, &info);
    if (o->draft ? drey_model_identity(o->draft, &hash, NULL) != DREY_OK
                 : info.file_ending && !hash_own_file(o, info.file_ending, &hash))
        return false;
    if (o->draft || info.file_ending)
        snprintf(drafter, sizeof drafter, "%016llx", (unsigned long long)hash);
    else
        snprintf(drafter, sizeof drafter, "%s", info.name);
    snprintf(out, CACHE_NAME_BYTES, "profiles/%016llx-%s-%.16s-%d%s%.0llx.json",
             (unsigned long long)target, drafter, cache_tier(o->cpu_tier), threads_of(o),
             o->units ? "-" : "",
             o->units ? (unsigned long long)hash64_of(o->units, strlen(o->units)) : 0);
    return true;
}

/* ---- Writing ---- */

static void put_floats(json_writer *w, const char *key, const float *x)
{
    double numbers[N_COUNTS];
    for (int i = 0; i < N_COUNTS; i++)
        numbers[i] = (double)x[i];
    json_put_numbers(w, key, numbers, N_COUNTS);
}

static void put_tree(json_writer *one, const drey_static_tree *t)
{
    json_put_object(one, NULL);
    json_put_number(one, "rows", t->width);
    json_put_number(one, "expected_tokens", t->expected_tokens);
    json_put_number(one, "tokens", t->measured_tokens);
    json_put_bool(one, "refined", t->refined);
    json_put_number(one, "pass_s", t->pass_s);
    json_put_number(one, "draft_s", t->draft_s);
    json_put_number(one, "tokens_per_s", t->tokens_per_s);
    double parent[WIDEST], rank[WIDEST];
    for (int32_t i = 1; i < t->n; i++) {
        parent[i - 1] = t->parent[i];
        rank[i - 1] = t->rank[i] + 1;
    }
    json_put_numbers(one, "parent", parent, t->n - 1);
    json_put_numbers(one, "rank", rank, t->n - 1);
    json_close(one, '}');
}

void profile_put(json_writer *w, const drey_engine_options *o, const drey_pair_report *r)
{
    cache_put_origin(w, &kind, o->cpu_tier, r->n_threads);
    json_put_text(w, "target", path_name(model_path(o->target)));
    json_put_text(w, "draft",
                  o->draft ? path_name(model_path(o->draft)) : drey_drafter_name(o->drafter));
    json_put_number(w, "seconds", r->seconds);
    json_put_number(w, "tokens", (double)r->n_tokens);
    json_put_number(w, "places", (double)r->n_places);
    json_put_number(w, "spread", r->profile.spread);
    json_put_number(w, "streamed_bytes_per_pass", (double)r->streamed_bytes_per_pass);
    json_put_numbers(w, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS);
    json_put_numbers(w, "step_s", r->profile.step_s, DREY_PROFILE_NODES);
    json_put_numbers(w, "share", r->trees.share[0], N_SHARES);
    put_floats(w, "guessed", r->profile.guessed[0]);
    put_floats(w, "right", r->profile.right[0]);
    json_put_array(w, "trees");
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        put_tree(w, &r->trees.tree[i]);
    json_close(w, ']');
    json_put_number(w, "best", r->trees.best);
}

drey_status drey_profile_store(const drey_engine_options *o, const char *folder,
                               const drey_pair_report *report, drey_error *err)
{
    char name[CACHE_NAME_BYTES];
    uint64_t target;
    if (drey_model_identity(o->target, &target, NULL) != DREY_OK || !name_of(name, o, target))
        FAIL(err, DREY_ERR_IO, "cannot read the models again to know them by");
    json_buffer b;
    profile_put(json_buffer_begin(&b), o, report);
    return cache_write(folder, name, &b, err);
}

/* ---- Reading ---- */

static bool take_counts(const json_value *root, const char *key, float *out)
{
    double counts[N_COUNTS];
    bool good = cache_take_numbers(root, key, counts, N_COUNTS);
    for (int i = 0; good && i < N_COUNTS; i++)
        out[i] = (float)counts[i];
    return good;
}

static bool take_tree(const json_value *from, drey_static_tree *t)
{
    double parent[WIDEST], rank[WIDEST], width;
    int n = json_member_numbers(from, "parent", parent, WIDEST - 1);
    bool good = cache_take_whole(from, "rows", 1, WIDEST, &width) && n >= 0 && n < width &&
                json_member_numbers(from, "rank", rank, WIDEST - 1) == n;
    t->width = good ? (int32_t)width : 0;
    t->n = n + 1;
    t->expected_tokens = json_member_number(from, "expected_tokens");
    t->measured_tokens = json_member_number(from, "tokens");
    json_member_bool(from, "refined", &t->refined);
    t->pass_s = json_member_number(from, "pass_s");
    t->draft_s = json_member_number(from, "draft_s");
    t->tokens_per_s = json_member_number(from, "tokens_per_s");
    t->parent[0] = -1;
    for (int i = 1; good && i <= n; i++) {
        good = parent[i - 1] >= 0 && parent[i - 1] < i && rank[i - 1] >= 1 &&
               rank[i - 1] <= DREY_STATIC_RANKS; /* the rest is checked of all together */
        t->parent[i] = good ? (int8_t)parent[i - 1] : 0;
        t->rank[i] = good ? (int8_t)(rank[i - 1] - 1) : 0;
    }
    return good && t->expected_tokens >= 1 && t->measured_tokens >= 1 && t->pass_s > 0 &&
           t->draft_s >= 0 && t->tokens_per_s > 0;
}

bool profile_parse(const json_value *root, drey_pair_report *r)
{
    const json_value *trees = json_member_array(root, "trees");
    double threads = 0, tokens = 0, places = 0, bytes = 0, best = 0;
    *r = (drey_pair_report){.seconds = json_member_number(root, "seconds")};
    bool good = cache_take_whole(root, "threads", 1, DREY_MAX_THREADS, &threads) &&
                cache_take_whole(root, "tokens", 0, 1e15, &tokens) &&
                cache_take_whole(root, "places", 0, 1e15, &places) &&
                cache_take_whole(root, "streamed_bytes_per_pass", 0, 1e15, &bytes) &&
                cache_take_numbers(root, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS) &&
                cache_take_numbers(root, "step_s", r->profile.step_s, DREY_PROFILE_NODES) &&
                cache_take_numbers(root, "share", r->trees.share[0], N_SHARES) &&
                take_counts(root, "guessed", r->profile.guessed[0]) &&
                take_counts(root, "right", r->profile.right[0]) && trees &&
                trees->n <= DREY_STATIC_TREES && r->seconds >= 0;
    drey_static_trees *all = &r->trees;
    for (const json_value *from = good ? trees->first : NULL; from && good; from = from->next)
        good = take_tree(from, &all->tree[all->n_trees++]);
    if (!good || !cache_take_whole(root, "best", 0, all->n_trees ? all->n_trees - 1 : 0, &best))
        return false;
    double spread = json_member_number(root, "spread"); /* files before it have none */
    r->profile.spread = spread >= 0 && spread < 1e6 ? spread : 0;
    r->n_threads = (int32_t)threads;
    r->n_tokens = (int64_t)tokens;
    r->n_places = (int64_t)places;
    r->streamed_bytes_per_pass = (uint64_t)bytes;
    r->trees.best = (int32_t)best;
    r->profile.trees = &r->trees;
    return drey_profile_is_sound(&r->profile);
}

drey_status profile_find(const drey_engine_options *o, uint64_t target, const char *folder,
                         drey_pair_report *report, drey_error *err)
{
    char name[CACHE_NAME_BYTES];
    if (!name_of(name, o, target))
        return cache_missing(err);
    TRY(cache_read(folder, name, &kind, o->cpu_tier, report, err));
    bool fits = o->units || report->n_threads == threads_of(o);
    return fits ? DREY_OK : cache_missing(err);
}

drey_status drey_profile_load(const drey_engine_options *o, const char *folder,
                              drey_pair_report *report, drey_error *err)
{
    uint64_t target;
    if (!profile_any(folder) || drey_model_identity(o->target, &target, NULL) != DREY_OK)
        return cache_missing(err);
    return profile_find(o, target, folder, report, err);
}
