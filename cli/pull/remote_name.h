/* Names of files on a hub, which strangers choose: which of them become names of files here, and
 * how they are written in a URL. */
#pragma once

#include <stdbool.h>

/* Returns why a path on a hub cannot be one here, an end of a sentence; NULL: it can. Its parts are
 * names of files everywhere: not empty, not "..", without control characters, ?, # and \. */
const char *remote_name_fault(const char *path);
/* Returns the text with %XX for each byte that is neither a letter, a digit nor one of `plain`. The
 * caller frees; NULL: out of memory. */
char *remote_name_encode(const char *text, const char *plain);
/* Replaces each %XX by its byte, in place. False: one is a NUL. */
bool remote_name_decode(char *text);
