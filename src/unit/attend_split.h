/* Divides a layer's attention between units by what each does well (Ghidorah III-B2).
 *
 * A task is a group of query heads and some rows that are computed together. The positions that its
 * rows see
 * are first dense (whole blocks of the cache), then sparse (a tree's nodes and their ancestors: the
 * tail of kernel/kernel.h). The wide units (the devices and all clusters but the last) compute the
 * dense part, the narrow one (the last cluster) the tails. Both fold their blocks separately, and
 * the last to end folds the partial results in the order of positions: a text has the same bits
 * wherever the boundary is.
 *
 *                  dense blocks                            tails
 *   task 0  |== device ==|= cluster 0, thread 0 =|     |-- the last cluster --|
 *   task 1  |== device ==|thread 0 =|= thread 1 =|     |----------------------|
 *   task 2  |= thread 1 ====|--- the last one ---|     |----------------------|
 *                           ^ the boundary
 *
 * The boundary is a number in [-1, 1]. Above 0 the narrow cluster also computes this share of all
 * dense blocks; below 0 the wide clusters also compute this share of the tails. Only tasks that are
 * divided by the boundary or by the end of a worker's part have partial results of dense blocks.
 *
 * Each of the n workers has a queue. A thread that is done continues with another's queue if
 * units_may_take and units_take_over allow it; devices use only their own. When a device fails, the
 * threads do its work. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct attend_layer attend_layer;
typedef struct unit_set unit_set;

enum { SPLIT_TASKS = 64 };

/* Kinds of work that a thread does at a time: dense blocks [from, to) of a task, its tail, or
 * both. */
typedef enum split_kind { SPLIT_DENSE, SPLIT_TAIL, SPLIT_WHOLE } split_kind;
typedef struct split_piece {
    split_kind kind;
    int32_t task, from, to;
} split_piece;

typedef struct split_task {
    int32_t first_range; /* blocks that are folded at once */
    float *partials;
    _Atomic int32_t left; /* pieces */
} split_task;

typedef struct split_queue {
    _Alignas(64) _Atomic int32_t next;
    int32_t n, n_back;
    split_piece piece[2 * SPLIT_TASKS];
    split_piece back[SPLIT_TASKS]; /* work of the failed device */
} split_queue;

typedef struct attend_split {
    unit_set *units;
    const attend_layer *layer;
    bool devices; /* have a part */
    split_task task[SPLIT_TASKS];
    split_queue queue[]; /* [workers] */
} attend_split;

size_t attend_split_bytes(int32_t n_workers);
/* The size of attend_layer.partials for passes of up to this many rows over this many positions. */
size_t attend_split_partials(int32_t n_heads, int32_t n_q, int32_t v_dim, int32_t rows,
                             int32_t n_positions);

/* Divides a layer, after attend_cut. devices: keys and values are lent to them. Returns false and
 * leaves it unchanged if there is one unit, if there is too little dense work, or so much
 * that it is balanced without this. */
bool attend_split_cut(attend_split *s, unit_set *us, const attend_layer *l, bool devices);
/* Computes a thread's part; called on each thread. scratch: as for attend. */
void attend_split_work(attend_split *s, int32_t thread, void *scratch);
/* Computes a device's part; called on its driver. */
void attend_split_drive(attend_split *s, int32_t worker, void *scratch);
/* Call it when all have ended. Whether a failed device has left work, for which the threads must be
 * started again. */
bool attend_split_left(attend_split *s);
