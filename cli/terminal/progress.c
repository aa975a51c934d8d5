/* Progress: see progress.h. */
#include "cli/terminal/progress.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const double bar_interval_s = 0.1, line_interval_s = 5;

double progress_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A terminal that has become narrower since then has flowed the line into several rows. */
void progress_clear(progress *p)
{
    int32_t columns = page_columns(stderr);
    int32_t more = columns > 0 && p->width > 0 ? (p->width - 1) / columns : 0;
    if (p->shown && more > 0)
        fprintf(stderr, "\r\033[%dA\033[J", more);
    else if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
    p->width = 0;
}

/* Columns that a line may take: in the last one the cursor would be in the next row. */
static int32_t room(void)
{
    int32_t columns = page_columns(stderr);
    return columns > 1 ? columns - 1 : 79;
}

void progress_line(progress *p, const char *text)
{
    size_t n = strlen(text);
    progress_clear(p);
    while (n > 0 && page_width(text, n) > room())
        n--;
    p->width = page_width(text, n);
    p->shown = n > 0;
    fprintf(stderr, "%.*s", (int)n, text);
}

/* "312M of 1.04G" or "128 of 512 tokens"; the total alone where done is all of it. Of training the
 * time that is left, by what spent_s seconds have brought. */
static void amount(char out[static 64], drey_progress what, uint64_t done, uint64_t total,
                   double spent_s)
{
    bool tokens = what == DREY_PROGRESS_PROMPT;
    char a[24], b[24];
    if (what == DREY_PROGRESS_TRAIN) {
        double left_s = done ? spent_s * (double)(total - done) / (double)done : 0;
        snprintf(out, 64, spent_s > 1 ? "about %.0f s left" : "begins", left_s);
        return;
    }
    snprintf(a, sizeof a, "%llu", (unsigned long long)done);
    snprintf(b, sizeof b, "%llu", (unsigned long long)total);
    if (!tokens) {
        format_bytes(a, (double)done);
        format_bytes(b, (double)total);
    }
    snprintf(out, 64, "%s%s%s%s", done < total ? a : "", done < total ? " of " : "", b,
             tokens ? " tokens" : "");
}

static const char *label(const progress *p, drey_progress what)
{
    return p->label ? p->label : drey_progress_name(what);
}

/* With a bar that leaves room for the words, or without one. */
static void draw(progress *p, drey_progress what, uint64_t done, uint64_t total)
{
    enum { WIDTH = 30, NARROWEST = 6, AROUND = sizeof " [] 100 %  " - 1 };
    char bar[WIDTH + 1], text[64], line[256];
    const char *name = label(p, what);
    double part = total ? (double)done / (double)total : 1;
    amount(text, what, done, total, progress_clock_s() - p->first_s[what]);
    int32_t words = page_width(name, strlen(name)) + page_width(text, strlen(text));
    int32_t width = room() - words - AROUND;
    if (width < NARROWEST) {
        bool fits = words + (int32_t)AROUND - 3 <= room();
        snprintf(line, sizeof line, "%s %3.0f %%%s%s", name, 100 * part, fits ? "  " : "",
                 fits ? text : "");
    } else {
        format_bar(bar, width < WIDTH ? width : WIDTH, part, 0);
        snprintf(line, sizeof line, "%s [%s%s%s] %3.0f %%  %s", name,
                 terminal_style_text(STYLE_GOOD), bar, terminal_style_text(STYLE_PLAIN), 100 * part,
                 text);
    }
    progress_line(p, line);
}

static void report_bar(progress *p, drey_progress what, uint64_t done, uint64_t total)
{
    double now_s = progress_clock_s();
    if (done >= total) {
        progress_clear(p);
        p->bar_s = 0;
    } else if (now_s - p->bar_s >= bar_interval_s) {
        draw(p, what, done, total);
        p->bar_s = now_s;
    }
}

static void report_line(progress *p, drey_progress what, uint64_t done, uint64_t total)
{
    double now_s = progress_clock_s();
    bool first = !p->begun[what] || done < p->done[what], ends = done >= total;
    if (first || (!ends && now_s - p->line_s[what] >= line_interval_s)) {
        char text[64];
        bool training = what == DREY_PROGRESS_TRAIN;
        amount(text, what, first && !training ? total : done, total, now_s - p->first_s[what]);
        fprintf(stderr, "%s: %s\n", label(p, what), text);
        p->line_s[what] = now_s;
    }
    p->begun[what] = true;
    p->done[what] = done;
}

void progress_report(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    progress *p = user;
    if (p->first_s[what] == 0 || done < p->done[what])
        p->first_s[what] = progress_clock_s();
    if (p->quiet || signals_exit_code()) /* who ends the run need not be able to read this */
        return;
    (terminal_attended() ? report_bar : report_line)(p, what, done, total);
}
