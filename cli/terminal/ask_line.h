/* What a person types, entry by entry: with libedit on a terminal (history, cursor keys, pasted text
 * as one entry), line by line from a pipe. A line that ends in a backslash goes on in the next. */
#ifndef DREY_CLI_ASK_LINE_H
#define DREY_CLI_ASK_LINE_H

#include "cli/terminal/line_editor.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct asker {
    bool terminal; /* a person: there are prompts */
    line_editor *editor;
    char *entry; /* [n]: the last one, NUL behind it */
    size_t n, capacity;
} asker;

typedef enum asked { ASKED_ENTRY, ASKED_END, ASKED_INTERRUPTED } asked;

void asker_init(asker *a);
/* The next entry in a->entry. Interrupted: by a signal, see signals.h. */
asked asker_ask(asker *a);
void asker_free(asker *a);

#endif
