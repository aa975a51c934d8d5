/* Groups and planes of a matrix that stay in memory, as counts only, and the bytes that a pass
 * reads of the others. Pure functions; groups, planes, and what a pass reads of the others. Pure
 * functions; nothing here knows a tensor, a file or a stream. A memory plan decides it
 * (plan/plan.h), and the weights are opened with what it decided (weights.h).
 *
 *   matrix  |== pinned groups ==|~~ streamed groups ~~|
 *
 * A matrix may be split into planes (kernel/planes.h). Then a group is pinned, or only its first
 * planes are in memory and the others streamed, or all are streamed:
 *
 *   matrix  |== pinned groups ==|-- plane 2 streamed --|-- planes 1, 2 --|~~ all planes ~~|
 *   range            0                     1                    2                 3 */
#pragma once

#include "base/arena.h"
#include "kernel/planes.h"

/* Groups of a matrix by what a pass reads of them: of a matrix that is split, so many planes, the
 * last ones; of another nothing or all, and the ranges between are empty. */
enum { RANGE_PINNED, RANGE_ALL = N_PLANES, WEIGHT_RANGES };

typedef struct residency {
    int32_t n_groups;
    size_t group_bytes; /* in memory */
    /* bytes that a pass reads for a group of which nothing is resident, */
    uint64_t group_read_bytes;
    uint64_t last_read_bytes; /* and for the last one, which may have fewer rows */
    /* false: no pass streams all of it; its rows are looked up, it is pinned whole, or experts of
     * it come to slots (experts.h) */
    bool in_pass;
    bool split;                   /* in planes: */
    size_t plane_bytes[N_PLANES]; /* bytes of a group's planes */
    /* Resident part. */
    int32_t n_pinned; /* the first so many groups */
    /* leading groups of which this plane is in memory: falling, at least n_pinned; the last
     * one's is not looked at */
    int32_t n_planes[N_PLANES];
} residency;

static inline bool residency_is_whole(const residency *r)
{
    return r->n_pinned == r->n_groups;
}

/* One past the last group of a range. */
static inline int32_t range_end(const residency *r, int range)
{
    if (range == RANGE_ALL)
        return r->n_groups;
    int32_t end = r->split && range > 0 ? r->n_planes[N_PLANES - 1 - range] : r->n_pinned;
    return end > r->n_pinned ? end : r->n_pinned;
}
static inline int32_t range_begin(const residency *r, int range)
{
    return range > 0 ? range_end(r, range - 1) : 0;
}
/* Pieces of a run of a range's groups. */
static inline int32_t range_pieces(const residency *r, int range, bool first_pass)
{
    if (!r->split)
        return first_pass || range == RANGE_ALL;
    return first_pass ? N_PLANES : range;
}

/* Returns whether something of it is in memory once it is loaded. */
static inline bool residency_any(const residency *r)
{
    return range_end(r, RANGE_ALL - 1) > 0;
}

static inline uint64_t residency_pinned_bytes(const residency *r)
{
    return (uint64_t)r->n_pinned * r->group_bytes;
}
/* Bytes of a plane, besides pinned groups. */
static inline uint64_t residency_plane_bytes(const residency *r, int plane)
{
    int32_t n = r->split && plane < N_PLANES - 1 ? r->n_planes[plane] - r->n_pinned : 0;
    return n > 0 ? (uint64_t)n * r->plane_bytes[plane] : 0;
}
/* Pinned groups, and the planes of others. */
static inline uint64_t residency_bytes(const residency *r)
{
    uint64_t bytes = residency_pinned_bytes(r);
    for (int i = 0; i < N_PLANES; i++)
        bytes += residency_plane_bytes(r, i);
    return bytes;
}
/* The same of an arena. */
static inline size_t residency_arena_bytes(const residency *r)
{
    size_t bytes = arena_size(residency_pinned_bytes(r));
    for (int i = 0; i < N_PLANES; i++)
        bytes += residency_plane_bytes(r, i) ? arena_size(residency_plane_bytes(r, i)) : 0;
    return bytes;
}

/* Bytes to read for the groups that are not pinned. */
static inline uint64_t residency_rest_bytes(const residency *r)
{
    int32_t n = r->n_groups - r->n_pinned;
    return n > 0 ? (uint64_t)(n - 1) * r->group_read_bytes + r->last_read_bytes : 0;
}
/* Bytes that a pass reads. */
static inline uint64_t residency_streamed_bytes(const residency *r)
{
    uint64_t planes = residency_bytes(r) - residency_pinned_bytes(r);
    return r->in_pass ? residency_rest_bytes(r) - planes : 0;
}
