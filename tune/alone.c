/* Opening, and timing passes: see alone.h. */
#include "tune/alone.h"

#include "common/num.h"
#include "engine/engine.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "session/session_probe.h"
#include "state/cache.h"

drey_status alone_open(drey_engine **e, drey_session **s, drey_engine_options options,
                       engine_hooks hooks, int32_t rows, drey_error *err)
{
    options.n_sessions = 1;
    if (options.prompt_chunk && options.prompt_chunk < rows)
        options.prompt_chunk = rows;
    hooks.least_logit_rows = rows;
    TRY(engine_open(e, &options, &hooks, err));
    return drey_session_open(s, *e, err);
}

void alone_close(drey_engine **e, drey_session **s)
{
    drey_session_close(s);
    drey_engine_close(e);
}

static double stalled_s(const drey_engine *e)
{
    trace_sums sums;
    trace_sum(&e->trace, &sums);
    return (double)sums.ns[TRACE_STALL] * 1e-9;
}

drey_status alone_pass(drey_session *s, int32_t n, double *seconds, drey_error *err)
{
    runner *target = probe_target(s);
    const drey_engine *e = probe_engine(s);
    pass_row rows[DREY_PROFILE_ROWS];
    for (int32_t i = 0; i < n; i++)
        rows[i] =
            (pass_row){.token = (i * 7919 + 13) % target->layout->shape.n_vocab, .parent = i - 1};
    double start = clock_s(), stalled = stalled_s(e);
    TRY(pass_rows(target, rows, n, HEAD_ALL, err));
    *seconds = max_f64(clock_s() - start - (stalled_s(e) - stalled), 1e-9);
    cache_drop(target->cache);
    return DREY_OK;
}
