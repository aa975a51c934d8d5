/* Profiles as JSON: see profile_file.h. The file may have been edited by anybody: what is read is
 * checked to the last number, and the library checks the profile again. */
#include "cli/files/profile_file.h"

#include "cli/files/cache_folder.h"
#include "cli/terminal/terminal.h"
#include "common/hash.h"
#include "common/json_buffer.h"
#include "common/path.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static const char format[] = "drey profile 1";
enum { ID_BYTES = 128, WIDEST = 64, MOST_BYTES = 1 << 20 };

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

static bool hash_heads(const models *m, const char *target, uint64_t *hash)
{
    char beside[PATH_MAX];
    drey_drafter_info info;
    drey_drafter_describe(m->drafter, &info);
    if (m->heads)
        return hash_file(m->heads, hash);
    int n = snprintf(beside, sizeof beside, "%s%s", target, info.file_ending);
    return n > 0 && (size_t)n < sizeof beside && hash_file(beside, hash);
}

bool profile_name(char *out, size_t capacity, const models *m, const cli_settings *s)
{
    uint64_t target, draft;
    char drafter[24];
    if (drey_model_identity(m->target, &target, NULL) != DREY_OK)
        return false;
    drey_drafter_info info;
    drey_drafter_describe(m->drafter, &info);
    bool hashed = m->draft || info.file_ending;
    if (m->draft ? drey_model_identity(m->draft, &draft, NULL) != DREY_OK
                 : hashed && !hash_heads(m, s->model, &draft))
        return false;
    if (hashed)
        snprintf(drafter, sizeof drafter, "%016llx", (unsigned long long)draft);
    else
        snprintf(drafter, sizeof drafter, "%s", drey_drafter_name(m->drafter));
    snprintf(out, capacity, "profiles/%016llx-%s-%.16s-%d%s%.0llx.json", (unsigned long long)target,
             drafter, tier_of(s), threads_of(s), s->units ? "-" : "",
             s->units ? (unsigned long long)hash64_of(s->units, strlen(s->units)) : 0);
    return true;
}

/* ---- Writing ---- */

static void put_floats(json_writer *w, const char *key, const float *x)
{
    enum { N = DREY_PROFILE_RANKS * DREY_PROFILE_BINS };
    double numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (double)x[i];
    json_put_numbers(w, key, numbers, N);
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

void profile_put(json_writer *root, const models *m, const cli_settings *s,
                 const drey_pair_report *r)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    json_put_text(root, "format", format);
    json_put_text(root, "cpu", id);
    json_put_text(root, "cpu_tier", tier_of(s));
    json_put_number(root, "threads", r->n_threads);
    json_put_text(root, "version", drey_version());
    json_put_text(root, "target", path_name(s->model));
    json_put_text(root, "draft",
                  m->draft ? path_name(m->draft_path) : drey_drafter_name(m->drafter));
    json_put_number(root, "seconds", r->seconds);
    json_put_number(root, "tokens", (double)r->n_tokens);
    json_put_number(root, "places", (double)r->n_places);
    json_put_number(root, "streamed_bytes_per_pass", (double)r->streamed_bytes_per_pass);
    json_put_numbers(root, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS);
    json_put_numbers(root, "step_s", r->profile.step_s, DREY_PROFILE_NODES);
    json_put_numbers(root, "share", r->trees.share[0], DREY_STATIC_DEPTHS * DREY_STATIC_RANKS);
    put_floats(root, "guessed", r->profile.guessed[0]);
    put_floats(root, "right", r->profile.right[0]);
    json_put_array(root, "trees");
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        put_tree(root, &r->trees.tree[i]);
    json_close(root, ']');
    json_put_number(root, "best", r->trees.best);
}

/* ---- Reading ---- */

/* Times, shares or counts: none is below 0, or more than anybody measures. */
static bool take_numbers(const json_value *root, const char *key, double *out, int n)
{
    const double most = 1e9;
    bool good = json_member_numbers(root, key, out, n) == n;
    for (int i = 0; good && i < n; i++)
        good = out[i] >= 0 && out[i] <= most;
    return good;
}

/* [ranks][bins] */
static bool take_counts(const json_value *root, const char *key, void *out)
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

static bool take_shares(const json_value *root, drey_pair_report *r)
{
    double shares[DREY_STATIC_DEPTHS * DREY_STATIC_RANKS];
    if (!take_numbers(root, "share", shares, DREY_STATIC_DEPTHS * DREY_STATIC_RANKS))
        return false;
    memcpy(r->trees.share, shares, sizeof r->trees.share);
    return true;
}

/* A whole number from least to most; false: there is none. */
static bool take_whole(const json_value *root, const char *key, double least, double most,
                       double *out)
{
    *out = json_member_number(root, key);
    return *out >= least && *out <= most && *out == floor(*out);
}

static bool take_tree(const json_value *from, drey_static_tree *t)
{
    double parent[WIDEST], rank[WIDEST], width;
    int n = json_member_numbers(from, "parent", parent, WIDEST - 1);
    bool good = take_whole(from, "rows", 1, WIDEST, &width) && n >= 0 && n < width &&
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
    bool good = take_whole(root, "threads", 1, DREY_MAX_THREADS, &threads) &&
                take_whole(root, "tokens", 0, 1e15, &tokens) &&
                take_whole(root, "places", 0, 1e15, &places) &&
                take_whole(root, "streamed_bytes_per_pass", 0, 1e15, &bytes) &&
                take_numbers(root, "pass_s", r->profile.pass_s, DREY_PROFILE_ROWS) &&
                take_numbers(root, "step_s", r->profile.step_s, DREY_PROFILE_NODES) &&
                take_shares(root, r) && take_counts(root, "guessed", r->profile.guessed) &&
                take_counts(root, "right", r->profile.right) && trees &&
                trees->n <= DREY_STATIC_TREES && r->seconds >= 0;
    drey_static_trees *all = &r->trees;
    for (const json_value *from = good ? trees->first : NULL; from && good; from = from->next)
        good = take_tree(from, &all->tree[all->n_trees++]);
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

/* What is wrong with it; NULL: nothing, or it is for another tier or number of threads. */
static const char *take(const json_value *root, const cli_settings *s, drey_pair_report *out,
                        bool *fits)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    if (!json_member_is(root, "format", format) || !profile_parse(root, out))
        return "is not what drey tune writes, and is passed over";
    if (!json_member_is(root, "cpu", id) || !json_member_is(root, "version", drey_version()))
        return "was measured on another processor or by another version, and is passed over; drey "
               "tune -m measures again";
    *fits = json_member_is(root, "cpu_tier", tier_of(s)) &&
            (s->units || out->n_threads == threads_of(s));
    return NULL;
}

static bool load(const models *m, const cli_settings *s, drey_pair_report *out, bool aloud)
{
    char name[80], path[PATH_MAX];
    if (!any_was_tuned() || !profile_name(name, sizeof name, m, s) ||
        !cache_path(path, sizeof path, name))
        return false;
    if (access(path, R_OK) != 0)
        return false;
    json_document file;
    bool fits = false;
    const char *wrong = take(json_load_file(&file, path, MOST_BYTES), s, out, &fits);
    json_free(&file);
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
