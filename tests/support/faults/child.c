/* Forked checks. */
#include "support/faults/child.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int child_run(int (*check)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        int verdict = check(arg);
        fflush(NULL);
        _exit(verdict);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}
