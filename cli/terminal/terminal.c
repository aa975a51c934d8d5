/* Messages and colours: see terminal.h. Apart from the locale, NO_COLOR (https://no-color.org) and
 * TERM are the environment variables that are looked at. */
#include "cli/terminal/terminal.h"

#include "cli/terminal/hints.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/signals.h"
#include "common/utf8.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

void print_clean(FILE *out, const char *text)
{
    bool plain;
    for (size_t n = strlen(text), length; n > 0; text += length, n -= length) {
        length = utf8_look(text, n, &plain);
        if (plain)
            fwrite(text, 1, length, out);
        else
            putc('?', out);
    }
}

static void clean(char *text, size_t n, char *last)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bool plain = c >= 0x20 || c == '\n' || c == '\t' || c == '\r';
        bool late = *last == '\xC2' && c >= 0x80 && c < 0xA0; /* of U+0080 to U+009F */
        *last = text[i];
        if (!plain || c == 0x7F || late)
            text[i] = '?';
    }
}

void terminal_write_clean(const char *text, size_t n, char *last, terminal_sink *to, void *user)
{
    char piece[256];
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < sizeof piece ? n - at : sizeof piece;
        memcpy(piece, text + at, some);
        clean(piece, some, last);
        to(user, piece, some);
    }
}

static struct {
    void (*fn)(void *user, const char *message);
    void *user;
} hears;

void terminal_complain_to(void (*fn)(void *user, const char *message), void *user)
{
    hears.fn = fn;
    hears.user = user;
}

/* kind: a word before the message, which a terminal shows in the style; before: what is ahead of
 * that. */
static void say(const char *before, const char *kind, terminal_style style, const char *format,
                va_list arguments)
{
    char message[1400];
    vsnprintf(message, sizeof message, format, arguments);
    if (hears.fn) {
        hears.fn(hears.user, message);
        return;
    }
    fflush(stdout); /* the text first, where both go to one terminal */
    progress_hide();
    FILE *page = page_of(stderr);
    fprintf(page, "%s%s%s: %s", before, terminal_style_text(style), kind,
            terminal_style_text(STYLE_PLAIN));
    print_clean(page, message);
    putc('\n', page);
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("drey: ", "warning", STYLE_WARN, format, arguments);
    va_end(arguments);
}

void complain_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("drey: ", "error", STYLE_ERROR, format, arguments);
    va_end(arguments);
}

void suggest(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", "hint", STYLE_STRONG, format, arguments);
    va_end(arguments);
}

static cli_command running; /* the command, whose options are named, */
static const char *about;   /* its model, */
static const char *draft;   /* and its draft */

void terminal_begin(cli_command command, const char *model, const char *with)
{
    running = command;
    about = model;
    draft = with;
}

const char *terminal_model(void)
{
    static char word[HINT_WORD_BYTES];
    return about && *hint_quote(about, word) ? word : "MODEL";
}

const char *terminal_draft(void)
{
    static char word[HINT_WORD_BYTES];
    return draft ? hint_quote(draft, word) : "";
}

const char *terminal_hint(drey_hint hint)
{
    static char words[HINT_BYTES];
    return hint_words(hint, running, about, words);
}

void complain_error(const drey_error *err)
{
    if (err->message[0]) /* else there is nothing to say */
        complain_wrong("%s%s", err->message, terminal_hint(err->hint));
}

/* Open MPI, and what MPICH and Slurm have in common. */
long terminal_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    for (int i = 0; names[i]; i++) {
        const char *n = getenv(names[i]);
        if (n)
            return strtol(n, NULL, 10);
    }
    return 1;
}

bool terminal_attended(void)
{
    return isatty(STDERR_FILENO) == 1;
}

bool terminal_shared(void)
{
    struct stat out, err;
    if (isatty(STDOUT_FILENO) == 1)
        return terminal_attended();
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

bool terminal_pipe_is_broken(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* The terminal that a file is, if it is one, may have colours. */
static bool is_coloured(int file)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
    return isatty(file) == 1 && !dumb && !(no_color && *no_color);
}

static const char *sequence(terminal_style style)
{
    static const char *const sequences[] = {"\033[0m", "\033[1m", "\033[32m", "\033[33m",
                                            "\033[1;31m"};
    return sequences[style];
}

const char *terminal_style_text(terminal_style style)
{
    return is_coloured(STDERR_FILENO) ? sequence(style) : "";
}

const char *terminal_output_style(terminal_style style)
{
    return is_coloured(STDOUT_FILENO) ? sequence(style) : "";
}

static bool locale_is_utf8;

static void look_at_locale(void)
{
    locale_t users = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    locale_is_utf8 = users && strcmp(nl_langinfo_l(CODESET, users), "UTF-8") == 0;
    if (users)
        freelocale(users);
}

bool terminal_utf8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_at_locale);
    return locale_is_utf8;
}

bool terminal_shows_drafts(void)
{
    return is_coloured(STDOUT_FILENO) && terminal_utf8();
}

void terminal_size(int32_t *columns, int32_t *rows)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    *columns = size.ws_col;
    *rows = size.ws_row;
}

static struct termios usual; /* while typing is hidden */
static volatile sig_atomic_t typing_is_hidden;

void terminal_hide_typing(void)
{
    if (typing_is_hidden || tcgetattr(STDIN_FILENO, &usual) != 0)
        return;
    struct termios silent = usual;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    typing_is_hidden = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &silent);
}

void terminal_show_typing(void)
{
    if (typing_is_hidden)
        tcsetattr(STDIN_FILENO, TCSANOW, &usual);
    typing_is_hidden = 0;
}

int exit_with(drey_status status, const drey_error *err)
{
    progress_end();
    if (status != DREY_OK && status != DREY_ERR_CANCELLED)
        complain_error(err);
    int interrupted = status == DREY_ERR_CANCELLED ? signals_exit_code() : 0;
    if (interrupted)
        return interrupted;
    return status == DREY_OK ? 0 : status == DREY_ERR_USAGE ? 2 : 1;
}
