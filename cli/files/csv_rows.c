/* Reading and writing CSV files of results: see csv_rows.h. */
#include "cli/files/csv_rows.h"

#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINE = 4096 };

static void put_row(FILE *out, const csv_format *f, const void *row)
{
    for (int i = 0; i < f->n_columns; i++) {
        const csv_column *c = &f->columns[i];
        const char *at = (const char *)row + c->offset;
        fputs(i ? "," : "", out);
        if (c->kind == CSV_TEXT)
            fputs(at, out);
        else if (c->kind == CSV_WHOLE)
            fprintf(out, "%d", *(const int32_t *)(const void *)at);
        else if (c->kind == CSV_REAL)
            fprintf(out, "%.6g", *(const double *)(const void *)at);
        else
            fputs(*(const bool *)at ? "yes" : "no", out);
    }
    putc('\n', out);
}

static void put_head(const csv_format *f, char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < f->n_columns && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? "," : "", f->columns[i].name);
}

/* What is in a line up to the next comma; NULL: it has no more. */
static char *next_field(char **line)
{
    char *field = *line;
    if (!field)
        return NULL;
    char *comma = strchr(field, ',');
    *line = comma ? comma + 1 : NULL;
    if (comma)
        *comma = '\0';
    return field;
}

static bool take_field(void *row, const csv_column *c, const char *field)
{
    char *at = (char *)row + c->offset, *end = NULL;
    double number = strtod(field, &end);
    bool is_number = end != field && *end == '\0';
    switch (c->kind) {
    case CSV_TEXT:
        snprintf(at, c->size, "%s", field);
        return strlen(field) < c->size;
    case CSV_WHOLE:
        if (!is_number || number < INT32_MIN || number > INT32_MAX)
            return false;
        *(int32_t *)(void *)at = (int32_t)number;
        return true;
    case CSV_REAL:
        *(double *)(void *)at = number;
        return is_number;
    case CSV_FLAG:
        *(bool *)at = strcmp(field, "yes") == 0;
        return true;
    }
    return false;
}

static drey_status keep(csv_rows *r, const void *row, drey_error *err)
{
    size_t bytes = r->format->row_bytes;
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        char *rows = realloc(r->rows, capacity * bytes);
        if (!rows)
            return fail(err, DREY_ERR_MEMORY, "out of memory for %zu results", capacity);
        r->rows = rows;
        r->capacity = capacity;
    }
    memcpy(r->rows + r->n++ * bytes, row, bytes);
    return DREY_OK;
}

static drey_status take_line(csv_rows *r, char *line, void *row, const char *path, drey_error *err)
{
    char *rest = line;
    memset(row, 0, r->format->row_bytes);
    for (int i = 0; i < r->format->n_columns; i++) {
        const csv_column *c = &r->format->columns[i];
        const char *field = next_field(&rest);
        if (!field || !take_field(row, c, field))
            return fail(err, DREY_ERR_FORMAT,
                        "line %zu of %s is damaged at %s; take it out, or name another file",
                        r->n + 2, path, c->name);
    }
    return keep(r, row, err);
}

/* A last line without its end was being written when something ended the run: it is left out, and
 * what comes is written in its place. */
static drey_status read_rows(csv_rows *r, void *row, const char *path, long *end, drey_error *err)
{
    char line[MOST_LINE], head[MOST_LINE];
    drey_status status = DREY_OK;
    put_head(r->format, head, sizeof head);
    *end = 0;
    for (bool first = true; status == DREY_OK && fgets(line, sizeof line, r->file); first = false) {
        size_t n = strcspn(line, "\n");
        if (line[n] != '\n' && !first && feof(r->file)) /* the run that wrote it was ended there */
            break;
        line[n] = '\0';
        if (first && strcmp(line, head) != 0)
            return fail(err, DREY_ERR_FORMAT,
                        "%s is there already and holds no results of %s; name another", path,
                        r->format->command);
        if (!first)
            status = take_line(r, line, row, path, err);
        *end = ftell(r->file);
    }
    return status;
}

static drey_status begin_file(csv_rows *r, const char *path, long end, drey_error *err)
{
    char head[MOST_LINE];
    if (fseek(r->file, end, SEEK_SET) != 0)
        return fail(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    put_head(r->format, head, sizeof head);
    if (end == 0)
        fprintf(r->file, "%s\n", head);
    return DREY_OK;
}

drey_status csv_open(csv_rows *r, const csv_format *format, const char *path, drey_error *err)
{
    *r = (csv_rows){.format = format};
    if (!path)
        return DREY_OK;
    r->file = fopen(path, "r+");
    if (!r->file && errno == ENOENT)
        r->file = fopen(path, "w+");
    if (!r->file)
        return fail(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    void *row = malloc(format->row_bytes);
    long end = 0;
    drey_status status = row ? read_rows(r, row, path, &end, err)
                             : fail(err, DREY_ERR_MEMORY, "out of memory for a result");
    free(row);
    return status == DREY_OK ? begin_file(r, path, end, err) : status;
}

void csv_close(csv_rows *r)
{
    if (r->file)
        fclose(r->file);
    free(r->rows);
    *r = (csv_rows){0};
}

static bool same_keys(const csv_format *f, const char *a, const char *b)
{
    for (int i = 0; i < f->n_keys; i++) {
        const csv_column *c = &f->columns[i];
        bool same = c->kind == CSV_TEXT ? strcmp(a + c->offset, b + c->offset) == 0
                                        : memcmp(a + c->offset, b + c->offset, c->size) == 0;
        if (!same)
            return false;
    }
    return true;
}

const void *csv_find(const csv_rows *r, const void *like)
{
    for (size_t i = 0; i < r->n; i++)
        if (same_keys(r->format, csv_row_at(r, i), like))
            return csv_row_at(r, i);
    return NULL;
}

drey_status csv_add(csv_rows *r, const void *row, drey_error *err)
{
    drey_status status = keep(r, row, err);
    if (status != DREY_OK || !r->file)
        return status;
    put_row(r->file, r->format, row);
    if (fflush(r->file) != 0)
        return fail(err, DREY_ERR_IO, "cannot write a result: %s", strerror(errno));
    return DREY_OK;
}

void csv_put_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
    for (char *c = out; *c; c++)
        if (*c == ',' || *c == '"' || (unsigned char)*c < ' ')
            *c = '_';
}

double csv_kept(double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", number);
    return strtod(text, NULL);
}
