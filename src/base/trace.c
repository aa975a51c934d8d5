/* Memory for what trace_add writes, and reading it: see trace.h. */
#include "base/trace.h"

#include <string.h>

#include "common/num.h"

static const char *const names[TRACE_KINDS] = {
    [TRACE_READ] = "read",       [TRACE_STALL] = "stall",
    [TRACE_VERIFY] = "verify",   [TRACE_DRAFT] = "draft",
    [TRACE_PROMPT] = "prompt",   [TRACE_LOAD] = "load",
    [TRACE_PACK] = "pack",       [TRACE_MATMUL] = "matmul",
    [TRACE_ATTEND] = "attend",   [TRACE_PROVISIONAL] = "provisional",
    [TRACE_EXPERTS] = "experts", [TRACE_RANKS] = "ranks",
};

/* Two cache lines are fetched together: rings of different threads share neither of them. */
static size_t ring_bytes(void)
{
    enum { APART = 2 * ARENA_ALIGN };
    return (sizeof(trace_ring) + APART - 1) / APART * APART;
}

size_t trace_bytes(int32_t n_threads, int32_t n_spans)
{
    return arena_size((size_t)n_threads * ring_bytes()) +
           (size_t)n_threads * arena_size((size_t)n_spans * sizeof(trace_span));
}

void trace_init(trace *t, int32_t n_threads, int32_t n_spans, arena *a)
{
    assert(n_threads > 0 && n_threads <= UINT16_MAX && n_spans >= 0);
    *t = (trace){.ring_bytes = ring_bytes(), .n_threads = n_threads, .kinds = UINT32_MAX};
    t->rings = arena_take(a, (size_t)n_threads * t->ring_bytes);
    if (!t->rings)
        return; /* arena_check reports it */
    memset(t->rings, 0, (size_t)n_threads * t->ring_bytes);
    for (int32_t i = 0; i < n_threads && n_spans > 0; i++)
        trace_keep(t, i, n_spans, a);
}

void trace_keep(trace *t, int32_t thread, int32_t n_spans, arena *a)
{
    assert(thread >= 0 && thread < t->n_threads && n_spans > 0);
    trace_span *spans = arena_take(a, (size_t)n_spans * sizeof *spans);
    if (!t->rings || !spans)
        return;
    trace_ring *r = trace_ring_of(t, thread);
    r->spans = spans;
    r->n_spans = n_spans;
}

static int64_t sum_of(const _Atomic int64_t *sum)
{
    return atomic_load_explicit(sum, memory_order_relaxed);
}

void trace_sum(const trace *t, trace_sums *out)
{
    *out = (trace_sums){0};
    for (int32_t i = 0; t && i < t->n_threads; i++) {
        const trace_ring *r = trace_ring_of(t, i);
        for (int k = 0; k < TRACE_KINDS; k++) {
            out->n[k] += sum_of(&r->n[k]);
            out->ns[k] += sum_of(&r->ns[k]);
            out->arg[k] += sum_of(&r->arg[k]);
        }
    }
}

int32_t trace_copy(const trace *t, int32_t thread, int64_t *from, trace_span *out, int32_t max)
{
    if (!t)
        return 0;
    assert(thread >= 0 && thread < t->n_threads);
    const trace_ring *r = trace_ring_of(t, thread);
    int32_t n = 0;
    for (int64_t i = max_i64(*from, r->n_added - r->n_spans); i < r->n_added && n < max; i++) {
        out[n++] = r->spans[i % r->n_spans];
        *from = i + 1;
    }
    return n;
}

const char *trace_kind_name(trace_kind what)
{
    return (unsigned)what < TRACE_KINDS ? names[what] : "unknown";
}
