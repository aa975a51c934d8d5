/* Starting other programs: see program.h. */
#include "cli/pull/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pairs of ends: [0] is read, [1] written. */
typedef struct pipes {
    int in[2], out[2], said[2], report[2]; /* report: why the program cannot be started */
} pipes;

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void close_pipes(pipes *p)
{
    int *const all[] = {p->in, p->out, p->said, p->report};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        close_end(&all[i][0]);
        close_end(&all[i][1]);
    }
}

/* Returns 0 or an errno. The command's own ends of what it reads do not wait. */
static int open_pipes(pipes *p, bool with_input)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if ((with_input && pipe2(p->in, O_CLOEXEC) != 0) || pipe2(p->out, O_CLOEXEC) != 0 ||
        pipe2(p->said, O_CLOEXEC) != 0 || pipe2(p->report, O_CLOEXEC) != 0 ||
        fcntl(p->out[0], F_SETFL, O_NONBLOCK) != 0 || fcntl(p->said[0], F_SETFL, O_NONBLOCK) != 0)
        return errno;
    return 0;
}

/* Runs the program in the child. Files with the numbers of standard ones are moved away first. */
static void become(char *const *words, pid_t parent, int in, int out, int said, int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* which has ended already */
        _exit(1);
    signal(SIGPIPE, SIG_DFL); /* the command ignores both */
    signal(SIGXFSZ, SIG_DFL);
    const int from[] = {in, out, said};
    int high[3];
    report = fcntl(report, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        dup2(high[i], i);
    execvp(words[0], words);
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? 127 : 126);
}

/* Returns 0 or an errno; c->pid. */
static int start(program *c, char *const *words, int in, pipes *p)
{
    int reason = 0;
    ssize_t n;
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid < 0)
        return errno;
    if (c->pid == 0)
        become(words, parent, in, p->out[1], p->said[1], p->report[1]);
    close_end(&p->report[1]);
    do
        n = read(p->report[0], &reason, sizeof reason);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        program_end(c);
    return n > 0 ? reason : 0;
}

drey_status program_start(program *c, char *const *words, int file, drey_error *err)
{
    pipes p;
    *c = (program){.pid = -1, .input = -1, .out = -1, .said = -1};
    int failed = open_pipes(&p, file < 0);
    if (!failed)
        failed = start(c, words, file < 0 ? p.in[0] : file, &p);
    if (!failed) {
        c->input = p.in[1];
        c->out = p.out[0];
        c->said = p.said[0];
        p.in[1] = p.out[0] = p.said[0] = -1;
    }
    close_pipes(&p);
    if (failed == ENOENT)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s is not installed; install it and try again", words[0]);
    if (failed)
        FAIL(err, DREY_ERR_IO, "%s cannot be started: %s", words[0], strerror(failed));
    return DREY_OK;
}

bool program_wait(const program *c, bool *has_out)
{
    *has_out = false;
    if (c->out < 0 && c->said < 0)
        return false;
    struct pollfd wanted[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->said, .events = POLLIN}};
    *has_out = poll(wanted, 2, 100) > 0 && wanted[0].revents;
    return true;
}

size_t program_read(int *from, void *out, size_t most)
{
    if (*from < 0)
        return 0;
    ssize_t n = read(*from, out, most);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        close_end(from);
    return n > 0 ? (size_t)n : 0;
}

int program_end(program *c)
{
    int status = 0;
    close_end(&c->input);
    close_end(&c->out);
    close_end(&c->said);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *c = (program){.pid = -1, .input = -1, .out = -1, .said = -1};
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void program_stop(program *c)
{
    kill(c->pid, SIGTERM);
    program_end(c);
}
