/* Predicts what a budget brings here: see drey_look_ahead in drey/tune.h. */
#include <string.h>

#include "common/num.h"
#include "engine/engine.h"
#include "os/memory.h"
#include "tune/outlook/verdict_text.h"

static const uint64_t mib = 1 << 20;
static const double least_gain = 1.05; /* times as fast: of a budget that is worth naming */

/* Returns whether all speeds that its prediction needs are known: a plan without them counts usual
 * ones, or none. Those of devices are known by a profile alone. */
static bool is_known(const drey_planner *p, const drey_plan *t, const drey_profile *profile)
{
    const drey_speeds *s = &t->speeds;
    bool measured = profile && profile->pass_s[0] > 0;
    bool reads = t->streamed_bytes_per_pass + t->kv_read_bytes > 0;
    bool computes = measured || (s->memory_bytes_per_s > 0 && p->engine.inputs.n_devices == 0);
    return t->expected_tokens_per_s > 0 && computes && (!reads || s->disk_bytes_per_s > 0);
}

/* ---- Without a draft ---- */

/* The same passes: what was measured of them with the draft holds without it. */
static drey_status look_alone(drey_planner *p, const drey_engine_options *options,
                              const drey_speeds *speeds, drey_outlook *out)
{
    drey_engine_options o = *options;
    drey_profile passes;
    drey_plan alone;
    drey_profile_init(&passes);
    if (options->profile)
        memcpy(passes.pass_s, options->profile->pass_s, sizeof passes.pass_s);
    o.drafter = DREY_DRAFTER_NONE;
    o.policy = DREY_POLICY_NONE;
    o.draft = NULL;
    o.heads = NULL;
    o.profile = options->profile ? &passes : NULL;
    TRY(planner_take_draft(p, &o, NULL));
    if (options->draft)
        engine_without_header(&p->engine, options->draft);
    TRY(drey_planner_make(p, 0, speeds, &alone, NULL));
    out->alone_smallest_bytes = alone.smallest_budget_bytes;
    if (is_known(p, &alone, o.profile))
        out->alone_tokens_per_s = alone.expected_tokens_per_s;
    return DREY_OK;
}

/* ---- A better budget ---- */

/* Rounded up so that three digits and a unit name it. */
static uint64_t named_budget(uint64_t bytes)
{
    const uint64_t gib = UINT64_C(1) << 30;
    uint64_t step = bytes >= 10 * gib ? gib / 2 : bytes >= gib ? gib / 10 : 10 * mib;
    return (bytes + step - 1) / step * step;
}

static uint64_t reads_in(drey_planner *p, uint64_t budget)
{
    drey_plan plan;
    drey_status status = drey_planner_make(p, budget, NULL, &plan, NULL);
    return status == DREY_OK ? plan.streamed_bytes_per_pass : UINT64_MAX;
}

/* The smallest budget above `from`, up to `to`, with which a pass reads at most so many bytes; 0:
 * none. */
static uint64_t least_budget(drey_planner *p, uint64_t from, uint64_t to, uint64_t most_read)
{
    if (to <= from || reads_in(p, to) > most_read)
        return 0;
    while (to - from > 4 * mib) {
        uint64_t between = from + (to - from) / 2;
        if (reads_in(p, between) > most_read)
            from = between;
        else
            to = between;
    }
    return to;
}

/* Returns the bytes that a pass would read without a byte of it in memory; of a mixture, of a
 * token's experts. */
static uint64_t all_reads(const drey_plan *t)
{
    double missing = 1 - t->expert_hits, whole = (double)t->target_bytes;
    if (t->n_experts)
        return missing > 0 ? (uint64_t)min_f64((double)t->streamed_bytes_per_pass / missing, whole)
                           : 0;
    return t->streamed_bytes_per_pass + t->pinned_bytes;
}

/* A step of budgets may round a smaller one up beyond what there is. One that is known to bring
 * nothing, since computing is the limit, is not named. */
static void find_better(drey_planner *p, const drey_engine_options *options,
                        const drey_speeds *speeds, drey_outlook *out)
{
    const drey_plan *t = &out->plan;
    uint64_t most = out->available_bytes / 105 * 100;
    if (t->streamed_bytes_per_pass == 0 || most <= t->budget_bytes)
        return;
    uint64_t budget = named_budget(least_budget(p, t->budget_bytes, most, 0));
    out->better_is_whole = budget > 0 && budget <= most;
    if (!out->better_is_whole && t->streamed_bytes_per_pass > all_reads(t) / 2)
        budget = named_budget(least_budget(p, t->budget_bytes, most, all_reads(t) / 2));
    if (budget == 0 || budget > most)
        return;
    drey_plan better;
    if (drey_planner_make(p, budget, speeds, &better, NULL) == DREY_OK &&
        is_known(p, &better, options->profile))
        out->better_tokens_per_s = better.expected_tokens_per_s;
    if (out->better_tokens_per_s == 0 || out->better_tokens_per_s > least_gain * out->tokens_per_s)
        out->better_bytes = budget;
}

/* ---- All ---- */

/* Finds the memory available. The memory that this process already has is its own. */
static void find_memory(drey_outlook *out)
{
    uint64_t own = memory_resident(), room = memory_cgroup_room();
    out->machine_bytes = memory_total();
    out->available_bytes = memory_available() ? memory_available() + own : 0;
    out->machine_is_cgroup = room != UINT64_MAX && room <= out->available_bytes;
    if (out->machine_is_cgroup)
        out->machine_bytes = out->available_bytes = room;
}

static drey_status look(drey_planner *p, const drey_engine_options *options, drey_measure measure,
                        const char *folder, drey_speeds *speeds, drey_outlook *out, drey_error *err)
{
    TRY(planner_take_draft(p, options, err));
    TRY(drey_planner_make(p, 0, NULL, &out->plan, err));
    drey_planner_speeds(p, measure, folder, speeds, NULL);
    TRY(drey_planner_make(p, 0, speeds, &out->plan, err));
    if (is_known(p, &out->plan, options->profile))
        out->tokens_per_s = out->plan.expected_tokens_per_s;
    find_memory(out);
    find_better(p, options, speeds, out);
    if (options->drafter == DREY_DRAFTER_NONE) {
        out->alone_tokens_per_s = out->tokens_per_s;
        out->alone_smallest_bytes = out->plan.smallest_budget_bytes;
    } else {
        look_alone(p, options, speeds, out);
    }
    verdict_write(out, options);
    verdict_warn(out, options);
    return DREY_OK;
}

drey_status drey_look_ahead(const drey_engine_options *options, drey_measure measure,
                            const char *folder, drey_speeds *speeds, drey_outlook *out,
                            drey_error *err)
{
    drey_planner *p;
    const drey_engine_options alone = engine_options_alone(options);
    *out = (drey_outlook){.better_bytes = 0};
    TRY(planner_open_target(&p, &alone, err));
    drey_status status = look(p, options, measure, folder, speeds, out, err);
    drey_planner_close(&p);
    return status;
}
