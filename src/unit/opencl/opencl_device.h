/* Declarations that the files of the OpenCL unit share: opencl.c chooses and opens a device,
 * opencl_product.c computes products with it, opencl_attend.c attention. */
#pragma once

#include "unit/device.h"
#include "unit/opencl/opencl_api.h"

/* Kernels are built for 1, 2, 4 and 8 activation rows of a tile. */
enum {
    OPENCL_VARIANTS = 4,
    OPENCL_EVENTS = 64,
    OPENCL_PART_BYTES = 4 << 20,
    OPENCL_PAGE_BYTES =
        4096 /* alignment of a buffer over our memory; some devices copy one that is not aligned */
};

typedef struct opencl_matrix {
    device_matrix m;
    cl_buffer weights;
    uint64_t at; /* the offset of the first group */
} opencl_matrix;

/* Kernels of attention: the first two for each format of the cache. */
typedef enum opencl_step { STEP_SCORES, STEP_VALUES, STEP_WEIGH, STEP_FOLD, STEPS } opencl_step;
enum { KV_FORMATS = 3 };

/* Lent keys or values of a cache. Each part, a layer, is mapped, so that the processor can use it,
 * except while the device computes with it. */
typedef struct opencl_loan {
    uint8_t *memory;
    cl_buffer buffer;
    size_t at; /* beginning of its memory */
    size_t part_bytes;
    int32_t n_parts, n_mapped; /* parts [0, n_mapped) are mapped when nothing is under way */
} opencl_loan;

/* Buffers for activations and results. */
typedef struct opencl_io {
    cl_buffer acts, y; /* OPENCL_PART_BYTES each */
    /* Lent memory, in which activations and results are used in place; NULL: none. */
    cl_buffer work;
    const uint8_t *work_memory;
    size_t work_bytes;
    /* Until the next wait: */
    const void *acts_there; /* source of the rows in `acts`: rows from this address on; or NULL */
    size_t y_bytes;         /* the part of y that has results on their way */
} opencl_io;

typedef struct opencl_unit {
    device device;
    opencl_api api;
    char name[96]; /* "the OpenCL device \"...\"" */
    cl_device id;
    cl_context context;
    cl_queue queue;
    bool is_unified;    /* it shares the processor's memory, */
    bool shares_memory; /* and weights are used in place */
    struct {
        uint32_t lanes;   /* rows of a work item */
        uint32_t workers; /* work items that share a row's product: 1, or OPENCL_WORKERS */
    } items;
    uint64_t most_bytes; /* the most bytes of a buffer */
    cl_program program[OPENCL_VARIANTS];
    cl_kernel kernel[TYPE_LIMIT][OPENCL_VARIANTS]; /* NULL: not needed so far */
    opencl_io io;
    opencl_matrix *matrix;
    int32_t n_matrices;
    cl_program attend_program;
    cl_kernel step[STEPS][KV_FORMATS];
    uint8_t *staging;       /* the arguments and results of attention's kernels */
    char no_attention[500]; /* reason why it takes no part; "": it takes part */
    opencl_loan *loan;
    int32_t n_loans;
    cl_event event[OPENCL_EVENTS]; /* events of commands that were enqueued and not yet checked */
    int32_t n_events;
} opencl_unit;

/* One product with groups in a buffer of the device. */
typedef struct opencl_job {
    tensor_type type;
    int64_t k;
    cl_buffer weights;
    uint64_t at;
    int32_t n_groups;
    const void *acts;
    int32_t n;
    float *y; /* the first group's first row */
    int64_t ldy;
} opencl_job;

/* The message for a failed call. */
drey_status opencl_failed(const opencl_unit *u, const char *call, int32_t code, drey_error *err);

/* Builds the programs: all types, each number of rows. */
drey_status opencl_build(opencl_unit *u, drey_error *err);
/* Makes the kernels of a type and checks them with test vectors, once. */
drey_status opencl_learn(opencl_unit *u, tensor_type type, drey_error *err);
/* Checks the device's arithmetic (check_vectors.h). */
drey_status opencl_check_numbers(opencl_unit *u, drey_error *err);

drey_status opencl_enqueue(opencl_unit *u, const opencl_job *job, drey_error *err);
/* Waits for what was enqueued. */
drey_status opencl_finish(opencl_unit *u, drey_error *err);

/* Makes room for one more command's event: u->event[u->n_events++]. */
drey_status opencl_event_room(opencl_unit *u, drey_error *err);
/* Makes a program of drey's kernels, for tiles of this many rows. */
drey_status opencl_build_program(opencl_unit *u, const char *text, size_t bytes, uint32_t tokens,
                                 cl_program *out, drey_error *err);

/* Builds attention's kernels and checks them with test vectors; if it cannot take part,
 * no_attention says why. */
void opencl_learn_attention(opencl_unit *u);
/* Memory of this machine that this takes. */
size_t opencl_attend_bytes(void);
void opencl_attend_close(opencl_unit *u);
drey_status opencl_lend(device *d, const void *memory, size_t part_bytes, int32_t n_parts,
                        drey_error *err);
void opencl_take_back(device *d, const void *memory);
drey_status opencl_attend(device *d, const device_piece *piece, int32_t n, drey_error *err);

#define TRY_CL(call, code)                                                                         \
    do {                                                                                           \
        int32_t code_ = (code);                                                                    \
        if (code_ != OPENCL_SUCCESS)                                                               \
            return opencl_failed(u, call, code_, err);                                             \
    } while (0)
