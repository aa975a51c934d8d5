/* Slices between a look at the pass and the next: see slices.h. */
#include "session/slices.h"

#include "common/num.h"

bool gap_fill(const gap *g)
{
    bool worked = false;
    while (!g->ready(g->user)) {
        int64_t room = min_i64(g->room_ns(g->user), GAP_SLICE_NS);
        if (room <= 0 || !g->slice(g->user, g->clock_ns(g->user) + room))
            break;
        worked = true;
    }
    return worked;
}
