/* Starting threads. */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

drey_status thread_start(pthread_t *thread, const char *name, size_t stack_bytes, thread_fn *fn,
                         void *arg, drey_error *err)
{
    pthread_attr_t attributes;
    int refused = pthread_attr_init(&attributes);
    if (refused)
        FAIL(err, DREY_ERR_MEMORY, "cannot start a thread: %s", strerror(refused));
    long least = sysconf(_SC_THREAD_STACK_MIN);
    if (least > 0 && stack_bytes < (size_t)least)
        stack_bytes = (size_t)least;
    pthread_attr_setstacksize(&attributes, stack_bytes);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    refused = pthread_create(thread, &attributes, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (refused)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_N_THREADS,
                  "cannot start a thread: %s; let the user have more (ulimit) or take fewer",
                  strerror(refused));
    pthread_setname_np(*thread, name);
    return DREY_OK;
}

/* The first version of the system call's structure: glibc has a name for it since 2.41 only. */
typedef struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
} scheduling;

void thread_asks_for_short_slices(void)
{
    const uint64_t shortest_ns = 100000;
    scheduling now = {.size = sizeof now};
    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER)
        return;
    now.runtime_ns = shortest_ns;
    syscall(SYS_sched_setattr, 0, &now, 0);
}
