/* One line of a terminal, which the user can edit, with those before it at hand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct line_editor line_editor;

/* Takes the terminal's locale. NULL where there is no library for it, which has been said. The
 * history is $XDG_STATE_HOME/drey/history, or ~/.local/state/drey/history, for its owner's eyes;
 * without either folder it lives as long as the process. A line has up to `most` characters: what
 * is typed or pasted beyond that is passed over. commands: what Tab completes, see complete.h;
 * borrowed. */
line_editor *line_editor_open(size_t most, const char *const *commands);
/* The next line, *n bytes with its newline, which the editor keeps. NULL: *n is 0 at the end, below
 * 0 where a signal came (errno EINTR). */
const char *line_editor_read(line_editor *l, const char *prompt, int *n);
/* Something of the line that was read last was passed over. */
bool line_editor_is_full(const line_editor *l);
void line_editor_remember(line_editor *l, const char *entry);
void line_editor_close(line_editor *l); /* NULL: nothing */
