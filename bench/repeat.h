/* The time of a call that is too short to be timed alone. */
#pragma once

#include "os/clock.h"
#include "tune/machine_limits.h"

enum { REPEAT_ROUNDS = 5 };

/* Median seconds per call, of rounds of at least round_s. The clock is read after each n_between
 * calls. */
static inline double repeat_seconds(void (*call)(void *user), void *user, int32_t n_between,
                                    double round_s)
{
    double seconds[REPEAT_ROUNDS];
    for (int i = 0; i < REPEAT_ROUNDS; i++) {
        int64_t n = 0;
        double start = clock_s(), taken;
        do {
            for (int32_t j = 0; j < n_between; j++)
                call(user);
            n += n_between;
        } while ((taken = clock_s() - start) < round_s);
        seconds[i] = taken / (double)n;
    }
    return median(seconds, REPEAT_ROUNDS);
}
