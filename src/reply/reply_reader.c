/* Takes answers apart: see drey/reply.h. One byte after the other: what may begin a mark is held
 * back until it is one, or is not. Which marks begin calls is said in reply_forms.h.
 *
 *   BEGIN --a call's first byte--> CALL --the arguments--> ARGUMENTS --> REST --> NEXT
 *     |                             ^                                             |
 *     +--> CONTENT --begin, open----+<------------------- next, begin ------------+
 *     |      ^
 *     +--> REASONING
 *
 * A call also begins from within REASONING. One that is not what the form says is text again, as
 * long as nothing of it was given out. */
#include "reply/reply_reading.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BLANKS = 40 };

/* ---- What is given out ---- */

void reading_give(reading *x, drey_reply_kind kind, const char *bytes, size_t n)
{
    const drey_reply_part part = {
        .kind = kind, .call = x->r->n_calls - 1, .bytes = bytes, .n_bytes = n};
    if (x->on_part)
        x->on_part(x->user, &part);
}

void reading_flush(reading *x)
{
    if (x->n_out > 0)
        reading_give(x, x->kind, x->out, x->n_out);
    x->n_out = 0;
}

void reading_give_call(reading *x, const char *name, size_t n)
{
    reading_flush(x);
    x->r->n_calls++;
    x->r->tool = reply_values_tool(name, n);
    reading_give(x, DREY_REPLY_CALL, name, n);
}

/* Pieces are whole characters, if what was read is. */
void reading_put(reading *x, drey_reply_kind kind, char c)
{
    bool begins = ((unsigned char)c & 0xC0) != 0x80;
    if (x->kind != kind || x->n_out == MOST_OUT || (begins && x->n_out > MOST_OUT - 4))
        reading_flush(x);
    x->kind = kind;
    x->out[x->n_out++] = c;
}

/* ---- States ---- */

static bool may_think(const reply_reader *r)
{
    return r->form.thinking > 0 || r->form.closed > 0;
}

void reading_enter(reading *x, int32_t state)
{
    reply_reader *r = x->r;
    r->state = state;
    r->at = r->n_held = r->detour = 0;
    r->trims = state != IN_CONTENT || r->form.calls || may_think(r);
    r->line.start = true;
    r->line.code = false;
}

/* After a mark: blanks in front of what follows are left out. */
void reading_enter_fresh(reading *x, int32_t state)
{
    reading_enter(x, state);
    x->r->wrote = false;
}

/* Begins a call, and keeps the held text: it is text if this is no call. */
static void begin_call(reading *x, bool first)
{
    int32_t n = x->r->n_held;
    bool in_thought = x->r->state == IN_REASONING;
    reading_enter(x, first && x->f->open ? IN_OPEN : IN_CALL);
    x->r->n_name = x->r->detour = 0;
    x->r->in_thought = in_thought;
    x->r->bare = x->r->quoted = false;
    x->r->spelling = 0;
    x->r->known = reply_decides_by_name(x->f);
    x->r->n_held = n;
}

/* Follows where the text is in its line. */
static void reading_follow_line(reading *x, char c)
{
    reply_reader *r = x->r;
    if (c == '\n')
        r->line.code = false;
    else if (c == '`')
        r->line.code = !r->line.code;
    r->line.start = c == '\n' || (r->line.start && reading_blank(c));
}

/* A text byte of the present state. */
void reading_put_plain(reading *x, char c)
{
    reply_reader *r = x->r;
    if (r->state == AT_BEGIN || r->state == AT_NEXT) {
        r->state = IN_CONTENT;
        r->trims = r->form.calls || may_think(r);
    }
    reading_follow_line(x, c);
    if (!r->wrote && reading_blank(c))
        return;
    r->wrote = true;
    reading_put(x, r->state == IN_REASONING ? DREY_REPLY_REASONING : DREY_REPLY_CONTENT, c);
}

/* ---- Marks ---- */

static bool is_part(char c)
{
    return !c || c == REPLY_KEY || c == REPLY_VALUE || c == REPLY_ARGUMENTS;
}

fit reading_fits(const char *mark, const char *text, size_t n)
{
    size_t i = 0;
    while (reading_blank(*mark))
        mark++;
    for (; i < n; mark++) {
        if (*mark == '\n' && mark[1]) {
            while (i < n && reading_blank(text[i]))
                i++;
            continue;
        }
        if (reading_frame(*mark))
            continue;
        if (is_part(*mark) || *mark != text[i])
            return NO_FIT;
        i++;
    }
    while (reading_frame(*mark))
        mark++;
    return is_part(*mark) ? WHOLE_FIT : PART_FIT;
}

static char first_of(const char *pattern)
{
    while (reading_frame(*pattern))
        pattern++;
    return *pattern;
}

/* The call with which the answer itself begins, and of which c is the first byte; -1: there is
 * none. */
static int32_t begins_call(const reading *x, char c)
{
    const reply_reader *r = x->r;
    const char *const *bare = x->f->bare;
    bool first = r->state == AT_BEGIN || (r->state == IN_CONTENT && !r->wrote && !r->n_calls);
    if (!r->form.bare || !first)
        return -1;
    if (*bare[0] == REPLY_NAME)
        return r->state == AT_BEGIN && !reading_blank(c) ? 0 : -1;
    for (int32_t i = 0; i < 3 && bare[i]; i++)
        if (first_of(bare[i]) == c)
            return i;
    return -1;
}

typedef struct waited {
    const char *text;
    int32_t to;
} waited;
enum { TO_FIRST_CALL = -1, TO_CALL = -2, TO_NOTHING = -3, TO_UNMARKED = -4, TO_END = -5 };
enum { MOST_MARKS = 16 };

typedef struct mark_list {
    waited of[MOST_MARKS];
    int32_t n;
    bool line, code; /* blanks aside, they are at a line's beginning; within code in a line */
} mark_list;

static void wait_for(mark_list *l, const char *text, int32_t to)
{
    if (text && l->n < MOST_MARKS)
        l->of[l->n++] = (waited){text, to};
}

/* The marks that begin calls. */
static void wait_for_calls(const reading *x, mark_list *l)
{
    const reply_family *f = x->f;
    bool anywhere = f->begin && *f->begin == REPLY_TOKEN;
    bool now = anywhere || (x->r->state == IN_REASONING ? l->line : !l->code);
    if (!x->r->form.calls || !now)
        return;
    wait_for(l, f->begin, TO_FIRST_CALL);
    for (int i = 0; i < 3; i++)
        wait_for(l, f->others[i], TO_FIRST_CALL);
    wait_for(l, f->unmarked, TO_UNMARKED);
}

/* Lists the marks that may come in this state. */
static void waits_for(const reading *x, mark_list *l)
{
    const reply_reader *r = x->r;
    const reply_family *f = x->f;
    bool thinks = r->state == IN_REASONING,
         token = f->content_open && *f->content_open == REPLY_TOKEN;
    if (thinks) {
        wait_for(l, x->t->close, IN_CONTENT);
        if (!r->wrote) /* the template wrote it already */
            wait_for(l, x->t->open, TO_NOTHING);
        if (token || l->line)
            wait_for(l, f->content_open, IN_CONTENT);
        wait_for_calls(x, l);
        return;
    }
    if (r->state == AT_NEXT) {
        wait_for(l, f->next, TO_CALL);
        wait_for(l, f->close, IN_CONTENT);
    }
    wait_for_calls(x, l);
    wait_for(l, f->header, TO_NOTHING);
    const bool thinks_anywhere = may_think(r) && *x->t->open == REPLY_TOKEN;
    if (thinks_anywhere || (may_think(r) && r->state == AT_BEGIN))
        wait_for(l, x->t->open, IN_REASONING);
    if (thinks_anywhere || (may_think(r) && l->line)) /* it ends nothing */
        wait_for(l, x->t->close, r->state == AT_BEGIN ? IN_CONTENT : TO_NOTHING);
    if (r->state != IN_CONTENT || !r->wrote || token)
        wait_for(l, f->content_open, IN_CONTENT);
    wait_for(l, f->content_close, token ? TO_NOTHING : TO_END);
}

/* The mark is the call's own beginning. */
static void begin_unmarked(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    r->n_held = 0;
    begin_call(x, true);
    r->known = true;
    for (int32_t i = 0; i < n; i++)
        reading_step(x, held[i]);
}

static void arrive(reading *x, int32_t to)
{
    reply_reader *r = x->r;
    if (to == TO_CALL || to == TO_FIRST_CALL)
        begin_call(x, to == TO_FIRST_CALL);
    else if (to == TO_UNMARKED)
        begin_unmarked(x);
    else if (to == TO_NOTHING)
        r->n_held = 0;
    else
        reading_enter_fresh(x, to);
}

/* A mark after which there is nothing more, but blanks. */
static fit fits_end(const char *mark, const char *text, size_t n)
{
    size_t n_mark = strlen(mark);
    fit f = reading_fits(mark, text, n < n_mark ? n : n_mark);
    for (size_t i = n_mark; i < n; i++)
        f = reading_blank(text[i]) ? f : NO_FIT;
    return f == WHOLE_FIT ? PART_FIT : f;
}

/* Compares what is held with all marks. False: its first byte is text. */
static bool look(reading *x)
{
    reply_reader *r = x->r;
    mark_list l = {.n = 0, .line = r->line.start, .code = r->line.code};
    int32_t blanks = 0;
    for (; r->trims && blanks < r->n_held && reading_blank(r->held[blanks]); blanks++)
        if (r->held[blanks] == '\n') {
            l.line = true;
            l.code = false;
        }
    if (blanks == r->n_held)
        return blanks < MOST_BLANKS;
    waits_for(x, &l);
    const char *text = r->held + blanks;
    size_t n_text = (size_t)(r->n_held - blanks);
    bool part = false;
    r->line.call = !l.line;
    for (int32_t i = 0; i < l.n; i++) {
        const waited *m = &l.of[i];
        fit f =
            m->to == TO_END ? fits_end(m->text, text, n_text) : reading_fits(m->text, text, n_text);
        if (f == WHOLE_FIT) {
            arrive(x, m->to);
            return true;
        }
        part = part || f == PART_FIT;
    }
    return part;
}

void reading_drop_held(reading *x, int32_t n)
{
    reply_reader *r = x->r;
    r->n_held -= n;
    memmove(r->held, r->held + n, (size_t)r->n_held);
}

/* Takes a call that no mark announces from the held text. */
static bool take_call(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held, blanks = 0;
    while (blanks < n && reading_blank(r->held[blanks]))
        blanks++;
    int32_t spelling = blanks < n ? begins_call(x, r->held[blanks]) : -1;
    if (spelling < 0)
        return false;
    memcpy(held, r->held, (size_t)n);
    r->n_held = blanks;
    begin_call(x, false);
    r->bare = r->known = true;
    r->spelling = (uint8_t)spelling;
    for (int32_t i = blanks; i < n; i++)
        reading_step(x, held[i]);
    return true;
}

static void read_plain(reading *x, char c)
{
    reply_reader *r = x->r;
    if (r->n_held == (int32_t)sizeof r->held) {
        reading_put_plain(x, r->held[0]);
        reading_drop_held(x, 1);
    }
    r->held[r->n_held++] = c;
    while (r->n_held > 0 && !look(x)) {
        if (take_call(x))
            return;
        reading_put_plain(x, r->held[0]);
        reading_drop_held(x, 1);
    }
}

/* ---- Calls ---- */

/* Returns the pattern that the state follows, from its beginning. */
static const char *pattern_of(const reading *x)
{
    const char *call = x->r->bare ? x->f->bare[x->r->spelling] : x->f->call;
    if (x->r->state == IN_OPEN)
        return x->f->open;
    return x->r->state == IN_REST ? strchr(call, REPLY_ARGUMENTS) + 1 : call;
}

/* Gives up what was no call: its first byte is text, and the others are read again. */
static void give_up(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held, i = 0;
    memcpy(held, r->held, (size_t)n);
    bool given = r->state == IN_REST || x->f->headers;
    reading_enter(x, given ? AT_NEXT : r->in_thought ? IN_REASONING : IN_CONTENT);
    for (; i < n && !given && (i == 0 || !r->wrote); i++)
        reading_put_plain(x, held[i]);
    for (; i < n; i++)
        reading_step(x, held[i]);
}

/* The pattern's end was reached. */
static void end_pattern(reading *x)
{
    reply_reader *r = x->r;
    if (r->state == IN_OPEN) {
        r->state = IN_CALL;
        r->at = 0;
    } else {
        reading_enter_fresh(x, AT_NEXT);
    }
}

/* Gives what is a call for certain. */
static void give_call(reading *x)
{
    reply_reader *r = x->r;
    if (r->n_name > 0)
        reading_give_call(x, r->name, (size_t)r->n_name);
    r->n_name = r->n_held = 0;
}

/* end: what comes after it; arguments begin with a mark or a blank. */
static void read_name(reading *x, char c, char end)
{
    reply_reader *r = x->r;
    const char open = x->f->literal.open ? x->f->literal.open : '<';
    bool ends = end == REPLY_ARGUMENTS ? c == open || reading_blank(c) : c == end;
    if (!ends && reply_in_name(c) && r->n_name < (int32_t)sizeof r->name) {
        r->name[r->n_name++] = c;
        return;
    }
    bool known = !r->known || reply_values_are_of(&r->form, r->name, (size_t)r->n_name);
    if (!ends || r->n_name == 0 || !known) {
        give_up(x);
        return;
    }
    r->at++;
    if (end == REPLY_ARGUMENTS) {
        r->n_held--;
        reading_step(x, c);
        return;
    }
    for (const char *p = pattern_of(x) + r->at; *p != end; p++)
        r->at++;
    r->at++;
    if (!x->f->parameter && !reply_decides_by_name(x->f))
        give_call(x);
}

/* The name was read. */
static bool is_named(const reading *x)
{
    const char *start = pattern_of(x), *name = strchr(start, REPLY_NAME);
    return x->r->state == IN_CALL && name && x->r->at > name - start;
}

/* The first parameter begins, or the call ends without one: what is held since then shows it. */
static void read_first_value(reading *x, char c)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    if (r->spelling == 0)
        r->spelling = (uint8_t)r->n_held;
    const int32_t from = r->spelling;
    if (r->n_held < (int32_t)sizeof r->held)
        r->held[r->n_held++] = c;
    fit f = values_fit_first(x, r->held + from, (size_t)(r->n_held - from));
    if (f == NO_FIT) {
        give_up(x);
        return;
    }
    const int32_t n = r->n_held;
    if (f == PART_FIT && n < (int32_t)sizeof r->held)
        return;
    memcpy(held, r->held, (size_t)n);
    give_call(x);
    values_begin(x);
    for (int32_t i = from; i < n; i++)
        reading_step(x, held[i]);
}

static void begin_arguments(reading *x, char c)
{
    reply_reader *r = x->r;
    const char open = x->f->literal.open;
    if (x->f->tag) {
        give_call(x);
        tags_begin(x);
        reading_step(x, c);
        return;
    }
    if (open ? c != open : c != '{' && c != '"') {
        give_up(x);
        reading_step(x, c);
        return;
    }
    give_call(x);
    if (open) {
        literal_begin(x);
        return;
    }
    reading_enter(x, IN_ARGUMENTS);
    r->levels = 0;
    r->string.in = r->string.escaped = false;
    r->quoted = c == '"'; /* they are a text, in which JSON is */
    if (!r->quoted)
        reading_step(x, c);
}

/* There are no arguments. */
static void end_empty(reading *x, char c)
{
    give_call(x);
    reading_put(x, DREY_REPLY_ARGUMENTS, '{');
    reading_put(x, DREY_REPLY_ARGUMENTS, '}');
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    reading_step(x, c);
}

/* Texts that models write in place of a form's text; blanks aside. */
static const struct {
    const char *text, *instead;
} detours[] = {{"arguments\"", "parameters\""},
               {"parameters\"", "arguments\""},
               {"name\"", "type\":\"function\",\"name\""}};
enum { N_DETOURS = sizeof detours / sizeof *detours };

static void follow_detour(reading *x, char c)
{
    reply_reader *r = x->r;
    const char *instead = detours[r->detour - 1].instead;
    if (reading_blank(c))
        return;
    if (instead[r->levels] != c) {
        give_up(x);
        return;
    }
    if (instead[++r->levels])
        return;
    r->at += (int32_t)strlen(detours[r->detour - 1].text);
    r->detour = 0;
}

/* Finds a later part of a call in the held text: the one before it is missing. */
static bool find_later(reading *x, const char *rest)
{
    reply_reader *r = x->r;
    int32_t blanks = 0;
    while (blanks < r->n_held && reading_blank(r->held[blanks]))
        blanks++;
    size_t n = (size_t)(r->n_held - blanks);
    for (const char *p = rest; *p && n > 0; p++)
        if ((*p == '}' || (p > rest && p[-1] == '\n')) && strncmp(p, r->held + blanks, n) == 0) {
            r->at = (int32_t)(p - rest + (ptrdiff_t)n);
            return true;
        }
    return false;
}

/* Returns whether a call can begin with c, without the bracket that opens a list. */
static bool is_call_start(const reading *x, char c)
{
    return *x->f->call == REPLY_NAME ? reply_in_name(c) : c == '{';
}

/* c is not what the form has at p. */
static void read_otherwise(reading *x, const char *start, const char *p, char c)
{
    reply_reader *r = x->r;
    for (int i = 0; i < N_DETOURS; i++)
        if (*detours[i].instead == c && strncmp(p, detours[i].text, strlen(detours[i].text)) == 0) {
            r->detour = (uint8_t)(i + 1);
            r->levels = 1;
            return;
        }
    if (strncmp(p, "json\n", 5) == 0 && p[5] == c && r->bare) {
        r->n_held--;
        r->at += 5;
        reading_step(x, c);
    } else if (r->state == IN_OPEN && *p == '[' && is_call_start(x, c)) {
        r->n_held--;
        r->state = IN_CALL;
        r->at = 0;
        reading_step(x, c);
    } else if (is_named(x) && *p == ',' && c == '}' && strchr(p, REPLY_ARGUMENTS)) {
        end_empty(x, c);
    } else if (r->state != IN_REST || !find_later(x, start)) {
        give_up(x);
    } else if (!start[r->at]) {
        end_pattern(x);
    }
}

static void read_id(reading *x, const char *start, const char *p, char c)
{
    const char *end = p + 1;
    while (reading_frame(*end))
        end++;
    if (*p == REPLY_NAME)
        read_name(x, c, *end);
    else if (c == *end)
        x->r->at = (int32_t)(end + 1 - start);
}

/* Follows the form's text: blanks may be missing in either. */
static void follow_form(reading *x, const char *start, const char *p, char c, bool held)
{
    reply_reader *r = x->r;
    while (reading_blank(*p) || reading_frame(*p))
        p++;
    r->at = (int32_t)(p - start);
    if (*p == REPLY_ARGUMENTS) {
        r->n_held -= held;
        x->f->parameter ? read_first_value(x, c) : begin_arguments(x, c);
        return;
    }
    if (*p == REPLY_NAME) {
        r->n_held--;
        reading_step(x, c);
        return;
    }
    if (*p != c) {
        read_otherwise(x, start, p, c);
        return;
    }
    for (p++; reading_frame(*p) || (reading_blank(*p) && !p[1]);)
        p++;
    r->at = (int32_t)(p - start);
    if (r->state == IN_REST && (*p == '\n' || c == '}')) /* a part that is whole */
        r->n_held = 0;
    if (!*p)
        end_pattern(x);
}

static void read_call(reading *x, char c)
{
    reply_reader *r = x->r;
    const char *start = pattern_of(x), *p = start + r->at;
    while (reading_frame(*p))
        p++;
    r->at = (int32_t)(p - start);
    const bool held = *p != REPLY_ARGUMENTS;
    if (!held && x->f->parameter) {
        read_first_value(x, c);
        return;
    }
    if (r->state == IN_REST && r->quoted && c == '"') {
        r->quoted = false;
        return;
    }
    if (held && r->n_held == (int32_t)sizeof r->held && is_named(x)) {
        give_call(x);
    } else if (held && r->n_held == (int32_t)sizeof r->held) {
        give_up(x);
        reading_step(x, c);
        return;
    }
    if (held)
        r->held[r->n_held++] = c;
    if (r->detour)
        follow_detour(x, c);
    else if (*p == REPLY_ID || (*p == REPLY_NAME && (r->n_name > 0 || !reading_blank(c))))
        read_id(x, start, p, c);
    else if (!reading_blank(c))
        follow_form(x, start, p, c, held);
}

static void read_arguments(reading *x, char c)
{
    reply_reader *r = x->r;
    reading_put(x, DREY_REPLY_ARGUMENTS, c);
    if (r->string.in) {
        r->string.in = c != '"' || r->string.escaped;
        r->string.escaped = c == '\\' && !r->string.escaped;
        return;
    }
    r->string.in = c == '"';
    r->levels += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (r->levels > 0)
        return;
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    reading_end_call(x);
}

void reading_end_call(reading *x)
{
    if (!*pattern_of(x))
        end_pattern(x);
}

/* Arguments that are a text of JSON, which has escapes. r->detour: how far one was read. */
static void read_quoted(reading *x, char c)
{
    static const char letters[] = "ntrbf", characters[] = "\n\t\r\b\f";
    enum { PLAIN, AFTER_BACKSLASH, IN_CODE, LAST_OF_CODE = IN_CODE + 3 };
    reply_reader *r = x->r;
    const char *letter = strchr(letters, c);
    if (r->detour == AFTER_BACKSLASH) {
        r->detour = c == 'u' ? IN_CODE : PLAIN;
        if (c == 'u')
            read_arguments(x, '\\');
        read_arguments(x, letter && c ? characters[letter - letters] : c);
    } else if (r->detour >= IN_CODE) {
        r->detour = r->detour == LAST_OF_CODE ? PLAIN : (uint8_t)(r->detour + 1);
        read_arguments(x, c);
    } else if (r->levels == 0 && c != '{') { /* it is no object */
        reading_enter(x, IN_REST);
        reading_step(x, c);
    } else if (c == '\\') {
        r->detour = AFTER_BACKSLASH;
    } else {
        read_arguments(x, c);
    }
}

/* ---- The whole ---- */

void reading_step(reading *x, char c)
{
    switch (x->r->state) {
    case IN_OPEN:
    case IN_CALL:
    case IN_REST:
        read_call(x, c);
        break;
    case IN_ARGUMENTS:
        x->r->quoted ? read_quoted(x, c) : read_arguments(x, c);
        break;
    case AT_PARAMETER:
    case IN_KEY:
    case AT_VALUE:
    case IN_VALUE:
        values_read(x, c);
        break;
    case IN_LITERAL:
        literal_read(x, c);
        break;
    case IN_TAGS:
        tags_read(x, c);
        break;
    default:
        x->f->headers ? channels_read(x, c) : read_plain(x, c);
    }
}

static reading reading_of(reply_reader *r, drey_reply_fn *on_part, void *user)
{
    return (reading){.r = r,
                     .f = reply_family_at(r->form.family),
                     .t = reply_thinking_at(r->form.closed ? r->form.closed : r->form.thinking),
                     .on_part = on_part,
                     .user = user};
}

/* Once: the mark that the prompt ends with is the first of the content. */
static void give_opened(reading *x)
{
    char *opened = x->r->form.opened, text[64];
    size_t n = 0;
    if (*opened == 0)
        return;
    for (const char *p = reply_thinking_at(x->r->form.kept)->open; *p; p++)
        if (*p != REPLY_TOKEN && *p != REPLY_TOKEN_END)
            text[n++] = *p;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", opened + 1);
    reading_give(x, DREY_REPLY_CONTENT, text, n);
    *opened = 0;
}

static reply_reader *inside(drey_reply_reader *reader)
{
    return (reply_reader *)(void *)reader;
}

void drey_reply_begin(drey_reply_reader *out, const drey_reply_form *of)
{
    reply_reader *reader = inside(out);
    const reply_form *form = reply_form_in(of);
    *reader = (reply_reader){.form = *form, .wrote = true};
    reading x = reading_of(reader, NULL, NULL);
    if (form->begun == DREY_BEGUN_CONTENT)
        reading_enter(&x, IN_CONTENT);
    else if (form->thinks && form->begun)
        reading_enter(&x, IN_REASONING); /* whose first blanks count */
    else if (form->thinks)
        reading_enter_fresh(&x, IN_REASONING);
    else
        reading_enter(&x, form->calls || may_think(reader) || x.f->content_open || x.f->headers
                              ? AT_BEGIN
                              : IN_CONTENT);
}

void drey_reply_read(drey_reply_reader *of, const char *bytes, size_t n_bytes,
                     drey_reply_fn *on_part, void *user)
{
    reply_reader *reader = inside(of);
    reading x = reading_of(reader, on_part, user);
    const reply_form *f = &reader->form;
    if (n_bytes > 0)
        give_opened(&x);
    if (reader->state == IN_CONTENT && !f->calls && !may_think(reader) && !x.f->content_open &&
        !x.f->headers) {
        if (n_bytes > 0)
            reading_give(&x, DREY_REPLY_CONTENT, bytes, n_bytes);
        return;
    }
    for (size_t i = 0; i < n_bytes; i++)
        reading_step(&x, bytes[i]);
    reading_flush(&x);
}

/* Returns whether what was held of a call is text after all: a bracket or a block of code that was
 * no call's, or a mark that was named within a line. */
static bool broken_off(const reply_reader *r)
{
    return (r->state == IN_CALL || r->state == IN_OPEN) && r->n_held > 0 &&
           (r->bare ? r->n_name == 0 : r->line.call && r->at <= 2);
}

/* Returns how much of the held text is left of a text that ends with the mark of the content's
 * end. */
static int32_t text_left(const reading *x)
{
    const reply_reader *r = x->r;
    const char *mark = x->f->content_close;
    int32_t blanks = 0;
    while (blanks < r->n_held && reading_blank(r->held[blanks]))
        blanks++;
    size_t n = (size_t)(r->n_held - blanks), n_mark = mark ? strlen(mark) : 0;
    bool ends = mark && r->state != IN_REASONING && n >= n_mark &&
                fits_end(mark, r->held + blanks, n) != NO_FIT;
    if (r->state == AT_NEXT && n > 0 && x->f->close &&
        reading_fits(x->f->close, r->held + blanks, n) == PART_FIT)
        return 0;
    return ends ? 0 : r->n_held;
}

void drey_reply_end(drey_reply_reader *of, drey_reply_fn *on_part, void *user)
{
    reply_reader *reader = inside(of);
    reading x = reading_of(reader, on_part, user);
    give_opened(&x);
    if (reader->state >= AT_PARAMETER && reader->state <= IN_VALUE)
        values_end(&x);
    int32_t n = text_left(&x);
    bool text = reader->state == IN_CONTENT || reader->state == IN_REASONING ||
                (!x.f->headers && (reader->state == AT_BEGIN || reader->state == AT_NEXT));
    if (broken_off(reader) && !x.f->headers) {
        text = true;
        reading_enter(&x, reader->in_thought ? IN_REASONING : IN_CONTENT);
    }
    if (reader->state == IN_REASONING || reader->state == AT_NEXT)
        while (n > 0 && reading_blank(reader->held[n - 1]))
            n--;
    for (int32_t i = 0; i < n && text; i++)
        reading_put_plain(&x, reader->held[i]);
    reader->n_held = 0;
    reading_flush(&x);
}
