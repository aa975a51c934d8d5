/* Results that are kept in a CSV file as soon as they are known, so that a run that is broken
 * off goes on where it was. A row is a structure; columns say which of its members stand in
 * the file. */
#ifndef DREY_CLI_CSV_ROWS_H
#define DREY_CLI_CSV_ROWS_H

#include "drey/drey.h"

#include <stddef.h>
#include <stdio.h>

typedef enum csv_kind {
    CSV_TEXT, /* char [size], without commas, quotes and line ends */
    CSV_WHOLE,
    CSV_REAL, /* double, of which six digits are kept */
    CSV_FLAG  /* bool */
} csv_kind;

typedef struct csv_column {
    const char *name;
    csv_kind kind;
    size_t offset, size;
} csv_column;

#define CSV_COLUMN(row, name, kind)                                                                \
    {                                                                                              \
#name, kind, offsetof(row, name), sizeof(((row *)0)->name)                                 \
    }

typedef struct csv_format {
    const char *command; /* whose results they are, for messages: "drey bench edge" */
    const csv_column *columns;
    int n_columns;
    int n_keys; /* the first columns: what makes a row another one */
    size_t row_bytes;
} csv_format;

typedef struct csv_rows {
    const csv_format *format; /* borrowed */
    char *rows;               /* [n][row_bytes] */
    size_t n, capacity;
    FILE *file; /* NULL: none */
} csv_rows;

/* Reads what path (NULL: no file) holds already and opens it for more. DREY_ERR_FORMAT: it is
 * another kind of file, or has other columns. */
drey_status csv_open(csv_rows *r, const csv_format *format, const char *path, drey_error *err);
void csv_close(csv_rows *r);
static inline const void *csv_row_at(const csv_rows *r, size_t i)
{
    return r->rows + i * r->format->row_bytes;
}
/* The row with the keys of `like`; NULL: there is none. */
const void *csv_find(const csv_rows *r, const void *like);
drey_status csv_add(csv_rows *r, const void *row, drey_error *err);

/* A text for a column: no commas, quotes or control characters. */
void csv_put_text(char *out, size_t size, const char *text);
/* A number as the file keeps it, so that a row that was read has the same keys. */
double csv_kept(double number);

#endif
