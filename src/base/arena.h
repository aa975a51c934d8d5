/* Arenas: one mapping, handed out from the front, given back as a whole.
 *
 * An arena belongs to one object (the weights of a model, an engine, a session) and lives as long.
 * Its size is computed before it is mapped, so that the memory budget is a sum known beforehand and
 * a decoding step never asks the system for memory. */
#ifndef DREY_BASE_ARENA_H
#define DREY_BASE_ARENA_H

#include "common/error.h"

typedef struct arena {
    uint8_t *base; /* 2 MiB aligned when huge, else page aligned */
    size_t size_bytes;
    size_t used_bytes;
    size_t short_bytes;        /* what was taken beyond size_bytes; 0 unless the plan is wrong */
    struct arena_extra *extra; /* where that lies */
} arena;

enum { ARENA_ALIGN = 64 };

/* Rounds an allocation up to what arena_take will use for it. */
static inline size_t arena_size(size_t bytes)
{
    return (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
}

/* Maps size_bytes of zeroed memory. huge: ask for huge pages (a wish, not a demand). */
drey_status arena_init(arena *a, size_t size_bytes, bool huge, drey_error *err);
void arena_free(arena *a);

/* 64-byte aligned and zeroed the first time. What does not fit lies elsewhere, so that whoever lays
 * something out need not look at each piece; arena_check then tells. NULL only where the system has
 * no memory for that either. */
void *arena_take(arena *a, size_t bytes);
/* DREY_ERR_INTERNAL if the plan forgot something: called when everything has been laid out. */
drey_status arena_check(const arena *a, drey_error *err);

/* Steps give back all they took since the mark. */
static inline size_t arena_mark(const arena *a)
{
    return a->used_bytes;
}
static inline void arena_rewind(arena *a, size_t mark)
{
    a->used_bytes = mark;
}

#endif
