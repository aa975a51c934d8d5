/* Profiles as JSON: see profile_file.h. The file may have been edited by anybody: what is read is
 * checked to the last number, and the library checks the profile again. */
#include "cli/files/profile_file.h"

#include "cli/files/cache_folder.h"
#include "cli/files/drawing.h"
#include "cli/files/json_read.h"
#include "cli/terminal/terminal.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <string.h>

static const char format[] = "drey profile 1";
enum { ID_BYTES = 128, WIDEST = 64 };

static const char *tier_of(const cli_settings *s)
{
    return s->cpu_tier ? s->cpu_tier : drey_cpu_tiers()[0];
}

/* Units say themselves how many they have: 0. */
static int32_t threads_of(const cli_settings *s)
{
    cpu_set_t cores;
    if (s->units)
        return 0;
    if (s->n_threads)
        return s->n_threads;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

/* ---- The name ---- */

/* Telling which model a file is takes some reading: not where nothing was ever tuned. */
static bool any_was_tuned(void)
{
    char path[PATH_MAX];
    DIR *folder = cache_path(path, sizeof path, "profiles") ? opendir(path) : NULL;
    if (folder)
        closedir(folder);
    return folder != NULL;
}

static uint64_t hash_units(const char *text)
{
    uint64_t hash = text ? UINT64_C(0xcbf29ce484222325) : 0;
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* FNV-1a of a file's bytes; false: it cannot be read. */
static bool hash_file(const char *path, uint64_t *hash)
{
    unsigned char bytes[1 << 14];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    *hash = UINT64_C(0xcbf29ce484222325);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        for (size_t i = 0; i < n; i++)
            *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    bool good = !ferror(file);
    fclose(file);
    return good;
}

static bool hash_heads(const models *m, const char *target, uint64_t *hash)
{
    char beside[PATH_MAX];
    if (m->heads)
        return hash_file(m->heads, hash);
    int n = snprintf(beside, sizeof beside, "%s.drey-medusa", target);
    return n > 0 && (size_t)n < sizeof beside && hash_file(beside, hash);
}

bool profile_name(char *out, size_t capacity, const models *m, const cli_settings *s)
{
    uint64_t target, draft;
    char drafter[24];
    if (drey_model_identity(m->target, &target, NULL) != DREY_OK)
        return false;
    bool hashed = m->draft || m->drafter == DREY_DRAFTER_MEDUSA;
    if (m->draft ? drey_model_identity(m->draft, &draft, NULL) != DREY_OK
                 : hashed && !hash_heads(m, s->model, &draft))
        return false;
    if (hashed)
        snprintf(drafter, sizeof drafter, "%016llx", (unsigned long long)draft);
    else
        snprintf(drafter, sizeof drafter, "%s", drey_drafter_name(m->drafter));
    snprintf(out, capacity, "profiles/%016llx-%s-%.16s-%d%s%.0llx.json", (unsigned long long)target,
             drafter, tier_of(s), threads_of(s), s->units ? "-" : "",
             (unsigned long long)hash_units(s->units));
    return true;
}

/* ---- Writing ---- */

static void add_doubles(cJSON *to, const char *key, const double *x, int n)
{
    cJSON_AddItemToObject(to, key, cJSON_CreateDoubleArray(x, n));
}

static cJSON *tree_json(const drey_static_tree *t)
{
    cJSON *one = cJSON_CreateObject();
    cJSON_AddNumberToObject(one, "rows", t->width);
    cJSON_AddNumberToObject(one, "expected_tokens", t->expected_tokens);
    cJSON_AddNumberToObject(one, "tokens", t->measured_tokens);
    cJSON_AddBoolToObject(one, "refined", t->refined);
    cJSON_AddNumberToObject(one, "pass_s", t->pass_s);
    cJSON_AddNumberToObject(one, "draft_s", t->draft_s);
    cJSON_AddNumberToObject(one, "tokens_per_s", t->tokens_per_s);
    double parent[WIDEST], rank[WIDEST];
    for (int32_t i = 1; i < t->n; i++) {
        parent[i - 1] = t->parent[i];
        rank[i - 1] = t->rank[i] + 1;
    }
    add_doubles(one, "parent", parent, t->n - 1);
    add_doubles(one, "rank", rank, t->n - 1);
    return one;
}

cJSON *profile_json(const models *m, const cli_settings *s, const drey_pair_report *r)
{
    char id[ID_BYTES];
    cJSON *root = cJSON_CreateObject();
    drey_cpu_id(id, sizeof id);
    cJSON_AddStringToObject(root, "format", format);
    cJSON_AddStringToObject(root, "cpu", id);
    cJSON_AddStringToObject(root, "cpu_tier", tier_of(s));
    cJSON_AddNumberToObject(root, "threads", r->n_threads);
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddStringToObject(root, "target", drawing_file_name(s->model));
    cJSON_AddStringToObject(
        root, "draft", m->draft ? drawing_file_name(m->draft_path) : drey_drafter_name(m->drafter));
    cJSON_AddNumberToObject(root, "seconds", r->seconds);
    cJSON_AddNumberToObject(root, "tokens", (double)r->n_tokens);
    cJSON_AddNumberToObject(root, "places", (double)r->n_places);
    cJSON_AddNumberToObject(root, "streamed_bytes_per_pass", (double)r->streamed_bytes_per_pass);
    add_doubles(root, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS);
    add_doubles(root, "step_s", r->profile.step_s, DREY_PROFILE_NODES);
    add_doubles(root, "share", r->trees.share[0], DREY_STATIC_DEPTHS * DREY_STATIC_RANKS);
    cJSON_AddItemToObject(
        root, "guessed",
        cJSON_CreateFloatArray(r->profile.guessed[0], DREY_PROFILE_RANKS * DREY_PROFILE_BINS));
    cJSON_AddItemToObject(
        root, "right",
        cJSON_CreateFloatArray(r->profile.right[0], DREY_PROFILE_RANKS * DREY_PROFILE_BINS));
    cJSON *trees = cJSON_AddArrayToObject(root, "trees");
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        cJSON_AddItemToArray(trees, tree_json(&r->trees.tree[i]));
    cJSON_AddNumberToObject(root, "best", r->trees.best);
    return root;
}

/* ---- Reading ---- */

/* Times, shares or counts: none is below 0, or more than anybody measures. */
static bool take_numbers(const cJSON *root, const char *key, double *out, int n)
{
    const double most = 1e9;
    bool good = json_numbers(root, key, out, n) == n;
    for (int i = 0; good && i < n; i++)
        good = out[i] >= 0 && out[i] <= most;
    return good;
}

/* [ranks][bins] */
static bool take_counts(const cJSON *root, const char *key, void *out)
{
    enum { N = DREY_PROFILE_RANKS * DREY_PROFILE_BINS };
    double counts[N];
    float taken[N];
    if (!take_numbers(root, key, counts, N))
        return false;
    for (int i = 0; i < N; i++)
        taken[i] = (float)counts[i];
    memcpy(out, taken, sizeof taken);
    return true;
}

static bool take_shares(const cJSON *root, drey_pair_report *r)
{
    double shares[DREY_STATIC_DEPTHS * DREY_STATIC_RANKS];
    if (!take_numbers(root, "share", shares, DREY_STATIC_DEPTHS * DREY_STATIC_RANKS))
        return false;
    memcpy(r->trees.share, shares, sizeof r->trees.share);
    return true;
}

/* A whole number from least to most; false: there is none. */
static bool take_whole(const cJSON *root, const char *key, double least, double most, double *out)
{
    *out = json_number(root, key);
    return *out >= least && *out <= most && *out == floor(*out);
}

static bool take_tree(const cJSON *from, drey_static_tree *t)
{
    double parent[WIDEST], rank[WIDEST], width;
    int n = json_numbers(from, "parent", parent, WIDEST - 1);
    bool good = take_whole(from, "rows", 1, WIDEST, &width) && n >= 0 && n < width &&
                json_numbers(from, "rank", rank, WIDEST - 1) == n;
    t->width = good ? (int32_t)width : 0;
    t->n = n + 1;
    t->expected_tokens = json_number(from, "expected_tokens");
    t->measured_tokens = json_number(from, "tokens");
    t->refined = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "refined"));
    t->pass_s = json_number(from, "pass_s");
    t->draft_s = json_number(from, "draft_s");
    t->tokens_per_s = json_number(from, "tokens_per_s");
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

bool profile_parse(const cJSON *root, drey_pair_report *r)
{
    const cJSON *trees = cJSON_GetObjectItemCaseSensitive(root, "trees"), *from;
    double threads = 0, tokens = 0, places = 0, bytes = 0, best = 0;
    *r = (drey_pair_report){.seconds = json_number(root, "seconds")};
    bool good = take_whole(root, "threads", 1, DREY_MAX_THREADS, &threads) &&
                take_whole(root, "tokens", 0, 1e15, &tokens) &&
                take_whole(root, "places", 0, 1e15, &places) &&
                take_whole(root, "streamed_bytes_per_pass", 0, 1e15, &bytes) &&
                take_numbers(root, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS) &&
                take_numbers(root, "step_s", r->profile.step_s, DREY_PROFILE_NODES) &&
                take_shares(root, r) && take_counts(root, "guessed", r->profile.guessed) &&
                take_counts(root, "right", r->profile.right) && cJSON_IsArray(trees) &&
                cJSON_GetArraySize(trees) <= DREY_STATIC_TREES && r->seconds >= 0;
    drey_static_trees *all = &r->trees;
    cJSON_ArrayForEach(from, trees) good = good && take_tree(from, &all->tree[all->n_trees++]);
    if (!good || !take_whole(root, "best", 0, all->n_trees ? all->n_trees - 1 : 0, &best))
        return false;
    r->n_threads = (int32_t)threads;
    r->n_tokens = (int64_t)tokens;
    r->n_places = (int64_t)places;
    r->streamed_bytes_per_pass = (uint64_t)bytes;
    r->trees.best = (int32_t)best;
    r->profile.trees = &r->trees;
    return drey_profile_is_sound(&r->profile);
}

static bool says(const cJSON *root, const char *key, const char *wanted)
{
    const char *text = json_text(root, key);
    return text && strcmp(text, wanted) == 0;
}

/* What is wrong with it; NULL: nothing, or it is for another tier or number of threads. */
static const char *take(const cJSON *root, const cli_settings *s, drey_pair_report *out, bool *fits)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    if (!says(root, "format", format) || !profile_parse(root, out))
        return "is not what drey tune writes, and is passed over";
    if (!says(root, "cpu", id) || !says(root, "version", drey_version()))
        return "was measured on another processor or by another version, and is passed over; drey "
               "tune -m measures again";
    *fits = says(root, "cpu_tier", tier_of(s)) && (s->units || out->n_threads == threads_of(s));
    return NULL;
}

static bool load(const models *m, const cli_settings *s, drey_pair_report *out, bool aloud)
{
    char name[80], path[PATH_MAX];
    if (!any_was_tuned() || !profile_name(name, sizeof name, m, s) ||
        !cache_path(path, sizeof path, name))
        return false;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fclose(file);
    drey_error err;
    cJSON *root;
    bool fits = false;
    const char *wrong = "is not what drey tune writes, and is passed over";
    if (json_read(&root, path, "the profile", &err) == DREY_OK) {
        wrong = take(root, s, out, &fits);
        cJSON_Delete(root);
    }
    if (wrong && aloud)
        complain("%s %s", path, wrong);
    return fits;
}

bool profile_load(const models *m, const cli_settings *s, drey_pair_report *out)
{
    return load(m, s, out, true);
}

bool profile_look(const models *m, const cli_settings *s, drey_pair_report *out)
{
    return load(m, s, out, false);
}

void profile_use(models *m, const cli_settings *s, drey_pair_report *known)
{
    bool there = m->drafter != DREY_DRAFTER_NONE && profile_load(m, s, known);
    m->profile = there ? &known->profile : NULL;
}
