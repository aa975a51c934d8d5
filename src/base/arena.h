/* Arenas: one mapping, allocated from the front and freed as a whole.
 *
 * An arena belongs to one object (the weights of a model, an engine, a session) and lives as long
 * as that object. Its size is computed before it is mapped, so that the memory budget is a sum
 * known in advance and a decoding step never asks the system for memory. */
#pragma once

#include "common/error.h"

typedef struct arena {
    uint8_t *base; /* 2 MiB aligned when huge, else page aligned */
    size_t size_bytes;
    size_t used_bytes;
    size_t short_bytes;        /* bytes taken beyond size_bytes; 0 unless the plan is wrong */
    struct arena_extra *extra; /* the memory of those bytes */
} arena;

enum { ARENA_ALIGN = 64 };

/* The size of an allocation as arena_take rounds it up. */
static inline size_t arena_size(size_t bytes)
{
    return (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
}

/* Maps size_bytes of zeroed memory. huge: ask for huge pages; having none is no error. */
drey_status arena_init(arena *a, size_t size_bytes, bool huge, drey_error *err);
void arena_free(arena *a);

/* Allocates 64-byte aligned memory, zeroed the first time. What does not fit is allocated
 * elsewhere, so that callers need not check each piece; arena_check reports it afterwards. NULL
 * only if the system has no memory for that either. */
void *arena_take(arena *a, size_t bytes);
/* DREY_ERR_INTERNAL if the plan forgot something. Call it when everything has been allocated. */
drey_status arena_check(const arena *a, drey_error *err);

/* Frees everything that was allocated since the mark: for steps. */
static inline size_t arena_mark(const arena *a)
{
    return a->used_bytes;
}
static inline void arena_rewind(arena *a, size_t mark)
{
    a->used_bytes = mark;
}
