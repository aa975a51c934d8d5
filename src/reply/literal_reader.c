/* Reads arguments in the model's notation, and gives them out as a JSON object:
 *
 *     {city:<|"|>Paris<|"|>,n:[1,2]}      {"city": "Paris", "n": [1, 2]}
 *     (city='Paris', n=[1, 2])
 *
 *   AT_ITEM --a key--> IN_KEYWORD, IN_QUOTED_KEY --its end--> AT_ITEM_VALUE --> IN_ATOM, IN_TEXT
 *      ^  |                                                     |                     |
 *      |  +-- the item of a list --> IN_ATOM, IN_TEXT           +-- a bracket: AT_ITEM
 *      +------------------------------- its end -------------------------------------+
 *
 * Whatever the model writes, what comes out is JSON: any closing bracket closes the innermost list
 * or object, and what cannot be read is left out. Lists that are nested too deeply are null. */
#include "reply/reply_reading.h"

#include <string.h>

enum { AT_ITEM, IN_KEYWORD, IN_QUOTED_KEY, AFTER_KEY, AT_ITEM_VALUE, IN_ATOM, IN_TEXT, AFTER_TEXT };
enum { MOST_LEVELS = 32 };

/* ---- Levels ---- */

static uint64_t bit_of(int32_t level)
{
    return UINT64_C(1) << (level - 1);
}

/* Returns whether the innermost level is an object: in the lower half of `came`. */
static bool in_object(const reply_reader *r)
{
    return r->levels <= MOST_LEVELS && (r->came & bit_of(r->levels));
}

/* Nothing is given out of levels that are nested too deeply. */
static void put(reading *x, char c)
{
    if (x->r->levels <= MOST_LEVELS)
        reading_put(x, DREY_REPLY_ARGUMENTS, c);
}

static void put_all(reading *x, const char *text)
{
    for (; *text; text++)
        put(x, *text);
}

static void put_escaped(reading *x, char c)
{
    if (x->r->levels <= MOST_LEVELS)
        reading_put_escaped(x, c);
}

/* A comma where something came before: in the upper half of `came`. */
static void begin_item(reading *x)
{
    reply_reader *r = x->r;
    if (r->levels == 0 || r->levels > MOST_LEVELS)
        return;
    const uint64_t filled = bit_of(r->levels) << MOST_LEVELS;
    put_all(x, r->came & filled ? ", " : "");
    r->came |= filled;
}

static void open_level(reading *x, bool object)
{
    reply_reader *r = x->r;
    if (r->levels == MOST_LEVELS)
        put_all(x, "null");
    r->levels++;
    r->at = AT_ITEM;
    if (r->levels > MOST_LEVELS)
        return;
    const uint64_t bit = bit_of(r->levels);
    r->came = (r->came & ~(bit | bit << MOST_LEVELS)) | (object ? bit : 0);
    put(x, object ? '{' : '[');
}

static void close_level(reading *x)
{
    reply_reader *r = x->r;
    put(x, in_object(r) ? '}' : ']');
    r->levels--;
    r->at = AT_ITEM;
    if (r->levels > 0)
        return;
    r->quoted = false;
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    reading_end_call(x);
}

static bool closes(char c)
{
    return c == ')' || c == ']' || c == '}';
}

/* ---- Quotes ---- */

/* Returns whether the byte begins a text, as far as is known: a mark of several bytes is held. */
static fit fits_quote(const reading *x, const char *text, size_t n)
{
    const char *quote = x->f->literal.quote;
    if (!quote)
        return *text == '"' || *text == '\'' ? WHOLE_FIT : NO_FIT;
    size_t n_quote = strlen(quote);
    if (memcmp(quote, text, n < n_quote ? n : n_quote) != 0)
        return NO_FIT;
    return n < n_quote ? PART_FIT : WHOLE_FIT;
}

/* Reads again what is held, as what the state says. */
static void read_held(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    r->n_held = 0;
    for (int32_t i = 0; i < n; i++)
        reading_step(x, held[i]);
}

/* ---- Keys ---- */

static void end_key(reading *x)
{
    reply_reader *r = x->r;
    begin_item(x);
    put(x, '"');
    for (int32_t i = 0; i < r->n_name; i++)
        put_escaped(x, r->name[i]);
    put_all(x, "\": ");
    r->value = VALUE_OF_EITHER;
    if (r->levels == 1)
        r->value = (int32_t)reply_values_find(&r->form, r->tool, r->name, (size_t)r->n_name);
    r->n_name = 0;
    r->at = AT_ITEM_VALUE;
}

static void keep(reply_reader *r, char c)
{
    if (r->n_name < (int32_t)sizeof r->name)
        r->name[r->n_name++] = c;
}

static void trim_name(reply_reader *r)
{
    while (r->n_name > 0 && reading_blank(r->name[r->n_name - 1]))
        r->n_name--;
}

/* Returns whether c is between a key and its value, at this level. */
static bool assigns(const reading *x, char c)
{
    return c == (x->r->levels > 1 ? ':' : x->f->literal.assign);
}

/* A key without a value: the value is null. */
static void end_bare_key(reading *x, char c)
{
    end_key(x);
    put_all(x, "null");
    x->r->at = AT_ITEM;
    reading_step(x, c);
}

static void read_keyword(reading *x, char c)
{
    reply_reader *r = x->r;
    if (!assigns(x, c) && c != ',' && !closes(c)) {
        keep(r, c);
        return;
    }
    trim_name(r);
    if (assigns(x, c))
        end_key(x);
    else
        end_bare_key(x, c);
}

static void read_after_key(reading *x, char c)
{
    if (reading_blank(c))
        return;
    if (assigns(x, c))
        end_key(x);
    else
        end_bare_key(x, c);
}

static void read_quoted_key(reading *x, char c)
{
    reply_reader *r = x->r;
    const bool python = !x->f->literal.quote;
    r->held[r->n_held++] = c;
    fit f = python && c != (char)r->spelling ? NO_FIT : fits_quote(x, r->held, (size_t)r->n_held);
    if (f == PART_FIT)
        return;
    if (f == WHOLE_FIT)
        r->at = AFTER_KEY;
    for (int32_t i = 0; i < r->n_held && f == NO_FIT; i++)
        keep(r, r->held[i]);
    r->n_held = 0;
}

/* ---- Values without quotes ---- */

/* Makes the kept part of a value the beginning of a text that has no quotes. */
static void become_text(reading *x)
{
    reply_reader *r = x->r;
    put(x, '"');
    for (int32_t i = 0; i < r->n_name; i++)
        put_escaped(x, r->name[i]);
    r->n_name = 0;
    r->quoted = true;
}

static void end_atom(reading *x)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                                           {"true", "true"}, {"false", "false"}, {"null", "null"},
                                           {"", "null"}};
    reply_reader *r = x->r;
    trim_name(r);
    const size_t n = (size_t)r->n_name;
    for (size_t i = 0; i < sizeof words / sizeof *words && !r->quoted; i++)
        if (strlen(words[i][0]) == n && memcmp(words[i][0], r->name, n) == 0) {
            put_all(x, words[i][1]);
            r->n_name = 0;
            return;
        }
    if (!r->quoted && r->value != VALUE_OF_TEXT && reading_is_json(r->name, n)) {
        for (size_t i = 0; i < n; i++)
            put(x, r->name[i]);
    } else {
        if (!r->quoted)
            become_text(x);
        put(x, '"');
    }
    r->n_name = 0;
}

static void read_atom(reading *x, char c)
{
    reply_reader *r = x->r;
    if (c == ',' || closes(c)) {
        end_atom(x);
        r->at = AT_ITEM;
        reading_step(x, c);
        return;
    }
    if (!r->quoted && r->n_name == (int32_t)sizeof r->name)
        become_text(x);
    if (r->quoted)
        put_escaped(x, c);
    else
        keep(r, c);
}

/* ---- Texts ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Reads an escape, of which all since the backslash is held. One that is none is the text itself.
 */
static void read_escape(reading *x, char c)
{
    static const char letters[] = "ntrbf\"\\/'", instead[] = "ntrbf\"\\/";
    reply_reader *r = x->r;
    const char *letter = c ? strchr(letters, c) : NULL;
    r->held[r->n_held++] = c;
    const char kind = r->held[1];
    const int32_t n_digits = kind == 'u' ? 4 : kind == 'x' ? 2 : 0;
    if (r->n_held == 2 && n_digits > 0)
        return;
    if (r->n_held == 2 && letter) {
        if (c == '\'')
            put(x, c);
        else {
            put(x, '\\');
            put(x, instead[letter - letters]);
        }
    } else if (n_digits > 0 && hex_of(c) >= 0) {
        if (r->n_held < n_digits + 2)
            return;
        put_all(x, kind == 'u' ? "\\u" : "\\u00");
        for (int32_t i = 2; i < r->n_held; i++)
            put(x, r->held[i]);
    } else { /* its last byte may end the text */
        for (int32_t i = 0; i + 1 < r->n_held; i++)
            put_escaped(x, r->held[i]);
        r->n_held = 0;
        r->string.escaped = false;
        reading_step(x, c);
        return;
    }
    r->n_held = 0;
    r->string.escaped = false;
}

static void end_text(reading *x)
{
    put(x, '"');
    x->r->n_held = 0;
    x->r->at = AT_ITEM;
}

/* Python's quote ends the text if what comes next can follow it: a model may forget an escape. */
static void read_after_text(reading *x, char c)
{
    enum { MOST_BLANKS = 40 };
    reply_reader *r = x->r;
    if (reading_blank(c) && r->n_held < MOST_BLANKS) {
        r->held[r->n_held++] = c;
        return;
    }
    if (c == ',' || c == ':' || closes(c)) {
        end_text(x);
        reading_step(x, c);
        return;
    }
    r->at = IN_TEXT;
    put_escaped(x, (char)r->spelling);
    for (int32_t i = 0; i < r->n_held; i++)
        put_escaped(x, r->held[i]);
    r->n_held = 0;
    reading_step(x, c);
}

static void read_python_text(reading *x, char c)
{
    reply_reader *r = x->r;
    if (r->string.escaped) {
        read_escape(x, c);
    } else if (c == '\\') {
        r->string.escaped = true;
        r->held[r->n_held++] = c;
    } else if (c == (char)r->spelling) {
        r->at = AFTER_TEXT;
    } else {
        put_escaped(x, c);
    }
}

static void read_text(reading *x, char c)
{
    reply_reader *r = x->r;
    if (!x->f->literal.quote) {
        read_python_text(x, c);
        return;
    }
    r->held[r->n_held++] = c;
    while (r->n_held > 0) {
        fit f = fits_quote(x, r->held, (size_t)r->n_held);
        if (f == PART_FIT)
            return;
        if (f == WHOLE_FIT) {
            end_text(x);
            return;
        }
        put_escaped(x, r->held[0]);
        reading_drop_held(x, 1);
    }
}

/* ---- Items ---- */

/* A key or the item of a list begins, or a value: with what is held. */
static void begin_part(reading *x, bool key)
{
    reply_reader *r = x->r;
    fit f = fits_quote(x, r->held, (size_t)r->n_held);
    if (f == PART_FIT)
        return;
    r->n_name = 0;
    r->quoted = r->string.escaped = false;
    if (f == WHOLE_FIT) {
        r->spelling = (uint8_t)r->held[0];
        r->n_held = 0;
        r->at = key ? IN_QUOTED_KEY : IN_TEXT;
        if (!key)
            put(x, '"');
        return;
    }
    r->at = key ? IN_KEYWORD : IN_ATOM;
    read_held(x);
}

/* Reads in front of a value, or of a key or item. */
static void read_item(reading *x, char c)
{
    reply_reader *r = x->r;
    const bool value = r->at == AT_ITEM_VALUE, key = !value && in_object(r);
    const bool empty = r->n_held == 0;
    if (empty && (reading_blank(c) || (!value && c == ',')))
        return;
    if (empty && (closes(c) || c == ',')) {
        put_all(x, value ? "null" : "");
        r->at = AT_ITEM;
        if (c != ',')
            close_level(x);
        return;
    }
    if (empty && !key && !value) {
        r->value = VALUE_OF_EITHER;
        begin_item(x);
        r->at = AT_ITEM_VALUE;
    }
    if (empty && !key && (c == '{' || c == '[' || c == '(')) {
        open_level(x, c == '{');
        return;
    }
    r->held[r->n_held++] = c;
    begin_part(x, key);
}

void literal_begin(reading *x)
{
    reply_reader *r = x->r;
    reading_enter(x, IN_LITERAL);
    r->levels = 0;
    r->came = 0;
    open_level(x, true);
}

void literal_read(reading *x, char c)
{
    switch (x->r->at) {
    case IN_KEYWORD:
        read_keyword(x, c);
        break;
    case IN_QUOTED_KEY:
        read_quoted_key(x, c);
        break;
    case AFTER_KEY:
        read_after_key(x, c);
        break;
    case IN_ATOM:
        read_atom(x, c);
        break;
    case IN_TEXT:
        read_text(x, c);
        break;
    case AFTER_TEXT:
        read_after_text(x, c);
        break;
    default:
        read_item(x, c);
    }
}
