/* Arenas over mmap: see arena.h. */
#include "base/arena.h"

#include <assert.h>
#include <sys/mman.h>

static const size_t huge_page = (size_t)2 << 20;

drey_status arena_init(arena *a, size_t size_bytes, bool huge, drey_error *err)
{
    *a = (arena){0};
    if (size_bytes == 0)
        return DREY_OK;
    /* Over-map by one huge page, then cut the ends off: mmap promises page alignment only. */
    size_t slack = huge ? huge_page : 0;
    size_t rounded = (size_bytes + 4095) & ~(size_t)4095;
    uint8_t *map = mmap(NULL, rounded + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        FAIL(err, DREY_ERR_MEMORY,
             "the system refused %zu MiB of memory; ask for less with --memory", rounded >> 20);
    size_t lead = 0;
    if (huge) {
        lead = (huge_page - (uintptr_t)map % huge_page) % huge_page;
        if (lead)
            munmap(map, lead);
        if (slack - lead)
            munmap(map + lead + rounded, slack - lead);
        madvise(map + lead, rounded, MADV_HUGEPAGE);
    }
    a->base = map + lead;
    a->size_bytes = rounded;
    return DREY_OK;
}

void arena_free(arena *a)
{
    if (a->base)
        munmap(a->base, a->size_bytes);
    *a = (arena){0};
}

void *arena_take(arena *a, size_t bytes)
{
    size_t at = a->used_bytes;
    assert(arena_size(bytes) <= a->size_bytes - at && "the plan forgot something");
    a->used_bytes = at + arena_size(bytes);
    return a->base + at;
}
