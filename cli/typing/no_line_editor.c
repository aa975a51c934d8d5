/* Replaces line_editor.c where drey is built without libedit: lines are as the terminal gives
 * them. */
#include "cli/typing/line_editor.h"

line_editor *line_editor_open(size_t most, const char *const *commands)
{
    (void)most;
    (void)commands;
    return NULL;
}

const char *line_editor_read(line_editor *l, const char *prompt, int *n)
{
    (void)l;
    (void)prompt;
    *n = 0;
    return NULL;
}

bool line_editor_is_full(const line_editor *l)
{
    (void)l;
    return false;
}

void line_editor_remember(line_editor *l, const char *entry)
{
    (void)l;
    (void)entry;
}

void line_editor_close(line_editor *l)
{
    (void)l;
}
