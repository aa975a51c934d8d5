/* Takes answers apart: see drey/reply.h. One byte after the other: what may begin a mark is held
 * back until it is one, or is not.
 *
 *   BEGIN --a call's first byte--> CALL --the arguments--> ARGUMENTS --> REST --> NEXT
 *     |                             ^                                             |
 *     +--> CONTENT --begin, open----+<------------------- next, begin ------------+
 *     |      ^
 *     +--> REASONING
 *
 * A call that is not what the form says is text again, as long as nothing of it was given out. */
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

void reading_enter(reading *x, int32_t state)
{
    drey_reply_reader *r = x->r;
    r->state = state;
    r->at = r->n_held = 0;
    r->trims = state != IN_CONTENT || r->form.calls || r->form.thinking;
}

/* After a mark: blanks in front of what follows are left out. */
void reading_enter_fresh(reading *x, int32_t state)
{
    reading_enter(x, state);
    x->r->wrote = false;
}

/* What is held stays so: it is text if this is no call. */
static void begin_call(reading *x, bool first)
{
    int32_t n = x->r->n_held;
    reading_enter(x, first && x->f->open ? IN_OPEN : IN_CALL);
    x->r->n_name = 0;
    x->r->bare = x->r->fenced = false;
    x->r->n_held = n;
}

/* A text byte of the present state. */
void reading_put_plain(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    if (r->state == AT_BEGIN || r->state == AT_NEXT) {
        r->state = IN_CONTENT;
        r->trims = r->form.calls || r->form.thinking;
    }
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

/* Whether the answer itself begins with a call, of which c is the first byte. */
static bool begins_call(const reading *x, char c)
{
    const drey_reply_reader *r = x->r;
    const char *call = x->f->object;
    bool first = r->state == AT_BEGIN || (r->state == IN_CONTENT && !r->wrote && !r->n_calls);
    if (!r->form.bare || !first)
        return false;
    if (x->f->fenced && *x->f->fenced == c)
        return true;
    return *call == REPLY_NAME ? r->state == AT_BEGIN && !reading_blank(c) : *call == c;
}

typedef struct mark {
    const char *text;
    int32_t to;
} mark;
enum { TO_FIRST_CALL = -1, TO_CALL = -2, TO_NOTHING = -3, TO_UNMARKED = -4 };

/* What is waited for in this state. */
static int32_t waits_for(const reading *x, mark out[static 9])
{
    const drey_reply_reader *r = x->r;
    int32_t n = 0;
    if (r->state == IN_REASONING) {
        out[0] = (mark){x->t->close, IN_CONTENT};
        return 1;
    }
    if (r->state == AT_NEXT && x->f->next)
        out[n++] = (mark){x->f->next, TO_CALL};
    if (r->state == AT_NEXT && x->f->close)
        out[n++] = (mark){x->f->close, IN_CONTENT};
    if (r->form.calls && x->f->begin)
        out[n++] = (mark){x->f->begin, TO_FIRST_CALL};
    if (r->form.calls && x->f->unmarked)
        out[n++] = (mark){x->f->unmarked, TO_UNMARKED};
    if (r->form.thinking && r->state == AT_BEGIN)
        out[n++] = (mark){x->t->open, IN_REASONING};
    if (x->f->content_open &&
        (r->state != IN_CONTENT || !r->wrote || *x->f->content_open == REPLY_TOKEN))
        out[n++] = (mark){x->f->content_open, IN_CONTENT};
    if (x->f->content_close)
        out[n++] = (mark){x->f->content_close, TO_NOTHING};
    return n;
}

/* The mark is the call's own beginning. */
static void begin_unmarked(reading *x)
{
    drey_reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    r->n_held = 0;
    begin_call(x, true);
    for (int32_t i = 0; i < n; i++)
        reading_step(x, held[i]);
}

static void arrive(reading *x, int32_t to)
{
    drey_reply_reader *r = x->r;
    if (to == TO_CALL || to == TO_FIRST_CALL)
        begin_call(x, to == TO_FIRST_CALL);
    else if (to == TO_UNMARKED)
        begin_unmarked(x);
    else if (to == TO_NOTHING)
        r->n_held = 0;
    else
        reading_enter_fresh(x, to);
}

/* Compares what is held with all marks. False: its first byte is text. */
static bool look(reading *x)
{
    drey_reply_reader *r = x->r;
    mark marks[9];
    int32_t n = waits_for(x, marks), blanks = 0;
    while (r->trims && blanks < r->n_held && reading_blank(r->held[blanks]))
        blanks++;
    if (blanks == r->n_held)
        return blanks < MOST_BLANKS;
    const char *text = r->held + blanks;
    size_t n_text = (size_t)(r->n_held - blanks);
    bool part = false;
    for (int32_t i = 0; i < n; i++) {
        fit f = reading_fits(marks[i].text, text, n_text);
        if (f == WHOLE_FIT) {
            arrive(x, marks[i].to);
            return true;
        }
        part = part || f == PART_FIT;
    }
    return part;
}

void reading_drop_held(reading *x, int32_t n)
{
    drey_reply_reader *r = x->r;
    r->n_held -= n;
    memmove(r->held, r->held + n, (size_t)r->n_held);
}

/* What is held begins with a call that no mark announces. */
static bool take_call(reading *x)
{
    drey_reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held, blanks = 0;
    while (blanks < n && reading_blank(r->held[blanks]))
        blanks++;
    if (blanks == n || !begins_call(x, r->held[blanks]))
        return false;
    memcpy(held, r->held, (size_t)n);
    r->n_held = 0;
    begin_call(x, false);
    r->bare = true;
    r->fenced = x->f->fenced && *x->f->fenced == held[blanks];
    for (int32_t i = blanks; i < n; i++)
        reading_step(x, held[i]);
    return true;
}

static void read_plain(reading *x, char c)
{
    drey_reply_reader *r = x->r;
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

/* What the state follows, from its beginning. */
static const char *pattern_of(const reading *x)
{
    const char *call = x->r->fenced ? x->f->fenced : x->r->bare ? x->f->object : x->f->call;
    if (x->r->state == IN_OPEN)
        return x->f->open;
    return x->r->state == IN_REST ? strchr(call, REPLY_ARGUMENTS) + 1 : call;
}

/* It was no call: its bytes are text. */
static void give_up(reading *x)
{
    drey_reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    bool given = r->state == IN_REST || x->f->headers;
    reading_enter(x, given ? AT_NEXT : IN_CONTENT);
    for (int32_t i = 0; i < n; i++)
        given ? reading_step(x, held[i]) : reading_put_plain(x, held[i]);
}

/* The pattern's end was reached. */
static void end_pattern(reading *x)
{
    drey_reply_reader *r = x->r;
    if (r->state == IN_OPEN) {
        r->state = IN_CALL;
        r->at = 0;
    } else {
        reading_enter_fresh(x, AT_NEXT);
    }
}

/* end: what comes after it; arguments begin with a mark or a blank. */
static void read_name(reading *x, char c, char end)
{
    drey_reply_reader *r = x->r;
    bool ends = end == REPLY_ARGUMENTS ? c == '<' || reading_blank(c) : c == end;
    if (!ends && r->n_name < (int32_t)sizeof r->name) {
        r->name[r->n_name++] = c;
        return;
    }
    bool known = !r->bare || reply_values_are_of(&r->form, r->name, (size_t)r->n_name);
    if (!ends || r->n_name == 0 || !known) {
        give_up(x);
        return;
    }
    reading_give_call(x, r->name, (size_t)r->n_name);
    r->n_held = 0;
    r->at++;
    reading_step(x, c);
}

static void begin_arguments(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    if (x->f->parameter) {
        values_begin(x, c);
        return;
    }
    if (c != '{') {
        give_up(x);
        reading_step(x, c);
        return;
    }
    reading_enter(x, IN_ARGUMENTS);
    r->levels = 0;
    r->in_string = r->escaped = false;
    reading_step(x, c);
}

/* Follows the form's text: blanks may be missing in either. */
static void read_call(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    const char *start = pattern_of(x), *p = start + r->at;
    bool holds = r->n_held < (int32_t)sizeof r->held;
    while (reading_frame(*p))
        p++;
    r->at = (int32_t)(p - start);
    const bool held = *p != REPLY_ARGUMENTS;
    const bool in_name = *p == REPLY_NAME && (r->n_name > 0 || !reading_blank(c));
    if (held && holds)
        r->held[r->n_held++] = c;
    if (held && !holds) {
        give_up(x);
        read_plain(x, c);
        return;
    }
    if (in_name || *p == REPLY_ID) {
        const char *end = p + 1;
        while (reading_frame(*end))
            end++;
        if (in_name)
            read_name(x, c, *end);
        else if (c == *end)
            r->at = (int32_t)(end + 1 - start);
        return;
    }
    if (reading_blank(c))
        return;
    while (reading_blank(*p) || reading_frame(*p))
        p++;
    r->at = (int32_t)(p - start);
    if (*p == REPLY_ARGUMENTS) {
        r->n_held -= held;
        begin_arguments(x, c);
        return;
    }
    if (*p == REPLY_NAME) {
        r->n_held--;
        read_call(x, c);
        return;
    }
    if (*p != c) {
        give_up(x);
        return;
    }
    for (p++; reading_frame(*p) || (reading_blank(*p) && !p[1]);)
        p++;
    r->at = (int32_t)(p - start);
    if (!*p)
        end_pattern(x);
}

static void read_arguments(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    reading_put(x, DREY_REPLY_ARGUMENTS, c);
    if (r->in_string) {
        r->in_string = c != '"' || r->escaped;
        r->escaped = c == '\\' && !r->escaped;
        return;
    }
    r->in_string = c == '"';
    r->levels += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (r->levels > 0)
        return;
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    if (!*pattern_of(x))
        end_pattern(x);
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
        read_arguments(x, c);
        break;
    case AT_PARAMETER:
    case IN_KEY:
    case AT_VALUE:
    case IN_VALUE:
        values_read(x, c);
        break;
    default:
        x->f->headers ? channels_read(x, c) : read_plain(x, c);
    }
}

static reading reading_of(drey_reply_reader *r, drey_reply_fn *on_part, void *user)
{
    return (reading){.r = r,
                     .f = reply_family_at(r->form.family),
                     .t = reply_thinking_at(r->form.thinking),
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

void drey_reply_begin(drey_reply_reader *reader, const drey_reply_form *form)
{
    *reader = (drey_reply_reader){.form = *form, .wrote = true};
    reading x = reading_of(reader, NULL, NULL);
    if (form->begun == DREY_BEGUN_CONTENT)
        reading_enter(&x, IN_CONTENT);
    else if (form->thinks && form->begun)
        reading_enter(&x, IN_REASONING); /* whose first blanks count */
    else if (form->thinks)
        reading_enter_fresh(&x, IN_REASONING);
    else
        reading_enter(&x, form->calls || form->thinking || x.f->content_open || x.f->headers
                              ? AT_BEGIN
                              : IN_CONTENT);
}

void drey_reply_read(drey_reply_reader *reader, const char *bytes, size_t n_bytes,
                     drey_reply_fn *on_part, void *user)
{
    reading x = reading_of(reader, on_part, user);
    const drey_reply_form *f = &reader->form;
    if (n_bytes > 0)
        give_opened(&x);
    if (reader->state == IN_CONTENT && !f->calls && !f->thinking && !x.f->content_open &&
        !x.f->headers) {
        if (n_bytes > 0)
            reading_give(&x, DREY_REPLY_CONTENT, bytes, n_bytes);
        return;
    }
    for (size_t i = 0; i < n_bytes; i++)
        reading_step(&x, bytes[i]);
    reading_flush(&x);
}

void drey_reply_end(drey_reply_reader *reader, drey_reply_fn *on_part, void *user)
{
    reading x = reading_of(reader, on_part, user);
    int32_t n = reader->n_held;
    give_opened(&x);
    bool text = reader->state == IN_CONTENT || reader->state == IN_REASONING ||
                (!x.f->headers && (reader->state == AT_BEGIN || reader->state == AT_NEXT));
    if (reader->state == IN_CALL && reader->bare && reader->n_name == 0) {
        text = true; /* a bracket, or a block of code, that was no call's */
        reading_enter(&x, IN_CONTENT);
    }
    if (reader->state == IN_REASONING || reader->state == AT_NEXT)
        while (n > 0 && reading_blank(reader->held[n - 1]))
            n--;
    for (int32_t i = 0; i < n && text; i++)
        reading_put_plain(&x, reader->held[i]);
    reader->n_held = 0;
    reading_flush(&x);
}
