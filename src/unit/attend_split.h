/* A layer's attention divided between units by what each is good at (Ghidorah III-B2).
 *
 * A task is a key head and some rows that are computed together. What its rows see is dense in
 * front, whole blocks of the cache, and sparse behind, a tree's nodes and their ancestors (the tail
 * of kernel/kernel.h). The dense part is the wide units', which are the devices and all clusters
 * but the last one, the tails are the narrow one's. Both fold their blocks apart, and the last to
 * end folds the partial results in the order of positions: a text has the same bits wherever the
 * boundary is.
 *
 *                  dense blocks                            tails
 *   task 0  |== device ==|= cluster 0, thread 0 =|     |-- the last cluster --|
 *   task 1  |== device ==|thread 0 =|= thread 1 =|     |----------------------|
 *   task 2  |= thread 1 ====|--- the last one ---|     |----------------------|
 *                           ^ the boundary
 *
 * The boundary is a number in [-1, 1]: above 0 so much of all dense blocks are the narrow
 * cluster's, too; below 0 so much of the tails the wide clusters'. Only tasks that a boundary or
 * the end of a slot's part goes through leave partial results of dense blocks.
 *
 * Of n slots each has a queue. Who is done goes on with another's, where units_may_take and
 * units_take_over allow it; devices keep to their own. What a device was given when it failed is
 * the threads'. */
#ifndef DREY_UNIT_ATTEND_SPLIT_H
#define DREY_UNIT_ATTEND_SPLIT_H

#include "unit/units.h"

enum { SPLIT_TASKS = 64 };

/* What a thread does at once: dense blocks [from, to) of a task, its tail, or both. */
typedef enum split_kind { SPLIT_DENSE, SPLIT_TAIL, SPLIT_WHOLE } split_kind;
typedef struct split_piece {
    split_kind kind;
    int32_t task, from, to;
} split_piece;

typedef struct split_task {
    int32_t first_range; /* blocks that fold as they go */
    float *partials;
    _Atomic int32_t left; /* pieces */
} split_task;

typedef struct split_queue {
    _Alignas(64) _Atomic int32_t next;
    int32_t n, n_back;
    split_piece piece[2 * SPLIT_TASKS];
    split_piece back[SPLIT_TASKS]; /* that a device failed with */
} split_queue;

typedef struct attend_split {
    unit_set *units;
    const attend_layer *layer;
    bool devices; /* have a part */
    split_task task[SPLIT_TASKS];
    split_queue queue[]; /* [slots] */
} attend_split;

size_t attend_split_bytes(int32_t n_slots);
/* What attend_layer.partials should have for passes of up to so many rows over so many positions.
 */
size_t attend_split_partials(int32_t n_heads, int32_t n_q, int32_t head_dim, int32_t rows,
                             int32_t n_positions);

/* Divides a layer, after attend_cut. devices: keys and values are lent to them. False, and it is
 * left as it was: there is one unit, or too little that is dense, or so much that it comes out even
 * by itself. */
bool attend_split_cut(attend_split *s, unit_set *us, const attend_layer *l, bool devices);
/* A thread's part, on each of them. scratch: as for attend. */
void attend_split_work(attend_split *s, int32_t thread, void *scratch);
/* A device's, on its driver. */
void attend_split_drive(attend_split *s, int32_t slot, void *scratch);
/* When all have ended: whether a device has failed and left something, for which the threads have
 * to come again. */
bool attend_split_left(attend_split *s);

#endif
