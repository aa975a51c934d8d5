/* The time of a text, and the results of its drafting. */
#pragma once

#include "base/trace.h"
#include "drey/drey_session.h"
#include "weights/weights.h"

/* Counters at one moment; statistics are differences. */
typedef struct statistics_mark {
    int64_t t_ns;
    trace_sums sums;
    uint64_t read_bytes; /* bytes of both models */
    uint64_t kv_bytes;   /* bytes of keys and values from a file */
    uint64_t vain_bytes; /* bytes of weights, read in vain */
    int64_t busy_ns;     /* busy time of their disks */
    int64_t major_faults;
    expert_counts experts; /* experts of the target, on all ranks */
    double joules;
} statistics_mark;

/* Counters at the beginning of a text. */
typedef struct text_marks {
    statistics_mark begin, decode;
    int64_t n_first;       /* tokens written before decoding */
    int64_t n_unguessable; /* the drafter's, when decoding began */
    int64_t n_steps;       /* steps of the drafter, when the text began */
} text_marks;

/* Returns the statistics of a text that could not begin. */
drey_statistics statistics_of_nothing(const drey_engine *e);
void statistics_begin(drey_session *s);
/* Decoding begins. */
void statistics_decode(drey_session *s);
void statistics_end(drey_session *s);

/* Mean bytes that a pass reads: all streamed ones, or, if passes may be stopped, the mean of `used`
 * over n of them. */
uint64_t statistics_pass_bytes(uint64_t streamed, bool may_stop, uint64_t used, int64_t n);

/* Counts a turn whose tokens have been chosen, before the tree moves; n_written of them were
 * written. */
void speculation_count(drey_session *s, int32_t n_written);
