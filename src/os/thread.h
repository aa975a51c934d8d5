/* The library's own threads: small stacks, no signals, a name for debuggers. */
#pragma once

#include <pthread.h>

#include "common/error.h"

typedef void *thread_fn(void *arg);

/* Memory that the kernel takes for a thread: its kernel stack and its task structure. */
enum { THREAD_KERNEL_BYTES = 32 * 1024 };

/* Starts a joinable thread with every signal blocked, so that handlers run on the program's
 * threads. name: at most 15 characters. stack_bytes is a minimum: sanitizers and thread-local
 * storage may need more. DREY_ERR_MEMORY: the system refuses. */
drey_status thread_start(pthread_t *thread, const char *name, size_t stack_bytes, thread_fn *fn,
                         void *arg, drey_error *err);

/* The calling thread works for a moment at a time and is wanted at once: it asks for the shortest
 * slices of the processor's time, so that it is not kept waiting where all cores compute. A request
 * that systems before Linux 6.12, and others, do not know changes nothing. */
void thread_asks_for_short_slices(void);

/* Hints to the processor that this is a loop that waits. */
static inline void thread_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
