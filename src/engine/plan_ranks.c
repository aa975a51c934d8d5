/* Plans a run with ranks on machines that are described: the functions that divide and plan in such
 * a run, without a transport. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>

/* Ranks that nobody has joined, and an engine for each that has only planned. */
typedef struct rehearsal {
    drey_ranks ranks;
    int32_t n_planned;
    drey_engine engine[];
} rehearsal;

static drey_engine_options on_machine(const drey_engine_options *options,
                                      const drey_rank_machine *m)
{
    drey_engine_options o = *options;
    o.memory_bytes = m->memory_bytes;
    o.held_bytes += RANKS_MPI_BYTES;
    return o;
}

static drey_status of_rank(const rehearsal *r, int32_t i, drey_status status, drey_error *err)
{
    const drey_error why = *err;
    if (status == DREY_OK || status == DREY_ERR_USAGE)
        return status;
    FAIL(err, status, "rank %d (%s): %.400s", i, r->ranks.member[i].hello.host, why.message);
}

/* Takes the machines as those that are heard at the start of a run. */
static drey_status take_machines(rehearsal *r, const drey_engine_options *options,
                                 const drey_rank_machine *machines, drey_error *err)
{
    for (int32_t i = 0; i < r->ranks.n; i++) {
        const drey_engine_options o = on_machine(options, &machines[i]);
        const drey_engine_options part = engine_part_options(&o);
        ranks_hello *hello = &r->ranks.member[i].hello;
        if (i < 2) {
            TRY(engine_rank_hello(i ? &part : &o, hello, err));
        } else {
            *hello = r->ranks.member[1].hello;
            hello->budget_bytes = machines[i].memory_bytes;
        }
        hello->disk_bytes_per_s = machines[i].disk_bytes_per_s;
        snprintf(hello->host, sizeof hello->host, "%.*s", (int)sizeof hello->host - 1,
                 machines[i].host);
    }
    return DREY_OK;
}

static drey_status plan_lead(rehearsal *r, drey_error *err)
{
    drey_engine *e = &r->engine[0];
    TRY(engine_divide_ranks(e, err));
    TRY(engine_gather(e, err));
    return plan_make(&e->inputs, e->budget_bytes, &e->plan, err);
}

static drey_status plan_other(rehearsal *r, int32_t i, const drey_engine_options *options,
                              drey_error *err)
{
    drey_engine *e = &r->engine[i];
    drey_engine_options o = engine_part_options(options);
    ranks_join join = engine_ranks_join(&r->engine[0]);
    join.first = r->ranks.member[i].first;
    join.n_layers = r->ranks.member[i].n_layers;
    const engine_part part = engine_join_options(&o, &join);
    r->n_planned = i + 1;
    TRY(engine_configure(e, &o, NULL, err));
    e->config.part = part;
    TRY(engine_gather(e, err));
    return plan_make(&e->inputs, e->budget_bytes, &e->plan, err);
}

static double others_s(const void *user, int32_t n_rows)
{
    const rehearsal *r = user;
    double s = 0;
    for (int32_t i = 1; i < r->ranks.n; i++)
        s += plan_rows_s(&r->engine[i].inputs, &r->engine[i].plan, n_rows);
    return s;
}

/* Rank 0's last, as its passes are around all. Nothing is predicted if a rank reads and its disk's
 * speed is not known. */
static void predict(rehearsal *r, const drey_speeds *speeds)
{
    bool known = true;
    for (int32_t i = 0; i < r->ranks.n; i++)
        known &= r->ranks.member[i].hello.disk_bytes_per_s > 0 ||
                 r->engine[i].plan.report.streamed_bytes_per_pass == 0;
    for (int32_t i = r->ranks.n - 1; known && i >= 0; i--) {
        drey_speeds own = *speeds;
        own.disk_bytes_per_s = r->ranks.member[i].hello.disk_bytes_per_s;
        if (i == 0)
            r->engine[0].inputs.remote = (plan_remote){others_s, r};
        plan_predict(&r->engine[i].inputs, &own, &r->engine[i].plan);
    }
}

static drey_status rehearse(rehearsal *r, const drey_engine_options *options,
                            const drey_speeds *speeds, const drey_rank_machine *machines,
                            drey_error *err)
{
    drey_engine_options lead = on_machine(options, &machines[0]);
    lead.ranks = &r->ranks;
    lead.profile = NULL; /* its passes are through all layers */
    r->n_planned = 1;
    TRY(engine_configure(&r->engine[0], &lead, NULL, err));
    TRY(take_machines(r, options, machines, err));
    TRY(of_rank(r, 0, plan_lead(r, err), err));
    for (int32_t i = 1; i < r->ranks.n; i++) {
        const drey_engine_options o = on_machine(options, &machines[i]);
        TRY(of_rank(r, i, plan_other(r, i, &o, err), err));
    }
    if (speeds)
        predict(r, speeds);
    return DREY_OK;
}

drey_status drey_ranks_plan(const drey_engine_options *options, const drey_speeds *speeds,
                            const drey_rank_machine *machines, int32_t n, drey_rank_plan *out,
                            drey_error *err)
{
    drey_error local;
    drey_error *why = err ? err : &local;
    if (n < 2 || n > RANKS_MOST)
        FAIL(err, DREY_ERR_USAGE, "%d ranks cannot share a model (2 to %d)", n, RANKS_MOST);
    rehearsal *r = calloc(1, sizeof *r + (size_t)n * sizeof r->engine[0]);
    if (!r)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for plans of %d ranks", n);
    r->ranks.n = n;
    drey_status status = rehearse(r, options, speeds, machines, why);
    for (int32_t i = 0; i < n && status == DREY_OK; i++) {
        const drey_plan *plan = &r->engine[i].plan.report;
        r->ranks.member[i].ready = engine_rank_ready(&r->engine[i]);
        out[i] = (drey_rank_plan){.plan = *plan};
        drey_ranks_describe(&r->ranks, i, &out[i].rank);
    }
    for (int32_t i = 0; i < r->n_planned; i++)
        engine_release(&r->engine[i]);
    free(r);
    return status;
}
