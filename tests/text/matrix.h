/* The matrix of texts: settings that must not change a text, as axes with a list of values each. A
 * case takes a value of every axis; its text is compared with plain decoding in memory on one
 * thread by the plain kernels, token by token and byte by byte. */
#pragma once

#include <stdbool.h>

#include "support/rng.h"

typedef enum matrix_axis {
    AXIS_MODEL,    /* qwen2 with a type for each matrix; llama, tied, in two files; a running sum
                     * (support/toys/sum_block.h); the toy of each architecture, mixtures last */
    AXIS_PROMPT,   /* short; long enough that attention is divided between units */
    AXIS_SAMPLING, /* greedy; a seed with filters; a high temperature without */
    AXIS_KV,       /* format of keys and values */
    AXIS_DRAFTER,  /* drey_drafter */
    AXIS_POLICY,   /* drey_policy, of those that are lossless */
    AXIS_WITHOUT,  /* the part that is left out: none, each, all */
    AXIS_LOOKUP,   /* lookup guesses as well as the drafter */
    AXIS_EXIT,     /* off, or exact where it is said that a layer is enough: never, always, ... */
    AXIS_UNITS,    /* clusters and devices */
    AXIS_BOUNDARY, /* boundary of attention between them */
    /* share of each matrix that is in memory: all, a number, or what the smallest budget has */
    AXIS_SHARE,
    AXIS_SIDECAR,   /* none, packed */
    AXIS_IO,        /* drey_io */
    AXIS_READS,     /* quick, slow at random, failing at random */
    AXIS_TIER,      /* tier of the processor, by name, or its best */
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

/* Over cases: what the matrix is about has to happen in it; and its name, for people. Those of
 * mixtures are of mixtures of experts alone, waves are those that had another after them, and the
 * best tier is the processor's, or the one of DREY_TEST_CPU. */
#define MATRIX_COUNTS(X)                                                                           \
    X(N_CASES, "cases")                                                                            \
    X(N_ACCEPTED, "accepted")                                                                      \
    X(N_REFUSED, "refused")                                                                        \
    X(N_OF_MODEL, "of a model")                                                                    \
    X(N_OF_LOOKUP, "of lookup")                                                                    \
    X(N_OF_MEDUSA, "of heads")                                                                     \
    X(N_OF_SELF, "of planes")                                                                      \
    X(N_OF_EAGLE, "of a layer")                                                                    \
    X(N_GREEDY, "greedy")                                                                          \
    X(N_FILTERED, "filtered")                                                                      \
    X(N_HOT, "hot")                                                                                \
    X(N_KEPT, "kept")                                                                              \
    X(N_LOST, "lost")                                                                              \
    X(N_OUTSIDE_SLICE, "outside the slice")                                                        \
    X(N_BLENDED, "blended")                                                                        \
    X(N_UNDER_GRAMMAR, "under a grammar")                                                          \
    X(N_PENALISED, "penalised")                                                                    \
    X(N_EXIT_CASES, "with exits")                                                                  \
    X(N_LEFT, "left early")                                                                        \
    X(N_AGREED, "agreed")                                                                          \
    X(N_TAKEN_BACK, "taken back")                                                                  \
    X(N_DENSE_BLOCKS, "dense blocks")                                                              \
    X(N_TAILS, "tails")                                                                            \
    X(N_UNIT_PARTS, "parts")                                                                       \
    X(N_FAILED_DEVICES, "failed devices")                                                          \
    X(N_STREAMED, "streamed")                                                                      \
    X(N_PACKED, "packed")                                                                          \
    X(N_SHARED_PASSES, "shared passes")                                                            \
    X(N_FAILED_STEPS, "failed steps")                                                              \
    X(N_PAUSES, "pauses")                                                                          \
    X(N_UNVERIFIED, "unverified")                                                                  \
    X(N_BEST_TIER, "on the best tier")                                                             \
    X(N_STATES, "of states")                                                                       \
    X(N_STATES_LEFT, "left early with states")                                                     \
    X(N_STATES_ACCEPTED, "accepted with states")                                                   \
    X(N_STATES_SHARED, "shared passes with states")                                                \
    X(N_MIXTURES, "of mixtures")                                                                   \
    X(N_EXPERTS_HIT, "experts in memory")                                                          \
    X(N_EXPERTS_READ, "experts read")                                                              \
    X(N_WAVES, "waves")                                                                            \
    X(N_MIXTURE_REFUSED, "refused by mixtures")                                                    \
    X(N_MIXTURE_SAMPLED, "sampled of mixtures")                                                    \
    X(N_MIXTURE_SHARED, "shared passes of mixtures")                                               \
    X(N_MIXTURE_PARTS, "parts of mixtures")                                                        \
    X(N_MIXTURE_PACKED, "packed mixtures")
#define MATRIX_COUNT(id, name) id,
typedef enum matrix_count { MATRIX_COUNTS(MATRIX_COUNT) N_COUNTS } matrix_count;

typedef struct matrix_totals {
    int64_t n[N_COUNTS];
} matrix_totals;

/* Name of the count, for people. */
const char *matrix_count_name(matrix_count which);

/* Models, sidecars and heads in a temporary folder. */
void matrix_open(void);
void matrix_close(void);

/* Returns whether a model, a value of its axis, is a mixture of experts. */
bool matrix_is_mixture(int32_t model);
/* Returns whether every other layer has a state in place of attention. */
bool matrix_has_states(int32_t model);
/* One of them that is no mixture, another one for the next value. */
int32_t matrix_state_model(int32_t value);
/* Returns how many values an axis has here: tiers are this processor's. */
int32_t matrix_values(matrix_axis axis);
/* A value of each axis, without regard to whether they go together. */
void matrix_case_random(matrix_case *c, rng *r);
/* Gives up values that do not go together with those of axes that come before in this rule: nobody
 * drafts without a policy, some drafters have no exits, a boundary wants units; and what would take
 * long. */
void matrix_case_resolve(matrix_case *c);
/* Writes the case's texts, fails the test where one differs, and adds what happened. */
void matrix_case_run(const matrix_case *c, matrix_totals *total);
