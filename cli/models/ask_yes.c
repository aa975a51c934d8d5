/* Questions that are answered with yes or no: see ask_yes.h. */
#include "cli/models/ask_yes.h"

#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool ask_yes(const char *question, bool usual)
{
    char line[32] = "";
    size_t n = 0;
    bool ended = false;
    fflush(stdout);
    print_clean(stderr, question);
    fputs(usual ? " [Y/n] " : " [y/N] ", stderr);
    fflush(stderr);
    while (!ended) {
        char c;
        if (!signals_wait_readable(STDIN_FILENO) || read(STDIN_FILENO, &c, 1) != 1) {
            putc('\n', stderr);
            return false;
        }
        ended = c == '\n';
        if (!ended && n < sizeof line - 1)
            line[n++] = c;
    }
    line[n] = '\0';
    line[strcspn(line, " \t\r")] = '\0';
    return *line ? strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0 : usual;
}
