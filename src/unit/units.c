/* Shares, devices and their drivers: see units.h. */
#include "unit/units.h"
#include "base/usual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "os/futex.h"
#include "os/pool.h"
#include "os/thread.h"
#include "unit/device.h"

enum { DRIVER_STACK_BYTES = 1 << 20, CLUSTERS_ALONE = 1 };

/* A device's thread: a job is a number that goes up, and its end the same number in `done`. */
struct unit_driver {
    unit_set *owner;
    int32_t worker;
    pthread_t thread;
    bool runs;
    units_fn *fn; /* NULL: leave */
    void *arg;
    _Alignas(64) _Atomic uint32_t job;
    _Alignas(64) _Atomic uint32_t done;
};

/* ---- Drivers ---- */

static void *drive(void *arg)
{
    unit_driver *d = arg;
    float_mode_enter();
    for (uint32_t seen = 0;; seen++) {
        futex_spin(&d->job, seen, d->owner->spin_ns);
        while (atomic_load(&d->job) == seen)
            futex_sleep(&d->job, seen);
        if (d->fn)
            d->fn(d->arg, d->worker);
        bool leaves = !d->fn;
        atomic_fetch_add(&d->done, 1);
        futex_wake_all(&d->done);
        if (leaves)
            return NULL;
    }
}

static void driver_start(unit_driver *d, units_fn *fn, void *arg)
{
    d->fn = fn;
    d->arg = arg;
    atomic_fetch_add(&d->job, 1);
    futex_wake_all(&d->job);
}

static drey_status driver_open(unit_set *us, unit *u, drey_error *err)
{
    char name[32];
    u->driver = aligned_alloc(64, sizeof *u->driver);
    if (!u->driver)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the driver of %s", u->word.device->name);
    *u->driver = (unit_driver){.owner = us, .worker = u->first_worker};
    snprintf(name, sizeof name, "drey-unit-%d", u->first_worker);
    TRY(thread_start(&u->driver->thread, name, DRIVER_STACK_BYTES, drive, u->driver, err));
    u->driver->runs = true;
    return DREY_OK;
}

static void driver_close(unit *u)
{
    if (u->driver && u->driver->runs) {
        driver_start(u->driver, NULL, NULL);
        pthread_join(u->driver->thread, NULL);
    }
    free(u->driver);
    u->driver = NULL;
}

void units_start(unit_set *us, units_fn *fn, void *arg)
{
    for (int32_t i = 0; i < us->n; i++)
        if (us->unit[i].driver && !us->unit[i].failed)
            driver_start(us->unit[i].driver, fn, arg);
}

void units_wait(unit_set *us)
{
    for (int32_t i = 0; i < us->n; i++) {
        unit_driver *d = us->unit[i].driver;
        uint32_t done;
        if (d && (done = atomic_load(&d->done)) != atomic_load(&d->job))
            futex_spin(&d->done, done, us->spin_ns);
        while (d && (done = atomic_load(&d->done)) != atomic_load(&d->job))
            futex_sleep(&d->done, done);
    }
}

/* ---- Shares ---- */

/* Returns the index in DREY_UNIT_WIDTHS: passes of up to 2^w rows, the last also of more. */
static int32_t width_of(int32_t rows)
{
    int32_t w = 0;
    while (w < DREY_UNIT_WIDTHS - 1 && rows > 1 << w)
        w++;
    return w;
}

static void set_ends(const unit_set *us, const double *share, bool clusters_alone, double *end)
{
    double sum = 0, before = 0;
    int32_t n = 0; /* that have a part */
    for (int32_t i = 0; i < us->n; i++)
        if (!(clusters_alone && us->unit[i].word.device)) {
            sum += share[i];
            n = i + 1;
        }
    for (int32_t i = 0; i < us->n; i++) {
        double part = i >= n ? 0 : share[i];
        if (sum <= 0 && i < n) /* the devices had all: the other units get equal shares */
            part = us->unit[i].n_workers;
        before += part;
        end[i] = before;
    }
    for (int32_t i = 0; i < us->n; i++)
        end[i] = i + 1 >= n ? 1 : end[i] / before;
}

static void set_width(unit_set *us, int32_t w, const double *share)
{
    set_ends(us, share, false, us->end[0][w]);
    set_ends(us, share, true, us->end[CLUSTERS_ALONE][w]);
}

void units_set_shares(unit_set *us, int32_t rows, const double *share)
{
    set_width(us, width_of(rows), share);
}

double units_share(const unit_set *us, int32_t rows, int32_t i)
{
    const double *end = us->end[0][width_of(rows)];
    return end[i] - (i ? end[i - 1] : 0);
}

/* The given shares, else the measured ones, else those that "auto" expects, else equal ones per
 * thread. */
static void resolve_shares(unit_set *us, const unit_words *words, const drey_unit_shares *shares)
{
    for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++) {
        double share[DREY_MAX_UNITS];
        for (int32_t i = 0; i < us->n; i++)
            share[i] = shares && !words->has_shares ? shares->share[w][i]
                       : words->unit[i].share > 0   ? words->unit[i].share
                       : words->has_shares          ? 0
                                                    : us->unit[i].n_workers;
        set_width(us, w, share);
    }
}

int32_t units_from(const unit_set *us, int32_t worker, int32_t rows, int32_t n_groups, bool devices)
{
    if (worker >= us->n_workers)
        return n_groups;
    bool all = devices && units_have_devices(us);
    const double *end = us->end[all ? 0 : CLUSTERS_ALONE][width_of(rows)];
    int32_t i = us->worker[worker].unit;
    const unit *u = &us->unit[i];
    double from = i ? end[i - 1] : 0;
    from += (end[i] - from) * (worker - u->first_worker) / u->n_workers;
    return (int32_t)(from * n_groups + 0.5);
}

bool units_may_take(const unit_set *us, int32_t worker, int32_t from)
{
    int32_t of = us->worker[from].unit;
    return us->steal || us->worker[worker].unit == of || us->unit[of].failed;
}

/* ---- Attention ---- */

void units_set_boundaries(unit_set *us, const float *boundary, int32_t n)
{
    us->n_boundaries = n;
    for (int32_t i = 0; i < n; i++)
        us->boundary[i] = boundary[i];
}

double boundary_at(const int32_t *contexts, const float *boundary, int32_t n, int32_t n_positions)
{
    int32_t i = 0;
    while (i < n && contexts[i] < n_positions)
        i++;
    if (i == 0 || i == n)
        return (double)boundary[i ? n - 1 : 0];
    double share = (double)(n_positions - contexts[i - 1]) / (contexts[i] - contexts[i - 1]);
    return (1 - share) * (double)boundary[i - 1] + share * (double)boundary[i];
}

/* The cost of a tail in dense blocks, for trees of about 16 to 64 nodes. */
static const double tail_blocks = USUAL_TAIL_BLOCKS;

/* A cluster, or a device that takes part. */
static bool attends(const unit_set *us, int32_t i, bool devices)
{
    const unit *u = &us->unit[i];
    return i < us->n_clusters || (devices && u->device && !u->failed && u->no_attention[0] == 0);
}

/* The shares in products of the units that attend, as far as they are known. */
static double attend_share(const unit_set *us, int32_t i, int32_t rows, bool devices)
{
    const double *end = us->end[devices ? 0 : CLUSTERS_ALONE][width_of(rows)];
    return attends(us, i, devices) ? end[i] - (i ? end[i - 1] : 0) : 0;
}

double units_boundary(const unit_set *us, int32_t rows, int32_t n_positions, bool devices)
{
    int32_t contexts[DREY_UNIT_CONTEXTS];
    for (int32_t i = 0; i < us->n_boundaries; i++)
        contexts[i] = DREY_UNIT_CONTEXT << 2 * i;
    if (us->n_boundaries > 0)
        return boundary_at(contexts, us->boundary, us->n_boundaries, n_positions);
    double all = 0, dense = max_i32(n_positions / ATTEND_BLOCK, 1);
    for (int32_t i = 0; i < us->n; i++)
        all += attend_share(us, i, rows, devices);
    double part = all > 0 ? attend_share(us, us->n_clusters - 1, rows, devices) / all : 1;
    part *= dense + tail_blocks;
    return part < tail_blocks ? part / tail_blocks - 1 : (part - tail_blocks) / dense;
}

/* Units in the order of their parts: devices, then clusters. */
static int32_t unit_at(const unit_set *us, int32_t place)
{
    int32_t n_devices = us->n - us->n_clusters;
    return place < n_devices ? us->n_clusters + place : place - n_devices;
}

/* A unit's parts of attention, [from, to) of 1. */
typedef struct attend_part {
    double from, to;
} attend_part;

/* first: the place of the first unit that has a part. The last unit, a cluster, has what is after
 * `end`; those before it have the rest in the ratio of their shares. */
static attend_part attend_part_of(const unit_set *us, int32_t i, int32_t first, int32_t rows,
                                  bool devices, double end)
{
    double all = 0, n = 0, before = 0, n_before = 0;
    int32_t place = first;
    if (i == us->n_clusters - 1)
        return (attend_part){end, 1};
    for (int32_t k = first; k < us->n - 1; k++) {
        all += attend_share(us, unit_at(us, k), rows, devices);
        n += attends(us, unit_at(us, k), devices);
    }
    for (; unit_at(us, place) != i; place++) {
        before += attend_share(us, unit_at(us, place), rows, devices);
        n_before += attends(us, unit_at(us, place), devices);
    }
    double own = attend_share(us, i, rows, devices);
    if (all > 0)
        return (attend_part){before / all * end, (before + own) / all * end};
    return (attend_part){n_before / n * end, (n_before + 1) / n * end};
}

void units_attend_end(const unit_set *us, int32_t worker, int32_t rows, double boundary,
                      bool devices, double *dense, double *tail)
{
    int32_t i = us->worker[worker].unit, n_devices = us->n - us->n_clusters;
    const unit *u = &us->unit[i];
    double part = (worker + 1.0 - u->first_worker) / u->n_workers;
    attend_part of_dense = attend_part_of(us, i, 0, rows, devices, 1 - max_f64(boundary, 0));
    attend_part of_tail = {0, 0}; /* a device has none */
    if (!u->device) {
        double end = us->n_clusters > 1 ? max_f64(-boundary, 0) : 0;
        of_tail = attend_part_of(us, i, n_devices, rows, devices, end);
    }
    *dense = part < 1 ? of_dense.from + part * (of_dense.to - of_dense.from) : of_dense.to;
    *tail = part < 1 ? of_tail.from + part * (of_tail.to - of_tail.from) : of_tail.to;
}

int32_t units_attend_workers(const unit_set *us, bool devices, int32_t *worker)
{
    int32_t n = 0;
    for (int32_t place = 0; place < us->n; place++) {
        const int32_t i = unit_at(us, place);
        for (int32_t k = 0; k < us->unit[i].n_workers && attends(us, i, devices); k++)
            worker[n++] = us->unit[i].first_worker + k;
    }
    return n;
}

int32_t units_n_attending(const unit_set *us)
{
    int32_t n = 0;
    for (int32_t i = us->n_clusters; i < us->n; i++)
        n += attends(us, i, true);
    return n;
}

void units_leave_attention(unit_set *us, const char *why)
{
    for (int32_t i = us->n_clusters; i < us->n; i++)
        if (attends(us, i, true))
            snprintf(us->unit[i].no_attention, sizeof us->unit[i].no_attention, "%s", why);
}

void units_lend(unit_set *us, const void *memory, size_t part_bytes, int32_t n_parts)
{
    for (int32_t i = us->n_clusters; i < us->n; i++) {
        unit *u = &us->unit[i];
        drey_error err = {0};
        if (attends(us, i, true) &&
            u->device->class->lend(u->device, memory, part_bytes, n_parts, &err) != DREY_OK)
            snprintf(u->no_attention, sizeof u->no_attention, "%s", err.message);
    }
}

void units_take_back(unit_set *us, const void *memory)
{
    for (int32_t i = us->n_clusters; i < us->n; i++) {
        device *d = us->unit[i].device;
        if (d && d->class->no_attention)
            d->class->take_back(d, memory);
    }
}

void units_lend_work(unit_set *us, void *memory, size_t bytes)
{
    for (int32_t i = us ? us->n_clusters : 0; us && i < us->n; i++) {
        device *d = us->unit[i].device;
        if (d && d->class->lend_work)
            d->class->lend_work(d, memory, bytes);
    }
}

static double worker_speed(const unit_set *us, int32_t worker, int32_t rows)
{
    int32_t i = us->worker[worker].unit;
    return units_share(us, rows, i) / us->unit[i].n_workers;
}

int32_t units_take_over(const unit_set *us, int32_t worker, int32_t from, int32_t rows,
                        int32_t left)
{
    if (us->unit[us->worker[from].unit].failed)
        return left;
    double own = worker_speed(us, worker, rows), other = worker_speed(us, from, rows);
    double part = own + other > 0 ? left * own / (own + other) : 0;
    return (int32_t)(own < other ? part : part + 0.999);
}

/* ---- Devices ---- */

bool units_have_devices(const unit_set *us)
{
    for (int32_t i = 0; i < us->n && us->attached; i++)
        if (us->unit[i].device && !us->unit[i].failed)
            return true;
    return false;
}

device *units_device(const unit_set *us, int32_t worker)
{
    const unit *u = &us->unit[us->worker[worker].unit];
    return u->failed ? NULL : u->device;
}

void units_fail(unit_set *us, int32_t worker, const drey_error *err)
{
    unit *u = &us->unit[us->worker[worker].unit];
    if (u->failed)
        return;
    snprintf(u->why, sizeof u->why, "%s", err->message);
    u->failed = true;
}

/* The groups that some pass may ask a device for. */
static void cut_for(const unit_set *us, int32_t worker, device_matrix *m)
{
    int32_t from = m->n_groups, end = 0;
    for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++) {
        int32_t a = units_from(us, worker, 1 << w, m->n_groups, true);
        int32_t b = units_from(us, worker + 1, 1 << w, m->n_groups, true);
        if (a < b) {
            from = a < from ? a : from;
            end = b > end ? b : end;
        }
    }
    m->first_group += from;
    m->packed += (size_t)from * m->group_bytes;
    m->n_groups = end > from ? end - from : 0;
}

void units_attach(unit_set *us, const device_matrix *matrix, device_matrix *scratch, int32_t n,
                  int32_t most_rows)
{
    us->attached = true;
    for (int32_t i = 0; i < us->n; i++) {
        unit *u = &us->unit[i];
        drey_error err = {0};
        if (!u->device || u->failed)
            continue;
        memcpy(scratch, matrix, (size_t)n * sizeof *matrix);
        for (int32_t k = 0; k < n && !us->whole && !u->device->class->unified(u->device); k++)
            cut_for(us, u->first_worker, &scratch[k]);
        if (u->device->class->attach(u->device, scratch, n, most_rows, &err) != DREY_OK)
            units_fail(us, u->first_worker, &err);
    }
}

size_t units_device_bytes(const unit_set *us, uint64_t weight_bytes, int32_t most_rows)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < us->n; i++) {
        const device *d = us->unit[i].device;
        if (d)
            bytes += DRIVER_STACK_BYTES + d->class->host_bytes(d, weight_bytes, most_rows);
    }
    return bytes;
}

/* ---- Opening ---- */

drey_status units_check(const unit_words *words, const kernel_table *kernels, bool *mixed,
                        drey_error *err)
{
    *mixed = words->n > words->n_clusters;
    for (int32_t i = 0; i < words->n_clusters; i++) {
        const char *tier = words->unit[i].tier[0] ? words->unit[i].tier : kernels->tier;
        if ((strcmp(tier, "float") == 0) != (strcmp(kernels->tier, "float") == 0))
            FAIL(err, DREY_ERR_USAGE,
                 "the tier float computes other numbers than %s: units cannot mix the two",
                 strcmp(tier, "float") == 0 ? kernels->tier : tier);
        *mixed = *mixed || strcmp(tier, kernels->tier) != 0;
    }
    return DREY_OK;
}

static void init_slots(unit_set *us, const unit_words *words, const kernel_table *kernels)
{
    int32_t worker = 0;
    for (int32_t i = 0; i < us->n; i++) {
        unit *u = &us->unit[i];
        u->word = words->unit[i];
        u->first_worker = worker;
        u->n_workers = u->word.device ? 1 : u->word.n_threads;
        for (int32_t k = 0; k < u->n_workers; k++, worker++)
            us->worker[worker] = (unit_worker){
                .kernels =
                    u->word.tier[0] ? kernel_select_shape(u->word.tier, kernels->shape) : kernels,
                .slow = u->word.slow,
                .unit = i};
    }
}

static drey_status open_devices(unit_set *us, drey_error *err)
{
    for (int32_t i = 0; i < us->n; i++) {
        unit *u = &us->unit[i];
        if (!u->word.device)
            continue;
        TRY(u->word.device->open(&u->device, u->word.which[0] ? u->word.which : NULL, err));
        const char *why = u->word.device->no_attention ? u->word.device->no_attention(u->device)
                                                       : "it computes products alone";
        snprintf(u->no_attention, sizeof u->no_attention, "%s", why ? why : "");
        TRY(driver_open(us, u, err));
    }
    return DREY_OK;
}

drey_status units_open(unit_set **out, const unit_words *words, const kernel_table *kernels,
                       const drey_unit_shares *shares, drey_error *err)
{
    int32_t n_threads = unit_words_threads(words);
    int32_t n_workers = n_threads + words->n - words->n_clusters;
    *out = NULL;
    if (shares && shares->n_units != words->n)
        FAIL(err, DREY_ERR_USAGE, "there are shares for %d units, and %d units", shares->n_units,
             words->n);
    size_t bytes = sizeof(unit_set) + (size_t)n_workers * sizeof(unit_worker);
    unit_set *us = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!us)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %d units", words->n);
    *us = (unit_set){.n = words->n,
                     .n_clusters = words->n_clusters,
                     .n_threads = n_threads,
                     .n_workers = n_workers,
                     .spin_ns = pool_spin_ns(n_workers),
                     .steal = !words->is_static};
    init_slots(us, words, kernels);
    resolve_shares(us, words, shares);
    if (shares && !words->has_shares)
        units_set_boundaries(us, shares->boundary, shares->n_boundaries);
    drey_status status = open_devices(us, err);
    if (status != DREY_OK)
        units_close(&us);
    *out = us;
    return status;
}

void units_close(unit_set **out)
{
    unit_set *us = *out;
    *out = NULL;
    for (int32_t i = 0; us && i < us->n; i++) {
        unit *u = &us->unit[i];
        driver_close(u);
        if (u->device)
            u->device->class->close(&u->device);
    }
    free(us);
}

size_t units_bytes(const unit_set *us)
{
    return sizeof *us + ((size_t)us->n_workers + 1) * sizeof(unit_worker);
}

void unit_linger(const unit_worker *worker, int64_t start_ns)
{
    int64_t took = clock_ns() - start_ns;
    int64_t until = start_ns + (int64_t)(worker->slow * (double)took);
    while (clock_ns() < until)
        thread_pause();
}
