/* Counting how soon experts are used again: see route_log.h. */
#include "tune/route_log.h"

#include <string.h>

#include "common/num.h"

size_t route_log_bytes(int32_t n_layers, int32_t n_experts)
{
    size_t layers = (size_t)n_layers;
    return arena_size(layers * (size_t)n_experts * sizeof(uint16_t)) +
           arena_size(layers * sizeof(int32_t));
}

void route_log_init(route_log *l, int32_t n_layers, int32_t n_experts, uint32_t *distance, arena *a)
{
    size_t layers = (size_t)n_layers;
    *l = (route_log){.n_experts = n_experts,
                     .distance = distance,
                     .list = arena_take(a, layers * (size_t)n_experts * sizeof *l->list),
                     .n_list = arena_take(a, layers * sizeof *l->n_list)};
    if (l->n_list)
        memset(l->n_list, 0, layers * sizeof *l->n_list);
}

/* n: it is not in the list. */
static int32_t place_of(const uint16_t *list, int32_t n, int32_t expert)
{
    int32_t i = 0;
    while (i < n && list[i] != expert)
        i++;
    return i;
}

static void move_to_front(uint16_t *list, int32_t *n, int32_t expert)
{
    int32_t place = place_of(list, *n, expert);
    *n += place == *n;
    memmove(list + 1, list, (size_t)place * sizeof *list);
    list[0] = (uint16_t)expert;
}

void route_log_add(route_log *l, int32_t layer, const int32_t *expert, int32_t n)
{
    uint16_t *list = l->list + (int64_t)layer * l->n_experts;
    int32_t *n_list = &l->n_list[layer];
    for (int32_t i = 0; i < n; i++) { /* slots are looked at before any of them is given away */
        int32_t place = place_of(list, *n_list, expert[i]);
        int32_t distance = place < *n_list ? place : l->n_experts - 1;
        l->distance[min_i32(distance, DREY_ROUTE_SLOTS - 1)]++;
    }
    for (int32_t i = 0; i < n; i++)
        move_to_front(list, n_list, expert[i]);
}
