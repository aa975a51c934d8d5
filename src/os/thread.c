/* Starting threads. */
#include "os/thread.h"

#include <signal.h>
#include <string.h>
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
