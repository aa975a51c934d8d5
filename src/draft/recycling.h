/* Token recycling: what the target found likely after a token the last time that it computed a row
 * of it (Luo et al. 2024, "Turning Trash into Treasure"). The best few tokens of each verified row,
 * also of rejected ones, are kept twice: by the row's last two tokens and by its last one. An entry
 * for two tokens is more often right; an entry for one token is more often there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RECYCLED = 8 };

typedef struct recycled {
    uint32_t key; /* key of its tokens; 0: the entry is empty */
    int32_t n;
    int32_t token[RECYCLED]; /* [n], the target's best first */
} recycled;

enum { RECYCLING_ENTRIES = 16384 };

typedef struct recycling {
    recycled *of_two, *of_one; /* [RECYCLING_ENTRIES] each: by a hash; the latest one is kept */
} recycling;

size_t recycling_bytes(void);
/* memory: that many bytes, zeroed, aligned for an int32_t. */
void recycling_init(recycling *r, void *memory);
/* The target found token[0..n) likely after `before`, `token`; n <= RECYCLED. */
void recycling_keep(recycling *r, int32_t before, int32_t token, const int32_t *tokens, int32_t n);
/* NULL: not known. */
const recycled *recycling_of_two(const recycling *r, int32_t before, int32_t token);
const recycled *recycling_of_one(const recycling *r, int32_t token);
