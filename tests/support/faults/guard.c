/* Guarded buffers: see guard.h. */
#include "support/faults/guard.h"
#include "support/test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0x5a };

guarded guard_alloc(size_t size_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (size_bytes + 64 + page - 1) / page * page; /* at least 64 bytes of canary */
    uint8_t *map =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + body, page, PROT_NONE), 0);
    memset(map, CANARY, body - size_bytes);
    return (guarded){.data = map + body - size_bytes,
                     .map = map,
                     .size_bytes = size_bytes,
                     .map_bytes = body + page};
}

bool guard_intact(const guarded *g)
{
    for (const uint8_t *p = g->map; p < (const uint8_t *)g->data; p++) {
        if (*p != CANARY)
            return false;
    }
    return true;
}

void guard_free(guarded *g)
{
    munmap(g->map, g->map_bytes);
    *g = (guarded){0};
}
