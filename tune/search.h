/* Finding how to divide work between units, by measuring: the seconds that a division takes fall
 * and then rise as one unit is given more, but where depends on how the units slow each other
 * (Ghidorah III-C3). So a search begins where the units' times alone put it, and continues by
 * golden section until the place is known to a hundredth.
 *
 * Pure but for the callback, which may be a clock or a formula. What it returns need not be smooth:
 * the least that was seen is the answer. */
#pragma once

#include <stdint.h>

enum { SEARCH_MAX_UNITS = 4 };

/* Seconds at a place in [low, high]. */
typedef double search_fn(void *user, double at);
typedef struct search_result {
    double at, seconds;
    int32_t n_measured;
} search_result;
/* The place with the least seconds, to within `tolerance`, from `start` on. */
search_result search_least(search_fn *measure, void *user, double low, double high, double start,
                           double tolerance);

/* Makes shares in proportion to speed, from a unit's seconds for all of the work: share[n_units],
 * their sum is 1. A unit of 0 seconds has none. */
void shares_from_alone(const double *alone_s, int32_t n_units, double *share);

/* Seconds with these shares, [n_units]. */
typedef double shares_fn(void *user, const double *share);
/* Searches from the shares of the times alone: two units at a time exchange a part of theirs, until
 * a round over all pairs gains less than a hundredth. Where one unit alone is faster than all of
 * them, it has all. share: the best; returns its seconds. n_units: 1 to SEARCH_MAX_UNITS. */
double shares_search(shares_fn *measure, void *user, const double *alone_s, int32_t n_units,
                     double *share);

/* Seconds of attention after so many positions, with its boundary there: above 0 so much of the
 * dense part is the narrow unit's, below 0 so much of the sparse part the wide one's. */
typedef double boundary_fn(void *user, int32_t n_positions, double boundary);
/* The best boundary, in [low, 1], for each of `contexts` ([n]). low: -1, or 0 where no wide unit
 * can have sparse parts, so that nothing changes below 0. boundary: [n], where each search
 * begins. */
void boundaries_search(boundary_fn *measure, void *user, const int32_t *contexts, int32_t n,
                       double low, float *boundary);
