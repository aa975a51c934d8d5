/* Records where time goes: spans of named kinds, and their sums.
 *
 * Each thread writes to its own ring, so nothing locks. A ring keeps a thread's latest spans, for a
 * picture of what ran at the same time. The sums count all spans, also those that the ring has
 * overwritten, so that statistics are differences of sums. Spans of different kinds may be nested:
 * a stall is part of the verification that it delays.
 *
 *      trace   | thread 0: sums, ring | thread 1: sums, ring | ...
 *
 * A thread may have no ring, and rings may omit frequent kinds: their sums are counted as well.
 * Memory is allocated once. Times are arguments, because the callers have read a clock already. */
#pragma once

#include <assert.h>
#include <stdatomic.h>

#include "base/arena.h"

typedef enum trace_kind {
    TRACE_READ,        /* a request to the disk, from submission to arrival; arg: bytes */
    TRACE_STALL,       /* waiting for weights, or keys from a file, with nothing else to do */
    TRACE_VERIFY,      /* a pass of the target over a tree; arg: rows */
    TRACE_DRAFT,       /* growing a tree; arg: nodes */
    TRACE_PROMPT,      /* a pass over a piece of a prompt; arg: rows */
    TRACE_LOAD,        /* a first pass, which loads the pinned weights */
    TRACE_PACK,        /* packing streamed weights for the kernels */
    TRACE_MATMUL,      /* products of a pass */
    TRACE_ATTEND,      /* attention of a pass */
    TRACE_PROVISIONAL, /* drafting while a verification waits */
    TRACE_EXPERTS,     /* a layer's wave of experts; arg: experts; number: those read */
    TRACE_RANKS,       /* waiting for other ranks with nothing else to do */
    TRACE_KINDS
} trace_kind;

typedef struct trace_span {
    int64_t t0_ns, t1_ns;
    int32_t arg; /* argument; its meaning depends on the kind */
    uint32_t what : 8;
    uint32_t layer : 11;  /* with experts: of which it is, counted from 1; 0: of none */
    uint32_t number : 13; /* number of the expert; of TRACE_EXPERTS: how many were read */
} trace_span;
/* Part of a span: layer and number, as there. Higher ones are cut. */
typedef struct trace_part {
    int32_t layer, number;
} trace_part;

/* Sums over all spans ever added. */
typedef struct trace_sums {
    int64_t n[TRACE_KINDS], ns[TRACE_KINDS], arg[TRACE_KINDS];
} trace_sums;

/* Ring of one thread's spans. The sums have a single writer, which needs no read-modify-write; any
 * thread may read them at any time. */
typedef struct trace_ring {
    _Atomic int64_t n[TRACE_KINDS], ns[TRACE_KINDS], arg[TRACE_KINDS];
    trace_span *spans; /* [n_spans]: number i is at i % n_spans */
    int32_t n_spans;   /* 0: only sums */
    int64_t n_added;   /* ever written to the ring */
} trace_ring;

typedef struct trace {
    trace_ring *rings; /* [n_threads], each in its own cache lines */
    size_t ring_bytes; /* from one to the next */
    int32_t n_threads;
    uint32_t kinds; /* bits of the kinds that rings keep; trace_init sets all */
} trace;

/* Bytes that trace_init takes. n_spans: of each thread; 0: only sums. */
size_t trace_bytes(int32_t n_threads, int32_t n_spans);
/* Borrows the arena's memory. */
void trace_init(trace *t, int32_t n_threads, int32_t n_spans, arena *a);
/* Gives a ring to a thread without one; takes arena_size(n_spans * sizeof(trace_span)). */
void trace_keep(trace *t, int32_t thread, int32_t n_spans, arena *a);

static inline trace_ring *trace_ring_of(const trace *t, int32_t thread)
{
    return (trace_ring *)((uint8_t *)t->rings + (size_t)thread * t->ring_bytes);
}

static inline void trace_count(_Atomic int64_t *sum, int64_t more)
{
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Adds a span to the ring of `thread`. No other thread may write to that ring at the same time.
 * Does nothing if the trace is NULL. */
static inline void trace_add_of(trace *t, int32_t thread, trace_kind what, int64_t t0_ns,
                                int64_t t1_ns, int32_t arg, trace_part of)
{
    if (!t)
        return;
    assert(thread >= 0 && thread < t->n_threads && t0_ns <= t1_ns);
    trace_ring *r = trace_ring_of(t, thread);
    trace_count(&r->n[what], 1);
    trace_count(&r->ns[what], t1_ns - t0_ns);
    trace_count(&r->arg[what], arg);
    if (r->n_spans == 0 || !(t->kinds >> what & 1))
        return;
    r->spans[r->n_added++ % r->n_spans] = (trace_span){t0_ns,
                                                       t1_ns,
                                                       arg,
                                                       (uint32_t)what & 0xff,
                                                       (uint32_t)of.layer & 0x7ff,
                                                       (uint32_t)of.number & 0x1fff};
}
static inline void trace_add(trace *t, int32_t thread, trace_kind what, int64_t t0_ns,
                             int64_t t1_ns, int32_t arg)
{
    trace_add_of(t, thread, what, t0_ns, t1_ns, arg, (trace_part){0});
}

/* The sums over all threads; may be called at any time (a span that is just being added is included
 * or not). All 0 for a NULL trace. */
void trace_sum(const trace *t, trace_sums *out);
/* Copies at most `max` spans of a thread, in the order in which they were added, from number *from
 * on, or from the oldest if that is overwritten. Sets *from to the number after the last one.
 * Returns how many. Call it only while that thread adds none. */
int32_t trace_copy(const trace *t, int32_t thread, int64_t *from, trace_span *out, int32_t max);
/* "read", "stall", ... */
const char *trace_kind_name(trace_kind what);
