/* Drawing what has changed: see live_text.h. */
#include "cli/terminal/live_text.h"

#include "cli/terminal/char_width.h"
#include "cli/terminal/terminal.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DIM   "\033[2m"
#define PLAIN "\033[22m"
#define CLEAR "\033[J" /* from the cursor to the end of the screen */

/* ---- Output ---- */

static void flush(live_text *t)
{
    if (t->n_out > 0)
        t->write(t->user, t->out, t->n_out);
    t->n_out = 0;
}

static void put(live_text *t, const char *bytes, size_t n)
{
    if (n > LIVE_OUT_BYTES - t->n_out)
        flush(t);
    if (n > LIVE_OUT_BYTES) {
        t->write(t->user, bytes, n);
        return;
    }
    memcpy(t->out + t->n_out, bytes, n);
    t->n_out += n;
}

static void put_code(live_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_code(live_text *t, const char *format, ...)
{
    char code[32];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(code, sizeof code, format, arguments);
    va_end(arguments);
    put(t, code, (size_t)n);
}

static void put_cleaned(void *user, const char *bytes, size_t n)
{
    put(user, bytes, n);
}

/* Each stretch of a style between the sequences that begin and end it. cleans: what is in it may
 * not steer the terminal. */
static void put_solid(live_text *t, const char *bytes, const uint8_t *styles, size_t n, bool cleans)
{
    for (size_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && styles[end] == styles[at];)
            end++;
        put_code(t, "%s", text_style_begin[styles[at]]);
        if (cleans)
            terminal_write_clean(bytes + at, end - at, &t->last, put_cleaned, t);
        else
            put(t, bytes + at, end - at);
        put_code(t, "%s", text_style_end[styles[at]]);
    }
}

static void put_dim(live_text *t, const char *bytes, size_t n)
{
    if (n == 0)
        return;
    put_code(t, DIM);
    put(t, bytes, n);
    put_code(t, PLAIN);
}

/* ---- Characters ---- */

typedef struct character {
    size_t n_bytes;
    uint32_t code; /* NO_CODE: none, in bytes that are not UTF-8 */
} character;
static const uint32_t NO_CODE = UINT32_MAX;

static character character_at(const char *bytes, size_t n)
{
    const uint8_t *p = (const uint8_t *)bytes;
    int length = utf8_length(p, n);
    if (length <= 0)
        return (character){1, NO_CODE};
    return (character){(size_t)length, utf8_code_point(p, length)};
}

/* Columns; -1: terminals disagree, or it is no character that is printed. */
static int width_of(uint32_t code)
{
    return code == NO_CODE || char_is_disputed(code) ? -1 : char_width(code);
}

/* ---- Places ---- */

/* Counted from the beginning of the line. column = columns: at the margin, where the next character
 * goes to the next row. */
typedef struct place {
    int32_t row, column;
} place;

/* Moves the cursor past a character; false: it is not known. */
static bool pass_character(const live_text *t, place *p, uint32_t code)
{
    int width = width_of(code);
    if (code == '\n') {
        *p = (place){p->row + 1, 0};
        return true;
    }
    if (code == '\t' && p->column < t->columns) {
        int32_t stop = (p->column / 8 + 1) * 8;
        p->column = stop < t->columns ? stop : t->columns - 1;
        return true;
    }
    if (width < 0 || (width == 0 && p->column == 0) || width > t->columns)
        return false;
    if (p->column + width > t->columns)
        *p = (place){p->row + 1, 0};
    p->column += width;
    return true;
}

/* Goes through bytes[0..n), as far as it is known; returns how far. */
static size_t pass_text(const live_text *t, place *p, const char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n) {
        character c = character_at(bytes + at, n - at);
        if (!pass_character(t, p, c.code))
            break;
        at += c.n_bytes;
    }
    return at;
}

/* After the first n bytes of t->text, whose places are all known. */
static place place_after(const live_text *t, size_t n)
{
    place p = {0, 0};
    pass_text(t, &p, t->text, n);
    return p;
}

static void move(live_text *t, place from, place to)
{
    if (to.row < from.row)
        put_code(t, "\033[%dA", from.row - to.row);
    if (to.row > from.row)
        put_code(t, "\033[%dB", to.row - from.row);
    put_code(t, "\r");
    if (to.column > 0)
        put_code(t, "\033[%dC", to.column);
}

/* Moves the cursor after the first n bytes of t->text. At the margin no cursor can be put: the
 * last character of the row is written once more. */
static void move_after(live_text *t, place from, size_t n)
{
    place to = place_after(t, n);
    if (to.column < t->columns) {
        move(t, from, to);
        return;
    }
    size_t last = 0;
    int width = 0;
    for (size_t at = 0; at < n;) {
        character c = character_at(t->text + at, n - at);
        if (width_of(c.code) > 0) {
            last = at;
            width = width_of(c.code);
        }
        at += c.n_bytes;
    }
    move(t, from, (place){to.row, to.column - width});
    if (last < t->n_line + t->n_solid)
        put_solid(t, t->text + last, t->styles + last, n - last, false);
    else
        put_dim(t, t->text + last, n - last);
}

/* Erases all that follows the first n bytes, where the cursor is; there is something. */
static void clear_after(live_text *t, size_t n)
{
    place here = place_after(t, n);
    if (here.column < t->columns) {
        put_code(t, CLEAR);
        return;
    }
    place below = {here.row + 1, 0};
    move(t, here, below);
    put_code(t, CLEAR);
    move_after(t, below, n);
}

/* ---- Drawing ---- */

/* Bytes of the characters that both begin with. */
static size_t common(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t same = 0;
    while (same < n_a && same < n_b) {
        size_t n = character_at(a + same, n_a - same).n_bytes;
        if (n > n_b - same || memcmp(a + same, b + same, n) != 0)
            break;
        same += n;
    }
    return same;
}

/* Returns how much of bytes[0..n) can be shown from `p` on: rows that can be reached again, and no
 * character that joins the one before it. */
static size_t showable(const live_text *t, place p, const char *bytes, size_t n)
{
    int32_t last_row = p.row + (t->rows > 2 ? t->rows - 2 : 0);
    size_t at = 0;
    while (at < n) {
        character c = character_at(bytes + at, n - at);
        bool joins = width_of(c.code) == 0 && c.code != '\n' && c.code != '\t';
        if (joins || !pass_character(t, &p, c.code) || p.row > last_row)
            break;
        at += c.n_bytes;
    }
    return at;
}

/* The line's text without its whole rows, where it gets long. */
static void shorten_line(live_text *t)
{
    if (t->n_line <= LIVE_LINE_BYTES / 2)
        return;
    place p = {0, 0};
    size_t row_begin = 0;
    for (size_t at = 0; at < t->n_line;) {
        place before = p;
        character c = character_at(t->text + at, t->n_line - at);
        pass_character(t, &p, c.code);
        if (p.row > before.row)
            row_begin = at;
        at += c.n_bytes;
    }
    memmove(t->text, t->text + row_begin, t->n_line + t->n_drawn - row_begin);
    memmove(t->styles, t->styles + row_begin, t->n_line + t->n_drawn - row_begin);
    t->n_line -= row_begin;
    t->short_line = true;
}

/* bytes have been written as verified text; nothing is dim. */
static void join_line(live_text *t, const char *bytes, const uint8_t *styles, size_t n)
{
    const char *newline = memrchr(bytes, '\n', n);
    if (newline) {
        n -= (size_t)(newline + 1 - bytes);
        styles += newline + 1 - bytes;
        bytes = newline + 1;
        t->n_line = 0;
        t->lost = t->short_line = false;
    }
    place p = place_after(t, t->n_line);
    if (t->lost || t->columns < 2 || n > LIVE_LINE_BYTES - t->n_line ||
        pass_text(t, &p, bytes, n) < n) {
        t->lost = true;
        return;
    }
    memcpy(t->text + t->n_line, bytes, n);
    memcpy(t->styles + t->n_line, styles, n);
    t->n_line += n;
    shorten_line(t);
}

/* Draws what changes from the text that is drawn to next[0..n_next), of which n bytes join the
 * line, those up to n_solid are held, in styles[0..n_solid), and the rest is dim. */
static void draw_change(live_text *t, const char *next, const uint8_t *styles, size_t n,
                        size_t n_solid, size_t n_next)
{
    size_t line = t->n_line, n_drawn = t->n_drawn;
    size_t same = common(t->text + line, n_drawn, next, n_next);
    /* Where writing begins: what was dim and is solid now is written over. */
    size_t from = t->n_solid < n_solid && t->n_solid < same ? t->n_solid : same;
    if (from < n_drawn)
        move_after(t, place_after(t, line + n_drawn), line + from);
    if (from < same) {
        size_t over = same < n_solid ? same : n_solid;
        put_solid(t, next + from, styles + from, over - from, false);
        memcpy(t->styles + line, styles, over);
        t->n_solid = over;
        if (over < same)
            move_after(t, place_after(t, line + over), line + same);
    }
    if (same < n_drawn)
        clear_after(t, line + same);
    if (same < n_solid)
        put_solid(t, next + same, styles + same, n_solid - same, false);
    size_t dim_from = same > n_solid ? same : n_solid;
    put_dim(t, next + dim_from, n_next - dim_from);
    join_line(t, next, styles, n);
    memcpy(t->text + t->n_line, next + n, n_next - n);
    memcpy(t->styles + t->n_line, styles + n, n_solid - n);
    t->n_drawn = n_next - n;
    t->n_solid = n_solid - n;
}

static void erase(live_text *t)
{
    if (t->n_drawn > 0) {
        move_after(t, place_after(t, t->n_line + t->n_drawn), t->n_line);
        clear_after(t, t->n_line);
    }
    t->n_drawn = t->n_solid = 0;
}

/* ---- Words at the margin ---- */

/* State of the text up to a position. */
typedef struct wrapping {
    text_styles line;
    int32_t column, word; /* cursor position; columns since the blank */
    bool begun;           /* the row has more than blanks */
    size_t blank;         /* blank that may become a newline; NO_BLANK: there is none */
    text_styles before;   /* at the blank */
} wrapping;
static const size_t NO_BLANK = SIZE_MAX;

static void begin_row(wrapping *w, int32_t column)
{
    w->column = column;
    w->word = 0;
    w->begun = false;
    w->blank = NO_BLANK;
}

static void wrap_blank(const live_text *t, wrapping *w, char *text, size_t at)
{
    if (w->column == t->columns) {
        text[at] = '\n';
        begin_row(w, 0);
        return;
    }
    w->column++;
    w->word = 0;
    w->blank = w->begun ? at : NO_BLANK;
}

/* One that may need the next row. */
static void wrap_character(const live_text *t, wrapping *w, char *text, int width)
{
    if (w->column + width > t->columns) {
        bool moves = w->blank != NO_BLANK;
        if (moves)
            text[w->blank] = '\n';
        w->column = moves ? w->word : 0;
        w->blank = NO_BLANK;
    }
    w->column += width;
    w->word += width;
    w->begun = true;
    if (width == 2) /* a row may end after it */
        w->blank = NO_BLANK;
}

/* Breaks the lines of text[0..n), of which n_verified bytes are verified and get styles. Returns
 * how many of those stay as they are, whatever follows: all of them where the text ends. */
static size_t wrap(live_text *t, char *text, uint8_t *styles, size_t n_verified, size_t n,
                   bool ends)
{
    wrapping w = {.line = t->line, .blank = NO_BLANK};
    begin_row(&w, place_after(t, t->n_line).column);
    w.begun = w.column > 0;
    wrapping then = w;
    for (size_t at = 0; at < n;) {
        character c = character_at(text + at, n - at);
        text_styles before = w.line;
        text_style style = text_styles_pass(&w.line, c.code);
        bool code = text_styles_in_block(&w.line);
        int width = width_of(c.code);
        if (at < n_verified)
            memset(styles + at, t->styled ? (int)style : 0, c.n_bytes);
        if (c.code == '\n' || c.code == '\t') {
            place p = {0, w.column < t->columns ? w.column : t->columns - 1};
            pass_character(t, &p, c.code);
            begin_row(&w, p.column);
        } else if (width < 0) {
            break; /* not known: see draw_known */
        } else if (c.code == ' ' && !code) {
            w.before = before;
            wrap_blank(t, &w, text, at);
        } else {
            wrap_character(t, &w, text, width);
        }
        at += c.n_bytes;
        if (at == n_verified)
            then = w;
    }
    bool holds = !ends && then.blank != NO_BLANK && n_verified - then.blank <= LIVE_HELD_BYTES;
    t->line = holds ? then.before : then.line;
    return holds ? then.blank : n_verified;
}

/* ---- What is wanted ---- */

enum { MOST_NEXT = LIVE_HELD_BYTES + 2 * DREY_MAX_PROVISIONAL };

/* Adds the held bytes and verified[0..n) to the line, as far as no later text can move them; what
 * is wanted comes after. ends: all of it. False: places are not known. */
static bool draw_known(live_text *t, const char *verified, size_t n, bool ends)
{
    char next[MOST_NEXT];
    uint8_t styles[MOST_NEXT] = {0};
    size_t n_verified = t->n_held + n;
    if (t->lost || t->columns < 2 || n > DREY_MAX_PROVISIONAL ||
        t->n_line + n_verified > LIVE_LINE_BYTES)
        return false;
    memcpy(next, t->held, t->n_held);
    memcpy(next + t->n_held, verified, n);
    memcpy(next + n_verified, t->wanted, t->n_wanted);
    const text_styles line = t->line;
    size_t settled = n_verified;
    if (t->wraps)
        settled = wrap(t, next, styles, n_verified, n_verified + t->n_wanted, ends);
    place p = place_after(t, t->n_line);
    if (pass_text(t, &p, next, n_verified) < n_verified) {
        t->line = line;
        return false;
    }
    size_t n_shown = showable(t, p, next + n_verified, t->n_wanted);
    draw_change(t, next, styles, settled, n_verified, n_verified + n_shown);
    t->n_held = n_verified - settled;
    memcpy(t->held, next + settled, t->n_held);
    if (t->n_held > 0)
        t->held[0] = ' '; /* as it came */
    return true;
}

/* Prints a line, but for characters that would steer the terminal. */
static void put_line(live_text *t, const char *bytes, size_t n)
{
    enum { PIECE = 256 };
    uint8_t styles[PIECE];
    for (size_t at = 0, end; at < n; at = end) {
        for (end = at; end < n;) {
            character c = character_at(bytes + end, n - end);
            if (end + c.n_bytes > at + PIECE)
                break;
            text_style style = text_styles_pass(&t->line, c.code);
            memset(styles + (end - at), t->styled ? (int)style : 0, c.n_bytes);
            end += c.n_bytes;
        }
        put_solid(t, bytes + at, styles, end - at, !t->as_it_is);
        join_line(t, bytes + at, styles, end - at);
    }
}

static void draw(live_text *t, const char *verified, size_t n, bool ends)
{
    if (!draw_known(t, verified, n, ends)) {
        erase(t);
        put_line(t, t->held, t->n_held);
        t->n_held = 0;
        put_line(t, verified, n);
        draw_known(t, "", 0, ends);
    }
    flush(t);
}

/* ---- For the caller ---- */

void live_text_init(live_text *t, live_text_write *write, void *user, bool wraps)
{
    memset(t, 0, sizeof *t);
    t->write = write;
    t->user = user;
    t->wraps = wraps;
}

void live_text_size(live_text *t, int32_t columns, int32_t rows)
{
    if (columns <= 0 || (columns == t->columns && rows == t->rows))
        return;
    bool had_size = t->columns > 0;
    if (columns != t->columns && had_size && t->short_line) {
        t->n_drawn = t->n_solid = 0; /* cannot be found again: it stays as it is */
        t->lost = true;
    }
    t->columns = columns;
    t->rows = rows;
}

/* ends: the text, with this. */
static void take_event(live_text *t, const drey_event *event, bool ends)
{
    size_t n = event->n_bytes;
    if (event->kind == DREY_EVENT_TAKEN_BACK) {
        t->n_wanted -= n < t->n_wanted ? n : t->n_wanted;
    } else if (event->kind == DREY_EVENT_PROVISIONAL) {
        if (n <= sizeof t->wanted - t->n_wanted) {
            memcpy(t->wanted + t->n_wanted, event->bytes, n);
            t->n_wanted += n;
        }
        draw(t, "", 0, ends);
    } else {
        size_t stood = n < t->n_wanted ? n : t->n_wanted;
        t->n_wanted -= stood;
        memmove(t->wanted, t->wanted + stood, t->n_wanted);
        draw(t, event->bytes, n, ends);
    }
}

void live_text_event(live_text *t, const drey_event *event)
{
    take_event(t, event, false);
}

void live_text_draw(live_text *t)
{
    take_event(t, &(drey_event){.kind = DREY_EVENT_PROVISIONAL, .bytes = ""}, false);
}

void live_text_end(live_text *t)
{
    t->n_wanted = 0;
    take_event(t, &(drey_event){.kind = DREY_EVENT_PROVISIONAL, .bytes = ""}, true);
}
