/* Arenas over mmap: see arena.h. */
#include "base/arena.h"

#include "common/size_text.h"

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
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "the system refused %s of memory; free some, or take a smaller budget",
                  SIZE_TEXT(rounded));
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

struct arena_extra { /* at the start of its mapping */
    struct arena_extra *next;
    size_t map_bytes;
};

void arena_free(arena *a)
{
    while (a->extra) {
        struct arena_extra *extra = a->extra;
        a->extra = extra->next;
        munmap(extra, extra->map_bytes);
    }
    if (a->base)
        munmap(a->base, a->size_bytes);
    *a = (arena){0};
}

static void *take_elsewhere(arena *a, size_t bytes)
{
    a->short_bytes += arena_size(bytes);
    size_t map_bytes = ARENA_ALIGN + arena_size(bytes);
    struct arena_extra *extra =
        mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (extra == MAP_FAILED)
        return NULL;
    *extra = (struct arena_extra){.next = a->extra, .map_bytes = map_bytes};
    a->extra = extra;
    return (uint8_t *)extra + ARENA_ALIGN;
}

void *arena_take(arena *a, size_t bytes)
{
    size_t at = a->used_bytes;
    if (arena_size(bytes) > a->size_bytes - at)
        return take_elsewhere(a, bytes);
    a->used_bytes = at + arena_size(bytes);
    return a->base + at;
}

drey_status arena_check(const arena *a, drey_error *err)
{
    if (a->short_bytes)
        FAIL_HINT(
            err, DREY_ERR_INTERNAL, DREY_HINT_MEMORY_BYTES,
            "the memory plan is %zu bytes short, a fault of drey's; please report it with the "
            "options and the model, and try another budget",
            a->short_bytes);
    return DREY_OK;
}
