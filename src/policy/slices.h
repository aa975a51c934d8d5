/* Work in the gaps of a pass (EdgeLLM III-D: the computing-loading pipeline).
 *
 * While a pass has nothing to compute because the disk has not read it yet, other work may use the
 * processor, as long as it does not hold up the pass: the pass is late by at most one slice, and
 * the disk never has to stop because nothing takes what it has read.
 *
 *     pass      |compute|          gap          |compute|  gap   |compute|
 *     work              |slice|slice|slice|slice|       |slice|..|
 *                                       ^ a piece arrives: this slice is the last
 *
 * This is only the rule, without passes and clocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SLICE_NS = 1000000 };

typedef struct sliced_work {
    bool (*ready)(void *user);                   /* the pass can continue */
    int64_t (*room_ns)(void *user);              /* time it may wait before the disk has to */
    int64_t (*clock_ns)(void *user);             /* the time */
    bool (*slice)(void *user, int64_t until_ns); /* works until about then; false: nothing to do */
    void *user;
} sliced_work;

/* Works until the pass can continue, the disk would have to wait, or there is nothing to do. False:
 * no slice was worked, so that the caller has to wait for the pass. */
bool slices_run(const sliced_work *w);
