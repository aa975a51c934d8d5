/* Peaks of this machine, as measured: every other figure is compared with it. Rates are bytes or
 * operations per second, of all threads of the pool; a multiply-add is two operations. Nothing here
 * fails but limits_disk. */
#pragma once

#include "base/arena.h"
#include "drey/tune.h"

typedef struct gguf gguf;
typedef struct kernel_table kernel_table;
typedef struct pool pool;

enum { LIMITS_ROUNDS = 7 };

/* Operations per second of the tier's products on registers: medians of a few short runs. */
double limits_int8(pool *p, const kernel_table *kernels);
double limits_float(pool *p, const kernel_table *kernels);

/* Operations per second of the tier's matrix kernel for a tensor type: a group against n_rows rows
 * of LIMITS_DOT_K numbers, again and again, operands in the caches. memory: as much as
 * limits_dot_bytes says. */
enum { LIMITS_DOT_K = 2048 };
size_t limits_dot_bytes(const kernel_table *kernels, int type, int32_t n_rows, int32_t n_threads);
double limits_dot(pool *p, const kernel_table *kernels, int type, int32_t n_rows, arena *memory);

/* Bytes of weights per second of the same kernel on one row, with weights that come from memory:
 * what a pass over one row has, which is less than reading alone. weights: n_bytes of any contents,
 * at least a group. memory: besides them, as much as limits_dot_bytes says. */
double limits_stream(pool *p, const kernel_table *kernels, int type, const void *weights,
                     size_t n_bytes, arena *memory);

typedef struct limits_reading {
    const char *path;  /* a model's first file, or a sidecar */
    const gguf *model; /* the same model if it is open already, borrowed; else NULL */
    drey_io io;
    uint64_t read_bytes; /* bytes of one read; 0: the usual */
    size_t ring_bytes;   /* most memory for reads, which become smaller for it; 0: what a disk
                            needs to be kept busy */
    double seconds;
    bool again; /* at the end begin again, rather than stop */
} limits_reading;

/* Reads what the file holds as a pass does, until the time is up or to the end. DREY_ERR_IO,
 * DREY_ERR_MEMORY; DREY_ERR_FORMAT: no tensors; DREY_ERR_USAGE: no such way of reading. */
drey_status limits_disk(const limits_reading *what, drey_disk_report *report, drey_error *err);

/* Memory, both peaks and a job of the pool: every report of drey bench has these. */
drey_limits limits_measure(pool *p, const kernel_table *kernels, const void *from, size_t n_bytes);

/* x[0..n) in place; n at least 1. */
double median(double *x, int n);
