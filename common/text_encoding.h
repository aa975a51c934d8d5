/* Texts as editors and shells on Windows write them: with a byte order mark in front, or in UTF-16.
 * Everything else of drey reads UTF-8. */
#pragma once

#include <stddef.h>

/* Makes (*text)[0..*n), which is malloc's and has a NUL after it, UTF-8 without a mark. Texts
 * without a mark stay as they are, whatever their bytes. Returns NULL, or what is wrong, to follow
 * the text's name: "is UTF-16 that ..."; then nothing has changed. */
const char *text_to_utf8(char **text, size_t *n);
