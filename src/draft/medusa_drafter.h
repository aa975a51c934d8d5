/* The target's own Medusa heads as a drafter: see medusa_drafter.c. */
#pragma once

#include "draft/drafter.h"

typedef struct medusa_heads medusa_heads;

typedef struct medusa_drafter {
    drafter base;
    medusa_heads *heads; /* borrowed, as the sampler is */
    sampler *sampler;
    int32_t n_ids;    /* ids that can be guessed */
    int32_t n_tokens; /* tokens of the timeline, the root included */
    float *hidden;    /* [D]: of the row that chose token number seen_for */
    int32_t seen_for; /* 0: no row was seen */
} medusa_drafter;
