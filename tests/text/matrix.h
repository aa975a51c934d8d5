/* The matrix of texts: settings that must not change a text, as axes with a list of values each. A
 * case takes a value of every axis; its text is compared with plain decoding in memory on one
 * thread by the plain kernels, token by token and byte by byte. */
#ifndef DREY_TESTS_MATRIX_H
#define DREY_TESTS_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "support/rng.h"

typedef enum matrix_axis {
    AXIS_MODEL,    /* qwen2 with a type for each matrix; llama, tied, in two files */
    AXIS_PROMPT,   /* short; long enough that attention is divided between units */
    AXIS_SAMPLING, /* greedy; a seed with filters; a high temperature without */
    AXIS_KV,       /* format of keys and values */
    AXIS_DRAFTER,  /* drey_drafter */
    AXIS_POLICY,   /* drey_policy, of those that are lossless */
    AXIS_WITHOUT,  /* the part that is left out: none, each, all */
    AXIS_LOOKUP,   /* lookup guesses beside the drafter */
    AXIS_EXIT,     /* off, or exact at layers that are said at random to be enough */
    AXIS_UNITS,    /* clusters and devices */
    AXIS_BOUNDARY, /* of attention between them */
    AXIS_SHARE,    /* of each matrix that is in memory: as the budget says, or a number */
    AXIS_SIDECAR,  /* none, packed */
    AXIS_IO,       /* drey_io */
    AXIS_READS,    /* quick, or slow at random */
    AXIS_TIER,     /* of the processor */
    AXIS_THREADS,  /* 1 and up */
    AXIS_CHUNK,    /* rows of a prompt's pass */
    AXIS_CLOCK,    /* policies hear of time, or not */
    AXIS_SESSIONS, /* that write at a time, each the same text */
    N_AXES
} matrix_axis;

typedef struct matrix_case {
    int32_t at[N_AXES]; /* a value's number, from 0 */
} matrix_case;

typedef struct matrix_totals { /* over cases: what the matrix is about has to happen in it */
    int64_t n_cases, accepted, refused, provisional, outside_slice, blended, left, taken_back;
    int64_t dense_blocks, tails, parts, failed_devices, streamed, packed, shared_passes;
} matrix_totals;

/* Models, sidecars and heads in a temporary folder. */
void matrix_open(void);
void matrix_close(void);

/* How many values an axis has here: tiers are this processor's. */
int32_t matrix_values(matrix_axis axis);
/* A value of each axis, without regard to whether they go together. */
void matrix_case_random(matrix_case *c, rng *r);
/* Gives up values that do not go together with those of axes that come before in this rule: nobody
 * drafts without a policy, some drafters have no exits, a boundary wants units; and what would take
 * long. */
void matrix_case_settle(matrix_case *c);
/* "drafter model, policy optimal, ..." in a buffer that the next call uses again. */
const char *matrix_case_text(const matrix_case *c);
/* Writes the case's texts, fails the test where one differs, and adds what happened. */
void matrix_case_run(const matrix_case *c, matrix_totals *total);

#endif
