/* Completion by Tab: the rest of a command's name, or of a file's. */
#pragma once

#include <stddef.h>

typedef struct completion {
    char added[512];    /* to be put after the line; "" where nothing is certain */
    char choices[2048]; /* then, where there are several: their names, blanks between them */
} completion;

/* line: up to the cursor. commands: NULL-terminated; one that ends in " FILE" takes a file's name.
 */
void complete_line(const char *line, const char *const *commands, completion *out);
