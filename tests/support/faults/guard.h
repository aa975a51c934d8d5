/* Buffers that end at an unreadable page, so that a kernel that touches one byte past its operands
 * dies in the test, and start after a canary. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct guarded {
    void *data;        /* size_bytes, ending at the guard page */
    void *map;         /* the whole mapping */
    size_t size_bytes; /* as asked for */
    size_t map_bytes;
} guarded;

/* Fails the test when memory is short. Free with guard_free. */
guarded guard_alloc(size_t size_bytes);
/* Returns whether nothing was written before data. */
bool guard_intact(const guarded *g);
void guard_free(guarded *g);
