/* Sleeping on a 32-bit word, and waking the threads that sleep on it (futex(2)). */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/thread.h"

/* Spins while *word == value, for spin_ns at most. */
static inline void futex_spin(_Atomic uint32_t *word, uint32_t value, int64_t spin_ns)
{
    if (spin_ns == 0 || atomic_load_explicit(word, memory_order_acquire) != value)
        return;
    int64_t until = clock_ns() + spin_ns;
    do {
        for (int i = 0; i < 32; i++) {
            thread_pause();
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return;
        }
    } while (clock_ns() < until);
}

/* Sleeps while *word == expected; may return early. */
static inline void futex_sleep(_Atomic uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
