/* Token recycling: what the target itself found likely behind a token, the last time that
 * it computed a row of it (Luo et al. 2024, "Turning Trash into Treasure"). Of each row of a
 * verification, also of those that were rejected, the best few tokens are kept, by the row's
 * last two tokens and by its last one. What two tokens have is surer; what one has is known
 * more often. */
#ifndef DREY_DRAFT_RECYCLING_H
#define DREY_DRAFT_RECYCLING_H

#include <stddef.h>
#include <stdint.h>

enum { RECYCLED = 8 };

typedef struct recycled {
    uint32_t key; /* of its tokens; 0: nobody's */
    int32_t n;
    int32_t token[RECYCLED]; /* [n], the target's best first */
} recycled;

enum { RECYCLING_ENTRIES = 16384 };

typedef struct recycling {
    recycled *of_two, *of_one; /* [RECYCLING_ENTRIES] each: by a hash, the last one stays */
} recycling;

size_t recycling_bytes(void);
/* In zeroed memory of so many bytes, aligned for an int32_t. */
void recycling_init(recycling *r, void *memory);
/* Behind `before`, `token` the target found token[0..n) likely; n <= RECYCLED. */
void recycling_keep(recycling *r, int32_t before, int32_t token, const int32_t *tokens, int32_t n);
/* NULL: not known. */
const recycled *recycling_of_two(const recycling *r, int32_t before, int32_t token);
const recycled *recycling_of_one(const recycling *r, int32_t token);

#endif
