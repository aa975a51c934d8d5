/* The pool: a job is a number that goes up, its end a count that goes down to 0.
 *
 *   pool_run          job++ -----------------> worker wakes or sees it, runs fn
 *   caller runs fn    unfinished == 0 <------- unfinished--
 *
 * Both sides spin for a moment and then sleep in the kernel. A thread that changes a word checks
 * afterwards whether another sleeps on it. A thread that wants to sleep announces this first, and
 * the kernel compares the word again. With sequentially consistent operations one of the two always
 * sees the other. */
#include "os/pool.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "drey/drey_engine.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/cores.h"
#include "os/cpu_tuning.h"
#include "os/float_mode.h"
#include "os/futex.h"
#include "os/thread.h"

enum { STACK_BYTES = 256 * 1024, CACHE_LINE = 64 };

typedef struct worker {
    pool *owner;
    int32_t index;
    const core_set *cores; /* until it has started; NULL: any */
    pthread_t thread;
} worker;

struct pool {
    _Alignas(CACHE_LINE) _Atomic uint32_t job; /* number of the latest job */
    _Atomic uint32_t sleepers;                 /* workers that may be asleep on job */
    pool_fn *fn;                               /* NULL: end */
    void *arg;
    _Alignas(CACHE_LINE) _Atomic uint32_t unfinished; /* workers still in the latest job */
    _Atomic uint32_t caller_sleeps;                   /* the caller may be asleep on unfinished */
    int32_t n_threads;
    bool pinned; /* the caller is bound to cores; `caller` ran on `before` */
    pthread_t caller;
    core_set before;
    int64_t spin_ns; /* 0 when there are more threads than cores: spinning would take theirs */
    worker workers[];
};

/* Returns the number of the next job after `seen`. */
static uint32_t await_job(pool *p, uint32_t seen)
{
    futex_spin(&p->job, seen, p->spin_ns);
    uint32_t job = atomic_load(&p->job);
    if (job != seen)
        return job;
    atomic_fetch_add(&p->sleepers, 1);
    while ((job = atomic_load(&p->job)) == seen)
        futex_sleep(&p->job, seen);
    atomic_fetch_sub(&p->sleepers, 1);
    return job;
}

static void finish_job(pool *p)
{
    if (atomic_fetch_sub(&p->unfinished, 1) == 1 && atomic_load(&p->caller_sleeps))
        futex_wake_all(&p->unfinished);
}

static void await_workers(pool *p)
{
    uint32_t left = atomic_load(&p->unfinished);
    int64_t until = p->spin_ns ? clock_ns() + p->spin_ns : 0;
    while (left && until) {
        futex_spin(&p->unfinished, left, p->spin_ns);
        left = atomic_load(&p->unfinished);
        if (clock_ns() >= until)
            break;
    }
    if (!left)
        return;
    atomic_store(&p->caller_sleeps, 1);
    while ((left = atomic_load(&p->unfinished)) != 0)
        futex_sleep(&p->unfinished, left);
    atomic_store(&p->caller_sleeps, 0);
}

static void *work(void *arg)
{
    worker *w = arg;
    pool *p = w->owner;
    float_mode_enter(); /* a thread inherits its creator's */
    if (w->cores)
        cores_pin(w->cores);
    for (uint32_t job = 0;;) {
        job = await_job(p, job);
        if (!p->fn)
            return NULL;
        p->fn(p->arg, w->index, p->n_threads);
        finish_job(p);
    }
}

/* Workers 1 .. n_workers run fn, or end if it is NULL. */
static void start_job(pool *p, pool_fn *fn, void *arg)
{
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->unfinished, (uint32_t)p->n_threads - 1, memory_order_relaxed);
    atomic_fetch_add(&p->job, 1);
    if (atomic_load(&p->sleepers))
        futex_wake_all(&p->job);
}

drey_status pool_open(pool **out, int32_t n_threads, drey_error *err)
{
    return pool_open_on(out, n_threads, NULL, err);
}

static void pin_caller(pool *p, const core_set *cores)
{
    p->caller = pthread_self();
    p->pinned = cores && cores_of_thread(&p->before) && cores_pin(cores);
}

drey_status pool_open_on(pool **out, int32_t n_threads, const core_set *const *cores,
                         drey_error *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > DREY_MAX_THREADS)
        FAIL(err, DREY_ERR_USAGE, "%d threads cannot be used; choose 1 to %d", n_threads,
             DREY_MAX_THREADS);
    size_t bytes = sizeof(pool) + (size_t)n_threads * sizeof(worker);
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    pool *p = aligned_alloc(CACHE_LINE, bytes);
    if (!p)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %d threads", n_threads);
    *p = (pool){.n_threads = n_threads, .spin_ns = pool_spin_ns(n_threads)};
    for (int32_t i = 1; i < n_threads; i++) {
        p->workers[i] = (worker){.owner = p, .index = i, .cores = cores ? cores[i] : NULL};
        char name[32];
        snprintf(name, sizeof name, "drey-work-%d", i);
        drey_status status =
            thread_start(&p->workers[i].thread, name, STACK_BYTES, work, &p->workers[i], err);
        if (status != DREY_OK) {
            p->n_threads = i; /* those that run end */
            pool_close(&p);
            return status;
        }
    }
    if (cores)
        pin_caller(p, cores[0]);
    *out = p;
    return DREY_OK;
}

void pool_close(pool **out)
{
    pool *p = *out;
    *out = NULL;
    if (!p)
        return;
    start_job(p, NULL, NULL);
    for (int32_t i = 1; i < p->n_threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    if (p->pinned && pthread_equal(p->caller, pthread_self()))
        cores_pin(&p->before);
    free(p);
}

int32_t pool_n_threads(const pool *p)
{
    return p->n_threads;
}

void pool_run(pool *p, pool_fn *fn, void *arg)
{
    if (p->n_threads > 1)
        start_job(p, fn, arg);
    fn(arg, 0, p->n_threads);
    if (p->n_threads > 1)
        await_workers(p);
}

int32_t pool_quota_v2(const char *cpu_max)
{
    long long quota, period;
    if (sscanf(cpu_max, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0; /* "max 100000" */
    long long cores = (quota + period - 1) / period;
    return cores < DREY_MAX_THREADS ? (int32_t)cores : DREY_MAX_THREADS;
}

int32_t pool_quota_v1(const char *quota_us, const char *period_us)
{
    char both[64];
    snprintf(both, sizeof both, "%.20s %.20s", quota_us, period_us);
    return pool_quota_v2(both);
}

static void take_quota(void *user, const char *directory)
{
    int32_t *least = user, cores = 0;
    char quota[64], period[64];
    if (cgroup_read(directory, "cpu.max", quota, sizeof quota))
        cores = pool_quota_v2(quota);
    else if (cgroup_read(directory, "cpu.cfs_quota_us", quota, sizeof quota) &&
             cgroup_read(directory, "cpu.cfs_period_us", period, sizeof period))
        cores = pool_quota_v1(quota, period);
    if (cores > 0 && cores < *least)
        *least = cores;
}

static int32_t affinity_cores(void)
{
    /* More than 1024 processors need a larger set than cpu_set_t; they get DREY_MAX_THREADS. */
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return sysconf(_SC_NPROCESSORS_ONLN) >= DREY_MAX_THREADS ? DREY_MAX_THREADS : 1;
    int32_t n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

int64_t pool_spin_ns(int32_t n_threads)
{
    return n_threads <= pool_default_threads() ? cpu_tuning_default()->pool_spin_ns : 0;
}

int32_t pool_default_threads(void)
{
    int32_t cores = affinity_cores();
    cgroup_walk(&cgroup_system, "cpu", take_quota, &cores);
    return cores;
}

size_t pool_thread_bytes(void)
{
    return STACK_BYTES + THREAD_KERNEL_BYTES;
}
