/* Lines of the command on terminals of any width: broken at blanks, and progress of which
 * nothing stays, also where the terminal becomes narrower meanwhile. */
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/terminal/terminal_page.h"
#include "cli/terminal/progress.h"
#include "support/test.h"

static void breaks(const char *line, int32_t columns, const char *wanted)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    page_break(out, line, strlen(line), columns);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

TEST(lines_break_at_blanks)
{
    breaks("one two three four five", 0, "one two three four five");
    breaks("one two three four five", 23, "one two three four five");
    breaks("one two three four five", 22, "one two three four\n  five");
    breaks("  one two three four five six", 20, "  one two three four\n    five six");
    breaks("a word-that-is-longer-than-any-row of it", 20,
           "a\n  word-that-is-longer-than-any-row\n  of it");
    breaks("\033[1mone\033[0m two three four fi", 21, "\033[1mone\033[0m two three four fi");
    breaks("\u4e00\u4e00\u4e00\u4e00 \u4e00\u4e00\u4e00\u4e00 \u4e00\u4e00", 20,
           "\u4e00\u4e00\u4e00\u4e00 \u4e00\u4e00\u4e00\u4e00\n  \u4e00\u4e00");
    breaks("", 20, "");
}

static void set_columns(int terminal, int32_t columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
}

/* What has been written to the terminal since the last call, at least up to `ending`. */
static void written(int terminal, char ending, char out[4096])
{
    struct pollfd in = {.fd = terminal, .events = POLLIN};
    size_t n = 0;
    out[0] = '\0';
    while (!strchr(out, ending) && poll(&in, 1, 5000) == 1) {
        ssize_t more = read(terminal, out + n, 4095 - n);
        n += more > 0 ? (size_t)more : 0;
        out[n] = '\0';
    }
}

TEST(progress_fits_and_is_removed)
{
    char text[4096], up[16];
    int terminal, end, kept = dup(STDERR_FILENO);
    int32_t columns = 8;
    progress p = {.label = "loading the target"};
    assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    dup2(end, STDERR_FILENO);
    for (; columns < 90; columns++) {
        set_columns(terminal, columns);
        p.bar_s = 0;
        progress_report(&p, DREY_PROGRESS_LOAD_TARGET, 5, 10);
        const int32_t width = p.width;
        progress_clear(&p);
        written(terminal, 'K', text);
        size_t n = strcspn(text, "K"); /* of the sequence that removes it, three bytes before */
        if (n < 3 || width >= columns || page_width(text, n - 3) != width)
            break;
    }
    set_columns(terminal, 80);
    p.bar_s = 0;
    progress_report(&p, DREY_PROGRESS_LOAD_TARGET, 5, 10);
    const int32_t width = p.width;
    set_columns(terminal, 30); /* the line takes two or three rows now */
    progress_clear(&p);
    written(terminal, 'J', text);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(end);
    close(terminal);
    assert_int_equal(columns, 90);
    assert_true(width > 30);
    snprintf(up, sizeof up, "\033[%dA\033[J", (width - 1) / 30);
    if (!strstr(text, up))
        fail_msg("a line of %d columns is removed by %s", width, text);
}
