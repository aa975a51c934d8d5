/* Programs that the command starts: curl, which knows proxies and certificates, and sha256sum. They
 * end with the command, however it ends. */
#pragma once

#include "common/error.h"

#include <sys/types.h>

typedef struct program {
    pid_t pid;
    int input;     /* its standard input, to write to; -1: none */
    int out, said; /* its standard output and its standard error, to read; -1: ended */
} program;

/* Starts words[0], found in PATH, with words[1..] and a NULL at the end. file: its standard input;
 * -1: a pipe, program.input. DREY_ERR_UNSUPPORTED: it is not installed. */
drey_status program_start(program *c, char *const *words, int file, drey_error *err);
/* Waits up to 0.1 s for something to read. *has_out: its standard output can be read; all that it
 * said before those bytes can be read by now. False: both have ended. */
bool program_wait(const program *c, bool *has_out);
/* Reads up to `most` bytes, more than 0, of c->out or c->said without waiting, and returns how
 * many. At its end that becomes -1. */
size_t program_read(int *from, void *out, size_t most);
/* Waits for its end. Returns its exit code; 128 and its signal's number if one ended it. */
int program_end(program *c);
/* Ends it. */
void program_stop(program *c);
