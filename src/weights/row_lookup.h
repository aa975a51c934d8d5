/* Rows of a table that stays on the disk: a matrix of which a pass needs a few rows, by number, and
 * with which nothing is multiplied. No part of it is ever kept in memory.
 *
 *   ask    numbers of rows are known: the disk begins, while other things are computed
 *   wait   the rows are in the caller's memory, as the file has them
 *   numbers of a row, or of a part of it, as floats
 *
 * The caller's memory for raw rows is the only thing that grows with their number: reads have their
 * own small ring, in which as many are under way as a disk answers at once. They are not among the
 * stream's (weights.h), whose order is fixed: that they are few and small is what they rely on. */
#pragma once

#include "base/arena.h"
#include "weights/stream.h"
#include "weights/weights.h"

typedef struct row_lookup_options {
    const weight *table;   /* its tensor and kernel count; in no list of matrices. Borrowed */
    const char *path;      /* file with the tensor; borrowed */
    const file_stamp *was; /* stamp that the file has to have; borrowed */
    int32_t n_threads;
    drey_io io;
    stream_fault_fn *fault; /* NULL outside tests */
    void *fault_user;
} row_lookup_options;

typedef struct row_lookup row_lookup;
struct row_lookup {
    row_lookup_options options;
    stream *stream; /* NULL until the first row is asked for, and after a failure */
    uint8_t *ring;
    uint8_t **group;    /* [n_threads]: a packed group */
    const int64_t *row; /* [n]: rows asked for last, the caller's */
    uint8_t *raw;       /* [n][row_bytes]: the caller's */
    int32_t n, n_begun, n_here;
    int64_t first_seq; /* number of the read of the oldest row that is not here */
};

/* Memory besides the caller's raw rows. */
size_t row_lookup_bytes(const weight *table, int32_t n_threads);
/* Opens no file yet. Takes its memory from `a`, whose owner checks it. */
void row_lookup_init(row_lookup *l, const row_lookup_options *options, arena *a);
void row_lookup_close(row_lookup *l);

/* Asks for rows, which may repeat; those that were asked for before are given up. row [n] and raw
 * [n][row_bytes] are borrowed until the next call. DREY_ERR_IO: the file cannot be opened. */
drey_status row_lookup_ask(row_lookup *l, const int64_t *row, int32_t n, uint8_t *raw,
                           drey_error *err);
/* Blocks until all of them are in raw. Nothing asked for: DREY_OK. DREY_ERR_IO: the disk. */
drey_status row_lookup_wait(row_lookup *l, drey_error *err);
/* Gives up what is still being read. */
void row_lookup_leave(row_lookup *l);

/* Numbers [from, from + n) of a raw row, both multiples of the type's block; any threads at once.
 * DREY_ERR_FORMAT: they are not finite. */
drey_status row_lookup_numbers(const row_lookup *l, const uint8_t *raw, int64_t from, int64_t n,
                               float *out, int32_t thread, drey_error *err);
