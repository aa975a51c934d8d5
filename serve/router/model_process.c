/* Processes of models: see model_process.h. A process says everything in struct messages, each
 * of which goes through its pipe in one piece. */
#include "serve/router/model_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/requests.h"

typedef enum message_kind {
    MESSAGE_NEEDS,
    MESSAGE_LISTENS,
    MESSAGE_EVENT,
    MESSAGE_END
} message_kind;

typedef struct message {
    message_kind kind;
    drey_status error; /* status of MESSAGE_END */
    union {
        process_needs needs;
        serve_event event;
        char why[PROCESS_WHY_BYTES]; /* it ends */
    } of;
} message;
_Static_assert(sizeof(message) <= PIPE_BUF, "a message goes in one piece");

static bool is_live(const model_process *c)
{
    return c->pid > 0;
}

enum { NO_PROCESS = -1, IN_PARENT = 0 };

static int fails(model_process *c, const char *what)
{
    snprintf(c->why, sizeof c->why, "%s: %s", what, strerror(errno));
    c->error = DREY_OK;
    return NO_PROCESS;
}

/* Returns IN_PARENT, with the child's pipe to read, or in the child a pipe to write. */
static int split(model_process *c, process_state state)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fails(c, "the system has no more files");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return fails(c, "the system gives no process");
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) /* which has ended already */
            _exit(1);
        close_range(3, (unsigned)ends[1] - 1, 0); /* clients, and other processes' pipes */
        close_range((unsigned)ends[1] + 1, ~0u, 0);
        return ends[1];
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    c->pipe.fd = ends[0];
    c->pid = pid;
    c->stopped = false;
    c->life.frozen_s = c->life.broken_s = 0;
    c->life.killed = c->life.by_signal = false;
    c->why[0] = '\0';
    c->error = DREY_OK;
    c->state = state;
    return IN_PARENT;
}

static void say(int to_parent, const message *m)
{
    ssize_t sent = write(to_parent, m, sizeof *m);
    (void)sent; /* a parent that does not listen has ended */
}

static void say_why(int to_parent, const drey_error *err)
{
    message m = {.kind = MESSAGE_END, .error = err->code};
    snprintf(m.of.why, sizeof m.of.why, "%s", err->message);
    say(to_parent, &m);
}

void process_listens(int report)
{
    say(report, &(message){.kind = MESSAGE_LISTENS});
    fcntl(report, F_SETFL, O_NONBLOCK); /* texts do not wait for what is said of them */
}

void process_report(int report, const serve_event *event)
{
    say(report, &(message){.kind = MESSAGE_EVENT, .of.event = *event});
}

bool process_measure(model_process *c, const process_work *work)
{
    int to_parent = split(c, PROCESS_MEASURING);
    if (to_parent > 0) {
        message m = {.kind = MESSAGE_NEEDS};
        drey_error err = {0};
        if (work->measure(work->user, c->path, c->socket, &m.of.needs, &err) == DREY_OK)
            say(to_parent, &m);
        else
            say_why(to_parent, &err);
        _exit(0);
    }
    return to_parent == IN_PARENT;
}

bool process_start(model_process *c, const process_work *work, uint64_t memory_bytes)
{
    int to_parent = split(c, PROCESS_STARTING);
    if (to_parent > 0) {
        drey_error err = {0};
        int code = work->serve(work->user, c, memory_bytes, to_parent, &err);
        say_why(to_parent, &err);
        _exit(code);
    }
    if (to_parent == IN_PARENT)
        c->given_bytes = memory_bytes;
    return to_parent == IN_PARENT;
}

/* Its pipe is done with: it said what there was to say, or ended before that. */
static void take_end(model_process *c, drey_status error, const char *why)
{
    if (c->state == PROCESS_MEASURING || c->state == PROCESS_STARTING) {
        snprintf(c->why, sizeof c->why, "%s", why);
        c->error = error;
    }
    event_loop_drop(c->loop, &c->pipe);
}

/* A process that is broken may have sent any bytes: its texts end. */
static void end_texts(message *m)
{
    serve_event *e = &m->of.event;
    serve_request *r = &e->of.request;
    if (m->kind != MESSAGE_EVENT) {
        m->of.why[PROCESS_WHY_BYTES - 1] = '\0';
        return;
    }
    e->model[SERVE_MODEL_BYTES - 1] = '\0';
    if (e->kind == SERVE_NOTE || e->kind == SERVE_WARNING)
        e->of.note[SERVE_NOTE_BYTES - 1] = '\0';
    if (e->kind == SERVE_REQUEST)
        r->method[sizeof r->method - 1] = r->path[sizeof r->path - 1] = '\0';
}

/* True: there may be more messages. */
static bool take(model_process *c, const message *m)
{
    switch (m->kind) {
    case MESSAGE_NEEDS:
        c->needs = m->of.needs;
        c->measured = true;
        event_loop_drop(c->loop, &c->pipe);
        return false;
    case MESSAGE_LISTENS:
        if (c->state == PROCESS_STARTING)
            c->state = PROCESS_READY;
        return true;
    case MESSAGE_EVENT:
        if (c->on_event)
            c->on_event(c->user, c, &m->of.event);
        return true;
    default:
        take_end(c, m->error, m->of.why);
        return false;
    }
}

/* Not more than a pipe holds: one that always has something does not keep others waiting. */
void process_read_messages(model_process *c)
{
    enum { MOST_HEARD = 64 };
    message m;
    for (int i = 0; i < MOST_HEARD; i++) {
        ssize_t n = read(c->pipe.fd, &m, sizeof m);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n != (ssize_t)sizeof m) {
            take_end(c, DREY_OK,
                     c->state == PROCESS_MEASURING ? "the process that looked at it ended early"
                                                   : "its process ended early");
            return;
        }
        end_texts(&m);
        if (!take(c, &m))
            return;
    }
}

void process_stop(model_process *c)
{
    if (!is_live(c) || c->stopped)
        return;
    kill(c->pid, SIGTERM);
    c->stopped = true;
    c->life.stop_s = serve_clock_s();
    c->state = PROCESS_STOPPING;
}

void process_kill(model_process *c)
{
    if (is_live(c))
        kill(c->pid, SIGKILL);
    c->life.killed = true;
}

bool process_is_frozen(const model_process *c)
{
    char path[40], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)c->pid);
    FILE *f = is_live(c) ? fopen(path, "re") : NULL;
    size_t n = f ? fread(stat, 1, sizeof stat - 1, f) : 0;
    if (f)
        fclose(f);
    stat[n] = '\0';
    const char *after = strrchr(stat, ')'); /* the state follows the program's name */
    return after && (after[2] == 'T' || after[2] == 't');
}

bool process_ended(model_process *c)
{
    int status;
    if (!is_live(c) || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    if (c->pipe.fd >= 0)
        process_read_messages(c); /* what it said last */
    event_loop_drop(c->loop, &c->pipe);
    c->life.by_signal = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool worked = c->state == PROCESS_READY, failed = worked || c->state == PROCESS_STARTING;
    if (failed && !c->why[0] && !c->stopped)
        snprintf(c->why, sizeof c->why, "its process ended: %s",
                 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see the server's messages");
    if (c->why[0] && !worked) {
        c->n_failures++;
        c->measured = false; /* its file may be another one by now */
    }
    c->state = PROCESS_NONE;
    c->pid = 0;
    c->given_bytes = 0;
    return true;
}
