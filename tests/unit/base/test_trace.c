/* Traces: rings keep the latest spans, sums count them all, and threads do not disturb
 * each other. */
#include <pthread.h>

#include "base/trace.h"
#include "support/scene.h"

typedef struct traced {
    arena memory;
    trace t;
} traced;

static traced open_trace(int32_t n_threads, int32_t n_spans)
{
    traced x;
    MUST(arena_init, &x.memory, trace_bytes(n_threads, n_spans), false);
    memset(x.memory.base, 0xa5, x.memory.size_bytes); /* an arena's memory may have been used */
    trace_init(&x.t, n_threads, n_spans, &x.memory);
    MUST(arena_check, &x.memory); /* trace_bytes counts it all */
    return x;
}

TEST(a_span_is_small)
{
    assert_int_equal(sizeof(trace_span), 24);
    for (int k = 0; k < TRACE_KINDS; k++) {
        assert_non_null(trace_kind_name((trace_kind)k));
        for (int j = 0; j < k; j++)
            assert_string_not_equal(trace_kind_name((trace_kind)j), trace_kind_name((trace_kind)k));
    }
}

TEST(no_trace_takes_nothing)
{
    trace_span span;
    trace_sums sums;
    memset(&sums, 1, sizeof sums);
    trace_add(NULL, 3, TRACE_READ, 1, 2, 3);
    trace_sum(NULL, &sums);
    for (int k = 0; k < TRACE_KINDS; k++)
        assert_true(sums.n[k] == 0 && sums.ns[k] == 0 && sums.arg[k] == 0);
    int64_t from = 0;
    assert_int_equal(trace_copy(NULL, 0, &from, &span, 1), 0);
}

/* Against a list of everything that was added. */
TEST(rings_keep_the_latest_and_sums_count_all)
{
    enum { THREADS = 3, MOST = 300 };
    static trace_span all[THREADS][MOST];
    rng r = rng_from(5);
    for (int round = 0; round < 50; round++) {
        int32_t n_spans = round == 0 ? 0 : 1 + rng_below(&r, 100);
        traced x = open_trace(THREADS, n_spans);
        int32_t n[THREADS] = {0};
        trace_sums sums = {{0}, {0}, {0}}, got;
        for (int i = rng_below(&r, MOST); i > 0; i--) {
            int32_t thread = rng_below(&r, THREADS), k = rng_below(&r, TRACE_KINDS);
            int64_t t0 = (int64_t)(rng_next(&r) >> 2), t1 = t0 + rng_below(&r, 1000);
            int32_t arg = rng_below(&r, 100) - 50;
            trace_part of = {rng_below(&r, 1 << 11), rng_below(&r, 1 << 13)};
            trace_add_of(&x.t, thread, (trace_kind)k, t0, t1, arg, of);
            all[thread][n[thread]++] = (trace_span){.t0_ns = t0,
                                                    .t1_ns = t1,
                                                    .arg = arg,
                                                    .what = (uint32_t)k & 0xff,
                                                    .layer = (uint32_t)of.layer & 0x7ff,
                                                    .number = (uint32_t)of.number & 0x1fff};
            sums.n[k]++;
            sums.ns[k] += t1 - t0;
            sums.arg[k] += arg;
        }
        trace_sum(&x.t, &got);
        assert_memory_equal(&got, &sums, sizeof sums);
        for (int32_t thread = 0; thread < THREADS; thread++) {
            trace_span latest[MOST];
            int32_t max = 1 + rng_below(&r, MOST);
            int32_t kept = n[thread] < n_spans ? n[thread] : n_spans, n_copied = 0, some;
            for (int64_t from = 0;
                 (some = trace_copy(&x.t, thread, &from, latest + n_copied, max)) > 0;
                 n_copied += some)
                assert_int_equal(from, n[thread] - kept + n_copied + some);
            assert_int_equal(n_copied, kept);
            for (int32_t i = 0; i < kept; i++)
                assert_memory_equal(&latest[i], &all[thread][n[thread] - kept + i], sizeof *latest);
        }
        arena_free(&x.memory);
    }
}

/* One thread has a ring, and of one kind no span gets into it. */
TEST(rings_are_for_those_who_want_them)
{
    arena memory;
    trace t;
    size_t bytes = trace_bytes(3, 0) + arena_size(4 * sizeof(trace_span));
    MUST(arena_init, &memory, bytes, false);
    trace_init(&t, 3, 0, &memory);
    trace_keep(&t, 1, 4, &memory);
    MUST(arena_check, &memory);
    t.kinds &= ~(1u << TRACE_PACK);
    for (int i = 0; i < 3; i++) {
        trace_add(&t, i, TRACE_PACK, 1, 2, 0);
        trace_add(&t, i, TRACE_READ, 3, 5, 7);
    }
    trace_span got[4];
    int64_t from = 0;
    assert_int_equal(trace_copy(&t, 0, &from, got, 4), 0);
    assert_int_equal(trace_copy(&t, 1, &from, got, 4), 1);
    assert_int_equal(got[0].what, TRACE_READ);
    trace_sums sums;
    trace_sum(&t, &sums);
    assert_int_equal(sums.n[TRACE_PACK], 3);
    assert_int_equal(sums.n[TRACE_READ], 3);
    arena_free(&memory);
}

enum { WRITERS = 4, ADDED = 20000 };

typedef struct writer {
    trace *t;
    int32_t thread;
} writer;

static void *write_spans(void *user)
{
    const writer *w = user;
    for (int64_t i = 0; i < ADDED; i++)
        trace_add(w->t, w->thread, TRACE_MATMUL, i, i + 2, 1 + w->thread);
    return NULL;
}

/* Sums may be read while threads write, spans when they have ended. */
TEST(threads_write_at_the_same_time)
{
    traced x = open_trace(WRITERS, 64);
    pthread_t threads[WRITERS];
    writer writers[WRITERS];
    trace_sums sums, before = {{0}, {0}, {0}};
    for (int32_t i = 0; i < WRITERS; i++) {
        writers[i] = (writer){&x.t, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_spans, &writers[i]), 0);
    }
    for (int i = 0; i < 100; i++) {
        trace_sum(&x.t, &sums);
        assert_true(sums.n[TRACE_MATMUL] >= before.n[TRACE_MATMUL]);
        before = sums;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    trace_sum(&x.t, &sums);
    assert_int_equal(sums.n[TRACE_MATMUL], WRITERS * ADDED);
    assert_int_equal(sums.ns[TRACE_MATMUL], 2 * WRITERS * ADDED);
    assert_int_equal(sums.arg[TRACE_MATMUL], WRITERS * (WRITERS + 1) / 2 * ADDED);
    for (int32_t thread = 0; thread < WRITERS; thread++) {
        trace_span latest[64];
        int64_t from = 0;
        assert_int_equal(trace_copy(&x.t, thread, &from, latest, 64), 64);
        for (int i = 0; i < 64; i++) {
            assert_int_equal(latest[i].arg, 1 + thread);
            assert_int_equal(latest[i].t0_ns, ADDED - 64 + i);
        }
    }
    arena_free(&x.memory);
}
