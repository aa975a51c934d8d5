/* The table of drey list. Where it goes to a terminal it has the terminal's width: columns that a
 * person misses least are left out, and long names lose their middle. Elsewhere it is whole, with
 * two blanks at least between columns and "-" for what is not known. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

typedef enum model_column {
    MODEL_NAME,
    MODEL_SIZE,
    MODEL_TYPE,
    MODEL_PARAMETERS,
    MODEL_CONTEXT,
    MODEL_DRAFT,
    MODEL_WITH,
    MODEL_USED,
    MODEL_COLUMNS
} model_column;

typedef struct model_row {
    char cell[MODEL_COLUMNS][NAME_MAX + 1]; /* "": not known */
} model_row;

/* Writes rows[0..n) below a heading; columns: of the terminal that out is, 0: it is none. */
void model_table_write(FILE *out, const model_row *rows, size_t n, int columns);
