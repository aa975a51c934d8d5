/* Lines of a server: see serve_lines.h.
 *
 *   12:03:11 200 POST /completion  35 tokens, 14 written, 4.45/s, first word after 0.4 s, 3.2 s
 *   12:03:19 401 POST /completion  1.1 ms: Invalid API Key
 *
 * A person sees when something happened; in a file every line has its date as well, and in
 * systemd's journal none, which adds its own.
 *
 * Standard error may be a pipe that nobody reads: a line that has no room is left out, so that no
 * client waits for it, and the next one that has says how many were. */
#include "cli/serve/serve_lines.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1600, STAMP_BYTES = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t n_left_out;

static bool has_room(void)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) != 0;
}

/* Clean, but for its colours, which are the command's. */
static void put(serve_lines *l, const char *status_style, const char *before, const char *status,
                const char *after)
{
    pthread_mutex_lock(&lock);
    if (!has_room()) {
        n_left_out++;
        pthread_mutex_unlock(&lock);
        return;
    }
    if (l->progress)
        progress_clear(l->progress);
    FILE *page = page_of(stderr);
    if (n_left_out > 0)
        fprintf(page, "%lld lines were left out: nobody read them\n", (long long)n_left_out);
    n_left_out = 0;
    print_clean(page, before);
    fputs(status_style, page);
    print_clean(page, status);
    fputs(*status_style ? terminal_style_text(STYLE_PLAIN) : "", page);
    print_clean(page, after);
    putc('\n', page);
    pthread_mutex_unlock(&lock);
}

/* ---- Times ---- */

/* Standard error is the stream that systemd says it is. */
static bool is_journal(void)
{
    const char *said = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat about;
    if (!said || fstat(STDERR_FILENO, &about) != 0)
        return false;
    snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)about.st_dev,
             (unsigned long long)about.st_ino);
    return strcmp(own, said) == 0;
}

/* "12:03:11 " for a person, "2026-11-28T12:03:11+01:00 " for a file. */
static const char *stamp(char out[static STAMP_BYTES])
{
    struct tm parts;
    time_t now = time(NULL);
    size_t n = strftime(out, STAMP_BYTES, terminal_attended() ? "%H:%M:%S " : "%Y-%m-%dT%H:%M:%S%z",
                        localtime_r(&now, &parts));
    if (is_journal())
        n = 0;
    else if (!terminal_attended() && n > 2) { /* "+0100" becomes "+01:00 " */
        memmove(out + n - 1, out + n - 2, 2);
        out[n - 2] = ':';
        out[n + 1] = ' ';
        n += 2;
    }
    out[n] = '\0';
    return out;
}

/* ---- Events ---- */

/* Prints a line without a time, because a person sees it happen. */
static void put_line(serve_lines *l, const char *line)
{
    char at[STAMP_BYTES];
    put(l, "", terminal_attended() ? "" : stamp(at), line, "");
}

static void note(serve_lines *l, const serve_event *e)
{
    char at[STAMP_BYTES], line[LINE_BYTES];
    bool warns = e->kind == SERVE_WARNING;
    snprintf(line, sizeof line, "%s%s%s%s", warns ? ": " : "", e->model, e->model[0] ? ": " : "",
             e->of.note);
    put(l, warns ? terminal_style_text(STYLE_WARN) : "", stamp(at), warns ? "warning" : "", line);
}

/* Describes the parts of its texts; "" where it wrote and read none. */
static void describe_usage(const serve_usage *u, char *out, size_t n_out)
{
    char part[64] = "", first[16];
    if (u->n_prompt + u->n_written == 0) {
        out[0] = '\0';
        return;
    }
    if (u->n_cached > 0)
        snprintf(part, sizeof part, " (%lld reused)", (long long)u->n_cached);
    int n = snprintf(out, n_out, "%lld token%s%s, ", (long long)u->n_prompt,
                     u->n_prompt == 1 ? "" : "s", part);
    if (u->n_written > 0)
        n += snprintf(out + n, n_out - (size_t)n, "%lld written, ", (long long)u->n_written);
    if (u->tokens_per_s > 0)
        n += snprintf(out + n, n_out - (size_t)n, "%s/s, ", format_rate(first, u->tokens_per_s));
    if (u->n_written > 0 && u->first_s > 0)
        n += snprintf(out + n, n_out - (size_t)n, "first word after %s, ",
                      format_seconds(first, u->first_s));
    if (u->cut)
        snprintf(out + n, n_out - (size_t)n, "cut: stopping, ");
}

static void request(serve_lines *l, const serve_event *e)
{
    const serve_request *r = &e->of.request;
    char at[STAMP_BYTES], status[16] = "---", usage[160], took[16], after[LINE_BYTES];
    if (r->repeats && !l->verbose)
        return;
    if (r->status)
        snprintf(status, sizeof status, "%d", r->status);
    describe_usage(&r->usage, usage, sizeof usage);
    snprintf(after, sizeof after, " %s %s  %s%s%s%s%s%s%s%s%s", r->method, r->path, e->model,
             e->model[0] ? ": " : "", usage, format_seconds(took, r->seconds),
             r->left ? ", the client left" : "", r->peer[0] ? ", from " : "", r->peer,
             r->why[0] ? ": " : "", r->why);
    put(l, terminal_style_text(r->status >= 200 && r->status < 400 ? STYLE_GOOD : STYLE_WARN),
        stamp(at), status, after);
}

static void stopping(serve_lines *l, int32_t n_writing)
{
    char line[160];
    if (n_writing == 0)
        snprintf(line, sizeof line, "stopping");
    else if (l->grace_s == 0)
        snprintf(line, sizeof line, "stopping: %d answer%s cut", n_writing,
                 n_writing == 1 ? " is" : "s are");
    else
        snprintf(line, sizeof line,
                 "stopping: %d answer%s being written, at most %d s (--grace); Ctrl-C again ends "
                 "%s now",
                 n_writing, n_writing == 1 ? " is" : "s are", l->grace_s,
                 n_writing == 1 ? "it" : "them");
    put_line(l, line);
}

void serve_lines_report(serve_lines *l, const serve_event *event)
{
    if (event->kind == SERVE_WARNING)
        note(l, event);
    if (l->quiet)
        return;
    if (event->kind == SERVE_NOTE)
        note(l, event);
    else if (event->kind == SERVE_REQUEST)
        request(l, event);
    else if (event->kind == SERVE_STOPPING)
        stopping(l, event->of.n_writing);
}

/* Returns the port of an address that means all of this machine's; NULL: it is another one. */
static const char *port_of_every(const char *address)
{
    static const char *const every[] = {"http://0.0.0.0:", "http://[::]:"};
    for (int i = 0; i < 2; i++)
        if (strncmp(address, every[i], strlen(every[i])) == 0)
            return address + strlen(every[i]);
    return NULL;
}

void serve_lines_ready(serve_lines *l, const char *address, bool page, const char *what)
{
    char line[LINE_BYTES];
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    if (l->quiet)
        return;
    char local[40], every[60] = "";
    const char *port = port_of_every(address);
    if (port) {
        snprintf(local, sizeof local, "http://localhost:%s", port);
        snprintf(every, sizeof every, "on every address of this machine, port %s, ", port);
        address = local;
    }
    int n = snprintf(line, sizeof line, "ready: ");
    if (page && !is_unix)
        n += snprintf(line + n, sizeof line - (size_t)n, "page %s, ", address);
    snprintf(line + n, sizeof line - (size_t)n, "API %s%s, %s%s", address, is_unix ? "" : "/v1",
             every, what);
    put_line(l, line);
}

void serve_lines_stopped(serve_lines *l)
{
    if (!l->quiet)
        put_line(l, "stopped");
}

void serve_lines_load(serve_lines *l, drey_progress what, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&lock);
    progress_report(l->progress, what, done, total);
    pthread_mutex_unlock(&lock);
}

static bool is_reachable(const char *address)
{
    return strncmp(address, "http://", 7) == 0 && strncmp(address, "http://127.", 11) != 0 &&
           strncmp(address, "http://localhost", 16) != 0 &&
           strncmp(address, "http://[::1]", 12) != 0;
}

void serve_lines_warn(const char *address, const char *keys)
{
    if (!keys && is_reachable(address))
        complain("anybody who reaches %s can have texts written and see what the server "
                 "does: give clients a key (--api-key)",
                 address);
}
