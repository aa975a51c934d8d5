/* The choice of a draft: see auto_draft.h.
 *
 * A model beside the target is one in the same folder of at most half its bytes: a larger one would
 * take more time than its guesses save. The largest few of those are opened, as only their
 * headers tell whether their tokens are the target's. */
#include "cli/auto_draft.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/terminal.h"

enum { MOST_OPENED = 4 };

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
    const char *slash = strrchr(target, '/');
    int n = slash ? (int)(slash - target) + 1 : 0;
    if (snprintf(folder, sizeof folder, "%.*s", n, target) >= (int)sizeof folder)
        return;
    DIR *dir = opendir(slash ? folder : ".");
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

/* Tokens a second that the plan promises; 0: it cannot be made. */
static double promise(const models *m, const cli_settings *s, int32_t n_context,
                      drey_drafter drafter, const drey_model *draft)
{
    drey_plan plan;
    drey_engine_options options = models_engine_options(m, s, n_context);
    options.drafter = drafter;
    options.draft = draft;
    if (drafter == DREY_DRAFTER_NONE)
        options.policy = DREY_POLICY_NONE;
    drey_status status = drey_plan_make(&options, NULL, &plan, NULL);
    return status == DREY_OK ? plan.expected_tokens_per_s : 0;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void take(models *m, drey_drafter drafter, drey_model **draft, const char *path)
{
    drey_model_close(&m->draft);
    m->drafter = drafter;
    m->draft = draft ? *draft : NULL;
    if (draft)
        *draft = NULL;
    snprintf(m->draft_path, sizeof m->draft_path, "%s", path);
}

/* The best of those that can be opened and have the target's tokens; 0: there is none. */
static double try_siblings(models *m, const cli_settings *s, int32_t n_context, double best)
{
    siblings all = {.n = 0};
    drey_model_info info;
    double best_model = 0;
    drey_model_describe(m->target, &info);
    look_around(s->model, info.file_bytes / 2, &all);
    for (int i = 0; i < all.n; i++) {
        drey_model *draft = NULL;
        if (drey_model_open(&draft, all.found[i].path, NULL) != DREY_OK)
            continue;
        double promised = promise(m, s, n_context, DREY_DRAFTER_MODEL, draft);
        best_model = promised > best_model ? promised : best_model;
        if (promised > best) {
            best = promised;
            take(m, DREY_DRAFTER_MODEL, &draft, all.found[i].path);
        }
        drey_model_close(&draft);
    }
    return best_model;
}

typedef struct promises { /* tokens a second; 0: it cannot be had */
    double model, self, heads, lookup, none;
} promises;

/* What can be had, the taken one first; nothing where no plan can be made: its error says more. */
static void say_why(models *m, const promises *p)
{
    const struct {
        drey_drafter drafter;
        const char *name;
        double promised;
    } all[] = {{DREY_DRAFTER_MODEL, "the model beside it", p->model},
               {DREY_DRAFTER_SELF, "its planes", p->self},
               {DREY_DRAFTER_MEDUSA, "its heads", p->heads},
               {DREY_DRAFTER_LOOKUP, "lookup", p->lookup},
               {DREY_DRAFTER_NONE, "no draft", p->none}};
    char others[160] = "";
    double taken = 0;
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].drafter == m->drafter)
            taken = all[i].promised;
        else if (all[i].promised > 0)
            n += (size_t)snprintf(others + n, sizeof others - n, ", %s %.3g", all[i].name,
                                  all[i].promised);
    if (taken <= 0)
        return;
    if (m->drafter == DREY_DRAFTER_MODEL)
        snprintf(m->why, sizeof m->why,
                 "%.200s, which lies beside the target: it promises %.3g tokens/s%s",
                 file_name(m->draft_path), taken, others);
    else
        snprintf(m->why, sizeof m->why, "%s%s: it promises %.3g tokens/s%s",
                 drey_drafter_name(m->drafter),
                 p->model > 0 ? "" : ", as no model beside the target fits", taken, others);
}

/* Those beside the target; 0, and a word about it, where they are not good. */
static double promise_of_heads(const models *m, const cli_settings *s, int32_t n_context)
{
    char path[PATH_MAX];
    drey_error err = {0};
    drey_plan plan;
    if (s->exit != DREY_EXIT_OFF || /* a pass that ends early has no state for heads */
        snprintf(path, sizeof path, "%s.drey-medusa", s->model) >= (int)sizeof path ||
        access(path, F_OK) != 0)
        return 0;
    drey_engine_options options = models_engine_options(m, s, n_context);
    options.drafter = DREY_DRAFTER_MEDUSA;
    options.draft = NULL;
    drey_status status = drey_plan_make(&options, NULL, &plan, &err);
    if (status != DREY_OK && status != DREY_ERR_MEMORY)
        complain("warning: %s", err.message);
    return status == DREY_OK ? plan.expected_tokens_per_s : 0;
}

void auto_draft_choose(models *m, const cli_settings *s, int32_t n_context)
{
    if (!s->draft_auto)
        return;
    promises p = {.self = promise(m, s, n_context, DREY_DRAFTER_SELF, NULL),
                  .heads = promise_of_heads(m, s, n_context),
                  .lookup = promise(m, s, n_context, DREY_DRAFTER_LOOKUP, NULL),
                  .none = promise(m, s, n_context, DREY_DRAFTER_NONE, NULL)};
    double best = p.none;
    take(m, DREY_DRAFTER_NONE, NULL, "");
    if (p.lookup > best) {
        best = p.lookup;
        take(m, DREY_DRAFTER_LOOKUP, NULL, "");
    }
    if (p.self > best) {
        best = p.self;
        take(m, DREY_DRAFTER_SELF, NULL, "");
    }
    if (p.heads > best) {
        best = p.heads;
        take(m, DREY_DRAFTER_MEDUSA, NULL, "");
    }
    p.model = try_siblings(m, s, n_context, best);
    say_why(m, &p);
}
