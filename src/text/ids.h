/* The destination of token ids: they are counted even if there is no more room for them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct id_sink {
    int32_t *ids; /* [capacity] */
    size_t capacity, n;
} id_sink;

static inline void id_push(id_sink *sink, int32_t id)
{
    if (sink->n < sink->capacity)
        sink->ids[sink->n] = id;
    sink->n++;
}
