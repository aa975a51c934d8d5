/* Several ranks, each a thread with its own model, and the text that one machine writes to compare
 * theirs with. */
#pragma once

#include <pthread.h>

#include "engine/engine.h"
#include "support/faults/thread_ranks.h"
#include "support/writing.h"

enum { N_CONTEXT = 160, N_TEXT = 24, N_PROMPT = 9, MOST_RANKS = 3 };
extern const int32_t team_prompt[N_PROMPT];

typedef struct rank_team {
    drey_ranks *ranks; /* ranks of rank 0, the calling thread */
    int32_t n;
    /* Paths of the others; what they ended with, after team_end: */
    const char *path[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    drey_status status[MOST_RANKS];
} rank_team;
extern rank_team team;

/* Settings of teams that begin from now on. */
typedef struct team_settings {
    uint64_t budget[MOST_RANKS];         /* 0: unlimited */
    thread_ranks_alter_fn *alter_rank_1; /* changes what rank 1 sends */
    const int32_t *division; /* [n] of team_compare; NULL: layers go where there is room */
} team_settings;
extern team_settings next_team;

/* path: of all others but `other`, whose is other_path; NULL: none has another. wait_s: 0 as
 * usual. */
void team_begin(int32_t n, const char *path, int32_t other, const char *other_path, int32_t wait_s);
void team_end(void);
/* The text of n ranks has to be that of one. */
void team_compare(const drey_engine_options *o, int32_t n, const char *path,
                  const drey_sampling *sampling, const char *what);
/* The same options, with the team's ranks. */
drey_engine_options team_options(drey_engine_options o);

/* A target in a folder of the test, and where it is (static). */
toy_options team_toy(void);
drey_model *team_target(void);
const char *team_target_path(void);
/* A draft that is right often, so that trees are accepted in part. */
drey_model *team_draft(void);
