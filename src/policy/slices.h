/* Work in the gaps of a pass (EdgeLLM III-D: the computing-loading pipeline).
 *
 * Where a pass has nothing to compute because the disk has not brought it yet, something else may
 * use the processor, as long as the pass does not feel it: it is late by a slice at most, and the
 * disk never has to stop because nobody took what it brought.
 *
 *     pass      |compute|          gap          |compute|  gap   |compute|
 *     work              |slice|slice|slice|slice|       |slice|..|
 *                                       ^ a piece arrives: this slice is the last
 *
 * The rule alone, apart from passes and clocks. */
#ifndef DREY_POLICY_SLICES_H
#define DREY_POLICY_SLICES_H

#include <stdbool.h>
#include <stdint.h>

enum { SLICE_NS = 1000000 };

typedef struct sliced_work {
    bool (*ready)(void *user);                   /* the pass can continue */
    int64_t (*room_ns)(void *user);              /* how long it may wait without the disk */
    int64_t (*clock_ns)(void *user);             /* the time */
    bool (*slice)(void *user, int64_t until_ns); /* works about that long; false: nothing to do */
    void *user;
} sliced_work;

/* Works until the pass can continue, the disk would have to wait, or there is nothing to do. False:
 * no slice was worked, so that the caller has to wait for the pass. */
bool slices_run(const sliced_work *w);

#endif
