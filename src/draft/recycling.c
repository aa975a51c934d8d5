/* The two tables: see recycling.h. */
#include "draft/recycling.h"

#include <assert.h>
#include <string.h>

size_t recycling_bytes(void)
{
    return 2 * (size_t)RECYCLING_ENTRIES * sizeof(recycled);
}

void recycling_init(recycling *r, void *memory)
{
    r->of_two = memory;
    r->of_one = r->of_two + RECYCLING_ENTRIES;
}

/* Never 0. Different pairs may share a key, which only makes a bad guess. */
static uint32_t key_of(int32_t before, int32_t token)
{
    uint64_t both = (uint64_t)(uint32_t)before << 32 | (uint32_t)token;
    return (uint32_t)((both + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 32) | 1;
}

static recycled *place_of(recycled *table, uint32_t key)
{
    return &table[(key >> 1) % RECYCLING_ENTRIES];
}

static void keep(recycled *table, uint32_t key, const int32_t *tokens, int32_t n)
{
    assert(n >= 0 && n <= RECYCLED);
    recycled *e = place_of(table, key);
    e->key = key;
    e->n = n;
    memcpy(e->token, tokens, (size_t)n * sizeof *tokens);
}

void recycling_keep(recycling *r, int32_t before, int32_t token, const int32_t *tokens, int32_t n)
{
    keep(r->of_two, key_of(before, token), tokens, n);
    keep(r->of_one, key_of(-1, token), tokens, n);
}

static const recycled *find(recycled *table, uint32_t key)
{
    const recycled *e = place_of(table, key);
    return e->key == key ? e : NULL;
}

const recycled *recycling_of_two(const recycling *r, int32_t before, int32_t token)
{
    return find(r->of_two, key_of(before, token));
}

const recycled *recycling_of_one(const recycling *r, int32_t token)
{
    return find(r->of_one, key_of(-1, token));
}
