/* Programs that the command starts: curl, which knows proxies and certificates, and sha256sum. */
#pragma once

#include "common/error.h"

#include <sys/types.h>

typedef struct program {
    pid_t pid;
    int out;   /* what it writes, standard error included; -1: closed */
    int input; /* what it reads, to write to; -1: none */
} program;

/* Starts words[0], found in PATH, with words[1..] and a NULL at the end. file: its standard input;
 * -1: a pipe, program.input. DREY_ERR_UNSUPPORTED: it is not installed. */
drey_status program_start(program *c, char *const *words, int file, drey_error *err);
/* What it has written, as far as `most` bytes, NUL-terminated; waits for some of it for 0.1 s.
 * False: it has closed its output. */
bool program_read(program *c, char *out, size_t most, size_t *n);
/* Waits for its end. Returns its exit code; 128 and its signal's number if one ended it. */
int program_end(program *c);
/* Ends it. */
void program_stop(program *c);
