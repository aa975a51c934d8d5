/* Processes of models: see children.h. A process reports one struct report through its pipe. */
#include "serve/front/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/jobs.h"

typedef struct report {
    bool good;
    child_needs needs; /* of a measuring process */
    char why[CHILD_WHY_BYTES];
} report;

static bool is_live(const child *c)
{
    return c->pid > 0;
}

static bool fails(child *c, const char *what)
{
    snprintf(c->why, sizeof c->why, "%s: %s", what, strerror(errno));
    return false;
}

/* In the parent true, with the child's pipe to read; in the child *in_child, with a pipe to
 * write. */
static bool split(child *c, int *to_parent, bool *in_child)
{
    int ends[2];
    *in_child = false;
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
        *in_child = true;
        *to_parent = ends[1];
        return true;
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    c->pipe = ends[0];
    c->pid = pid;
    c->stopped = false;
    c->life.frozen_s = c->life.broken_s = 0;
    c->life.killed = c->life.by_signal = false;
    c->why[0] = '\0';
    return true;
}

static void send_report(int to_parent, const report *r)
{
    ssize_t sent = write(to_parent, r, sizeof *r); /* smaller than a pipe's atomic write */
    (void)sent;                                    /* a parent that does not listen has ended */
}

bool child_measure(child *c, const child_work *work)
{
    int to_parent;
    bool in_child;
    if (!split(c, &to_parent, &in_child))
        return false;
    if (in_child) {
        report r = {.good = false};
        drey_error err = {0};
        r.good = work->measure(work->user, c->path, c->socket, &r.needs, &err) == DREY_OK;
        snprintf(r.why, sizeof r.why, "%s", err.message);
        send_report(to_parent, &r);
        _exit(0);
    }
    c->state = CHILD_MEASURING;
    return true;
}

bool child_start(child *c, const child_work *work, uint64_t memory_bytes)
{
    int to_parent;
    bool in_child;
    if (!split(c, &to_parent, &in_child))
        return false;
    if (in_child) {
        report r = {.good = false};
        drey_error err = {0};
        int code = work->serve(work->user, c, memory_bytes, to_parent, &err);
        snprintf(r.why, sizeof r.why, "%s", err.message);
        send_report(to_parent, &r);
        _exit(code);
    }
    c->given_bytes = memory_bytes;
    c->state = CHILD_STARTING;
    return true;
}

static void close_pipe(child *c)
{
    if (c->pipe < 0)
        return;
    /* Closing is not enough: another process that has just been forked still holds it. */
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->pipe, NULL);
    close(c->pipe);
    c->pipe = -1;
}

static void take_needs(child *c, const report *r)
{
    if (r->good) {
        c->needs = r->needs;
        c->measured = true;
    } else {
        snprintf(c->why, sizeof c->why, "%.*s", CHILD_WHY_BYTES - 1, r->why);
    }
}

void child_hear(child *c)
{
    report r;
    char line[256];
    ssize_t n;
    if (c->state == CHILD_MEASURING) {
        n = read(c->pipe, &r, sizeof r);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n == (ssize_t)sizeof r)
            take_needs(c, &r);
        else
            snprintf(c->why, sizeof c->why, "the process that looked at it ended early");
        close_pipe(c);
        return;
    }
    if (c->state == CHILD_STARTING) {
        n = read(c->pipe, &r, sizeof r);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n == (ssize_t)sizeof r) /* it says why it ends */
            snprintf(c->why, sizeof c->why, "%.*s", CHILD_WHY_BYTES - 1, r.why);
        else if (n > 0)
            c->state = CHILD_READY;
        else
            snprintf(c->why, sizeof c->why, "its process ended early");
        if (c->state != CHILD_READY)
            close_pipe(c);
        return;
    }
    do
        n = read(c->pipe, line, sizeof line);
    while (n > 0);
    if (n == 0)
        close_pipe(c); /* it ends */
}

void child_stop(child *c)
{
    if (!is_live(c) || c->stopped)
        return;
    kill(c->pid, SIGTERM);
    c->stopped = true;
    c->life.stop_s = serve_clock_s();
    c->state = CHILD_STOPPING;
}

void child_kill(child *c)
{
    if (is_live(c))
        kill(c->pid, SIGKILL);
    c->life.killed = true;
}

bool child_is_frozen(const child *c)
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

bool child_ended(child *c)
{
    int status;
    if (!is_live(c) || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    if (c->pipe >= 0)
        child_hear(c); /* what it said last */
    close_pipe(c);
    c->life.by_signal = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool worked = c->state == CHILD_READY, failed = worked || c->state == CHILD_STARTING;
    if (failed && !c->why[0] && !c->stopped)
        snprintf(c->why, sizeof c->why, "its process ended: %s",
                 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see the server's messages");
    if (c->why[0] && !worked) {
        c->n_failures++;
        c->measured = false; /* its file may be another one by now */
    }
    c->state = CHILD_NONE;
    c->pid = 0;
    c->given_bytes = 0;
    return true;
}
