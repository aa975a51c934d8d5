/* Devices: units that are no cores of the CPU.
 *
 * A device computes whole packed groups of a product, for all rows of a pass, with the very bits
 * that the CPU's kernels have (kernel/kernel.h), and writes its own part of the output (Ghidorah
 * III-B1). What it is asked for, and when, is settled elsewhere (units.h, weights/product.c): it
 * knows nothing of shares. A device whose arithmetic cannot have those bits refuses to open.
 *
 * A device that shares the processor's memory may compute dense blocks of attention, too (III-B2,
 * attend_split.h): keys and values are written anew in each pass, so they are read where they lie
 * or not at all. Such memory is lent to it: between calls it is the processor's, to be written. */
#ifndef DREY_UNIT_DEVICE_H
#define DREY_UNIT_DEVICE_H

#include "common/error.h"
#include "kernel/kernel.h"

typedef struct device_class device_class;

/* The first member of each device's own structure. */
typedef struct device {
    const device_class *class;
} device;

/* Groups [first_group, first_group + n_groups) of a matrix: what a device may be asked for. */
typedef struct device_matrix {
    tensor_type type;
    act_kind act;
    int64_t k;
    size_t group_bytes;
    int32_t first_group, n_groups; /* 0: it is never asked for this one */
    const uint8_t *packed;         /* [n_groups][group_bytes]: stay as they are until close */
} device_matrix;

typedef struct device_work {
    int32_t matrix; /* index among those that were attached */
    int32_t first_group, n_groups;
    /* n rows, quantised as the matrix wants it: whole tiles of TOKEN_TILE rows, then a shorter one
     * (kernel/packing.h). */
    const void *acts;
    act_kind act;
    size_t act_bytes;
    int32_t n;
    float *y; /* y[t * ldy + 32 * group + row], of the whole product */
    int64_t ldy;
} device_work;

/* Dense blocks [from, to) of the pairs [first, last) of a task, at least one: what attend_range
 * does with the same words, to the same places (kernel/kernel.h). */
typedef struct device_piece {
    attention a;
    int32_t first, last, n_first_range, from, to;
    float *partials;
} device_piece;

/* Of the pieces that a device is asked for at once: how many, and the numbers of all their q, of
 * which a single piece may have as many. */
enum { DEVICE_PIECES = 64, DEVICE_PIECE_FLOATS = 128 << 10 };

struct device_class {
    const char *name; /* one word: "opencl" */
    /* which: what stands behind "opencl:", or NULL. The error says why it is refused. */
    drey_status (*open)(device **out, const char *which, drey_error *err);
    /* Accepts NULL, nulls the pointer. */
    void (*close)(device **d);
    /* Whether it reads weights where they lie: then it is given all pinned groups, else those of
     * its share alone. */
    bool (*unified)(const device *d);
    /* Memory of this machine, beside the weights, that it takes for them and for passes of so many
     * rows. */
    size_t (*host_bytes)(const device *d, uint64_t weight_bytes, int32_t most_rows);
    /* Once, when the weights are in memory. matrix: [n], borrowed for the call. */
    drey_status (*attach)(device *d, const device_matrix *matrix, int32_t n, int32_t most_rows,
                          drey_error *err);
    /* Begins; up to PRODUCTS_MAX of them before a wait. These two are called on another thread than
     * the others, but never at the same time. */
    drey_status (*submit)(device *d, const device_work *work, drey_error *err);
    /* What was submitted stands in y. After an error of either the device writes nothing more, and
     * is asked for nothing. */
    drey_status (*wait)(device *d, drey_error *err);

    /* Why it has no part in attention; NULL: it has, and the rest of this is there. This member may
     * be NULL, too: it computes products alone. */
    const char *(*no_attention)(const device *d);
    /* Keys or values that pieces will be about, n_parts layers of so many bytes each, until they
     * are taken back. Not while the device computes. */
    drey_status (*lend)(device *d, const void *memory, size_t part_bytes, int32_t n_parts,
                        drey_error *err);
    void (*take_back)(device *d, const void *memory);
    /* Computes, and returns when it has; called as submit is. All pieces are of one layer, with
     * dimensions in whole vectors (device_can_attend). After an error as with submit. */
    drey_status (*attend)(device *d, const device_piece *piece, int32_t n, drey_error *err);
};

/* Whether devices know such heads: of whole vectors, and no caps. */
bool device_can_attend(const attention *a);

/* The classes of this build, NULL at the end. */
const device_class *const *device_all(void);

#endif
