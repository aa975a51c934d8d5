/* Chooses a draft: see drey_choose_draft in drey/tune.h.
 *
 * Models in the target's folder with at most half of its bytes are possible drafts: a larger one
 * would take more time than its guesses save. The largest few of those are opened, because only
 * their headers show whether their tokens are the target's. All ways are planned by one planner,
 * which gathers the target once. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/size_text.h"
#include "draft/drafter_kind.h"
#include "engine/engine.h"
#include "tune/measured.h"
#include "drey/tune.h"

enum { MOST_OPENED = 4, MOST_WAYS = 16 + MOST_OPENED };

typedef struct sibling {
    char path[PATH_MAX];
    uint64_t n_bytes;
} sibling;

typedef struct siblings {
    sibling found[MOST_OPENED]; /* [n], the largest first */
    int n;
} siblings;

static void enter(siblings *all, const sibling *x)
{
    int at = all->n;
    while (at > 0 && all->found[at - 1].n_bytes < x->n_bytes)
        at--;
    if (at == MOST_OPENED)
        return;
    all->n += all->n < MOST_OPENED;
    memmove(&all->found[at + 1], &all->found[at], (size_t)(all->n - 1 - at) * sizeof *x);
    all->found[at] = *x;
}

static bool is_model_file(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".gguf") == 0 && name[0] != '.';
}

static void look_around(const char *target, uint64_t most_bytes, siblings *all)
{
    char folder[PATH_MAX];
    int n = (int)path_folder_bytes(target);
    if (snprintf(folder, sizeof folder, "%.*s", n, target) >= (int)sizeof folder)
        return;
    DIR *dir = opendir(n ? folder : ".");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        sibling x;
        struct stat st;
        int length = snprintf(x.path, sizeof x.path, "%s%s", folder, e->d_name);
        if (!is_model_file(e->d_name) || length >= (int)sizeof x.path ||
            strcmp(x.path, target) == 0 || stat(x.path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        x.n_bytes = (uint64_t)st.st_size;
        if (x.n_bytes <= most_bytes)
            enter(all, &x);
    }
    if (dir)
        closedir(dir);
}

/* ---- What could draft ---- */

typedef struct way {
    drey_drafter drafter;
    drey_model *draft; /* owned */
    bool measured;     /* by drey_tune_pair, */
    bool has_passes;   /* or at least the target's passes with another draft: */
    drey_pair_report known;
    drey_status status; /* status of its plan */
    uint64_t least;     /* budget for it; 0: not known */
    double expected;    /* tokens per second; 0: it is not possible */
    bool streams;       /* its passes read */
} way;

typedef struct ways {
    way of[MOST_WAYS]; /* [n]; of two that are as fast the first one is taken */
    int n;
} ways;

static way *add_way(ways *all, drey_drafter which)
{
    way *w = &all->of[all->n++];
    w->drafter = which;
    return w;
}

static void add_siblings(ways *all, const drey_model *target)
{
    siblings others = {.n = 0};
    look_around(gguf_shard_path(target->file, 0), gguf_file_bytes(target->file) / 2, &others);
    for (int i = 0; i < others.n; i++) {
        drey_model *draft = NULL;
        if (drey_model_open(&draft, others.found[i].path, NULL) == DREY_OK)
            add_way(all, drafter_for(&draft->shape))->draft = draft;
    }
}

static bool has_file(const drey_model *target, const char *ending)
{
    char path[PATH_MAX];
    return draft_file_path(path, target, ending) && access(path, F_OK) == 0;
}

static void list_ways(ways *all, const drey_engine_options *o)
{
    drey_drafter_info info;
    for (int i = 0; drey_drafter_describe((drey_drafter)i, &info); i++) {
        bool there = !info.file_ending || (has_file(o->target, info.file_ending) &&
                                           (info.exits || o->exit == DREY_EXIT_OFF));
        if (!info.takes_model && there && all->n < MOST_WAYS - MOST_OPENED)
            add_way(all, (drey_drafter)i);
    }
    add_siblings(all, o->target);
}

/* ---- What to expect of them ---- */

static drey_engine_options options_with(const drey_engine_options *options, const way *w)
{
    drey_engine_options o = *options;
    o.drafter = w->drafter;
    o.draft = w->draft;
    o.heads = NULL; /* the usual ones */
    o.profile = w->has_passes ? &w->known.profile : NULL;
    return o;
}

static bool knows_passes(const way *w)
{
    return w->measured && w->known.profile.pass_s[0] > 0;
}

/* Profiles were measured at different times, when the machine may have been busy: their tokens and
 * steps are compared, with one's passes for all. */
static void same_passes(ways *all, const drey_profile *of)
{
    for (int i = 0; i < all->n; i++) {
        drey_profile *p = &all->of[i].known.profile;
        if (p == of)
            continue;
        double faster = p->pass_s[0] > 0 ? of->pass_s[0] / p->pass_s[0] : 0;
        memcpy(p->pass_s, of->pass_s, sizeof p->pass_s);
        for (int n = 0; n < DREY_PROFILE_NODES; n++)
            p->step_s[n] *= faster;
        all->of[i].has_passes = true;
    }
}

/* like: the way whose passes count for all; NULL: the first one that has some. */
static void look_up_profiles(ways *all, const drey_engine_options *options, const char *folder,
                             const way *like)
{
    uint64_t target = 0;
    bool any =
        profile_any(folder) && drey_model_identity(options->target, &target, NULL) == DREY_OK;
    for (int i = 0; i < all->n; i++) {
        way *w = &all->of[i];
        const drey_engine_options with = options_with(options, w);
        w->measured = any && profile_find(&with, target, folder, &w->known, NULL) == DREY_OK;
        w->has_passes = w->measured;
        if (!w->measured)
            drey_profile_init(&w->known.profile);
        if (!like && knows_passes(w))
            like = w;
    }
    if (like && knows_passes(like))
        same_passes(all, &like->known.profile);
}

typedef struct prospect {
    drey_planner *planner;
    const drey_engine_options *options;
    drey_speeds *speeds; /* NULL: not known */
    drey_measure measure;
    const char *folder;
} prospect;

static drey_status plan_way(const prospect *p, const way *w, drey_plan *plan, drey_error *err)
{
    drey_engine_options with = options_with(p->options, w);
    if (w->drafter == DREY_DRAFTER_NONE)
        with.policy = DREY_POLICY_NONE;
    TRY(planner_take_draft(p->planner, &with, err));
    drey_status status =
        p->speeds ? drey_planner_speeds(p->planner, p->measure, p->folder, p->speeds, err)
                  : DREY_OK;
    if (status == DREY_ERR_MEMORY) /* the plan names the smallest budget */
        drey_planner_make(p->planner, 0, NULL, plan, NULL);
    return status == DREY_OK ? drey_planner_make(p->planner, 0, p->speeds, plan, err) : status;
}

/* Takes the expectation of its plan. A drafter's file that is not good gives a warning. */
static void expect_of(const prospect *p, way *w, drey_draft_choice *choice)
{
    drey_plan plan = {0};
    drey_error err = {0};
    drey_drafter_info info;
    w->status = plan_way(p, w, &plan, &err);
    drey_drafter_describe(w->drafter, &info);
    if (info.file_ending && w->status != DREY_OK && w->status != DREY_ERR_MEMORY)
        snprintf(choice->warning, sizeof choice->warning, "%s", err.message);
    /* The process grows until the plan that counts is made: a draft has to fit with the margin of
     * the smallest budget. */
    if (w->status == DREY_OK && w->drafter != DREY_DRAFTER_NONE &&
        plan.smallest_budget_bytes > plan.budget_bytes)
        w->status = DREY_ERR_MEMORY;
    w->least = plan.smallest_budget_bytes;
    w->expected = w->status == DREY_OK ? plan.expected_tokens_per_s : 0;
    w->streams = plan.streamed_bytes_per_pass > 0;
}

static void expect_all(const prospect *p, ways *all, drey_draft_choice *choice)
{
    for (int i = 0; i < all->n; i++)
        expect_of(p, &all->of[i], choice);
}

/* Speeds that are known for some ways and not for others would rank them by different machines. */
static bool is_torn(const prospect *p, const ways *all)
{
    bool reads = false;
    for (int i = 0; i < all->n; i++)
        reads = reads || all->of[i].streams;
    return p->speeds && reads && p->speeds->disk_bytes_per_s <= 0 &&
           p->speeds->memory_bytes_per_s > 0;
}

/* ---- The choice ---- */

static double best_of(const ways *all, drey_drafter which)
{
    double best = 0;
    for (int i = 0; i < all->n; i++)
        if (all->of[i].drafter == which && all->of[i].expected > best)
            best = all->of[i].expected;
    return best;
}

/* Speeds are in tokens/s where they are this machine's, else in times of `of`. */
typedef struct unit_of_speed {
    double of; /* 1: tokens/s; 0: there is nothing to compare with */
    bool usual_disk;
} unit_of_speed;

static unit_of_speed unit_of(const prospect *p, const ways *all, const way *taken)
{
    double none = best_of(all, DREY_DRAFTER_NONE);
    const drey_speeds *s = p->speeds;
    bool known = (taken->has_passes && !taken->streams) ||
                 (s && (taken->streams ? s->disk_bytes_per_s : s->memory_bytes_per_s) > 0);
    return (unit_of_speed){known ? 1 : none, taken->streams};
}

/* Lists drafters that compute, then those that look up, then none. */
static void add_others(char *out, size_t capacity, const ways *all, const way *taken, double of)
{
    drey_drafter_info info;
    char rate[16];
    size_t n = 0;
    for (int turn = 0; turn < (of == 1 ? 3 : 2); turn++)
        for (int i = 0; drey_drafter_describe((drey_drafter)i, &info); i++) {
            double expected = best_of(all, (drey_drafter)i) / of;
            int own_turn = (drey_drafter)i == DREY_DRAFTER_NONE ? 2 : info.looks_up;
            if (own_turn == turn && expected > 0 && (drey_drafter)i != taken->drafter &&
                n < capacity)
                n += (size_t)snprintf(out + n, capacity - n, ", %s %s", info.with,
                                      format_rate(rate, expected));
        }
}

/* "by what was measured about 12 tokens/s, lookup 10, no draft 9.8" */
static void say_speeds(char *out, size_t capacity, const prospect *p, const ways *all,
                       const way *taken)
{
    const unit_of_speed in = unit_of(p, all, taken);
    const char *says = taken->measured ? ": by what was measured about" : ": about";
    char others[200] = "", rate[16];
    *out = '\0';
    if (in.of <= 0)
        return;
    add_others(others, sizeof others, all, taken, in.of);
    if (in.of == 1)
        snprintf(out, capacity, "%s %s tokens/s%s", says, format_rate(rate, taken->expected),
                 others);
    else if (taken->drafter == DREY_DRAFTER_NONE && *others)
        snprintf(out, capacity, ": nothing is faster (%s times as fast)", others + 2);
    else if (taken->drafter == DREY_DRAFTER_NONE)
        snprintf(out, capacity, ": nothing is faster");
    else
        snprintf(out, capacity, "%s %s times as fast as no draft%s%s", says,
                 format_rate(rate, taken->expected / in.of),
                 in.usual_disk ? ", on a usual disk" : "", others);
}

static drey_draft_reason reason_of(const ways *all, const way *taken)
{
    drey_draft_reason reason = taken->draft ? DREY_DRAFT_CHOSEN : DREY_DRAFT_NONE_THERE;
    for (int i = 0; i < all->n && reason != DREY_DRAFT_CHOSEN; i++) {
        const way *w = &all->of[i];
        if (!w->draft)
            continue;
        drey_draft_reason its = w->status == DREY_OK           ? DREY_DRAFT_NOT_FASTER
                                : w->status == DREY_ERR_MEMORY ? DREY_DRAFT_NO_ROOM
                                                               : DREY_DRAFT_OTHER_TOKENS;
        reason = its > reason ? its : reason;
    }
    return reason;
}

/* The smallest budget that has room for one of the models that have none now; 0: not known. */
static uint64_t room_for_one(const ways *all)
{
    uint64_t least = 0;
    for (int i = 0; i < all->n; i++) {
        const way *w = &all->of[i];
        if (w->draft && w->status == DREY_ERR_MEMORY && w->least && (!least || w->least < least))
            least = w->least;
    }
    return least;
}

/* Lists what is possible, the taken one first; nothing if no plan can be made: its error says
 * more. */
static void say_why(drey_draft_choice *choice, const prospect *p, const ways *all, const way *taken)
{
    char speeds[280];
    choice->reason = reason_of(all, taken);
    if (choice->reason == DREY_DRAFT_NO_ROOM)
        choice->room_bytes = room_for_one(all);
    if (taken->expected <= 0)
        return;
    say_speeds(speeds, sizeof speeds, p, all, taken);
    if (taken->draft)
        snprintf(choice->why, sizeof choice->why, "%.200s, which is next to the target%s",
                 path_name(gguf_shard_path(taken->draft->file, 0)), speeds);
    else
        snprintf(choice->why, sizeof choice->why, "%s%s", drey_drafter_name(taken->drafter),
                 speeds);
}

static void take(drey_draft_choice *choice, drey_engine_options *options, way *taken)
{
    choice->expected_tokens_per_s = taken->expected;
    choice->draft = taken->draft;
    taken->draft = NULL;
    options->drafter = taken->drafter;
    options->draft = choice->draft;
    options->heads = NULL;
    options->profile = NULL;
}

/* A policy that was named and that drafts needs a draft: no draft only serves to compare with. */
static way *best_way(ways *all, const drey_engine_options *options)
{
    way *best = NULL;
    for (int i = 0; i < all->n; i++) {
        way *w = &all->of[i];
        bool wanted = w->drafter != DREY_DRAFTER_NONE || !policy_class_of(options->policy);
        if (wanted && (!best || w->expected > best->expected))
            best = w;
    }
    return best;
}

/* Chooses, and reports the speeds of the chosen way's own plan. */
static void choose(ways *all, prospect *p, drey_engine_options *options, drey_draft_choice *choice)
{
    list_ways(all, options);
    look_up_profiles(all, options, p->folder, NULL);
    expect_all(p, all, choice);
    if (is_torn(p, all)) {
        p->speeds = NULL;
        expect_all(p, all, choice);
    }
    way *best = best_way(all, options);
    if (knows_passes(best)) {
        look_up_profiles(all, options, p->folder, best);
        expect_all(p, all, choice);
    }
    say_why(choice, p, all, best);
    take(choice, options, best);
    for (int i = 0; i < all->n; i++)
        drey_model_close(&all->of[i].draft);
}

static drey_status choose_by(drey_engine_options *options, drey_speeds *speeds,
                             drey_measure measure, const char *folder, drey_draft_choice *choice,
                             drey_error *err)
{
    drey_planner *planner;
    const drey_engine_options alone = engine_options_alone(options);
    *choice = (drey_draft_choice){.draft = NULL};
    if (options->policy == DREY_POLICY_DRAFT)
        FAIL(err, DREY_ERR_USAGE, "the policy \"draft\" lets the draft model write; give one");
    TRY(planner_open_target(&planner, &alone, err));
    const drey_engine_options asked = *options;
    prospect p = {planner, &asked, speeds, measure, folder};
    ways *all = calloc(1, sizeof *all);
    if (all)
        choose(all, &p, options, choice);
    drey_planner_close(&planner);
    free(all);
    return all ? DREY_OK : error_set(err, DREY_ERR_MEMORY, "not enough memory to choose a draft");
}

drey_status drey_choose_draft(drey_engine_options *options, const char *folder,
                              drey_draft_choice *choice, drey_error *err)
{
    return choose_by(options, NULL, DREY_MEASURE_NOTHING, folder, choice, err);
}

drey_status drey_choose_draft_at(drey_engine_options *options, drey_speeds *speeds,
                                 drey_measure measure, const char *folder,
                                 drey_draft_choice *choice, drey_error *err)
{
    return choose_by(options, speeds, measure, folder, choice, err);
}

void drey_draft_choice_close(drey_draft_choice *choice)
{
    drey_model_close(&choice->draft);
}
