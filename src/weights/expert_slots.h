/* Experts of a layer that are in memory, by numbers alone: a layer has slots, and an expert that is
 * not in one takes that of the expert that was used longest ago. What does not fit into a layer's
 * slots at once is used in waves (expert_slots_use). Nothing here knows a file or a pass.
 *
 * A prompt uses almost all experts, most of them once. Those that it alone uses *pass*: what they
 * bring in is the next to go, what was there before is no younger for them, and a wave of them
 * takes a quarter of the slots at most from experts that texts have used.
 *
 * Other rules were within five points of hits of this one on published traces, and a list of the
 * most frequent experts is worse. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct expert_slots {
    int32_t n_experts, n_slots;
    int32_t *slot_of;   /* [n_experts]; -1: it is not in memory */
    int32_t *expert_in; /* [n_slots]; -1: empty */
    int64_t *used_at;   /* [n_slots]: by `clock`; 0: next to go */
    bool *held;         /* [n_slots]: of the present wave */
    int64_t clock;
} expert_slots;

size_t expert_slots_bytes(int32_t n_experts, int32_t n_slots);
/* All are empty. The arena's owner checks it. */
void expert_slots_init(expert_slots *s, int32_t n_experts, int32_t n_slots, arena *a);

/* An expert, and the rows that take it: [first, first + n) of rows that are sorted by expert. */
typedef struct expert_run {
    int32_t expert, first, n;
    bool passing; /* all of them are rows of prompts */
} expert_run;

/* Returns how many of n runs, those that are there before the others, one wave uses: at least 1. */
int32_t expert_slots_fit(const expert_slots *s, const expert_run *run, int32_t n);
/* A place for the experts of n runs, all different, at most n_slots: slot[i] is run[i]'s, and
 * there[i] whether it is in it already. Returns how many are not. */
int32_t expert_slots_use(expert_slots *s, const expert_run *run, int32_t n, int32_t *slot,
                         bool *there);
/* Empties a slot whose expert did not arrive. */
void expert_slots_forget(expert_slots *s, int32_t slot);
