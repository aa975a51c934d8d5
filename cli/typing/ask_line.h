/* Reads a person's entries, one by one: with libedit on a terminal (history, cursor keys, pasted
 * text as one entry), line by line from a pipe. A line that ends in a backslash continues in the
 * next; an entry that begins with three quotes ends with three. */
#pragma once

#include "cli/typing/line_editor.h"
#include "cli/typing/piped_text.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct asker {
    bool terminal;    /* a person: there are prompts */
    piped_text piped; /* text from a pipe */
    line_editor *editor;
    char *entry; /* [n]: the last one, NUL after it */
    size_t n, capacity;
    size_t most; /* bytes of an entry */
    const char *refusal;
    bool too_long; /* the entry that is being read */
    bool block;    /* it is between triple quotes, so it is a message in any case */
} asker;

typedef enum asked { ASKED_ENTRY, ASKED_END, ASKED_INTERRUPTED, ASKED_TOO_LONG } asked;

/* A person types: standard input and standard error are a terminal. */
bool asker_at_terminal(void);
/* An entry has up to `most` bytes. refusal: the sentence for a longer one, borrowed until
 * asker_free, as are the commands that Tab completes (complete.h). */
void asker_init(asker *a, size_t most, const char *refusal, const char *const *commands);
/* The next entry in a->entry. Interrupted: by a signal, see signals.h. Too long: the refusal is on
 * standard error, and the whole entry has been read and forgotten. */
asked asker_ask(asker *a);
void asker_free(asker *a);
