/* Editing lines with libedit: see line_editor.h. It is loaded when a terminal asks for it, so that
 * no other command needs it. */
#include "cli/typing/line_editor.h"

#include "cli/typing/complete.h"
#include "cli/typing/libedit.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

enum { HISTORY_ENTRIES = 1000 };

struct line_editor {
    editing use;
    EditLine *edit;
    History *history;
    const char *prompt;
    const char *const *commands;
    size_t most;                 /* characters of a line */
    bool pasting;                /* take_paste looks at the room itself */
    bool full;                   /* something had no room */
    char history_path[PATH_MAX]; /* "": none */
};

/* libedit's callbacks get its own handle alone, and there is one terminal. */
static line_editor *at_terminal;

static char *show_prompt(EditLine *edit)
{
    (void)edit;
    return (char *)(uintptr_t)at_terminal->prompt;
}

/* Returns whether the line has memory for n more characters. */
static bool has_room(line_editor *l, size_t n)
{
    const LineInfoW *line = l->use.wline(l->edit);
    bool room = (size_t)(line->lastchar - line->buffer) + n <= l->most;
    l->full = l->full || !room;
    return room;
}

/* The next character. A signal that comes just before it would be read also ends the wait;
 * libedit's own reading sleeps through that one. */
static int read_character(EditLine *edit, wchar_t *c)
{
    mbstate_t state = {0};
    char byte;
    (void)edit;
    for (;;) {
        if (!signals_wait_readable(STDIN_FILENO)) {
            errno = EINTR;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0)
            return (int)n;
        size_t used = mbrtowc(c, &byte, 1, &state);
        if (used == (size_t)-1)
            state = (mbstate_t){0}; /* no character: passed over */
        else if (used != (size_t)-2 &&
                 (iswcntrl((wint_t)*c) || at_terminal->pasting || has_room(at_terminal, 1)))
            return 1;
    }
}

/* A terminal puts what is pasted between ESC[200~ and ESC[201~: its newlines are text as well. */
static unsigned char paste(EditLine *edit)
{
    static const wchar_t end[] = L"\033[201~";
    enum { END = 6 };
    wchar_t text[1024 + END];
    size_t n = 0;
    line_editor *l = at_terminal;
    while (l->use.wgetc(edit, &text[n]) == 1) {
        text[n] = text[n] == L'\r' ? L'\n' : text[n];
        n++;
        bool ended = n >= END && wmemcmp(text + n - END, end, END) == 0;
        if (!ended && n < 1024)
            continue;
        /* The end may have begun: its bytes stay for the next round. */
        size_t whole = ended ? n - END : n - (END - 1);
        wchar_t next = text[whole];
        text[whole] = 0;
        if (whole > 0 && has_room(l, whole) && l->use.winsertstr(edit, text) != 0)
            return CC_ERROR;
        text[whole] = next;
        if (ended)
            return CC_REFRESH;
        wmemmove(text, text + whole, n - whole);
        n -= whole;
    }
    return CC_EOF;
}

static unsigned char take_paste(EditLine *edit, int key)
{
    (void)key;
    at_terminal->pasting = true;
    unsigned char how = paste(edit);
    at_terminal->pasting = false;
    return how;
}

/* Tab: what is certain is added; where there are several, they are shown. */
static unsigned char complete(EditLine *edit, int key)
{
    (void)key;
    line_editor *l = at_terminal;
    const LineInfoW *line = l->use.wline(edit);
    char begun[1024];
    wchar_t added[512];
    size_t n = 0;
    mbstate_t state = {0};
    for (const wchar_t *c = line->buffer; c < line->cursor; c++) {
        size_t used = n + MB_CUR_MAX < sizeof begun ? wcrtomb(begun + n, *c, &state) : (size_t)-1;
        if (used == (size_t)-1)
            return CC_ERROR;
        n += used;
    }
    begun[n] = 0;
    completion found;
    complete_line(begun, l->commands, &found);
    size_t wide = mbstowcs(added, found.added, sizeof added / sizeof *added - 1);
    if (wide != (size_t)-1 && wide > 0) {
        added[wide] = 0;
        return has_room(l, wide) && l->use.winsertstr(edit, added) == 0 ? CC_REFRESH : CC_ERROR;
    }
    if (!found.choices[0])
        return CC_ERROR;
    fputc('\n', stderr);
    print_clean(stderr, found.choices);
    fputc('\n', stderr);
    return CC_REDISPLAY;
}

/* ---- History ---- */

static bool history_file(char *out, size_t capacity)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && state[0] == '/')
        n = snprintf(out, capacity, "%s/drey/history", state);
    else if (home && home[0] == '/')
        n = snprintf(out, capacity, "%s/.local/state/drey/history", home);
    bool named = n > 0 && (size_t)n < capacity;
    if (!named)
        out[0] = 0;
    for (char *slash = named ? strchr(out + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(out, 0700); /* what is not there is seen when the file is written */
        *slash = '/';
    }
    return named;
}

static void open_history(line_editor *l)
{
    HistEvent event;
    l->history = l->use.history_init();
    if (!l->history)
        return;
    l->use.history(l->history, &event, H_SETSIZE, HISTORY_ENTRIES);
    l->use.history(l->history, &event, H_SETUNIQUE, 1);
    if (history_file(l->history_path, sizeof l->history_path))
        l->use.history(l->history, &event, H_LOAD, l->history_path);
    l->use.set(l->edit, EL_HIST, l->use.history, l->history);
}

void line_editor_remember(line_editor *l, const char *entry)
{
    HistEvent event;
    if (!l->history || !*entry)
        return;
    l->use.history(l->history, &event, H_ENTER, entry);
    mode_t before = umask(077);
    if (l->history_path[0])
        l->use.history(l->history, &event, H_SAVE, l->history_path);
    umask(before);
}

/* ---- The editor ---- */

/* The library stays: what it and the terminal's library keep for a next time hangs on their own
 * variables. */
void line_editor_close(line_editor *l)
{
    if (!l)
        return;
    if (l->history)
        l->use.history_end(l->history);
    if (l->edit)
        l->use.end(l->edit);
    at_terminal = NULL;
    free(l);
}

line_editor *line_editor_open(size_t most, const char *const *commands)
{
    /* Where the locale is unknown ASCII remains. */
    if (!setlocale(LC_CTYPE, ""))
        setlocale(LC_CTYPE, "C");
    line_editor *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    if (libedit_find(&l->use))
        l->edit = l->use.init("drey", stdin, stderr, stderr);
    if (!l->edit) {
        line_editor_close(l);
        complain("libedit.so.2 is not there, so lines cannot be edited (Debian: libedit2)");
        return NULL;
    }
    at_terminal = l;
    l->prompt = "";
    l->most = most;
    l->commands = commands;
    l->use.set(l->edit, EL_PROMPT, show_prompt);
    l->use.set(l->edit, EL_EDITOR, "emacs");
    l->use.set(l->edit, EL_SIGNAL, 0);
    l->use.set(l->edit, EL_GETCFN, read_character);
    l->use.set(l->edit, EL_ADDFN, "drey-paste", "Inserts what is pasted", take_paste);
    l->use.set(l->edit, EL_BIND, "\\e[200~", "drey-paste", NULL);
    l->use.set(l->edit, EL_ADDFN, "drey-complete", "Completes a command or a file's name",
               complete);
    l->use.set(l->edit, EL_BIND, "\t", "drey-complete", NULL);
    l->use.source(l->edit, NULL);
    open_history(l);
    return l;
}

bool line_editor_is_full(const line_editor *l)
{
    return l->full;
}

/* Asks the terminal to mark pasted text, or not to. */
static void announce_pastes(bool apart)
{
    fputs(apart ? "\033[?2004h" : "\033[?2004l", stderr);
}

const char *line_editor_read(line_editor *l, const char *prompt, int *n)
{
    *n = 0;
    l->prompt = prompt;
    l->full = false;
    announce_pastes(true);
    const char *line = l->use.gets(l->edit, n);
    int why = errno;
    announce_pastes(false);
    errno = why;
    return line;
}
