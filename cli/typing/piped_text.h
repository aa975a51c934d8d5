/* A text from a pipe, byte by byte in UTF-8: a byte order mark is dropped, and UTF-16 is decoded,
 * as text_to_utf8 does for whole texts (common/text_encoding.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct piped_text { /* all zero at the beginning */
    /* reason why nothing of the text is read, to follow its name; NULL: it is */
    const char *wrong;
    bool begun, wide, big; /* the first bytes were read; UTF-16; its high byte is the first */
    bool fresh;            /* nothing was read of UTF-16 but the mark */
    char ahead[4];         /* [n_ahead], of which `taken` are done */
    size_t n_ahead, taken;
} piped_text;

/* EOF: the text's end, t->wrong, or errno says what has failed. Half a character of UTF-16 is
 * U+FFFD. */
int piped_text_byte(piped_text *t, FILE *in);
