/* Reading entries: see ask_line.h. */
#include "cli/typing/ask_line.h"

#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_QUOTES = 3 };
static const char quotes[] = "\"\"\"";

/* An entry beyond the limit is read to its end, and forgotten meanwhile, but for its last bytes: a
 * backslash before the newline says that it continues, three quotes that it ends. */
static void forget(asker *a)
{
    if (!a->too_long)
        complain_wrong("%s", a->refusal);
    a->too_long = true;
    size_t n = a->n < N_QUOTES ? a->n : N_QUOTES;
    if (n > 0)
        memmove(a->entry, a->entry + a->n - n, n);
    a->n = n;
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
static int next_byte(asker *a)
{
    errno = 0;
    if (a->terminal && signals_wait_readable(STDIN_FILENO))
        return getc(stdin);
    if (!a->terminal && !signals_exit_code())
        return piped_text_byte(&a->piped, stdin);
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

void asker_init(asker *a, size_t most, const char *refusal, const char *const *commands)
{
    *a = (asker){.terminal = asker_at_terminal(), .most = most, .refusal = refusal};
    if (a->terminal)
        a->editor = line_editor_open(most, commands);
    if (a->terminal && !a->editor)
        setvbuf(stdin, NULL, _IONBF, 0);
}

/* After a line, without its newline: whether another one belongs to the entry. */
static bool continues(asker *a, bool first)
{
    size_t n = a->n;
    if (first)
        a->block = n >= N_QUOTES && memcmp(a->entry, quotes, N_QUOTES) == 0;
    if (!a->block) {
        bool more = n > 0 && a->entry[n - 1] == '\\';
        if (more)
            a->entry[n - 1] = '\n';
        return more;
    }
    if (n >= (first ? 2 : 1) * (size_t)N_QUOTES &&
        memcmp(a->entry + n - N_QUOTES, quotes, N_QUOTES) == 0)
        return false;
    return add(a, "\n", 1);
}

/* Removes the quotes around a block, and the newlines next to them. */
static void take_quotes_off(asker *a)
{
    if (!a->block || a->too_long)
        return;
    size_t begin = N_QUOTES, end = a->n;
    if (end >= 2 * (size_t)N_QUOTES && memcmp(a->entry + end - N_QUOTES, quotes, N_QUOTES) == 0)
        end -= N_QUOTES;
    begin += begin < end && a->entry[begin] == '\n';
    end -= begin < end && a->entry[end - 1] == '\n';
    memmove(a->entry, a->entry + begin, end - begin);
    a->n = end - begin;
    a->entry[a->n] = 0;
}

asked asker_ask(asker *a)
{
    a->n = 0;
    a->too_long = a->block = false;
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
        a->entry[a->n] = 0;
        more = continues(a, first);
    }
    if (a->too_long)
        return ASKED_TOO_LONG;
    if (a->editor)
        line_editor_remember(a->editor, a->entry);
    take_quotes_off(a);
    return ASKED_ENTRY;
}

void asker_free(asker *a)
{
    line_editor_close(a->editor);
    free(a->entry);
    *a = (asker){0};
}
