/* Progress: see progress.h. */
#include "cli/terminal/progress.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double bar_interval_s = 0.1, line_interval_s = 5;
static const double wait_before_s = 1; /* time below which work needs no line */
static const double rate_after_s = 5;  /* a rate and the time left are worth reading from then on */

/* The line that is on the terminal, or is to be, and the thread that moves it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    progress *line; /* NULL: none */
    bool runs;
} ticker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

double progress_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- One line ---- */

/* A terminal that has become narrower since then has flowed the line into several rows. */
static void erase(progress *p)
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

static void put_line(progress *p, const char *text)
{
    size_t n = strlen(text);
    erase(p);
    while (n > 0 && (page_width(text, n) > room() || ((unsigned char)text[n] & 0xC0) == 0x80))
        n--; /* to where a character begins */
    p->width = page_width(text, n);
    p->shown = n > 0;
    fprintf(stderr, "%.*s", (int)n, text);
}

/* ---- Words ---- */

/* Target and draft are loaded in turns, so that one bar has both. */
static bool is_loading(const progress *p, drey_progress what)
{
    return !p->label && (what == DREY_PROGRESS_LOAD_TARGET || what == DREY_PROGRESS_LOAD_DRAFT);
}

/* Progress that is shown as an amount: what was done when the last report came, of it `first`
 * before the first one; the time from that to the last one, and the time since then. */
typedef struct amount {
    uint64_t first, done, total;
    double spent_s, since_s;
} amount;

static amount amount_of(const progress *p, drey_progress what)
{
    const drey_progress target = DREY_PROGRESS_LOAD_TARGET, draft = DREY_PROGRESS_LOAD_DRAFT;
    double done_s = p->done_s[what], first_s = p->first_s[what];
    amount a = {.first = p->first[what], .done = p->done[what], .total = p->total[what]};
    if (is_loading(p, what)) {
        first_s = p->begun[target] ? p->first_s[target] : first_s;
        a.first = p->first[target] + p->first[draft];
        a.done = p->done[target] + p->done[draft];
        a.total = p->total[target] + (p->begun[draft] ? p->total[draft] : p->draft_bytes);
    }
    a.spent_s = done_s - first_s;
    a.since_s = progress_clock_s() - done_s;
    return a;
}

/* "312M of 1.04G" or "128 of 512 tokens"; the total alone where done is all of it. */
static void put_amount(char out[static 96], drey_progress what, const amount *a)
{
    bool tokens = what == DREY_PROGRESS_PROMPT;
    char done[24], total[24];
    snprintf(done, sizeof done, "%llu", (unsigned long long)a->done);
    snprintf(total, sizeof total, "%llu", (unsigned long long)a->total);
    if (!tokens) {
        format_bytes(done, (double)a->done);
        format_bytes(total, (double)a->total);
    }
    snprintf(out, 96, "%s%s%s%s", a->done < a->total ? done : "", a->done < a->total ? " of " : "",
             total,
             !tokens         ? ""
             : a->total == 1 ? " token"
                             : " tokens");
}

/* "about 12 s left", by what has been done until now; "" as long as that says nothing. */
static void put_left(char out[static 48], const amount *a, double after_s)
{
    char time[24];
    out[0] = '\0';
    if (a->spent_s + a->since_s < after_s || a->done <= a->first || a->done >= a->total)
        return;
    double left_s = a->spent_s * (double)(a->total - a->done) / (double)(a->done - a->first);
    snprintf(out, 48, "about %s left", format_time(time, fmax(left_s - a->since_s, 1)));
}

/* Describes a bar. Training has steps that nobody counts: the time that is left is all. */
static void describe(char out[static 160], const progress *p, drey_progress what)
{
    const amount a = amount_of(p, what);
    char left[48], number[16];
    if (what == DREY_PROGRESS_TRAIN) {
        put_left(left, &a, 1);
        snprintf(out, 160, "%s", left[0] ? left : "begins");
        return;
    }
    put_amount(out, what, &a);
    put_left(left, &a, rate_after_s);
    size_t n = strlen(out);
    if (left[0] && what != DREY_PROGRESS_PROMPT)
        n += (size_t)snprintf(
            out + n, 160 - n, ", %s/s",
            format_bytes(number, (double)(a.done - a.first) / (a.spent_s + a.since_s)));
    if (left[0])
        snprintf(out + n, 160 - n, ", %s", left);
}

static const char *label(const progress *p, drey_progress what)
{
    return p->label ? p->label : drey_progress_name(what);
}

/* ---- Drawing ---- */

/* The name, the bar if there is room for one, and the words, or of them what fits. */
static void put_bar(progress *p, const char *name, double part, const char *all)
{
    enum { WIDTH = 30, NARROWEST = 6, AROUND = sizeof "    100 %  " - 1 };
    char bar[FORMAT_BLOCKS_BYTES(WIDTH)], text[160], line[512];
    snprintf(text, sizeof text, "%s", all);
    int32_t words = page_width(name, strlen(name)) + (int32_t)AROUND;
    int32_t width = room() - words - page_width(text, strlen(text));
    if (width < NARROWEST) { /* the time that is left goes first */
        text[strcspn(text, ",")] = '\0';
        width = room() - words - page_width(text, strlen(text));
    }
    if (width < NARROWEST) {
        bool fits = width + 2 >= 0;
        snprintf(line, sizeof line, "%s %3.0f %%%s%s", name, 100 * part, fits ? "  " : "",
                 fits ? text : "");
    } else {
        format_blocks(bar, width < WIDTH ? width : WIDTH, part, terminal_utf8());
        snprintf(line, sizeof line, "%s  %s%s%s %3.0f %%  %s", name,
                 terminal_style_text(STYLE_GOOD), bar, terminal_style_text(STYLE_PLAIN), 100 * part,
                 text);
    }
    put_line(p, line);
}

static void draw_bar(progress *p)
{
    char text[160];
    const char *name = is_loading(p, p->what)                         ? "loading"
                       : p->what == DREY_PROGRESS_PROMPT && !p->label ? "reading the prompt"
                                                                      : label(p, p->what);
    const amount a = amount_of(p, p->what);
    describe(text, p, p->what);
    put_bar(p, name, a.total ? (double)a.done / (double)a.total : 1, text);
}

static void draw_wait(progress *p, double now_s)
{
    static const char *const dots[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    static const char *const signs[] = {"|", "/", "-", "\\"};
    char line[sizeof p->work + 40], time[24];
    double spent_s = now_s - p->wait_s;
    unsigned turn = (unsigned)(spent_s * 4);
    const char *sign = terminal_utf8() ? dots[turn % 10] : signs[turn % 4];
    if (p->waiting == p->work) /* which says itself how long it takes */
        snprintf(line, sizeof line, "%s %s", sign, p->waiting);
    else
        snprintf(line, sizeof line, "%s %s, %s", sign, p->waiting, format_time(time, spent_s));
    put_line(p, line);
}

static void draw(progress *p, double now_s)
{
    if (p->waiting && p->waiting != p->work && now_s - p->wait_s < wait_before_s)
        return;
    if (p->waiting)
        draw_wait(p, now_s);
    else
        draw_bar(p);
    p->bar_s = now_s;
}

static void *move_line(void *user)
{
    const struct timespec pause = {.tv_nsec = 250000000};
    (void)user;
    for (;;) {
        pthread_mutex_lock(&ticker.lock);
        while (!ticker.line)
            pthread_cond_wait(&ticker.changed, &ticker.lock);
        double now_s = progress_clock_s();
        if (!signals_exit_code() && now_s - ticker.line->bar_s >= 0.24)
            draw(ticker.line, now_s);
        pthread_mutex_unlock(&ticker.lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* The line is p's. Where there is no thread for it, reports move it alone. */
static void activate(progress *p)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (ticker.line && ticker.line != p)
        erase(ticker.line);
    p->active = true;
    ticker.line = p;
    if (!ticker.runs && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, 128 << 10);
        signals_hold();
        ticker.runs = pthread_create(&thread, &attributes, move_line, NULL) == 0;
        signals_release();
        pthread_attr_destroy(&attributes);
    }
    pthread_cond_signal(&ticker.changed);
}

static void deactivate(progress *p)
{
    erase(p);
    p->active = false;
    p->waiting = NULL;
    p->bar_s = 0;
    if (ticker.line == p)
        ticker.line = NULL;
}

/* ---- For the caller ---- */

void progress_line(progress *p, const char *text)
{
    pthread_mutex_lock(&ticker.lock);
    deactivate(p);
    put_line(p, text);
    pthread_mutex_unlock(&ticker.lock);
}

void progress_bar(progress *p, const char *name, double part, const char *text)
{
    pthread_mutex_lock(&ticker.lock);
    deactivate(p);
    put_bar(p, name, part, text);
    pthread_mutex_unlock(&ticker.lock);
}

void progress_clear(progress *p)
{
    pthread_mutex_lock(&ticker.lock);
    deactivate(p);
    pthread_mutex_unlock(&ticker.lock);
}

void progress_hide(void)
{
    pthread_mutex_lock(&ticker.lock);
    if (ticker.line) {
        erase(ticker.line);
        ticker.line->bar_s = progress_clock_s(); /* not before what is written now is there */
    }
    pthread_mutex_unlock(&ticker.lock);
}

void progress_end(void)
{
    pthread_mutex_lock(&ticker.lock);
    if (ticker.line)
        deactivate(ticker.line);
    pthread_mutex_unlock(&ticker.lock);
}

void progress_silence(progress *p, bool quiet)
{
    pthread_mutex_lock(&ticker.lock);
    p->quiet = quiet;
    pthread_mutex_unlock(&ticker.lock);
}

void progress_wait(progress *p, const char *word)
{
    pthread_mutex_lock(&ticker.lock);
    if (!p->quiet && terminal_attended()) {
        erase(p);
        p->waiting = word;
        p->wait_s = p->bar_s = progress_clock_s();
        activate(p);
    }
    pthread_mutex_unlock(&ticker.lock);
}

void progress_work(progress *p, const char *text)
{
    pthread_mutex_lock(&ticker.lock);
    if (!p->quiet && terminal_attended()) {
        double now_s = progress_clock_s();
        p->wait_s = p->waiting == p->work ? p->wait_s : now_s;
        snprintf(p->work, sizeof p->work, "%s", text);
        p->waiting = p->work;
        activate(p);
        draw(p, now_s);
    }
    pthread_mutex_unlock(&ticker.lock);
}

/* Draws a complete bar once more: the bar ends at 100 %. */
static void report_bar(progress *p, drey_progress what)
{
    double now_s = progress_clock_s();
    const drey_progress prompt = DREY_PROGRESS_PROMPT;
    const amount a = amount_of(p, what);
    bool ends = a.done >= a.total, reading = p->begun[prompt] && p->done[prompt] < p->total[prompt];
    if (what == DREY_PROGRESS_LOAD_DRAFT && !p->label && reading)
        return; /* the prompt's line stays */
    p->what = what;
    if (!ends || p->shown) {
        p->waiting = NULL;
        activate(p);
    }
    if (p->active && (ends || now_s - p->bar_s >= bar_interval_s))
        draw(p, now_s);
    if (ends)
        deactivate(p);
}

static void report_line(progress *p, drey_progress what, bool first)
{
    double now_s = progress_clock_s();
    const amount a = amount_of(p, what);
    bool training = what == DREY_PROGRESS_TRAIN, ends = p->done[what] >= p->total[what];
    if (!first && (ends || now_s - p->line_s[what] < line_interval_s))
        return;
    char text[96], left[48];
    const amount own = {.done = first ? p->total[what] : p->done[what], .total = p->total[what]};
    put_amount(text, what, &own);
    put_left(left, &a, 1);
    fprintf(stderr, "%s: %s\n", label(p, what), !training ? text : left[0] ? left : "begins");
    p->line_s[what] = now_s;
}

void progress_report(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    progress *p = user;
    pthread_mutex_lock(&ticker.lock);
    bool first = !p->begun[what] || done < p->done[what];
    p->begun[what] = true;
    p->done[what] = done;
    p->total[what] = total;
    p->done_s[what] = progress_clock_s();
    if (first) {
        p->first[what] = done;
        p->first_s[what] = p->done_s[what];
    }
    bool seen =
        !p->quiet && !signals_exit_code(); /* who ends the run need not be able to read it */
    if (seen && terminal_attended())
        report_bar(p, what);
    else if (seen)
        report_line(p, what, first);
    pthread_mutex_unlock(&ticker.lock);
}
