/* Rows of a matrix that are taken in on line: a separate table of packed groups, in memory.
 *
 * A matrix may have been cut to its first rows (weight_cut), so that less of it stays in memory;
 * the table holds those of the others that have turned out to be needed. They are read from the
 * file one by one, and multiplied like a matrix whose row i is the source's row id[i]. The table is
 * full one day: then the oldest group of rows goes, but for those that are kept.
 *
 *   source  |== first rows, pinned ==|............ in the file only ............|
 *                                         ^        ^  ^
 *   table   | kept | group | group | open group |   room   |     id[place], -1: it is empty
 *
 * Empty places contain zeros or what was there before: their products mean nothing. */
#pragma once

#include "os/cpu_tuning.h"
#include "weights/weights.h"

struct row_table {
    weights *w;           /* borrowed, as the source is */
    const weight *source; /* one of its matrices, cut */
    weight matrix;        /* the groups in use; all of them are pinned */
    int32_t *id;          /* [room]: rows of the source */
    uint8_t *raw;         /* [GROUP_ROWS][row_bytes]: the open group as in the file */
    int32_t room;         /* a multiple of GROUP_ROWS */
    int32_t n_kept;       /* the first ones never go */
    int32_t next;         /* place of the next one; a new group begins at a multiple */
};

/* Memory for a table of `room` rows. */
size_t row_table_bytes(const weight *source, int32_t room);
/* source: one of w's matrices. From then on weights_row finds the source's rows in the table. Takes
 * its memory from `a`, whose owner checks it. */
void row_table_init(row_table *t, weights *w, const weight *source, int32_t room, arena *a);

/* The place of the source's row `id`, or -1. */
int32_t row_table_find(const row_table *t, int64_t id);
/* Brings the rows that neither the source's first rows nor the table hold. Ids may repeat. On an
 * error (DREY_ERR_IO, DREY_ERR_FORMAT) those before the one that failed are there. */
drey_status row_table_take(row_table *t, const int32_t *ids, int32_t n, drey_error *err);
/* Keeps the rows that are there now for good. */
void row_table_keep(row_table *t);
/* Rows that products of the table's matrix have: places, of which some may be empty. */
static inline int32_t row_table_places(const row_table *t)
{
    return t->matrix.residency.n_groups * GROUP_ROWS;
}
