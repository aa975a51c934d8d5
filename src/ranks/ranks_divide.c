/* Which layers a rank computes: see ranks.h.
 *
 * A byte that is in no rank's memory is read in every pass, by one disk after the other: a pass
 * goes around. So no rank's memory may stay empty while another reads; how what remains is divided
 * between equal disks makes no difference to one pass. */
#include "ranks/ranks.h"

#include "common/num.h"

void ranks_divide(const uint64_t *layer_bytes, int32_t n_layers, const uint64_t *room, int32_t n,
                  int32_t *n_of)
{
    double all = 0, rooms = 0, share[RANKS_MOST];
    for (int32_t i = 0; i < n_layers; i++)
        all += (double)layer_bytes[i];
    for (int32_t i = 0; i < n; i++)
        rooms += share[i] = min_f64((double)room[i], all);
    double rest = max_f64(all - rooms, 0) / n, sum = rooms + rest * n;
    double until = 0, done = 0;
    int32_t layer = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t first = layer, most = n_layers - (n - 1 - i); /* each later one has a layer */
        until += (sum > 0 ? (share[i] + rest) / sum : 1.0 / n) * all;
        /* A layer belongs to the rank that has most of it. */
        while (layer < most &&
               (layer == first || i == n - 1 || done + (double)layer_bytes[layer] / 2 < until))
            done += (double)layer_bytes[layer++];
        n_of[i] = layer - first;
    }
}
