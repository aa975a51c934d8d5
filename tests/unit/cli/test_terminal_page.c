/* Lines of the command on terminals of any width: broken at blanks, and progress of which
 * nothing stays, also where the terminal becomes narrower meanwhile. */
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/terminal/format.h"
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

/* Reads what has been written to the terminal since the last call, up to an "@" that follows it. */
static void written(int terminal, char out[4096])
{
    struct pollfd in = {.fd = terminal, .events = POLLIN};
    size_t n = 0;
    out[0] = '\0';
    fputs("@", stderr);
    while (!strchr(out, '@') && poll(&in, 1, 5000) == 1) {
        ssize_t more = read(terminal, out + n, 4095 - n);
        n += more > 0 ? (size_t)more : 0;
        out[n] = '\0';
    }
    out[strcspn(out, "@")] = '\0';
}

TEST(durations_and_blocks)
{
    char time[24], bar[FORMAT_BLOCKS_BYTES(4)];
    assert_string_equal(format_time(time, 0.4), "0 s");
    assert_string_equal(format_time(time, 99), "99 s");
    assert_string_equal(format_time(time, 200), "3 min");
    assert_string_equal(format_time(time, 7300), "2 h 2 min");
    assert_string_equal(format_age(time, 59), "now");
    assert_string_equal(format_age(time, 60), "1 minute ago");
    assert_string_equal(format_age(time, 86400.0 * 13), "1 week ago");
    assert_string_equal(format_age(time, 1e30), "9999 years ago");
    format_blocks(bar, 4, 0.4, true);
    assert_string_equal(bar, "\u2588\u258b\u2591\u2591");
    format_blocks(bar, 4, 0.4, false);
    assert_string_equal(bar, "##..");
    format_blocks(bar, 4, 1.5, true);
    assert_string_equal(bar, "\u2588\u2588\u2588\u2588");
}

/* Target and draft have one bar, which ends when both are there. */
TEST(one_bar_for_both)
{
    char text[4096];
    int terminal, end, kept = dup(STDERR_FILENO);
    progress p = {.draft_bytes = 30};
    assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    dup2(end, STDERR_FILENO);
    set_columns(terminal, 80);
    for (uint64_t done = 5; done <= 10; done += 5) {
        progress_report(&p, DREY_PROGRESS_LOAD_TARGET, done, 10);
        progress_clear(&p); /* the next one is drawn at once */
    }
    progress_report(&p, DREY_PROGRESS_LOAD_DRAFT, 0, 30); /* what was expected */
    progress_report(&p, DREY_PROGRESS_LOAD_DRAFT, 30, 30);
    written(terminal, text);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(end);
    close(terminal);
    const char *parts[] = {"loading", " 12 %", "5 of 40", " 25 %", "10 of 40", " 25 %", "100 %"};
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        at = at ? strstr(at, parts[i]) : NULL;
        if (!at)
            fail_msg("no %s in %s", parts[i], text);
        at += strlen(parts[i]);
    }
    assert_null(strstr(text, "load target"));
}

/* Each line that was drawn, also by the thread that moves it, is narrower than the terminal and was
 * removed. Returns its columns; -1: it was not. */
static int32_t drawn_width(const char *text, int32_t columns)
{
    static const char removed[] = "\r\033[K";
    int32_t width = -1;
    for (const char *end; (end = strstr(text, removed)); text = end + strlen(removed)) {
        width = page_width(text, (size_t)(end - text));
        if (width >= columns)
            return -1;
    }
    return *text ? -1 : width;
}

TEST(progress_fits_and_is_removed)
{
    char text[4096], up[16];
    int terminal, end, kept = dup(STDERR_FILENO);
    int32_t columns = 8;
    progress p = {.label = "loading the target"};
    assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    dup2(end, STDERR_FILENO);
    for (bool good = true; good && columns < 90; columns += good) {
        set_columns(terminal, columns);
        progress_report(&p, DREY_PROGRESS_LOAD_TARGET, 5, 10);
        progress_clear(&p);
        written(terminal, text);
        good = drawn_width(text, columns) > 0;
    }
    set_columns(terminal, 80);
    progress_report(&p, DREY_PROGRESS_LOAD_TARGET, 5, 10);
    written(terminal, text);
    const char *drawn = text;
    for (const char *next; (next = strstr(drawn, "\033[K"));)
        drawn = next + 3;
    const int32_t width = page_width(drawn, strlen(drawn));
    set_columns(terminal, 30); /* the line, with the "@", takes two or three rows now */
    progress_clear(&p);
    written(terminal, text);
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
