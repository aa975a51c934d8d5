/* Completion of the command line for shells, made of the tables of commands and options. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* shell: "bash", "zsh" or "fish"; false: it is another. */
bool completion_write(FILE *out, const char *shell);
