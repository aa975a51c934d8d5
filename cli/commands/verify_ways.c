/* The ways of drey verify: see verify_ways.h. */
#include "cli/commands/verify_ways.h"

#include "common/error.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct way_list {
    verify_way *ways; /* [n] */
    int32_t n;
} way_list;

__attribute__((format(printf, 3, 4))) static verify_way *add(way_list *list, const verify_way *like,
                                                             const char *name, ...)
{
    verify_way *way = &list->ways[list->n++];
    va_list args;
    *way = *like;
    va_start(args, name);
    vsnprintf(way->name, sizeof way->name, name, args);
    va_end(args);
    return way;
}

/* Kernels of other tiers. The tier "float" computes with other numbers, and is no such way. Plain C
 * is slow: a few tokens of small models, as a prompt of a large one takes it minutes. */
static void add_tiers(way_list *list, const verify_way *plain, const drey_model *target)
{
    enum { PLAIN_C_TEXTS = 2, PLAIN_C_TOKENS = 8, PLAIN_C_BYTES = 256 << 20 };
    drey_model_info info;
    drey_model_describe(target, &info);
    const char *const *tiers = drey_cpu_tiers();
    for (int i = 1; tiers[i] && list->n < VERIFY_MOST_WAYS / 2; i++) {
        bool slow = strcmp(tiers[i], "ref") == 0;
        if (strcmp(tiers[i], "float") == 0 || (slow && info.weight_bytes > PLAIN_C_BYTES))
            continue;
        verify_way *way = add(list, plain, "kernels of %s", tiers[i]);
        way->cpu_tier = tiers[i];
        if (slow) {
            way->most_texts = PLAIN_C_TEXTS;
            way->most_tokens = PLAIN_C_TOKENS;
        }
    }
}

/* Returns whether the file is there, which says only that it is worth trying. */
static bool has_file(drey_drafter drafter, const char *model)
{
    char path[PATH_MAX];
    drey_drafter_info info;
    drey_drafter_describe(drafter, &info);
    int n = snprintf(path, sizeof path, "%s%s", model, info.file_ending ? info.file_ending : "");
    return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
}

/* Adds the ways of a drafter: with the policy that was asked for alone, if one was. */
static void add_drafter(way_list *list, const verify_way *plain, drey_drafter drafter,
                        drey_policy asked)
{
    static const drey_policy usual[] = {DREY_POLICY_OPTIMAL, DREY_POLICY_SEQUENCE,
                                        DREY_POLICY_EDGELLM};
    const drey_policy *policies = asked == DREY_POLICY_AUTO ? usual : &asked;
    const size_t n = asked == DREY_POLICY_AUTO ? sizeof usual / sizeof *usual : 1;
    drey_drafter_info info;
    drey_drafter_describe(drafter, &info);
    for (size_t i = 0; i < n; i++) {
        verify_way *way =
            add(list, plain, "draft %s, policy %s", info.name, drey_policy_name(policies[i]));
        way->drafter = drafter;
        way->policy = policies[i];
    }
}

/* The drafter that costs a step each; lookup where there is none. */
static drey_drafter best_of(const models *m)
{
    return m->drafter != DREY_DRAFTER_NONE ? m->drafter : DREY_DRAFTER_LOOKUP;
}

int32_t verify_ways(verify_way ways[VERIFY_MOST_WAYS], const models *m, const cli_settings *s)
{
    const verify_way one = {.policy = DREY_POLICY_NONE,
                            .n_threads = 1,
                            .n_sessions = 1,
                            .most_texts = INT32_MAX,
                            .most_tokens = INT32_MAX};
    verify_way plain = one;
    drey_drafter_info info;
    way_list list = {.ways = ways};
    plain.n_threads = 0;
    add(&list, &one, "no draft, one thread: the reference");
    add(&list, &plain, "no draft, all threads");
    add(&list, &plain, "prompts in passes of 5 rows")->prompt_chunk = 5;
    add(&list, &plain, "no draft, the least memory")->least = true;
    add_tiers(&list, &plain, m->target);
    for (int i = 1; drey_drafter_describe((drey_drafter)i, &info); i++) {
        const drey_drafter drafter = (drey_drafter)i;
        bool there = info.takes_model ? m->drafter == drafter
                     : info.file_ending
                         ? has_file(drafter, s->common.model) || m->drafter == drafter
                         : info.looks_up || m->drafter == drafter;
        if (there)
            add_drafter(&list, &plain, drafter, s->drafting.policy);
    }
    drey_drafter_describe(best_of(m), &info);
    plain.drafter = best_of(m);
    plain.policy =
        s->drafting.policy == DREY_POLICY_AUTO ? DREY_POLICY_OPTIMAL : s->drafting.policy;
    add(&list, &plain, "draft %s, the least memory", info.name)->least = true;
    const int32_t n_sessions = s->bench.quick ? 2 : VERIFY_SESSIONS; /* it has two texts */
    add(&list, &plain, "draft %s, %d texts at the same time", info.name, n_sessions)->n_sessions =
        n_sessions;
    return list.n;
}

/* The smallest budget for these options; a little more, as the process may have grown when the
 * engine opens. */
static drey_status least_budget(const drey_engine_options *options, uint64_t *bytes,
                                drey_error *err)
{
    drey_planner *planner;
    drey_plan plan = {0};
    TRY(drey_planner_open(&planner, options, err));
    drey_status status = drey_planner_make(planner, 1, NULL, &plan, err); /* cannot work */
    drey_planner_close(&planner);
    if (plan.smallest_budget_bytes == 0)
        return status;
    *bytes = plan.smallest_budget_bytes + plan.smallest_budget_bytes / 64;
    return DREY_OK;
}

drey_status verify_way_open(const verify_way *way, models *m, const cli_settings *s,
                            int32_t n_context, drey_error *err)
{
    drey_drafter_info info;
    drey_drafter_describe(way->drafter, &info);
    drey_engine_options options = models_engine_options(m, s, n_context);
    options.drafter = way->drafter;
    options.draft = info.takes_model || way->drafter == m->drafter ? m->draft : NULL;
    options.heads = way->drafter == m->drafter ? m->heads : NULL;
    options.policy = way->policy;
    options.n_sessions = way->n_sessions;
    options.n_threads = way->n_threads ? way->n_threads : s->common.n_threads;
    options.prompt_chunk = way->prompt_chunk ? way->prompt_chunk : s->common.prompt_chunk;
    options.cpu_tier = way->cpu_tier ? way->cpu_tier : s->common.cpu_tier;
    if (way->least)
        TRY(least_budget(&options, &options.memory_bytes, err));
    return drey_engine_open(&m->engine, &options, err);
}

void verify_piece(const drey_model *model, int32_t id, char *out, size_t capacity)
{
    char text[40];
    size_t n = 0;
    if (id < 0) {
        snprintf(out, capacity, "the end of the text");
        return;
    }
    if (drey_detokenize(model, &id, 1, DREY_TOKENIZE_SPECIAL, text, sizeof text - 1, &n, NULL) !=
            DREY_OK ||
        n >= sizeof text)
        n = 0;
    text[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = '?';
    snprintf(out, capacity, "%d \"%s\"", id, text);
}
