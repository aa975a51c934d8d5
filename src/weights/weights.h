/* Weights: the matrices of one model, part of them pinned in memory, the rest streamed every pass.
 *
 * A matrix is cut into packed groups of GROUP_ROWS rows. Its first n_pinned groups are packed into
 * memory by the first pass; the others are read again in every pass and packed, group by group,
 * into scratch that fits a core's cache. So loading is the first pass, each byte is read once for
 * it, and the residency of a model is one number per matrix, which any budget can set.
 *
 * With a sidecar (sidecar.h) the pieces hold packed groups: pinned ones are copied to their place,
 * streamed ones used where they have landed in the ring.
 *
 *   matrix  |== pinned groups ==|~~ streamed groups ~~|      pieces: runs of groups of about a MiB,
 *   pass 0  |piece|piece|piece..|piece|piece|piece....|      never across the boundary
 *   pass 1                      |piece|piece|piece....|
 *
 * Of a matrix that is split into planes (residency.h), which only a sidecar holds, a piece is one
 * plane of a run of groups, and the pieces of a run follow one another. A view of the weights
 * multiplies with the planes that are in memory alone, at any time.
 *
 * Residency does not follow from that order. What is pinned can be used at any time once it is
 * loaded: whole matrices that no pass multiplies (an embedding), rows of one (weights_row),
 * products of some of its rows (weights_dot_rows).
 *
 * The stream's numbers of pieces, and the states of the whole:
 *
 *   next_seq - the pass before -| begin_seq ...... cursor ....... end_seq ... next_seq
 *                               | used by products | still to use | left out |
 *
 *   NEW -- pass_begin --> LOADING -- pass_end --> LOADED <---- pass_end, pass_leave ----+
 *    ^                       |                       +---- pass_begin --> IN A PASS ----+
 *    +-- leave, a failure ---+                       a failed read: the next pass_begin opens
 *        (restart)                                   a new stream, what is pinned stays
 *
 * Where a pass may end early, reads of its later matrices can be held back (weights_hold_from):
 * they wait until the pass allows them (weights_read_to). What comes before is read ahead as
 * always, the next pass's too.
 *
 * Invariants (weights_is_valid): (1) a pass uses the streamed groups of its matrices in the order
 * they were given, each at most once; (2) the last matrix is the head, which a pass may leave out;
 * (3) a row's result does not depend on where its group is; (4) begin_seq <= cursor <= end_seq <=
 * next_seq; (5) a matrix that no pass multiplies is pinned whole or not at all; (6) what an open
 * product uses comes before the limit: nothing waits for what is held back. */
#pragma once

#include "base/arena.h"
#include "os/cpu_tuning.h"
#include "os/file.h"
#include "weights/matrix_form.h"
#include "weights/residency.h"
#include "weights/stream.h"

typedef struct gguf gguf;
typedef struct gguf_tensor gguf_tensor;
typedef struct unit_set unit_set;

enum { PRODUCTS_MAX = 4 };

/* Positions of its reads in the order of a pass. */
typedef struct weight_reads {
    int32_t piece_groups; /* groups of a piece; of a run of pieces, in planes */
    /* groups of a joined piece, if the matrix is split: as it was before */
    int32_t joined_piece_groups;
    uint64_t sidecar_offset;      /* offset of its packed groups there; 0: packed from the model */
    uint64_t sidecar_hash;        /* hash of those groups, as the sidecar states it */
    int32_t n_first, n_first_all; /* pieces in the first pass; of them those of RANGE_ALL */
    int32_t n_cycle;              /* pieces in a later one */
    int64_t first_seq;            /* number of its first piece, in the first pass */
    /* number of its first streamed piece, from the start of a later pass */
    int64_t cycle_seq;
    _Atomic int32_t *run_left; /* groups of each run of pieces not yet used in this pass */
} weight_reads;

typedef struct weight {
    matrix_form form;
    residency residency;
    weight_reads reads;
    const float *scale;       /* its products are multiplied with it (pass_program.c); NULL: 1 */
    bool resident;            /* in no order of reads: a table's (row_table.h), an expert's */
    uint8_t *packed;          /* [n_pinned][group_bytes]; filled by the first pass, */
    uint8_t *plane[N_PLANES]; /* as are these: [n_planes - n_pinned][plane_bytes] */
} weight;

/* The stream's numbers of pieces, as drawn above. */
typedef struct weights_pass {
    int64_t next_seq;  /* number of the next pass's first piece */
    int64_t begin_seq; /* number of the present pass's first piece */
    int64_t cursor;    /* number of the next piece that this pass will use */
    int64_t end_seq;   /* one past the last that it will use: the streamed head may be left out */
    int64_t hold;      /* pieces of a later pass that are read ahead of it; -1: all */
    int64_t limit;     /* limit of the stream */
} weights_pass;

typedef struct product_job product_job;   /* weights/product.c */
typedef struct row_table row_table;       /* weights/row_table.h */
typedef struct row_lookup row_lookup;     /* weights/row_lookup.h */
typedef struct expert_layer expert_layer; /* weights/experts.h */
typedef struct expert_set expert_set;
typedef struct expert_product expert_product; /* weights/product.h */

typedef struct weights weights;
struct weights {
    cpu_tuning tuning;
    weights *view_of; /* NULL: no view. A view has tuning, matrices, scratch and job alone */
    weight *matrix;   /* in the order of a pass */
    int32_t n_matrices;
    const weight *first_in_pass; /* first matrix of a pass; those before it are in none */
    /* matrix whose rows are looked up: one of matrix; NULL: none are */
    weight *embedding;
    const gguf *file;
    file *parts;            /* for look-ups; [gguf_n_shards] */
    stream_options reading; /* paths: of the parts, then of the sidecar if there is one; stamps:
                               what the files were when they were looked at */
    stream *stream;         /* NULL until the first pass */
    bool loaded;            /* a first pass came to its end: what is pinned is in its place */
    bool restart;           /* the stream has to begin again: its first pass was given up */
    weights_pass pass;
    stream_counters earlier;          /* counters of the streams before the present one */
    int32_t n_threads, most_products; /* limits of one product */
    unit_set *units; /* borrowed: the threads' and the devices' parts; NULL: threads are alike */
    /* the most rows of a pass: devices get it; 0: they do not get these weights */
    int32_t most_rows;
    bool attached; /* they have them */
    product_job *job;
    expert_set *experts;    /* NULL: the model is no mixture of experts */
    const row_table *table; /* table of rows of a matrix that was cut; NULL: there is none */
    row_lookup *lookup;     /* rows of a matrix that stays on the disk; NULL: there is none */
    struct {
        uint8_t **pack, **dot, **row; /* [n_threads] */
        size_t bounce_bytes;          /* bytes for one row */
    } scratch;
};

/* DREY_OK, or the failure of a read, whose message names the tensor, and of experts which one. */
drey_status weights_status(const weights *w, drey_error *err);

/* Sizes a matrix without touching memory; n_pinned starts at 0. DREY_ERR_UNSUPPORTED: no kernel. */
drey_status weight_describe(weight *m, const gguf_tensor *t, const kernel_table *kernels,
                            drey_error *err);
/* Splits a matrix into planes, if its type can be: what is read of it comes from a sidecar of such.
 */
void weight_split(weight *m);
void weight_join(weight *m); /* undoes that */
/* Its packed groups are read from the sidecar, from there on; 0: rows from the model. */
void weight_read_sidecar(weight *m, uint64_t offset);
/* Makes it one of n_rows rows that is in memory and in no order of reads; the caller gives it
 * `packed`. */
void weight_stay_whole(weight *m, int64_t n_rows);
/* Forgets all rows but the first n_rows (a multiple of GROUP_ROWS): they are never multiplied.
 * Their rows can still be looked up, and taken into a row_table. */
void weight_cut(weight *m, int64_t n_rows);
/* Lets it be read in pieces of about that many bytes: whole groups, at least one. */
void weight_set_read(weight *m, int64_t read_bytes);
/* The most bytes of a run's pieces, packed or not. */
size_t weight_piece_bytes(const weight *m);
/* The planes that are in memory of a group that is not pinned, of a matrix that is split. */
plane_blocks weight_blocks(const weight *m, int32_t group);

/* The piece of groups [from, to) of a matrix that is not in planes. */
stream_piece weight_piece(const weights *w, const weight *m, int32_t from, int32_t to);

/* Memory of weights_open besides pinned groups and ring. */
size_t weights_overhead_bytes(const weight *matrix, int32_t n, const weight *embedding,
                              int32_t n_parts, int32_t n_threads, const unit_set *us);
/* Memory that a mixture's experts take besides, with so many slots (experts.h). */
size_t weights_experts_bytes(const expert_layer *layer, int32_t n_layers, int32_t n_slots,
                             int32_t n_threads, const unit_set *us);
/* Memory that look-ups in a matrix on the disk take besides, of weights or a view; NULL: none. */
size_t weights_lookup_bytes(const weight *looked_up, int32_t n_threads);
/* Memory of the stream that the first pass starts. */
size_t weights_stream_bytes(const weight *matrix, int32_t n, int32_t n_parts);
/* The ring's least size for these matrices. */
size_t weights_ring_least(const weight *matrix, int32_t n);

typedef struct weights_options {
    const gguf *file; /* borrowed, like all of these */
    weight *matrix;   /* in the order of a pass, n_pinned set by the plan; taken over as they are */
    int32_t n_matrices;
    weight *embedding;        /* matrix whose rows weights_row gives: one of matrix, or NULL */
    const weight *looked_up;  /* matrix that stays on the disk; NULL: there is none */
    const char *sidecar;      /* the file that sidecar_attach took for these matrices, or NULL */
    file_stamp sidecar_stamp; /* its stamp at that time */
    expert_layer *experts; /* [n_layers] of a mixture, whose matrices are among these and in no */
    int32_t n_layers, n_slots; /* pass; with so many slots in all. NULL: no mixture */
    size_t ring_bytes;
    int32_t n_threads;
    unit_set *units; /* NULL: threads are alike */
    int32_t
        /* the most rows of a pass on the units' devices, which read these weights; 0: they do
         * not */
        most_rows;
    drey_io io;
    bool in_turns;            /* for comparison: nothing is computed while something is read */
    const cpu_tuning *tuning; /* NULL: the family's; also of the passes over these weights */
    stream_fault_fn *fault;   /* NULL outside tests */
    void *fault_user;
} weights_options;

/* Lays everything out in `a`; reads nothing yet. */
drey_status weights_open(weights *w, const weights_options *options, arena *a, drey_error *err);
/* A view of weights whose matrices all have their first planes in memory, or are pinned: passes
 * over it read nothing, and may run while those of `of` wait. It may be used once `of` is loaded.
 * matrix: [of->n_matrices] in the caller's memory, filled here; embedding among them. */
void weights_view(weights *view, weights *of, weight *matrix, arena *a);
size_t weights_view_bytes(const weight *matrix, int32_t n, int32_t n_threads, const unit_set *us);
void weights_close(weights *w);

/* A pass: begin, products of its matrices in order (product.h), end. The first pass starts the
 * stream, and loads every matrix: those that nothing is multiplied with (looked up, or a head that
 * is left out) by products of no rows. Without the head its streamed part is not read. After a
 * failed read the next pass begins with a new stream, so that a disk that has recovered is read
 * again. The end of a pass is where a file that has changed meanwhile is noticed (DREY_ERR_IO),
 * before anybody uses what was computed from it. */
drey_status weights_pass_begin(weights *w, bool with_head, drey_error *err);
drey_status weights_pass_end(weights *w, drey_error *err);
/* Leaves the head out of a pass that was begun with it, before its product: the head is no longer
 * needed. Once. */
void weights_pass_without_head(weights *w);
/* Right after weights_pass_begin, of a pass that is not the first: leaves out what comes before
 * `m`, one of the matrices. */
void weights_pass_skip(weights *w, const weight *m);
/* Gives up the rest of a pass, no product being open: nothing more of it is read. A first pass that
 * was given up is begun again by the next one. */
void weights_pass_leave(weights *w);
/* Makes reads of `m` and what follows it wait in each pass, from the next one on, until they are
 * let (weights_read_to); NULL: none does. The first pass reads all. */
void weights_hold_from(weights *w, const weight *m);
/* Lets the present pass read what comes before `m`; NULL: all, and the next pass's up to its hold.
 * A pass calls it before it waits for anything. */
void weights_read_to(weights *w, const weight *m);
/* True once a first pass has ended. */
static inline bool weights_loaded(const weights *w)
{
    return w->view_of ? w->view_of->loaded : w->loaded;
}
/* True unless a bug has broken the invariants that can be seen from here, or the stream's. */
bool weights_is_valid(const weights *w);
/* Counts the reads of all streams so far; uring, direct and registered as the present one is. */
void weights_count(const weights *w, stream_counters *out);
/* Counts of a mixture, so far; else zeros. */
typedef struct expert_counts {
    uint64_t used, read;     /* experts of all waves, and those that were not there */
    uint64_t guessed, right; /* guesses, and of them those that were used */
} expert_counts;
expert_counts weights_count_experts(const weights *w);
/* Holds reads, and lets them continue: between the two their lane of the trace can be read. */
void weights_hold_reads(const weights *w);
void weights_let_read(const weights *w);

/* Returns how long reads can continue until the ring is full, at the speed seen so far: a caller
 * may do something else for that time without delaying the disk. INT64_MAX where nothing is
 * read. */
int64_t weights_room_ns(const weights *w);

/* Row `row` of a matrix as the file holds it (row_bytes), by `thread`: from disk. */
drey_status weights_read_row(weights *w, const weight *m, int64_t row, void *raw, int32_t thread,
                             drey_error *err);
/* Row `row` of the embedding or of the head as k floats, by `thread`: from memory when it is there,
 * else from disk. */
drey_status weights_row_of(weights *w, const weight *m, int64_t row, float *out, int32_t thread,
                           drey_error *err);
static inline drey_status weights_row(weights *w, int64_t row, float *out, int32_t thread,
                                      drey_error *err)
{
    return weights_row_of(w, w->embedding, row, out, thread, err);
}

/* Products of chosen rows of a pinned matrix, which may be any, at any time once weights_loaded:
 * out[i] = matrix row rows[i] . the one activation row in act (of the kind its kernel wants), with
 * the bits that a whole product has. A row costs the reading of its group; neighbours in `rows`
 * that share one cost one. On the calling thread, `thread` of the pool. */
void weights_dot_rows(weights *w, const weight *m, const int64_t *rows, int32_t n_rows,
                      const void *act, float *out, int32_t thread);

/* Reads a whole small tensor (norms, biases: F32, F16 or BF16) as floats. */
drey_status weights_read_vector(weights *w, const gguf_tensor *t, float *out, drey_error *err);
/* The same of a matrix of any type. */
drey_status weights_read_floats(weights *w, const gguf_tensor *t, float *out, drey_error *err);
