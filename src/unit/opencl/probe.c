#include "unit/opencl/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"

/* Report of the child at its end. A child that reports nothing has crashed, so that its exit status
 * is not needed. */
typedef struct verdict {
    drey_status status;
    drey_error error;
} verdict;

static void child_run(drey_status (*attempt)(void *, drey_error *), void *user, int out)
{
    /* A crash is expected: no core file, no output of the driver on the terminal. */
    const struct rlimit none = {0, 0}, busy = {PROBE_BUSY_S, PROBE_BUSY_S + 1};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &busy);
    for (int signal_ = 1; signal_ < NSIG; signal_++)
        signal(signal_, SIG_DFL);
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) {
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    verdict v = {0};
    v.status = attempt(user, &v.error);
    ssize_t written = write(out, &v, sizeof v); /* less than PIPE_BUF: written as a whole or not at
                                                   all */
    _exit(written == (ssize_t)sizeof v ? 0 : 1);
}

/* The processor time that the child has used; -1 once it is gone. */
static int64_t child_ns(pid_t child)
{
    clockid_t its_clock;
    struct timespec t;
    if (clock_getcpuclockid(child, &its_clock) != 0 || clock_gettime(its_clock, &t) != 0)
        return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns whether the child has a thread that waits for a processor or a disk, on a busy machine
 * for a long time. */
static bool child_wants(pid_t child)
{
    char path[64];
    bool wants = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && !wants && (task = readdir(tasks));) {
        char name[512], line[512] = "";
        snprintf(name, sizeof name, "%s/%s/stat", path, task->d_name);
        FILE *f = fopen(name, "re");
        if (!f)
            continue;
        const char *state = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
        wants = state && (strncmp(state, ") R", 3) == 0 || strncmp(state, ") D", 3) == 0);
        fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return wants;
}

/* Returns whether the child's result came; *late: it made no progress before. */
static bool verdict_read(int in, pid_t child, int32_t idle_s, verdict *v, bool *late)
{
    int64_t used = -1, seen = clock_ns();
    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        int ready = poll(&p, 1, 100);
        if (ready > 0)
            return read(in, v, sizeof *v) == (ssize_t)sizeof *v;
        int64_t now_used = child_ns(child), now = clock_ns();
        if (now_used != used || child_wants(child))
            seen = now;
        used = now_used;
        *late = now - seen > (int64_t)idle_s * 1000000000;
        if (*late)
            return false;
    }
}

drey_status probe_in_child(drey_status (*attempt)(void *user, drey_error *err), void *user,
                           const char *what, int32_t idle_s, drey_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        FAIL(err, DREY_ERR_IO, "%s cannot be tried: %s", what, strerror(errno));
    pid_t child = fork();
    if (child == 0)
        child_run(attempt, user, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        FAIL(err, DREY_ERR_MEMORY, "%s cannot be tried in its own process: %s", what,
             strerror(errno));
    }
    verdict v = {0};
    bool late = false, spoken = verdict_read(ends[0], child, idle_s, &v, &late);
    close(ends[0]);
    if (!spoken)
        kill(child, SIGKILL);
    int status = 0;
    pid_t ended;
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    const int fatal = !spoken && ended == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (late || fatal == SIGXCPU)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s hangs when it is opened", what);
    if (fatal != 0 && fatal != SIGKILL)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s crashes when it is opened (%s)", what,
             strsignal(fatal));
    if (!spoken)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s ends the process that opens it", what);
    if (err && v.status != DREY_OK)
        *err = v.error;
    return v.status;
}
