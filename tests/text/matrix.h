/* The matrix of texts: settings that must not change a text, as axes with a list of values each. A
 * case takes a value of every axis; its text is compared with plain decoding in memory on one
 * thread by the plain kernels, token by token and byte by byte. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/rng.h"

typedef enum matrix_axis {
    AXIS_MODEL,     /* qwen2 with a type for each matrix; llama, tied, in two files; a running sum
                     * (support/toys/sum_block.h); the toy of each architecture, mixtures last */
    AXIS_PROMPT,    /* short; long enough that attention is divided between units */
    AXIS_SAMPLING,  /* greedy; a seed with filters; a high temperature without */
    AXIS_KV,        /* format of keys and values */
    AXIS_DRAFTER,   /* drey_drafter */
    AXIS_POLICY,    /* drey_policy, of those that are lossless */
    AXIS_WITHOUT,   /* the part that is left out: none, each, all */
    AXIS_LOOKUP,    /* lookup guesses as well as the drafter */
    AXIS_EXIT,      /* off, or exact where it is said that a layer is enough: never, always, ... */
    AXIS_UNITS,     /* clusters and devices */
    AXIS_BOUNDARY,  /* of attention between them */
    AXIS_SHARE,     /* of each matrix that is in memory: all, a number, or what the smallest budget
                    * has */
    AXIS_SIDECAR,   /* none, packed */
    AXIS_IO,        /* drey_io */
    AXIS_READS,     /* quick, slow at random, failing at random */
    AXIS_TIER,      /* of the processor, by name, or its best */
    AXIS_THREADS,   /* 1 and up */
    AXIS_CHUNK,     /* rows of a prompt's pass */
    AXIS_CLOCK,     /* policies hear of time, or not */
    AXIS_SESSIONS,  /* one; three, in shared passes; three, by turns alone and in shared passes */
    AXIS_GRAMMAR,   /* none; a loose one; one that forces many bytes */
    AXIS_PENALTIES, /* none; of few tokens; DRY and frequency, of all */
    AXIS_PAUSE,     /* none; a text that is ended or cut after some steps, and continued */
    N_AXES
} matrix_axis;

typedef struct matrix_case {
    int32_t at[N_AXES]; /* a value's number, from 0 */
} matrix_case;

/* Over cases: what the matrix is about has to happen in it. */
typedef enum matrix_count {
    N_CASES,
    N_ACCEPTED,
    N_REFUSED,
    N_OF_MODEL, /* accepted, by drafter, */
    N_OF_LOOKUP,
    N_OF_MEDUSA,
    N_OF_SELF,
    N_OF_EAGLE,
    N_GREEDY, /* and by sampling */
    N_FILTERED,
    N_HOT,
    N_KEPT, /* drafted ahead, */
    N_LOST,
    N_OUTSIDE_SLICE,
    N_BLENDED,
    N_UNDER_GRAMMAR, /* accepted, */
    N_PENALISED,     /* with penalties as well */
    N_EXIT_CASES,
    N_LEFT,       /* by early exits, */
    N_AGREED,     /* as the whole model has them, */
    N_TAKEN_BACK, /* or not */
    N_DENSE_BLOCKS,
    N_TAILS,
    N_UNIT_PARTS,
    N_FAILED_DEVICES,
    N_STREAMED,
    N_PACKED,
    N_SHARED_PASSES,
    N_FAILED_STEPS,
    N_PAUSES,
    N_UNVERIFIED, /* tokens that a pause has dropped */
    N_BEST_TIER,  /* cases on the processor's best, or the one of DREY_TEST_CPU */
    N_STATES,     /* cases with a running state; of them with rows that left early, */
    N_STATES_LEFT,
    N_STATES_ACCEPTED, /* accepted, */
    N_STATES_SHARED,   /* and in shared passes */
    N_MIXTURES,        /* cases with a mixture; of experts, */
    N_EXPERTS_HIT,
    N_EXPERTS_READ,
    N_WAVES, /* that had another after them; and as above, of mixtures alone */
    N_MIXTURE_REFUSED,
    N_MIXTURE_SAMPLED,
    N_MIXTURE_SHARED,
    N_MIXTURE_PARTS,
    N_MIXTURE_PACKED,
    N_COUNTS
} matrix_count;

typedef struct matrix_totals {
    int64_t n[N_COUNTS];
} matrix_totals;

/* Which of them, for people. */
const char *matrix_count_name(matrix_count which);

/* Models, sidecars and heads in a temporary folder. */
void matrix_open(void);
void matrix_close(void);

/* Whether a model, a value of its axis, is a mixture of experts. */
bool matrix_is_mixture(int32_t model);
/* Whether every other layer has a state in place of attention. */
bool matrix_has_states(int32_t model);
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
