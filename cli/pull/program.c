/* Starting other programs: see program.h. */
#include "cli/pull/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Signals that the command ignores are not ignored there. */
static int spawn(program *c, char *const *words, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &usual);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    int failed = posix_spawnp(&c->pid, words[0], &files, &how, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return failed;
}

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

drey_status program_start(program *c, char *const *words, int file, drey_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, failed = 0;
    *c = (program){.pid = -1, .out = -1, .input = -1};
    if ((file < 0 && pipe2(in, O_CLOEXEC) != 0) || pipe2(out, O_CLOEXEC) != 0)
        failed = errno;
    if (!failed)
        failed = spawn(c, words, file < 0 ? in[0] : file, out[1]);
    if (failed) {
        close_pipe(in);
        close_pipe(out);
        if (failed == ENOENT)
            FAIL(err, DREY_ERR_UNSUPPORTED, "%s is not installed; install it and try again",
                 words[0]);
        FAIL(err, DREY_ERR_IO, "%s cannot be started: %s", words[0], strerror(failed));
    }
    close(out[1]);
    c->out = out[0];
    if (file < 0) {
        close(in[0]);
        c->input = in[1];
    }
    return DREY_OK;
}

bool program_read(program *c, char *out, size_t most, size_t *n)
{
    struct pollfd wanted = {.fd = c->out, .events = POLLIN};
    if (poll(&wanted, 1, 100) <= 0)
        return true;
    char rest[512];
    bool full = *n + 1 >= most; /* it must not wait for a reader */
    ssize_t got = full ? read(c->out, rest, sizeof rest) : read(c->out, out + *n, most - 1 - *n);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got > 0 && !full) {
        *n += (size_t)got;
        out[*n] = '\0';
    }
    return got > 0;
}

int program_end(program *c)
{
    int status = 0;
    if (c->input >= 0)
        close(c->input);
    if (c->out >= 0)
        close(c->out);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *c = (program){.pid = -1, .out = -1, .input = -1};
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void program_stop(program *c)
{
    kill(c->pid, SIGTERM);
    program_end(c);
}
