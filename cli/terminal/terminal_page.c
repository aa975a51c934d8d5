/* Breaking lines: see terminal_page.h. */
#include "cli/terminal/terminal_page.h"

#include "cli/terminal/char_width.h"
#include "cli/terminal/progress.h"
#include "common/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- Widths ---- */

/* Returns the bytes of a sequence such as ESC [ 1 m; 0: there is none. */
static size_t sequence_length(const char *text, size_t n)
{
    size_t i = 2;
    if (n < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (i < n && !(text[i] >= '@' && text[i] <= '~'))
        i++;
    return i < n ? i + 1 : 0;
}

int32_t page_width(const char *text, size_t n)
{
    int32_t width = 0;
    for (size_t i = 0; i < n;) {
        size_t skipped = sequence_length(text + i, n - i);
        const uint8_t *p = (const uint8_t *)text + i;
        int length = skipped ? 0 : utf8_length(p, n - i);
        int columns = length > 0 ? char_width(utf8_code_point(p, length)) : 1;
        if (!skipped)
            width += columns < 0 ? 1 : columns;
        i += skipped ? skipped : length > 0 ? (size_t)length : 1;
    }
    return width;
}

int32_t page_columns(FILE *out)
{
    struct winsize size;
    int fd = fileno(page_target(out));
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* ---- Breaking ---- */

static size_t blanks(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] == ' ')
        i++;
    return i;
}

void page_break(FILE *out, const char *text, size_t n, int32_t columns)
{
    enum { FEWEST = 20 };
    size_t at = blanks(text, n);
    int32_t used = (int32_t)at, indent = used + 2;
    if (columns < FEWEST || page_width(text, n) <= columns) {
        fwrite(text, 1, n, out);
        return;
    }
    if (indent > columns / 2)
        indent = columns / 2;
    fwrite(text, 1, at, out);
    for (bool begins = true; at < n; begins = false) {
        size_t gap = blanks(text + at, n - at), word = 0;
        while (at + gap + word < n && text[at + gap + word] != ' ')
            word++;
        int32_t width = page_width(text + at + gap, word);
        if (!begins && word > 0 && used + (int32_t)gap + width > columns) {
            fprintf(out, "\n%*s", indent, "");
            used = indent;
        } else if (word > 0) {
            fwrite(text + at, 1, gap, out);
            used += (int32_t)gap;
        }
        fwrite(text + at + gap, 1, word, out);
        used += width;
        at += gap + word;
    }
}

/* ---- Streams ---- */

typedef struct page {
    FILE *out, *stream;
    char *line; /* [n] of [capacity]: not complete yet */
    size_t n, capacity;
} page;

static bool keep(page *p, const char *bytes, size_t n)
{
    if (n > p->capacity - p->n) {
        size_t capacity = 2 * (p->n + n) + 256;
        char *larger = realloc(p->line, capacity);
        if (!larger)
            return false;
        p->line = larger;
        p->capacity = capacity;
    }
    memcpy(p->line + p->n, bytes, n);
    p->n += n;
    return true;
}

static ssize_t write_lines(void *cookie, const char *bytes, size_t n)
{
    page *p = cookie;
    int32_t columns = page_columns(p->out);
    progress_hide();
    for (size_t at = 0; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t part = end ? (size_t)(end - bytes) - at : n - at;
        if (!keep(p, bytes + at, part))
            return 0;
        if (end) {
            page_break(p->out, p->line, p->n, columns);
            putc('\n', p->out);
            p->n = 0;
        }
        at += part + (end != NULL);
    }
    fflush(p->out);
    return (ssize_t)n;
}

static page pages[2]; /* pages of stdout and stderr */

FILE *page_target(FILE *stream)
{
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (stream == pages[i].stream && stream)
            return pages[i].out;
    return stream;
}

const char *page_style(FILE *out, terminal_style style)
{
    const FILE *target = page_target(out);
    return target == stderr   ? terminal_style_text(style)
           : target == stdout ? terminal_output_style(style)
                              : "";
}

FILE *page_of(FILE *out)
{
    page *p = &pages[out == stderr];
    if (!isatty(fileno(out)))
        return out;
    if (!p->stream) {
        p->out = out;
        p->stream = fopencookie(p, "w", (cookie_io_functions_t){.write = write_lines});
        if (p->stream)
            setvbuf(p->stream, NULL, _IOLBF, 0);
    }
    return p->stream ? p->stream : out;
}
