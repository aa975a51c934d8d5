/* The choice of a draft: see auto_draft.h.
 *
 * A model beside the target is one in the same folder of at most half its bytes: a larger one would
 * take more time than its guesses save. The largest few of those are opened, as only their
 * headers tell whether their tokens are the target's. */
#include "cli/commands/auto_draft.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files/profile_file.h"
#include "cli/terminal/terminal.h"
#include "common/path.h"

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
    char path[PATH_MAX];
    bool measured;   /* by drey tune, */
    bool has_passes; /* or at least the target's passes beside another draft: */
    drey_pair_report known;
    double promised; /* tokens a second; 0: it cannot be had */
} way;

typedef struct ways {
    way of[MOST_WAYS]; /* [n]; where two promise the same, the first one is taken */
    int n;
} ways;

static way *add_way(ways *all, drey_drafter drafter)
{
    way *w = &all->of[all->n++];
    w->drafter = drafter;
    return w;
}

/* A drafter's file, after the target's name. */
static bool has_file(const cli_settings *s, const char *ending)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s", s->model, ending);
    return n < (int)sizeof path && access(path, F_OK) == 0;
}

static void add_siblings(ways *all, const models *m, const cli_settings *s)
{
    siblings beside = {.n = 0};
    drey_model_info info;
    drey_model_describe(m->target, &info);
    look_around(s->model, info.file_bytes / 2, &beside);
    for (int i = 0; i < beside.n; i++) {
        drey_model *draft = NULL;
        if (drey_model_open(&draft, beside.found[i].path, NULL) != DREY_OK)
            continue;
        way *w = add_way(all, DREY_DRAFTER_MODEL);
        w->draft = draft;
        memcpy(w->path, beside.found[i].path, sizeof w->path);
    }
}

/* A policy that was named and drafts has to have a draft. */
static bool wants_draft(const cli_settings *s)
{
    int32_t least, most, standard;
    return drey_policy_bounds(s->policy, &least, &most, &standard);
}

static void list_ways(ways *all, const models *m, const cli_settings *s)
{
    drey_drafter_info info;
    for (int i = 0; drey_drafter_describe((drey_drafter)i, &info); i++) {
        bool there = !info.file_ending ||
                     (has_file(s, info.file_ending) && (info.exits || s->exit == DREY_EXIT_OFF));
        bool wanted = (drey_drafter)i != DREY_DRAFTER_NONE || !wants_draft(s);
        if (!info.takes_model && there && wanted && all->n < MOST_WAYS - MOST_OPENED)
            add_way(all, (drey_drafter)i);
    }
    add_siblings(all, m, s);
}

/* ---- What they promise ---- */

static models models_with(const models *m, const way *w)
{
    models with = *m;
    with.drafter = w->drafter;
    with.draft = w->draft;
    with.heads = NULL; /* those beside the target */
    with.profile = NULL;
    return with;
}

/* Profiles were measured at different times of a machine that may have been busy: what is compared
 * are their tokens and steps, at passes as long as in the first of them, for all. */
static void same_passes(ways *all)
{
    const drey_profile *first = NULL;
    for (int i = 0; i < all->n && !first; i++)
        if (all->of[i].measured && all->of[i].known.profile.pass_s[0] > 0)
            first = &all->of[i].known.profile;
    for (int i = 0; first && i < all->n; i++) {
        drey_profile *p = &all->of[i].known.profile;
        if (p == first)
            continue;
        double faster = p->pass_s[0] > 0 ? first->pass_s[0] / p->pass_s[0] : 0;
        memcpy(p->pass_s, first->pass_s, sizeof p->pass_s);
        for (int n = 0; n < DREY_PROFILE_NODES; n++)
            p->step_s[n] *= faster;
        all->of[i].has_passes = true;
    }
}

static void look_up_profiles(ways *all, const models *m, const cli_settings *s)
{
    for (int i = 0; i < all->n; i++) {
        way *w = &all->of[i];
        models with = models_with(m, w);
        w->measured = profile_look(&with, s, &w->known);
        w->has_passes = w->measured;
        if (!w->measured)
            drey_profile_init(&w->known.profile);
    }
    same_passes(all);
}

/* What the plan promises. Where a drafter's file is not good there is a word. */
static void promise(const models *m, const cli_settings *s, int32_t n_context, way *w)
{
    drey_plan plan;
    drey_error err = {0};
    models with = models_with(m, w);
    drey_engine_options options = models_engine_options(&with, s, n_context);
    if (w->drafter == DREY_DRAFTER_NONE)
        options.policy = DREY_POLICY_NONE;
    if (w->has_passes)
        options.profile = &w->known.profile;
    drey_status status = drey_plan_make(&options, NULL, &plan, &err);
    drey_drafter_info info;
    drey_drafter_describe(w->drafter, &info);
    if (info.file_ending && status != DREY_OK && status != DREY_ERR_MEMORY)
        complain("warning: %s", err.message);
    w->promised = status == DREY_OK ? plan.expected_tokens_per_s : 0;
}

/* ---- The choice ---- */

static double best_of(const ways *all, drey_drafter drafter)
{
    double best = 0;
    for (int i = 0; i < all->n; i++)
        if (all->of[i].drafter == drafter && all->of[i].promised > best)
            best = all->of[i].promised;
    return best;
}

/* Those that compute, then those that look up, then none. */
static void add_others(char *out, size_t capacity, const ways *all, const way *taken)
{
    drey_drafter_info info;
    size_t n = 0;
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; drey_drafter_describe((drey_drafter)i, &info); i++) {
            double promised = best_of(all, (drey_drafter)i);
            int own_turn = (drey_drafter)i == DREY_DRAFTER_NONE ? 2 : info.looks_up;
            if (own_turn == turn && promised > 0 && (drey_drafter)i != taken->drafter &&
                n < capacity)
                n += (size_t)snprintf(out + n, capacity - n, ", %s %.3g", info.with, promised);
        }
}

/* What can be had, the taken one first; nothing where no plan can be made: its error says more. */
static void say_why(models *m, const ways *all, const way *taken)
{
    const char *says = taken->measured ? "by what was measured it promises" : "it promises";
    char others[160] = "";
    add_others(others, sizeof others, all, taken);
    if (taken->promised <= 0)
        return;
    if (taken->drafter == DREY_DRAFTER_MODEL)
        snprintf(m->why, sizeof m->why, "%.200s, which lies beside the target: %s %.3g tokens/s%s",
                 path_name(taken->path), says, taken->promised, others);
    else
        snprintf(m->why, sizeof m->why, "%s%s: %s %.3g tokens/s%s",
                 drey_drafter_name(taken->drafter),
                 best_of(all, DREY_DRAFTER_MODEL) > 0 ? "" : ", as no model beside the target fits",
                 says, taken->promised, others);
}

static void take(models *m, way *w)
{
    drey_model_close(&m->draft);
    m->drafter = w->drafter;
    m->draft = w->draft;
    memcpy(m->draft_path, w->path, sizeof m->draft_path);
    w->draft = NULL;
}

void auto_draft_choose(models *m, const cli_settings *s, int32_t n_context)
{
    ways *all = s->draft_auto ? calloc(1, sizeof *all) : NULL;
    if (!all)
        return;
    list_ways(all, m, s);
    look_up_profiles(all, m, s);
    way *best = &all->of[0];
    for (int i = 0; i < all->n; i++) {
        promise(m, s, n_context, &all->of[i]);
        if (all->of[i].promised > best->promised)
            best = &all->of[i];
    }
    take(m, best);
    say_why(m, all, best);
    for (int i = 0; i < all->n; i++)
        drey_model_close(&all->of[i].draft);
    free(all);
}
