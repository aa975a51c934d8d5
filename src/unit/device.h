/* Devices: units that are not CPU cores.
 *
 * A device computes whole packed groups of a product, for all rows of a pass, with the same bits as
 * the CPU's kernels (kernel/kernel.h), and writes its own part of the output (Ghidorah III-B1). The
 * callers decide what it computes and when (units.h, weights/product.c): it knows nothing of
 * shares. A device whose arithmetic cannot give those bits refuses to open.
 *
 * A device that shares the processor's memory may also compute dense blocks of attention (III-B2,
 * attend_split.h): each pass writes new keys and values, so the device must read them in place.
 * Such memory is lent to it: between calls it belongs to the processor, which writes to it. */
#pragma once

#include "common/error.h"
#include "kernel/kernel.h"

typedef struct device_class device_class;

/* The first member of each device's own structure. */
typedef struct device {
    const device_class *class;
} device;

/* Groups [first_group, first_group + n_groups) of a matrix: those that a device may be asked
 * for. */
typedef struct device_matrix {
    tensor_type type;
    act_kind act;
    int64_t k;
    size_t group_bytes;
    int32_t first_group, n_groups; /* 0: it is never asked for this one */
    const uint8_t *packed;         /* [n_groups][group_bytes]: unchanged until close */
} device_matrix;

typedef struct device_work {
    int32_t matrix; /* index among those that were attached */
    int32_t first_group, n_groups;
    /* n rows, quantised as the matrix needs it: whole tiles of TOKEN_TILE rows, then a shorter one
     * (kernel/packing.h). */
    const void *acts;
    act_kind act;
    size_t act_bytes;
    int32_t n;
    float *y; /* y[t * ldy + 32 * group + row], of the whole product */
    int64_t ldy;
} device_work;

/* Dense blocks [from, to) of the pairs [first, last) of a task, at least one: what attend_range
 * does with the same arguments, to the same places (kernel/kernel.h). */
typedef struct device_piece {
    attention a;
    int32_t first, last, n_first_range, from, to;
    float *partials;
} device_piece;

/* Limits for one call: the number of pieces, and the numbers in the q of all of them, or of a
 * single piece. */
enum { DEVICE_PIECES = 64, DEVICE_PIECE_FLOATS = 128 << 10 };

struct device_class {
    const char *name; /* one word: "opencl" */
    /* Opens a device. `which` is: the text after "opencl:", or NULL. The error says why the device
     * is refused. */
    drey_status (*open)(device **out, const char *which, drey_error *err);
    /* Accepts NULL; sets the pointer to NULL. */
    void (*close)(device **d);
    /* Returns whether it reads weights in place: then it is given all pinned groups, else only
     * those of its share. */
    bool (*unified)(const device *d);
    /* Memory of this machine that it takes, in addition to the weights, for them and for passes of
     * this many rows. */
    size_t (*host_bytes)(const device *d, uint64_t weight_bytes, int32_t most_rows);
    /* Once, when the weights are in memory. matrix: [n], borrowed for the call. */
    drey_status (*attach)(device *d, const device_matrix *matrix, int32_t n, int32_t most_rows,
                          drey_error *err);
    /* Begins a product; at most PRODUCTS_MAX of them before a wait. These two are called on another
     * thread than the others, but never at the same time. */
    drey_status (*submit)(device *d, const device_work *work, drey_error *err);
    /* Waits until what was submitted is in y. After an error of either function the device writes
     * nothing more and is not used again. */
    drey_status (*wait)(device *d, drey_error *err);

    /* Lends the memory of activations and results, so that products use it in place if they can,
     * until lend_work(d, NULL, 0); NULL: the device has no use for it. It begins with a page, and
     * nothing else is in its last one. Not while the device computes. */
    void (*lend_work)(device *d, void *memory, size_t bytes);

    /* Returns why it takes no part in attention; NULL: it does, and the members below exist. This
     * member itself may be NULL: then it computes only products. */
    const char *(*no_attention)(const device *d);
    /* Lends keys or values for later pieces, n_parts layers of this many bytes each, until they are
     * taken back. Not while the device computes. */
    drey_status (*lend)(device *d, const void *memory, size_t part_bytes, int32_t n_parts,
                        drey_error *err);
    void (*take_back)(device *d, const void *memory);
    /* Computes, and returns when it is done; called on the same thread as submit. All pieces are of
     * one layer, keys and values alike in whole vectors (device_can_attend). After an error as with
     * submit. */
    drey_status (*attend)(device *d, const device_piece *piece, int32_t n, drey_error *err);
};

/* Returns whether devices multiply with a type; the cores keep all of the others. */
bool device_can_multiply(tensor_type type);

/* Returns whether devices support such heads: whole vectors, without caps. */
bool device_can_attend(const attention *a);

/* The classes of this build, NULL at the end. */
const device_class *const *device_all(void);
