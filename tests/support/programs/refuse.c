/* Runs a command on a system that refuses something, for tests that are scripts:
 *   refuse WHAT... -- COMMAND...
 *     uring         io_uring_setup fails with EPERM, as in most sandboxes
 *     uring-absent  it fails with ENOSYS, as on old kernels
 *     uring-use     the queue is made, but may not be used
 *     direct        files are not opened with O_DIRECT
 * Exit code 77 where such filters cannot be installed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/faults/deny.h"

static bool refuse(const char *what)
{
    if (strcmp(what, "uring") == 0)
        return deny_uring(EPERM, false);
    if (strcmp(what, "uring-absent") == 0)
        return deny_uring(ENOSYS, false);
    if (strcmp(what, "uring-use") == 0)
        return deny_uring(EPERM, true);
    return strcmp(what, "direct") == 0 && deny_direct();
}

int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!refuse(argv[i]))
            return 77;
    if (i + 1 >= argc) {
        fprintf(stderr, "usage: refuse WHAT... -- COMMAND...\n");
        return 2;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 1;
}
