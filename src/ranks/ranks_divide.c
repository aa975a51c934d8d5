/* Divides layers between ranks: see ranks.h.
 *
 * A byte that is in no rank's memory is read in every pass. So no rank's memory may stay empty
 * while another one reads. What remains is divided so that all disks read for equally long. One
 * pass reads from one disk after the other, and would be shorter with all of it on the fastest; but
 * a rank hides only so much reading as its own computing takes, and where speeds are nearly the
 * same, what was measured would move all of it from here to there. */
#include "ranks/ranks.h"

#include "common/num.h"

/* Gives the share of each disk in what is read. */
static void share_reads(const ranks_means *means, int32_t n, double *share)
{
    double sum = 0;
    int32_t n_known = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += means[i].disk_bytes_per_s;
        n_known += means[i].disk_bytes_per_s > 0;
    }
    double mean = n_known ? sum / n_known : 1;
    sum += mean * (n - n_known);
    for (int32_t i = 0; i < n; i++)
        share[i] = (means[i].disk_bytes_per_s > 0 ? means[i].disk_bytes_per_s : mean) / sum;
}

void ranks_divide(const uint64_t *layer_bytes, int32_t n_layers, const ranks_means *means,
                  int32_t n, int32_t *n_of)
{
    double all = 0, held = 0, room[RANKS_MOST], read[RANKS_MOST];
    for (int32_t i = 0; i < n_layers; i++)
        all += (double)layer_bytes[i];
    for (int32_t i = 0; i < n; i++)
        held += room[i] = min_f64((double)means[i].room_bytes, all);
    share_reads(means, n, read);
    double rest = max_f64(all - held, 0), sum = held + rest, until = 0, done = 0;
    int32_t layer = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t first = layer, most = n_layers - (n - 1 - i); /* each later one has a layer */
        until += (sum > 0 ? (room[i] + rest * read[i]) / sum : 1.0 / n) * all;
        /* A layer belongs to the rank that has most of it. */
        while (layer < most &&
               (layer == first || i == n - 1 || done + (double)layer_bytes[layer] / 2 < until))
            done += (double)layer_bytes[layer++];
        n_of[i] = layer - first;
    }
}
