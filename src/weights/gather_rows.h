/* Rows of a matrix by their numbers, from the file to separate packed groups: a matrix whose
 * row i is the source's row id[i]. Unlike a row_table's they are known from the beginning.
 *
 *   source, in the file  |..x.xx.......x...............x.x......|     id: where an x is
 *   packed               | group of 32 | group | ...            | */
#pragma once

#include "drey/drey_model.h"
#include "kernel/kernel.h"

typedef struct file file;
typedef struct weight weight;

/* Groups of n rows. */
static inline int32_t gathered_groups(int32_t n)
{
    return (n + GROUP_ROWS - 1) / GROUP_ROWS;
}
/* source: a matrix of any residency, whose tensor is in `f` at path. id[n]: rising, below the
 * tensor's rows. packed: [gathered_groups(n)][source->group_bytes]. Neighbours are read at once.
 * DREY_ERR_IO, DREY_ERR_MEMORY, DREY_ERR_FORMAT: a row holds numbers that are not finite. */
drey_status gather_rows(const weight *source, const file *f, const char *path, const int32_t *id,
                        int32_t n, uint8_t *packed, drey_error *err);
