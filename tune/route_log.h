/* Counts how many other experts a layer has used since it last used each one: the place of an
 * expert in a list of the layer's experts, the latest first. Pure. */
#pragma once

#include "base/arena.h"
#include "drey/tune.h"

typedef struct route_log {
    int32_t n_experts;
    uint16_t *list;     /* [n_layers][n_experts]: of each layer's experts that were used */
    int32_t *n_list;    /* [n_layers]: their number */
    uint32_t *distance; /* [DREY_ROUTE_SLOTS], borrowed: as in drey_routes */
} route_log;

size_t route_log_bytes(int32_t n_layers, int32_t n_experts);
/* Nothing has been used. The arena's owner checks it. distance: is added to. */
void route_log_init(route_log *l, int32_t n_layers, int32_t n_experts, uint32_t *distance,
                    arena *a);
/* A token's experts of a layer, all different. */
void route_log_add(route_log *l, int32_t layer, const int32_t *expert, int32_t n);
