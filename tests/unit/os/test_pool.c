/* The pool runs every thread once a job, shows the caller what they wrote, survives sleeping and
 * oversubscription, and starts no more threads than the system grants. */
#include <time.h>

#include "os/pool.h"
#include "support/scene.h"

enum { MAX_THREADS = 9 };

typedef struct ledger {
    int64_t sum[MAX_THREADS][16]; /* a cache line or two apart; plain on purpose: TSan checks */
    int64_t input;
    int32_t n_threads;
} ledger;

static void add_input(void *arg, int32_t thread, int32_t n_threads)
{
    ledger *l = arg;
    bool right = n_threads == l->n_threads; /* cmocka's asserts belong to the main thread */
    l->sum[thread][0] += right ? l->input + thread : 1000000;
}

static void run_jobs(int32_t n_threads, int32_t n_jobs, long pause_ns)
{
    pool *p = NULL;
    MUST(pool_open, &p, n_threads);
    assert_int_equal(pool_n_threads(p), n_threads);
    ledger l = {.n_threads = n_threads};
    int64_t expected = 0;
    for (int32_t job = 0; job < n_jobs; job++) {
        l.input = job;
        pool_run(p, add_input, &l);
        expected += job;
        for (int32_t t = 0; t < n_threads; t++)
            assert_int_equal(l.sum[t][0], expected + (int64_t)t * (job + 1));
        if (pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
    pool_close(&p);
    assert_null(p);
}

TEST(every_thread_runs_every_job)
{
    for (int32_t n = 1; n <= 3; n++)
        run_jobs(n, 2000, 0);
}

TEST(more_threads_than_cores)
{
    run_jobs(MAX_THREADS, 200, 0);
}

TEST(workers_wake_from_sleep)
{
    run_jobs(3, 50, 1000 * 1000); /* far longer than they spin */
    run_jobs(3, 200, 40 * 1000);  /* about when they stop spinning */
}

static void slow_worker(void *arg, int32_t thread, int32_t n_threads)
{
    if (thread != 0)
        nanosleep(&(struct timespec){.tv_nsec = 2000 * 1000}, NULL);
    ((int *)arg)[thread * 16]++;
}

TEST(caller_waits_for_slow_workers)
{
    pool *p = NULL;
    MUST(pool_open, &p, 3);
    int runs[3 * 16] = {0};
    for (int job = 1; job <= 20; job++) {
        pool_run(p, slow_worker, runs);
        for (int t = 0; t < 3; t++)
            assert_int_equal(runs[t * 16], job);
    }
    pool_close(&p);
}

TEST(open_and_close_in_any_state)
{
    for (int i = 0; i < 50; i++) {
        pool *p = NULL;
        MUST(pool_open, &p, 1 + i % 4);
        pool_close(&p);
        pool_close(&p); /* NULL is accepted */
    }
}

TEST(refuses_absurd_counts)
{
    drey_error err;
    pool *p = NULL;
    assert_int_equal(pool_open(&p, 0, &err), DREY_ERR_USAGE);
    assert_null(p);
    REFUSED(DREY_ERR_USAGE, "choose 1 to", pool_open, &p, 1000000);
}

TEST(quotas)
{
    assert_int_equal(pool_quota_v2("max 100000\n"), 0);
    assert_int_equal(pool_quota_v2("200000 100000\n"), 2);
    assert_int_equal(pool_quota_v2("250000 100000\n"), 3);
    assert_int_equal(pool_quota_v2("1000 100000\n"), 1);
    assert_int_equal(pool_quota_v2(""), 0);
    assert_int_equal(pool_quota_v2("5\n"), 0);
    assert_int_equal(pool_quota_v2("100000 0\n"), 0);
    assert_int_equal(pool_quota_v1("-1\n", "100000\n"), 0);
    assert_int_equal(pool_quota_v1("150000\n", "100000\n"), 2);
    assert_true(pool_default_threads() >= 1);
    assert_true(pool_thread_bytes() >= 64 * 1024);
}
