/* Writing a text: see text_writer.h. */
#include "cli/terminal/text_writer.h"

#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int text_writer_write(const char *bytes, size_t n)
{
    while (n > 0) {
        if (!signals_wait_writable(STDOUT_FILENO))
            return EINTR;
        /* A pipe that takes anything takes PIPE_BUF. */
        ssize_t written = write(STDOUT_FILENO, bytes, n < PIPE_BUF ? n : PIPE_BUF);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

/* The draft loads after the first word: no bar and no line in the text. A text that goes elsewhere
 * leaves the terminal to a line that says that it is being written. */
static void end_progress(text_writer *t)
{
    if (t->begun)
        return;
    t->begun = true;
    progress_clear(t->progress);
    if (terminal_attended() && !terminal_shared())
        progress_wait(t->progress, "writing");
    if (terminal_attended() || terminal_shared())
        progress_silence(t->progress, true);
}

static void keep(text_writer *t, const char *bytes, size_t n)
{
    if (!t->keeps || t->error)
        return;
    if (n >= t->capacity - t->n_kept) {
        size_t capacity = 2 * (t->n_kept + n) + 256;
        char *larger = realloc(t->kept, capacity);
        if (!larger) {
            t->error = ENOMEM;
            return;
        }
        t->kept = larger;
        t->capacity = capacity;
    }
    memcpy(t->kept + t->n_kept, bytes, n);
    t->n_kept += n;
    t->kept[t->n_kept] = 0;
}

static void write_now(void *user, const char *bytes, size_t n)
{
    text_writer *t = user;
    if (!t->error)
        t->error = text_writer_write(bytes, n);
}

/* False ends the text. */
static bool put(text_writer *t, const char *bytes, size_t n)
{
    if (n == 0 || t->error)
        return !t->error;
    end_progress(t);
    if (t->is_terminal)
        terminal_write_clean(bytes, n, &t->last_shown, write_now, t);
    else
        write_now(t, bytes, n);
    t->last_byte = bytes[n - 1];
    return !t->error;
}

drey_status text_writer_refuse(int error, drey_error *err)
{
    if (error == EPIPE)
        return error_set(err, DREY_ERR_IO, "%s", "");
    FAIL(err, DREY_ERR_IO, "cannot write to standard output: %s", strerror(error));
}

static bool on_text(void *user, const char *bytes, size_t n_bytes)
{
    text_writer *t = user;
    keep(t, bytes, n_bytes);
    return put(t, bytes, n_bytes);
}

static void on_event(void *user, const drey_event *event)
{
    text_writer *t = user;
    int32_t columns = 0, rows = 0;
    if (event->kind != DREY_EVENT_VERIFIED && !t->shows_drafts)
        return;
    end_progress(t);
    if (event->kind == DREY_EVENT_VERIFIED)
        t->last_byte = event->bytes[event->n_bytes - 1];
    terminal_size(&columns, &rows);
    live_text_size(&t->live, columns, rows);
    live_text_event(&t->live, event);
}

/* Returns whether to continue. The text was written by on_event. */
static bool take_text(void *user, const char *bytes, size_t n_bytes)
{
    keep(user, bytes, n_bytes);
    return !((text_writer *)user)->error;
}

static bool on_id(void *user, int32_t id)
{
    char line[16];
    int n = snprintf(line, sizeof line, "%d\n", id);
    return put(user, line, (size_t)n);
}

void text_writer_begin(text_writer *t, progress *bar, drey_generate_options *options,
                       text_look look)
{
    const text_styles before = t->live.line;
    t->progress = bar;
    t->shows_drafts = look.drafts;
    t->is_live = (look.drafts || look.wraps) && terminal_shows_drafts();
    t->is_terminal = /* a person's; that of a rank is mpirun's */
        isatty(STDOUT_FILENO) == 1 && terminal_ranks() < 2;
    t->error = t->last_byte = t->last_shown = 0;
    t->begun = false;
    t->n_kept = 0;
    options->user = t;
    options->on_text = on_text;
    if (!t->is_live)
        return;
    live_text_init(&t->live, write_now, t, look.wraps);
    t->live.styled = look.styled;
    if (look.resumes)
        t->live.line = before;
    t->live.as_it_is = !t->is_terminal;
    options->on_event = on_event;
    options->on_text = take_text;
}

void text_writer_begin_ids(text_writer *t, progress *bar, drey_generate_options *options)
{
    t->progress = bar;
    t->begun = false;
    options->user = t;
    options->on_token = on_id;
}

void text_writer_end(text_writer *t)
{
    if (t->is_live)
        live_text_end(&t->live);
    progress_clear(t->progress);
}

void text_writer_free(text_writer *t)
{
    free(t->kept);
    *t = (text_writer){0};
}
