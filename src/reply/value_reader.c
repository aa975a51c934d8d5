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
 * Texts are escaped, other values are JSON already. */
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

static void put_escaped(reading *x, char c)
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

/* What is between two of a parameter's parts. */
static const char *after(const reading *x, char part)
{
    return strchr(x->f->parameter, part) + 1;
}

static void enter(reading *x, int32_t state)
{
    x->r->state = state;
    x->r->at = x->r->n_held = 0;
}

void values_begin(reading *x, char c)
{
    enter(x, AT_PARAMETER);
    x->r->levels = 0; /* parameters that came */
    values_read(x, c);
}

/* No parameter follows: the rest of the call does. */
static void end_arguments(reading *x)
{
    drey_reply_reader *r = x->r;
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
    drey_reply_reader *r = x->r;
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

/* JSON that is no text. */
static bool is_json(const char *text, size_t n)
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

/* What was kept of a value is the beginning of a text. */
static void become_text(reading *x)
{
    drey_reply_reader *r = x->r;
    put(x, '"');
    for (int32_t i = 0; i < r->n_name; i++)
        put_escaped(x, r->name[i]);
    r->n_name = 0;
    r->value = AS_TEXT;
}

static void read_key(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    if (c != *after(x, REPLY_KEY) && r->n_name < (int32_t)sizeof r->name) {
        r->name[r->n_name++] = c;
        return;
    }
    put_all(x, "{\"", r->levels == 0 ? 2 : 0);
    put_all(x, ", \"", r->levels > 0 ? 3 : 0);
    for (int32_t i = 0; i < r->n_name; i++)
        put_escaped(x, r->name[i]);
    put_all(x, "\": ", 3);
    r->levels = 1;
    r->value = (int32_t)reply_values_find(&r->form, r->tool, r->name, (size_t)r->n_name);
    r->n_name = 0;
    if (r->value == VALUE_OF_TEXT)
        become_text(x);
    enter(x, AT_VALUE);
    values_read(x, c);
}

/* Follows the mark's end. Its blanks may be missing. */
static void read_value_mark(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    const char *p = after(x, REPLY_KEY) + r->at;
    while (reading_blank(*p) && *p != c) {
        p++;
        r->at++;
    }
    if (*p == c && *p != REPLY_VALUE) {
        r->at++;
        return;
    }
    enter(x, IN_VALUE);
    values_read(x, c);
}

static void put_value(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    if (r->value == AS_TEXT) {
        put_escaped(x, c);
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
        put_escaped(x, c);
    else
        r->name[r->n_name++] = c;
}

static void end_value(reading *x)
{
    drey_reply_reader *r = x->r;
    const size_t n = (size_t)r->n_name;
    bool null = n == 4 && memcmp(r->name, "null", 4) == 0;
    if (r->value == VALUE_OF_JSON) {
        put_all(x, "null", n == 0 ? 4 : 0);
    } else if (r->value == VALUE_OF_EITHER ? is_json(r->name, n)
                                           : r->value == VALUE_OF_TEXT_OR_NULL && null) {
        put_all(x, r->name, n);
    } else {
        if (r->value != AS_TEXT)
            become_text(x);
        put(x, '"');
    }
    enter(x, AT_PARAMETER);
}

/* The newline in front of the mark that ends a value may be missing; if it is there, it belongs to
 * the mark. */
static fit fits_end(const reading *x)
{
    const drey_reply_reader *r = x->r;
    const char *mark = after(x, REPLY_VALUE);
    int32_t line = *mark == '\n' && r->held[0] == '\n';
    if (line && r->n_held == 1)
        return PART_FIT;
    return reading_fits(mark, r->held + line, (size_t)(r->n_held - line));
}

static void read_value(reading *x, char c)
{
    drey_reply_reader *r = x->r;
    r->held[r->n_held++] = c;
    while (r->n_held > 0) {
        fit f = fits_end(x);
        if (f == PART_FIT)
            return;
        if (f == WHOLE_FIT) {
            end_value(x);
            return;
        }
        put_value(x, r->held[0]);
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
