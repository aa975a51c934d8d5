/* Reading entries: see ask_line.h. */
#include "cli/terminal/ask_line.h"

#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An entry beyond the limit is read to its end, and forgotten meanwhile, but for the last byte: a
 * backslash before the newline says that it continues. */
static void forget(asker *a)
{
    if (!a->too_long)
        complain("%s", a->refusal);
    a->too_long = true;
    if (a->n > 0)
        a->entry[0] = a->entry[a->n - 1];
    a->n = a->n > 0;
}

static bool add(asker *a, const char *text, size_t n)
{
    if (a->n + n > a->most)
        forget(a);
    if (n >= a->capacity - a->n) {
        size_t capacity = 2 * (a->n + n) + 256;
        char *larger = realloc(a->entry, capacity);
        if (!larger)
            return false;
        a->entry = larger;
        a->capacity = capacity;
    }
    memcpy(a->entry + a->n, text, n);
    a->n += n;
    a->entry[a->n] = 0;
    return true;
}

/* EOF with errno EINTR: a signal has come. One that comes just before a terminal would be read also
 * ends the wait; a pipe that is never empty has no wait to end. */
static int next_byte(const asker *a)
{
    errno = 0;
    if (a->terminal ? signals_wait_readable(STDIN_FILENO) : !signals_exit_code())
        return getc(stdin);
    errno = EINTR;
    return EOF;
}

/* The next line with its end, a->entry grown by it. */
static asked next_line(asker *a, const char *prompt)
{
    if (a->editor) {
        int n;
        const char *line = line_editor_read(a->editor, prompt, &n);
        if (!line || n <= 0)
            return n < 0 && errno == EINTR ? ASKED_INTERRUPTED : ASKED_END;
        if (line_editor_is_full(a->editor))
            forget(a);
        return add(a, line, (size_t)n) ? ASKED_ENTRY : ASKED_END;
    }
    if (a->terminal)
        fputs(prompt, stderr);
    for (int c; (c = next_byte(a)) != EOF;) {
        char byte = (char)c;
        if (!add(a, &byte, 1))
            return ASKED_END;
        if (c == '\n')
            return ASKED_ENTRY;
    }
    bool interrupted = errno == EINTR;
    clearerr(stdin);
    return interrupted ? ASKED_INTERRUPTED : a->n > 0 ? ASKED_ENTRY : ASKED_END;
}

bool asker_at_terminal(void)
{
    return isatty(STDIN_FILENO) == 1 && terminal_attended();
}

void asker_init(asker *a, size_t most, const char *refusal)
{
    *a = (asker){.terminal = asker_at_terminal(), .most = most, .refusal = refusal};
    if (a->terminal)
        a->editor = line_editor_open(most);
    if (a->terminal && !a->editor)
        setvbuf(stdin, NULL, _IONBF, 0);
}

asked asker_ask(asker *a)
{
    a->n = 0;
    a->too_long = false;
    for (bool more = true, first = true; more; first = false) {
        asked got = next_line(a, first ? "> " : "| ");
        if (got == ASKED_INTERRUPTED)
            return a->too_long ? ASKED_END : got; /* the line may have no end */
        if (got == ASKED_END && first)
            return got;
        if (got == ASKED_END)
            break;
        if (a->n > 0 && a->entry[a->n - 1] == '\n')
            a->n--;
        more = a->n > 0 && a->entry[a->n - 1] == '\\';
        if (more)
            a->entry[a->n - 1] = '\n';
        a->entry[a->n] = 0;
    }
    if (a->too_long)
        return ASKED_TOO_LONG;
    if (a->editor)
        line_editor_remember(a->editor, a->entry);
    return ASKED_ENTRY;
}

void asker_free(asker *a)
{
    line_editor_close(a->editor);
    free(a->entry);
    *a = (asker){0};
}
