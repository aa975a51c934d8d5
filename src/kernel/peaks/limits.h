/* Code that the tiers' limits_*.c share: the loops around a peak, and a way to keep the compiler
 * from doing a loop's work once. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernel/unroll.h"

/* Makes the compiler believe that v changes here. No instruction comes of it. */
#if defined(__aarch64__)
#define CHANGES(v) __asm__ volatile("" : "+w"(v))
#elif defined(__AVX512F__)
#define CHANGES(v) __asm__ volatile("" : "+v"(v))
#else
#define CHANGES(v) __asm__ volatile("" : "+x"(v))
#endif

/* Words of p[n] from `from` on. */
INLINE uint64_t sum_rest(const uint64_t *p, int64_t from, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = from; i < n; i++)
        sum += p[i];
    return sum;
}

/* Defines read_<tier>, which sums n_streams streams of vectors of n_words words, STEP words of each
 * at a time, and prefetches each line `ahead` words before it is read. A load in front of which
 * nothing is prefetched is another loop: the last two arguments are constants where they matter. */
#define DEFINE_READ(tier, vector, n_words, zero, load, add)                                        \
    INLINE uint64_t read_streams(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)   \
    {                                                                                              \
        int64_t span = n / n_streams / STEP * STEP;                                                \
        vector sum[STEP / (n_words)];                                                              \
        UNROLL                                                                                     \
        for (int j = 0; j < STEP / (n_words); j++)                                                 \
            sum[j] = zero;                                                                         \
        for (int64_t i = 0; i < span; i += STEP) {                                                 \
            UNROLL                                                                                 \
            for (int32_t s = 0; s < n_streams; s++) {                                              \
                const uint64_t *at = p + s * span + i;                                             \
                UNROLL                                                                             \
                for (int j = 0; j < STEP / (n_words); j++) {                                       \
                    if (ahead && j % (8 / (n_words)) == 0)                                         \
                        __builtin_prefetch(at + ahead + (n_words)*j);                              \
                    sum[j] = add(sum[j], load(at + (n_words)*j));                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        uint64_t lane[STEP];                                                                       \
        UNROLL                                                                                     \
        for (int j = 0; j < STEP / (n_words); j++)                                                 \
            memcpy(lane + (n_words)*j, &sum[j], sizeof sum[j]);                                    \
        return sum_rest(lane, 0, STEP) + sum_rest(p, span * n_streams, n);                         \
    }                                                                                              \
    static uint64_t read_##tier(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)    \
    {                                                                                              \
        switch (n_streams * 2 + (ahead > 0)) {                                                     \
        case 2:                                                                                    \
            return read_streams(p, n, 1, 0);                                                       \
        case 3:                                                                                    \
            return read_streams(p, n, 1, ahead);                                                   \
        case 4:                                                                                    \
            return read_streams(p, n, 2, 0);                                                       \
        case 5:                                                                                    \
            return read_streams(p, n, 2, ahead);                                                   \
        case 8:                                                                                    \
            return read_streams(p, n, 4, 0);                                                       \
        default:                                                                                   \
            return read_streams(p, n, 4, ahead);                                                   \
        }                                                                                          \
    }

/* Defines name(rounds): in each round every one of CHAINS sums, which do not wait for each other,
 * becomes add(sum, w, x), which is n_products multiply-adds. */
#define DEFINE_PEAK(name, sums, zero, operand, w_value, x_value, add, n_products)                  \
    static int64_t name(int64_t rounds)                                                            \
    {                                                                                              \
        sums sum[CHAINS];                                                                          \
        operand w = w_value, x = x_value;                                                          \
        UNROLL                                                                                     \
        for (int j = 0; j < CHAINS; j++) {                                                         \
            sum[j] = zero;                                                                         \
            CHANGES(sum[j]); /* or one chain would do for all */                                   \
        }                                                                                          \
        for (int64_t i = 0; i < rounds; i++) {                                                     \
            UNROLL                                                                                 \
            for (int j = 0; j < CHAINS; j++)                                                       \
                sum[j] = add(sum[j], w, x);                                                        \
            CHANGES(w);                                                                            \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int j = 0; j < CHAINS; j++)                                                           \
            CHANGES(sum[j]);                                                                       \
        return rounds * CHAINS * (n_products)*2;                                                   \
    }
