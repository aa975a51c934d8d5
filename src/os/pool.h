/* A pool of compute threads that run one function together.
 *
 * The caller is thread 0. Between jobs the others spin for a short while (a decoding pass has
 * hundreds of jobs, microseconds apart), then sleep. No job allocates. Jobs do not nest. */
#pragma once

#include "common/error.h"

typedef struct core_set core_set;

typedef struct pool pool;
typedef void pool_fn(void *arg, int32_t thread, int32_t n_threads);

drey_status pool_open(pool **out, int32_t n_threads, drey_error *err);
/* The same with threads that are bound to cores: cores[n_threads], NULL for a thread that may run
 * anywhere. Thread 0 is the caller, which stays on its cores until it closes the pool; threads that
 * it starts meanwhile inherit them. */
drey_status pool_open_on(pool **out, int32_t n_threads, const core_set *const *cores,
                         drey_error *err);
void pool_close(pool **p);
int32_t pool_n_threads(const pool *p);

/* Runs fn on every thread and returns when all have returned; what they wrote is visible to the
 * caller. */
void pool_run(pool *p, pool_fn *fn, void *arg);

/* Nanoseconds that one of so many threads spins before it sleeps; 0 if there are more than
 * cores. */
int64_t pool_spin_ns(int32_t n_threads);
/* Cores that this process may use (affinity and cgroup quota, at least 1). */
int32_t pool_default_threads(void);

/* A cgroup's quota in cores, rounded up; 0: no limit. v2: the text of cpu.max; v1: of
 * cpu.cfs_quota_us and cpu.cfs_period_us. */
int32_t pool_quota_v2(const char *cpu_max);
int32_t pool_quota_v1(const char *quota_us, const char *period_us);

/* A thread's memory in the budget: the part of its stack that is touched. */
size_t pool_thread_bytes(void);
