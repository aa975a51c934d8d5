/* The table of drey list: see model_table.h. */
#include "cli/models/model_table.h"

#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "common/utf8.h"

#include <string.h>

static const int gap = 2, short_name = 22, shortest_name = 8;
static const char *const headings[MODEL_COLUMNS] = {"NAME",    "SIZE",  "TYPE", "PARAMS",
                                                    "CONTEXT", "DRAFT", "WITH", "USED"};

typedef struct layout {
    int width[MODEL_COLUMNS]; /* 0: left out */
} layout;

static int width_of(const char *text)
{
    return page_width(text, strlen(text));
}

static const char *cell_of(const model_row *row, int column)
{
    return row->cell[column][0] ? row->cell[column] : "-";
}

static bool is_number(int column)
{
    return column == MODEL_SIZE || column == MODEL_PARAMETERS || column == MODEL_CONTEXT;
}

/* ---- Widths ---- */

/* Returns the width of all columns, the gaps between them included. */
static int total_of(const layout *l)
{
    int total = -gap;
    for (int c = 0; c < MODEL_COLUMNS; c++)
        total += l->width[c] ? l->width[c] + gap : 0;
    return total;
}

/* The same with short names. */
static int least_of(const layout *l)
{
    int least = total_of(l);
    for (int c = MODEL_NAME; c <= MODEL_DRAFT; c += MODEL_DRAFT - MODEL_NAME)
        least -= l->width[c] > short_name ? l->width[c] - short_name : 0;
    return least;
}

static void leave_out_empty(layout *l, const model_row *rows, size_t n)
{
    for (int c = MODEL_DRAFT; c < MODEL_COLUMNS; c++) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any = any || rows[i].cell[c][0];
        l->width[c] = any ? l->width[c] : 0;
    }
}

/* Both names share the room; the one that needs less leaves the rest to the other. */
static void cut_names(layout *l, int columns)
{
    int *name = &l->width[MODEL_NAME], *draft = &l->width[MODEL_DRAFT];
    const int room = columns - (total_of(l) - *name - *draft);
    int half = *draft ? room / 2 : room;
    half = half < shortest_name ? shortest_name : half;
    if (*draft > half)
        *draft = *name < half && room - *name < *draft ? room - *name : half;
    if (*name > room - *draft)
        *name = room - *draft < shortest_name ? shortest_name : room - *draft;
}

static void fit(layout *l, const model_row *rows, size_t n, int columns)
{
    static const model_column least_missed[] = {MODEL_CONTEXT,    MODEL_WITH, MODEL_USED,
                                                MODEL_PARAMETERS, MODEL_TYPE, MODEL_DRAFT};
    leave_out_empty(l, rows, n);
    for (size_t i = 0; i < sizeof least_missed / sizeof *least_missed; i++)
        if (least_of(l) > columns)
            l->width[least_missed[i]] = 0;
    if (total_of(l) > columns)
        cut_names(l, columns);
}

/* ---- Rows ---- */

/* The bytes of a text's first characters, as many as have that width. */
static size_t first_part(const char *text, size_t n, int width)
{
    size_t at = 0;
    bool plain;
    while (at < n) {
        size_t taken = utf8_look(text + at, n - at, &plain);
        if (page_width(text, at + taken) > width)
            break;
        at += taken;
    }
    return at;
}

/* "qwen2.5-coder-0.5…q4_k_m": a name says its size late, and its type at the end. */
static void cut_middle(const char *text, int width, char out[NAME_MAX + 8])
{
    const char *dots = terminal_utf8() ? "\u2026" : "...";
    const int around = width - width_of(dots), end = around * 3 / 10;
    const size_t n = strlen(text), before = first_part(text, n, around - end);
    size_t after = before;
    bool plain;
    while (after < n && page_width(text + after, n - after) > end)
        after += utf8_look(text + after, n - after, &plain);
    snprintf(out, NAME_MAX + 8, "%.*s%s%s", (int)before, text, dots, text + after);
}

static void write_cell(FILE *out, const char *text, int column, int width, bool last)
{
    char shorter[NAME_MAX + 8];
    if (width_of(text) > width) {
        cut_middle(text, width, shorter);
        text = shorter;
    }
    const int blanks = width - width_of(text);
    fprintf(out, "%*s", is_number(column) ? blanks : 0, "");
    print_clean(out, text);
    fprintf(out, "%*s", last ? 0 : gap + (is_number(column) ? 0 : blanks), "");
}

/* row: NULL for the headings. */
static void write_row(FILE *out, const layout *l, const model_row *row)
{
    int last = MODEL_COLUMNS - 1;
    while (last > 0 && !l->width[last])
        last--;
    for (int c = 0; c <= last; c++)
        if (l->width[c])
            write_cell(out, row ? cell_of(row, c) : headings[c], c, l->width[c], c == last);
    putc('\n', out);
}

void model_table_write(FILE *out, const model_row *rows, size_t n, int columns)
{
    layout l;
    for (int c = 0; c < MODEL_COLUMNS; c++) {
        l.width[c] = width_of(headings[c]);
        for (size_t i = 0; i < n; i++) {
            int width = width_of(cell_of(&rows[i], c));
            l.width[c] = width > l.width[c] ? width : l.width[c];
        }
    }
    if (columns > 0)
        fit(&l, rows, n, columns);
    write_row(out, &l, NULL);
    for (size_t i = 0; i < n; i++)
        write_row(out, &l, &rows[i]);
}
