/* The units of an engine at work: who computes how many groups of a product.
 *
 * A unit is a cluster of cores (threads of the pool) or a device. Each matrix is split by output
 * rows, in whole packed groups (Ghidorah III-B1): a unit's part lies together, in the order of the
 * units, and within a cluster each thread has an equal part of it. Activations are shared, and
 * nothing is added up across units.
 *
 *   groups  |== thread 0 ==|== thread 1 ==|- thread 2 -|- thread 3 -|..... device 4 .....|
 *           |      cluster cpu:0-1        |  cluster cpu:2-3        |      a device      |
 *
 * Slots are those who take groups: the pool's threads, then the devices. A device has a thread of
 * its own, its driver, that asks it for groups and waits. Whether a unit that is done takes over
 * what another was given is one word (`steal`); of a device that has failed anybody does. Shares
 * depend on the rows of a pass: one unit may be flat to 64 rows where another is not.
 *
 * Products are shared this way, and attention by what it is made of (attend_split.h); norms and all
 * else go to the pool's threads as ever, and so do streamed groups, in the order of their arrival.
 */
#ifndef DREY_UNIT_UNITS_H
#define DREY_UNIT_UNITS_H

#include "os/pool.h"
#include "unit/unit_words.h"

/* A line of the cache each: written while others read theirs. */
typedef struct unit_slot {
    _Alignas(64) const kernel_table *kernels; /* of a thread */
    double slow;
    int32_t unit;
    uint64_t n_groups;                /* that it has computed; these are its own to write */
    uint64_t n_dense_blocks, n_tails; /* of attention that was divided */
} unit_slot;

typedef struct unit_driver unit_driver;

typedef struct unit {
    unit_word word;
    int32_t first_slot, n_slots;
    device *device; /* NULL: a cluster */
    unit_driver *driver;
    _Atomic bool failed;
    char why[500];          /* it failed */
    char no_attention[500]; /* why a device has no part in attention; "": it has */
} unit;

typedef struct unit_set {
    int32_t n, n_clusters, n_threads, n_slots;
    bool steal, attached;
    bool whole; /* devices are given all groups: their shares will change */
    /* Where the units' parts end, of 1: [all, or the clusters alone][rows][unit]. */
    double end[2][DREY_UNIT_WIDTHS][DREY_MAX_UNITS];
    /* Of attention behind 256 positions, 1024, ... 0 of them: it follows from the shares. */
    int32_t n_boundaries;
    float boundary[DREY_UNIT_CONTEXTS];
    unit unit[DREY_MAX_UNITS];
    unit_slot slot[];
} unit_set;

/* How the clusters' tiers and the engine's go together: DREY_ERR_USAGE where they do not. *mixed:
 * they differ, or there is a device, so that activations have to lie in whole tiles (no
 * SHAPE_LINES). kernels: the engine's. */
drey_status units_check(const unit_words *words, const kernel_table *kernels, bool *mixed,
                        drey_error *err);
/* Opens the devices. kernels: the engine's. shares: NULL, or for as many units. A device that is
 * refused is the error. */
drey_status units_open(unit_set **out, const unit_words *words, const kernel_table *kernels,
                       const drey_unit_shares *shares, drey_error *err);
/* Accepts NULL, nulls the pointer. */
void units_close(unit_set **out);
/* Memory of it, and of its drivers; not what devices take. */
size_t units_bytes(const unit_set *us);
/* What the devices take of this machine's memory. */
size_t units_device_bytes(const unit_set *us, uint64_t weight_bytes, int32_t most_rows);

/* Another split of passes of so many rows: share[n]. Not while a product is at work, nor, once
 * devices that have memory of their own are attached, beyond what they have (`whole`). */
void units_set_shares(unit_set *us, int32_t rows, const double *share);
/* Of unit i; all of them together are 1. */
double units_share(const unit_set *us, int32_t rows, int32_t i);

/* Where a slot's part of n_groups begins in a pass of so many rows. devices: they have a part. */
int32_t units_from(const unit_set *us, int32_t slot, int32_t rows, int32_t n_groups, bool devices);
/* Whether a slot may take what another was given. */
bool units_may_take(const unit_set *us, int32_t slot, int32_t from);

/* A boundary for any context: between those of `contexts` (ascending, [n], n at least 1), in
 * proportion. */
double boundary_at(const int32_t *contexts, const float *boundary, int32_t n, int32_t n_positions);
/* Attention's boundary in a pass of so many rows behind n_positions (attend_split.h): what was
 * measured, between the lengths that were, or else what gives the last cluster as much work as its
 * share of the products of those that have a part in attention. devices: they are among those. */
double units_boundary(const unit_set *us, int32_t rows, int32_t n_positions, bool devices);
/* boundary[n], n up to DREY_UNIT_CONTEXTS; 0: of the shares again. */
void units_set_boundaries(unit_set *us, const float *boundary, int32_t n);
/* The slots that have a part in attention, in the order of their parts: devices, if they are asked,
 * then threads. slot: [n_slots]. Returns how many. */
int32_t units_attend_slots(const unit_set *us, bool devices, int32_t *slot);
/* Where such a slot's parts end, each of 1: of the dense blocks, and of the tails. */
void units_attend_end(const unit_set *us, int32_t slot, int32_t rows, double boundary, bool devices,
                      double *dense, double *tail);
/* Devices that may have a part in attention. */
int32_t units_n_attending(const unit_set *us);
/* Lends these the keys (values) of a cache, n_parts layers, until they are taken back. One that
 * cannot have them has no part in attention. Not while a pass is at work. */
void units_lend(unit_set *us, const void *memory, size_t part_bytes, int32_t n_parts);
void units_take_back(unit_set *us, const void *memory);

/* Of so many groups that are left to slot `from`, how many another had better take over: by their
 * shares both are then done at the same time. All of a device that has failed. */
int32_t units_take_over(const unit_set *us, int32_t slot, int32_t from, int32_t rows, int32_t left);

/* Devices that can be asked. */
bool units_have_devices(const unit_set *us);
/* Gives the devices the weights: matrix[n], with all groups that there are; each gets what it may
 * be asked for. What fails is out. scratch: [n]. */
void units_attach(unit_set *us, const device_matrix *matrix, device_matrix *scratch, int32_t n,
                  int32_t most_rows);
/* The device of a slot, NULL: it is a thread, or has failed. */
device *units_device(const unit_set *us, int32_t slot);
void units_fail(unit_set *us, int32_t slot, const drey_error *err);

/* Runs fn(arg, slot) on the drivers of all devices that can be asked; units_wait returns when all
 * have returned. */
typedef void units_fn(void *arg, int32_t slot);
void units_start(unit_set *us, units_fn *fn, void *arg);
void units_wait(unit_set *us);

/* A slowed thread waits until what it began at start_ns has taken its factor. */
void unit_linger(const unit_slot *slot, int64_t start_ns);

#endif
