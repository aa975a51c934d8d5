/* The units of an engine at work: which unit computes how many groups of a product.
 *
 * A unit is a cluster of cores (threads of the pool) or a device. Each matrix is split by output
 * rows, in whole packed groups (Ghidorah III-B1): a unit's part is contiguous, in the order of the
 * units, and each thread of a cluster has an equal part of it. Activations are shared, and nothing
 * is summed across units.
 *
 *   groups  |== thread 0 ==|== thread 1 ==|- thread 2 -|- thread 3 -|..... device 4 .....|
 *           |      cluster cpu:0-1        |  cluster cpu:2-3        |      a device      |
 *
 * Slots are what takes groups: the pool's threads, then the devices. A device has its own thread,
 * its driver, which asks it for groups and waits. `steal` says whether a unit that is done takes
 * over groups of another; all units take over those of a device that has failed. Shares depend on
 * the rows of a pass: the time of one unit may be constant up to 64 rows, that of another not.
 *
 * Products are divided in this way, and attention by its parts (attend_split.h). The pool's threads
 * compute norms and all else, and streamed groups in the order of their arrival. */
#pragma once

#include "unit/unit_words.h"

typedef struct device device;
typedef struct device_matrix device_matrix;
typedef struct kernel_table kernel_table;

/* One cache line each: written while others read theirs. */
typedef struct unit_worker {
    _Alignas(64) const kernel_table *kernels; /* kernels of the thread */
    double slow;
    int32_t unit;
    uint64_t n_groups;                /* groups that it has computed; written only by it */
    uint64_t n_dense_blocks, n_tails; /* work of divided attention */
} unit_worker;

typedef struct unit_driver unit_driver;

typedef struct unit {
    unit_word word;
    int32_t first_worker, n_workers;
    device *device; /* NULL: a cluster */
    unit_driver *driver;
    _Atomic bool failed;
    char why[500];          /* it failed */
    char no_attention[500]; /* reason why a device takes no part in attention; "": it does */
} unit;

typedef struct unit_set {
    int32_t n, n_clusters, n_threads, n_workers;
    /* time for which drivers, and threads that wait for them, spin before they sleep (os/pool.h) */
    int64_t spin_ns;
    bool steal, attached;
    bool whole; /* devices get all groups: their shares will change */
    /* Ends of the units' parts, as fractions of 1: [all, or only the clusters][rows][unit]. */
    double end[2][DREY_UNIT_WIDTHS][DREY_MAX_UNITS];
    /* Boundaries of attention after 256 positions, 1024, ... 0 of them: it follows from the
     * shares. */
    int32_t n_boundaries;
    float boundary[DREY_UNIT_CONTEXTS];
    unit unit[DREY_MAX_UNITS];
    unit_worker worker[];
} unit_set;

/* Checks that the clusters' tiers and the engine's fit: DREY_ERR_USAGE if not. *mixed: they differ,
 * or there is a device, so that activations must be in whole tiles (no SHAPE_LINES). kernels: the
 * engine's. */
drey_status units_check(const unit_words *words, const kernel_table *kernels, bool *mixed,
                        drey_error *err);
/* Opens the devices. kernels: the engine's. shares: NULL, or for the same number of units. Fails if
 * a device is refused. */
drey_status units_open(unit_set **out, const unit_words *words, const kernel_table *kernels,
                       const drey_unit_shares *shares, drey_error *err);
/* Accepts NULL, nulls the pointer. */
void units_close(unit_set **out);
/* Memory of it, and of its drivers; not what devices take. */
size_t units_bytes(const unit_set *us);
/* Memory of this machine that the devices take. */
size_t units_device_bytes(const unit_set *us, uint64_t weight_bytes, int32_t most_rows);

/* Sets another split for passes of this many rows: share[n]. Not while a product is computed. After
 * devices with their own memory are attached, their shares must not grow beyond what they have
 * (`whole`). */
void units_set_shares(unit_set *us, int32_t rows, const double *share);
/* Share of unit i; all of them together are 1. */
double units_share(const unit_set *us, int32_t rows, int32_t i);

/* Returns the first of n_groups that belongs to a worker in a pass of this many rows. devices: they
 * have a part. */
int32_t units_from(const unit_set *us, int32_t worker, int32_t rows, int32_t n_groups,
                   bool devices);
/* Returns whether a worker may take over another's work. */
bool units_may_take(const unit_set *us, int32_t worker, int32_t from);

/* A boundary for any context: between those of `contexts` (ascending, [n], n at least 1), in
 * proportion. */
double boundary_at(const int32_t *contexts, const float *boundary, int32_t n, int32_t n_positions);
/* Attention's boundary in a pass of this many rows after n_positions (attend_split.h): interpolated
 * between the measured lengths, or else the one that gives the last cluster the same share of work
 * as in the products, among the units that take part. devices: they take part. */
double units_boundary(const unit_set *us, int32_t rows, int32_t n_positions, bool devices);
/* boundary[n], n up to DREY_UNIT_CONTEXTS; 0: it follows from the shares again. */
void units_set_boundaries(unit_set *us, const float *boundary, int32_t n);
/* The workers that take part in attention, in the order of their parts: devices, if they take part,
 * then threads. worker: [n_workers]. Returns how many. */
int32_t units_attend_workers(const unit_set *us, bool devices, int32_t *worker);
/* Gives the ends of a worker's parts of the dense blocks and of the tails, as fractions of 1. */
void units_attend_end(const unit_set *us, int32_t worker, int32_t rows, double boundary,
                      bool devices, double *dense, double *tail);
/* The number of devices that may take part in attention. */
int32_t units_n_attending(const unit_set *us);
/* No device takes part in attention, because of the model. Before anything is lent. */
void units_leave_attention(unit_set *us, const char *why);
/* Lends them the keys (values) of a cache, n_parts layers, until they are taken back. A device that
 * cannot use them takes no part in attention. Not while a pass is computed. */
void units_lend(unit_set *us, const void *memory, size_t part_bytes, int32_t n_parts);
void units_take_back(unit_set *us, const void *memory);
/* Lends the devices the memory of passes' activations and results, until units_lend_work(us, NULL,
 * 0). Accepts no units. Not while a pass is computed. */
void units_lend_work(unit_set *us, void *memory, size_t bytes);

/* Returns how many of the groups that are left to worker `from` another worker should take over, so
 * that both finish at the same time by their shares. All, if `from` is a device that has failed. */
int32_t units_take_over(const unit_set *us, int32_t worker, int32_t from, int32_t rows,
                        int32_t left);

/* Devices that can be asked. */
bool units_have_devices(const unit_set *us);
/* Gives the devices the weights: matrix[n], with all groups; each device gets those that it may be
 * asked for. A device that fails is not used. scratch: [n]. */
void units_attach(unit_set *us, const device_matrix *matrix, device_matrix *scratch, int32_t n,
                  int32_t most_rows);
/* The device of a worker; NULL: the worker is a thread, or the device has failed. */
device *units_device(const unit_set *us, int32_t worker);
void units_fail(unit_set *us, int32_t worker, const drey_error *err);

/* Runs fn(arg, worker) on the drivers of all devices that can be asked; units_wait returns when all
 * have returned. */
typedef void units_fn(void *arg, int32_t worker);
void units_start(unit_set *us, units_fn *fn, void *arg);
void units_wait(unit_set *us);

/* Makes a slowed thread wait until the work begun at start_ns has taken its factor of time. */
void unit_linger(const unit_worker *worker, int64_t start_ns);
