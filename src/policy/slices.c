/* Slices between two looks at the pass: see slices.h. */
#include "policy/slices.h"

#include "common/num.h"

bool slices_run(const sliced_work *w)
{
    bool worked = false;
    while (!w->ready(w->user)) {
        int64_t room = min_i64(w->room_ns(w->user), SLICE_NS);
        if (room <= 0 || !w->slice(w->user, w->clock_ns(w->user) + room))
            break;
        worked = true;
    }
    return worked;
}
