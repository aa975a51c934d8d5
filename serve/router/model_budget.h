/* Several models in one budget: which may have memory now, and which has to go for it. Pure.
 *
 * A model that is loaded keeps what it was given until it is unloaded. One that is asked for gets
 * what it wants, so that all of it is in memory, if that is left. Otherwise those go that nobody
 * uses, the one that was used longest ago first. When none of these is left, the model gets the
 * rest, if it can work with that, and streams what has no room; else it waits for texts to end. The
 * same holds where so many are loaded as may be. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct budget_model {
    uint64_t floor, want; /* bytes: the least that it works with, and all of it in memory */
    uint64_t given;       /* 0: it is not loaded */
    bool idle;            /* nobody uses it */
    bool leaving;         /* it is being unloaded, and gives its bytes back soon */
    int64_t used;         /* when it was used last, on any clock */
} budget_model;

typedef enum budget_answer {
    BUDGET_GIVE,  /* *bytes for it */
    BUDGET_EVICT, /* evict *who first, then ask again */
    BUDGET_WAIT,  /* others are in use, or leaving: ask again when that changes */
    BUDGET_NEVER  /* the budget is smaller than its floor */
} budget_answer;

typedef struct budget_limits {
    uint64_t budget;  /* bytes; UINT64_MAX: as many as they want */
    int32_t n_loaded; /* at most, at the same time; 0: as many as have room */
} budget_limits;

/* For models[which], of n. */
budget_answer budget_ask(const budget_model *models, int32_t n, int32_t which, budget_limits limits,
                         uint64_t *bytes, int32_t *who);
