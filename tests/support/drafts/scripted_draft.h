/* A draft of stated acceptance, for measurements where no real one exists: it knows the text that
 * the target will write, and guesses right with a seeded probability. Two thirds of the places are
 * easy, a third is hard. Its confidences are honest. Where its best guess is wrong, the text's
 * token is its second with half of the remaining probability, its third with a quarter, and else
 * none of them. A step takes a stated time, during which the caller's thread is busy. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "draft/drafter_kind.h"

typedef struct scripted_text {
    const int32_t *ids; /* [n]: prompt and text, borrowed */
    int32_t n, n_vocab;
    uint32_t seed;
    double easy, hard; /* probability of a right guess */
    double step_s;     /* time of one node; each further one adds the usual part */
    uint64_t bytes;    /* bytes that a step is said to read: what its time is assumed by at first */
} scripted_text;

/* Returns whether the token at that position is the text's. */
bool scripted_has(const scripted_text *t, int32_t position, int32_t token);

/* The kind for an engine (engine_hooks.drafter) whose draft has this text. One at a time. */
const drafter_kind *scripted_kind(const scripted_text *t);
