/* The CSV file of drey bench edge: see edge_rows.h. */
#include "cli/edge_rows.h"

#include "cli/terminal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum column_kind { TEXT, WHOLE, REAL, FLAG } column_kind;

typedef struct column {
    const char *name;
    column_kind kind;
    size_t offset, size;
} column;

#define COLUMN(name, kind)                                                                         \
    {                                                                                              \
#name, kind, offsetof(edge_row, name), sizeof(((edge_row *)0)->name)                       \
    }
static const column columns[] = {
    COLUMN(target, TEXT),
    COLUMN(draft, TEXT),
    COLUMN(side, TEXT),
    COLUMN(prompt, TEXT),
    COLUMN(group, TEXT),
    COLUMN(budget_mib, REAL),
    COLUMN(round, WHOLE),
    COLUMN(n_predict, WHOLE),
    COLUMN(tokens, WHOLE),
    COLUMN(tokens_per_s, REAL),
    COLUMN(tokens_per_pass, REAL),
    COLUMN(passes, REAL),
    COLUMN(drafted, REAL),
    COLUMN(accepted, REAL),
    COLUMN(decode_s, REAL),
    COLUMN(first_token_s, REAL),
    COLUMN(stall_share, REAL),
    COLUMN(verify_share, REAL),
    COLUMN(draft_share, REAL),
    COLUMN(hidden_share, REAL),
    COLUMN(differed, REAL),
    COLUMN(lossy, FLAG),
    COLUMN(head, TEXT),
    COLUMN(text, TEXT),
};
enum { N_COLUMNS = sizeof columns / sizeof *columns, MOST_LINE = 1024 };

static void put_row(FILE *out, const edge_row *row)
{
    for (int i = 0; i < N_COLUMNS; i++) {
        const char *at = (const char *)row + columns[i].offset;
        fputs(i ? "," : "", out);
        if (columns[i].kind == TEXT)
            fputs(at, out);
        else if (columns[i].kind == WHOLE)
            fprintf(out, "%d", *(const int32_t *)(const void *)at);
        else if (columns[i].kind == REAL)
            fprintf(out, "%.6g", *(const double *)(const void *)at);
        else
            fputs(*(const bool *)at ? "yes" : "no", out);
    }
    putc('\n', out);
}

static void put_head(char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < N_COLUMNS && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? "," : "", columns[i].name);
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

static bool take_field(edge_row *row, const column *c, const char *field)
{
    char *at = (char *)row + c->offset, *end = NULL;
    double number = strtod(field, &end);
    bool is_number = end != field && *end == '\0';
    switch (c->kind) {
    case TEXT:
        snprintf(at, c->size, "%s", field);
        return strlen(field) < c->size;
    case WHOLE:
        if (!is_number || number < INT32_MIN || number > INT32_MAX)
            return false;
        *(int32_t *)(void *)at = (int32_t)number;
        return true;
    case REAL:
        *(double *)(void *)at = number;
        return is_number;
    case FLAG:
        *(bool *)at = strcmp(field, "yes") == 0;
        return true;
    }
    return false;
}

static drey_status keep(edge_rows *r, const edge_row *row, drey_error *err)
{
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        edge_row *rows = realloc(r->rows, capacity * sizeof *rows);
        if (!rows)
            return fail(err, DREY_ERR_MEMORY, "out of memory for %zu results", capacity);
        r->rows = rows;
        r->capacity = capacity;
    }
    r->rows[r->n++] = *row;
    return DREY_OK;
}

static drey_status take_line(edge_rows *r, char *line, const char *path, drey_error *err)
{
    edge_row row = {.round = 0};
    char *rest = line;
    for (int i = 0; i < N_COLUMNS; i++) {
        const char *field = next_field(&rest);
        if (!field || !take_field(&row, &columns[i], field))
            return fail(err, DREY_ERR_FORMAT,
                        "line %zu of %s is damaged at %s; take it out, or name another file",
                        r->n + 2, path, columns[i].name);
    }
    return keep(r, &row, err);
}

/* A last line without its end was being written when something ended the run: it is left out, and
 * what comes is written in its place. */
static drey_status read_rows(edge_rows *r, const char *path, long *end, drey_error *err)
{
    char line[MOST_LINE], head[MOST_LINE];
    drey_status status = DREY_OK;
    put_head(head, sizeof head);
    *end = 0;
    for (bool first = true; status == DREY_OK && fgets(line, sizeof line, r->file); first = false) {
        size_t n = strcspn(line, "\n");
        if (line[n] != '\n' && !first && feof(r->file)) /* the run that wrote it was ended there */
            break;
        line[n] = '\0';
        if (first && strcmp(line, head) != 0)
            return fail(err, DREY_ERR_FORMAT,
                        "%s is there already and holds no results of drey bench edge; name another",
                        path);
        if (!first)
            status = take_line(r, line, path, err);
        *end = ftell(r->file);
    }
    return status;
}

drey_status edge_rows_open(edge_rows *r, const char *path, drey_error *err)
{
    *r = (edge_rows){0};
    if (!path)
        return DREY_OK;
    r->file = fopen(path, "r+");
    if (!r->file && errno == ENOENT)
        r->file = fopen(path, "w+");
    if (!r->file)
        return fail(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    long end = 0;
    drey_status status = read_rows(r, path, &end, err);
    if (status == DREY_OK && fseek(r->file, end, SEEK_SET) != 0)
        status = fail(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    if (status == DREY_OK && end == 0) {
        char head[MOST_LINE];
        put_head(head, sizeof head);
        fprintf(r->file, "%s\n", head);
    }
    return status;
}

void edge_rows_close(edge_rows *r)
{
    if (r->file)
        fclose(r->file);
    free(r->rows);
    *r = (edge_rows){0};
}

bool edge_rows_have(const edge_rows *r, const edge_row *like)
{
    for (size_t i = 0; i < r->n; i++) {
        const edge_row *row = &r->rows[i];
        if (row->round == like->round && row->n_predict == like->n_predict &&
            row->budget_mib == like->budget_mib && strcmp(row->side, like->side) == 0 &&
            strcmp(row->prompt, like->prompt) == 0 && strcmp(row->draft, like->draft) == 0 &&
            strcmp(row->target, like->target) == 0)
            return true;
    }
    return false;
}

drey_status edge_rows_add(edge_rows *r, const edge_row *row, drey_error *err)
{
    drey_status status = keep(r, row, err);
    if (status != DREY_OK || !r->file)
        return status;
    put_row(r->file, row);
    if (fflush(r->file) != 0)
        return fail(err, DREY_ERR_IO, "cannot write a result: %s", strerror(errno));
    return DREY_OK;
}
