/* Showing what an engine and a session kept of the past: spans and turns. */
#include "session/session.h"

/* A stream's thread may be reading ahead: its lane is copied in portions, while it is held. */
static int32_t copy_lane(const drey_engine *e, int32_t lane, int64_t *from, trace_span *out,
                         int32_t max)
{
    const weights *w = lane == e->options.n_threads  ? &e->target.weights
                       : lane > e->options.n_threads ? &e->draft.weights
                                                     : NULL;
    if (w)
        weights_hold_reads(w);
    int32_t n = trace_copy(&e->trace, lane, from, out, max);
    if (w)
        weights_let_read(w);
    return n;
}

static void visit_lane(const drey_engine *e, int32_t lane, const drey_trace_visitor *visitor)
{
    trace_span spans[128];
    int64_t from = 0;
    int32_t n;
    while ((n = copy_lane(e, lane, &from, spans, sizeof spans / sizeof *spans)) > 0)
        for (int32_t i = 0; i < n; i++) {
            bool of_draft = lane > e->options.n_threads;
            const drey_trace_span span = {.t0_ns = spans[i].t0_ns,
                                          .t1_ns = spans[i].t1_ns,
                                          .what = of_draft ? "read draft"
                                                           : trace_kind_name(spans[i].what),
                                          .amount = spans[i].arg};
            visitor->span(visitor->user, &span);
        }
}

void drey_session_trace(const drey_session *session, const drey_trace_visitor *visitor)
{
    const drey_engine *e = session->engine;
    const int32_t lanes[] = {0, e->options.n_threads, e->options.n_threads + 1};
    for (int i = 0; i < 3 && visitor->span; i++)
        visit_lane(e, lanes[i], visitor);
    if (visitor->turn)
        turn_log_visit(&session->turns, visitor);
}
