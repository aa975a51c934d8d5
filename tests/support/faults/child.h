/* Checks that give up rights run in a child process. */
#pragma once

/* Forks; the child runs check(arg) and exits with its result. Returns that result, -1 when the
 * child died otherwise (its output is the test's own). */
int child_run(int (*check)(void *arg), void *arg);

/* The verdict of a check that this system does not let happen. */
enum { CANNOT_TRY = 77 };
