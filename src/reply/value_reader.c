/* Reads arguments that are values between marks, and gives them out as a JSON object:
 *
 *     <parameter=city>
 *     Paris                       {"city": "Paris"
 *     </parameter>
 *
 *   AT_PARAMETER --its beginning--> IN_KEY --its name--> AT_VALUE --the mark's end--> IN_VALUE
 *     |    ^                                                                             |
 *     |    +------------------------------ the value's end ------------------------------+
 *     +--anything else--> IN_REST
 *
 * Texts are escaped, other values are JSON already. A value may contain the marks that end it: they
 * count only where what follows them can follow, the next parameter or the call's end. It also ends
 * where these come without its own mark, at a line's beginning. */
#include "reply/reply_reading.h"

#include <stdio.h>
#include <string.h>

#include "common/json_reader.h"

enum { AS_TEXT = 4 }; /* value: it is being given out as a text */

static void put(reading *x, char c)
{
    reading_put(x, DREY_REPLY_ARGUMENTS, c);
}

static void put_all(reading *x, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(x, text[i]);
}

void reading_put_escaped(reading *x, char c)
{
    static const char plain[] = "\"\\\n\t\r", letters[] = "\"\\ntr";
    const char *special = c ? strchr(plain, c) : NULL;
    char code[8];
    if (special) {
        put(x, '\\');
        put(x, letters[special - plain]);
    } else if ((unsigned char)c < 0x20) {
        int n = snprintf(code, sizeof code, "\\u%04x", (unsigned char)c);
        put_all(x, code, (size_t)n);
    } else {
        put(x, c);
    }
}

/* Returns the text between two of a parameter's parts. */
static const char *after(const reading *x, char part)
{
    return strchr(x->f->parameter, part) + 1;
}

static void enter(reading *x, int32_t state)
{
    x->r->state = state;
    x->r->at = x->r->n_held = 0;
}

fit values_fit_first(const reading *x, const char *text, size_t n)
{
    reply_mark ends[REPLY_MOST_ENDS];
    int32_t n_ends = reply_value_ends(x->f, ends);
    while (n > 0 && reading_blank(*text)) {
        text++;
        n--;
    }
    fit best = reading_fits(x->f->parameter, text, n);
    for (int32_t i = 0; i < n_ends && best != WHOLE_FIT; i++) {
        bool same = memcmp(ends[i].text, text, n < ends[i].n ? n : ends[i].n) == 0;
        fit f = !same ? NO_FIT : n >= ends[i].n ? WHOLE_FIT : PART_FIT;
        best = f > best ? f : best;
    }
    return best;
}

void values_begin(reading *x)
{
    enter(x, AT_PARAMETER);
    x->r->levels = 0; /* 1: there are parameters */
    x->r->came = 0;
}

/* No parameter follows: the rest of the call does. */
static void end_arguments(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    put_all(x, "{}", r->levels == 0 ? 2 : 0);
    put_all(x, "}", r->levels > 0);
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    for (int32_t i = 0; i < n; i++)
        reading_step(x, held[i]);
}

static void read_parameter(reading *x, char c)
{
    reply_reader *r = x->r;
    if (r->n_held == 0 && reading_blank(c))
        return;
    r->held[r->n_held++] = c;
    fit f = reading_fits(x->f->parameter, r->held, (size_t)r->n_held);
    if (f == NO_FIT) {
        end_arguments(x);
    } else if (f == WHOLE_FIT) {
        enter(x, IN_KEY);
        r->n_name = 0;
    }
}

/* ---- Values ---- */

bool reading_is_json(const char *text, size_t n)
{
    json_reader json;
    json_reader_init(&json, text, n, 8);
    json_event e = json_next(&json);
    if (e == JSON_STRING)
        return false;
    while (e != JSON_DONE && e != JSON_BROKEN)
        e = json_next(&json);
    return e == JSON_DONE;
}

/* Makes the kept part of a value the beginning of a text. */
static void become_text(reading *x)
{
    reply_reader *r = x->r;
    put(x, '"');
    for (int32_t i = 0; i < r->n_name; i++)
        reading_put_escaped(x, r->name[i]);
    r->n_name = 0;
    r->value = AS_TEXT;
}

static void read_key(reading *x, char c)
{
    reply_reader *r = x->r;
    if (c != *after(x, REPLY_KEY) && r->n_name < (int32_t)sizeof r->name) {
        r->name[r->n_name++] = c;
        return;
    }
    put_all(x, "{\"", r->levels == 0 ? 2 : 0);
    put_all(x, ", \"", r->levels > 0 ? 3 : 0);
    for (int32_t i = 0; i < r->n_name; i++)
        reading_put_escaped(x, r->name[i]);
    put_all(x, "\": ", 3);
    r->levels = 1;
    int32_t index = reply_values_index(&r->form, r->tool, r->name, (size_t)r->n_name);
    r->came |= index < 0 ? 0 : UINT64_C(1) << index % 64;
    r->value = (int32_t)reply_values_find(&r->form, r->tool, r->name, (size_t)r->n_name);
    r->n_name = 0;
    r->quoted = false; /* as text: see `wrapped` */
    enter(x, AT_VALUE);
    values_read(x, c);
}

/* The type that the mark names was read. What the schema says counts more. */
static void take_type(reading *x)
{
    reply_reader *r = x->r;
    const char *word = x->f->types[0];
    const bool text =
        strlen(word) == (size_t)r->n_name && memcmp(word, r->name, (size_t)r->n_name) == 0;
    if (!text && r->value != VALUE_OF_TEXT)
        r->value = VALUE_OF_JSON;
    else if (text)
        r->value = r->value == VALUE_OF_JSON ? VALUE_OF_EITHER : VALUE_OF_TEXT;
    r->n_name = 0;
}

/* Follows the mark's end. Its blanks may be missing. */
static void read_value_mark(reading *x, char c)
{
    reply_reader *r = x->r;
    const char *p = after(x, REPLY_KEY) + r->at;
    if (*p == REPLY_TYPE && c != p[1]) {
        if (r->n_name < (int32_t)sizeof r->name)
            r->name[r->n_name++] = c;
        return;
    }
    if (*p == REPLY_TYPE) {
        take_type(x);
        p++;
        r->at++;
    }
    while (reading_blank(*p) && *p != c) {
        p++;
        r->at++;
    }
    if (*p == c && *p != REPLY_VALUE) {
        r->at++;
        return;
    }
    if (reading_blank(c) && *p != REPLY_VALUE) /* between two marks */
        return;
    if (r->value == VALUE_OF_TEXT)
        become_text(x);
    enter(x, IN_VALUE);
    values_read(x, c);
}

static void put_value(reading *x, char c)
{
    reply_reader *r = x->r;
    r->at = 1; /* something came */
    if (r->value == AS_TEXT) {
        reading_put_escaped(x, c);
        return;
    }
    if (r->value == VALUE_OF_EITHER && r->n_name == 0 && (c == '{' || c == '['))
        r->value = VALUE_OF_JSON;
    if (r->value == VALUE_OF_JSON) {
        r->n_name = 1; /* something came */
        put(x, c);
        return;
    }
    if (r->n_name == (int32_t)sizeof r->name)
        become_text(x);
    if (r->value == AS_TEXT)
        reading_put_escaped(x, c);
    else
        r->name[r->n_name++] = c;
}

static void end_value(reading *x)
{
    reply_reader *r = x->r;
    const size_t n = (size_t)r->n_name;
    bool null = n == 4 && memcmp(r->name, "null", 4) == 0;
    if (r->value == VALUE_OF_JSON) {
        put_all(x, "null", n == 0 ? 4 : 0);
    } else if (r->value == VALUE_OF_EITHER ? reading_is_json(r->name, n)
                                           : r->value == VALUE_OF_TEXT_OR_NULL && null) {
        put_all(x, r->name, n);
    } else {
        if (r->value != AS_TEXT)
            become_text(x);
        put(x, '"');
    }
    r->quoted = false;
    enter(x, AT_PARAMETER);
}

/* ---- Where a value ends ---- */

/* A place in what is held, and what is looked for there. */
typedef struct look {
    const char *text;
    size_t n, at;
    fit best;    /* best of all that was looked for */
    bool at_end; /* no more comes */
} look;

/* Moves over the mark if it is there. */
static fit find(look *l, const char *mark, size_t n_mark)
{
    size_t n = l->n - l->at < n_mark ? l->n - l->at : n_mark;
    if (memcmp(l->text + l->at, mark, n) != 0)
        return NO_FIT;
    l->at += n;
    return n == n_mark ? WHOLE_FIT : PART_FIT;
}

static fit note(look *l, fit f)
{
    l->best = f > l->best ? f : l->best;
    return f;
}

static void skip_blanks(look *l, bool lines)
{
    while (l->at < l->n && reading_blank(l->text[l->at]) && (lines || l->text[l->at] != '\n'))
        l->at++;
}

/* A parameter's beginning with its name. */
static fit find_parameter(const reading *x, look l, bool any, bool again)
{
    const reply_reader *r = x->r;
    const char *mark = x->f->parameter, *key = strchr(mark, REPLY_KEY);
    while (reading_blank(*mark))
        mark++;
    fit f = find(&l, mark, (size_t)(key - mark));
    if (f != WHOLE_FIT || any)
        return f;
    size_t from = l.at, n;
    while (l.at < l.n && l.text[l.at] != key[1] && l.text[l.at] != '\n')
        l.at++;
    n = l.at - from;
    if (n >= sizeof r->name || (n == 0 && l.at < l.n))
        return NO_FIT;
    if (l.at == l.n)
        return PART_FIT;
    if (l.text[l.at] == '\n')
        return NO_FIT;
    int32_t i = reply_values_index(&r->form, r->tool, l.text + from, n);
    bool known = i >= 0 ? again || !(r->came >> i % 64 & 1) : reply_values_open(&r->form, r->tool);
    return known ? WHOLE_FIT : NO_FIT;
}

/* Any of the marks from the first one on. */
static fit find_end(const reading *x, look l, int32_t first)
{
    reply_mark ends[REPLY_MOST_ENDS];
    int32_t n = reply_value_ends(x->f, ends);
    fit best = NO_FIT;
    for (int32_t i = first; i < n; i++) {
        look at = l;
        fit f = find(&at, ends[i].text, ends[i].n);
        best = f > best ? f : best;
    }
    return best;
}

static const char *own_mark(const reading *x)
{
    return x->r->quoted ? strchr(x->f->wrapped, REPLY_VALUE) + 1 : after(x, REPLY_VALUE);
}

/* The value's own mark, and what can follow it. */
static void find_own_end(const reading *x, look *l)
{
    const char *mark = own_mark(x);
    bool line = *mark == '\n', own = line && l->text[0] == '\n';
    look at = *l;
    at.at = own;
    size_t n_mark = strlen(mark + line);
    fit f = find(&at, mark + line, n_mark);
    if (f == PART_FIT)
        note(l, at.at == at.n ? PART_FIT : NO_FIT);
    if (f != WHOLE_FIT)
        return;
    l->at = own + n_mark;
    look next = at;
    skip_blanks(&next, true);
    if (next.at == next.n)
        note(l, l->at_end ? WHOLE_FIT : PART_FIT);
    note(l, find_end(x, next, 0));
    note(l, find_parameter(x, next, false, true));
    bool written = next.at == at.at + 1 && at.text[at.at] == '\n' && own;
    if (written) /* as the form has it */
        note(l, find_parameter(x, next, true, true));
}

/* The call's end where the value's is missing: one more mark has to follow. */
static void find_call_end(const reading *x, look l, look *out)
{
    reply_mark ends[REPLY_MOST_ENDS];
    int32_t n = reply_value_ends(x->f, ends);
    for (int32_t i = 0; i < n; i++) {
        look at = l;
        fit f = find(&at, ends[i].text, ends[i].n);
        if (f == PART_FIT)
            note(out, PART_FIT);
        if (f != WHOLE_FIT)
            continue;
        skip_blanks(&at, true);
        if (at.at == at.n)
            note(out, l.at_end ? WHOLE_FIT : PART_FIT);
        note(out, find_end(x, at, i + 1));
        note(out, find(&at, x->f->begin, strlen(x->f->begin)));
    }
}

/* Finds what comes after the value, without its mark: at a line's beginning, or anywhere if names
 * and values have different marks. */
static void find_next(const reading *x, look *l)
{
    bool lines = !reply_values_apart(x->f) || x->r->quoted;
    bool begins = l->text[0] == '\n';
    if (!begins && lines && x->r->at > 0)
        return;
    look at = *l;
    at.at = begins;
    skip_blanks(&at, false);
    if (at.at == at.n && !l->at_end)
        note(l, PART_FIT);
    note(l, find_parameter(x, at, false, false));
    find_call_end(x, at, l);
    l->at = begins;
}

/* Returns whether the held text ends the value; *n_end: how much of it belongs to that end. */
static fit fits_end(const reading *x, bool at_end, int32_t *n_end)
{
    const reply_reader *r = x->r;
    look own = {.text = r->held, .n = (size_t)r->n_held, .at_end = at_end}, next = own;
    find_own_end(x, &own);
    find_next(x, &next);
    const look *best = own.best >= next.best ? &own : &next;
    *n_end = (int32_t)best->at;
    return best->best;
}

/* Leaves the value, and reads again what is held after its end. */
static void leave_value(reading *x, int32_t n_end)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    end_value(x);
    for (int32_t i = n_end; i < n; i++)
        reading_step(x, held[i]);
}

/* Returns whether the held text marks the value as a text, or may become that. */
static fit fits_wrapped(const reading *x)
{
    const reply_reader *r = x->r;
    const char *mark = x->f->wrapped;
    const size_t n = (size_t)r->n_held;
    if (!mark || r->quoted || r->at > 0)
        return NO_FIT;
    const size_t n_mark = (size_t)(strchr(mark, REPLY_VALUE) - mark);
    if (memcmp(mark, r->held, n < n_mark ? n : n_mark) != 0)
        return NO_FIT;
    return n < n_mark ? PART_FIT : WHOLE_FIT;
}

static void read_value(reading *x, char c)
{
    reply_reader *r = x->r;
    r->held[r->n_held++] = c;
    const fit wrapped = fits_wrapped(x);
    if (wrapped == WHOLE_FIT) {
        r->quoted = true;
        r->n_held = 0;
        if (r->value != VALUE_OF_JSON && r->value != AS_TEXT)
            become_text(x);
    }
    if (wrapped != NO_FIT)
        return;
    while (r->n_held > 0) {
        int32_t n_end = 0;
        fit f = fits_end(x, false, &n_end);
        if (f == PART_FIT && r->n_held < (int32_t)sizeof r->held)
            return;
        if (f == WHOLE_FIT) {
            leave_value(x, n_end);
            return;
        }
        put_value(x, r->held[0]);
        reading_drop_held(x, 1);
    }
}

/* Ends the values. A text that looked like a parameter's beginning may have the value's end after
 * it. */
void values_end(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held, n_end = 0;
    memcpy(held, r->held, (size_t)n);
    for (int32_t i = 0; i < n && r->state == IN_VALUE; i++) {
        if (fits_end(x, true, &n_end) == WHOLE_FIT) {
            memcpy(r->held, held, (size_t)n);
            r->n_held = n;
            for (; i > 0; i--) {
                put_value(x, r->held[0]);
                reading_drop_held(x, 1);
            }
            leave_value(x, n_end);
            return;
        }
        reading_drop_held(x, 1);
    }
}

void values_read(reading *x, char c)
{
    switch (x->r->state) {
    case AT_PARAMETER:
        read_parameter(x, c);
        break;
    case IN_KEY:
        read_key(x, c);
        break;
    case AT_VALUE:
        read_value_mark(x, c);
        break;
    default:
        read_value(x, c);
    }
}
