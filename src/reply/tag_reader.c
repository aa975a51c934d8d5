/* Reads arguments of which each is within tags of its name, and gives them out as a JSON object:
 *
 *     #<city>Paris#</city>#<days>#<item>1#</item>#</days>      {"city": "Paris", "days": [1]}
 *
 * where # is a mark that no text has. A value with tags in it is a list if they are called "item",
 * else an object; one without is JSON if it looks like it, else a text, and a text where the tool's
 * schema says so of a parameter. Any closing tag closes the innermost value. */
#include "reply/reply_reading.h"

#include <string.h>

enum { IN_TAG_TEXT, IN_TAG };
/* Levels of values, with that of the arguments; deeper ones are null. */
enum { MOST_LEVELS = 32 };

/* ---- Levels: a bit each in `came`, whether it is a list; above, whether it has tags ---- */

static bool has_bit(const reply_reader *r, int32_t from)
{
    return r->levels < MOST_LEVELS && (r->came >> (from + r->levels) & 1);
}

static bool is_list(const reply_reader *r)
{
    return has_bit(r, 0);
}

static bool has_tags(const reply_reader *r)
{
    return has_bit(r, MOST_LEVELS);
}

static void put_all(reading *x, const char *text)
{
    for (; *text && x->r->levels < MOST_LEVELS; text++)
        reading_put(x, DREY_REPLY_ARGUMENTS, *text);
}

static void put_escaped(reading *x, const char *text, int32_t n)
{
    for (int32_t i = 0; i < n && x->r->levels < MOST_LEVELS; i++)
        reading_put_escaped(x, text[i]);
}

/* ---- Values ---- */

static void become_text(reading *x)
{
    reply_reader *r = x->r;
    put_all(x, "\"");
    put_escaped(x, r->name, r->n_name);
    r->n_name = 0;
    r->quoted = true;
}

static void read_text(reading *x, char c)
{
    reply_reader *r = x->r;
    if (r->levels == 0 || has_tags(r)) /* blanks between tags */
        return;
    if (!r->quoted && (r->value == VALUE_OF_TEXT || r->n_name == (int32_t)sizeof r->name))
        become_text(x);
    if (r->quoted)
        put_escaped(x, &c, 1);
    else
        r->name[r->n_name++] = c;
}

/* The end of a value without tags. */
static void end_leaf(reading *x)
{
    reply_reader *r = x->r;
    const size_t n = (size_t)r->n_name;
    if (!r->quoted && n > 0 && reading_is_json(r->name, n)) {
        for (size_t i = 0; i < n && r->levels < MOST_LEVELS; i++)
            reading_put(x, DREY_REPLY_ARGUMENTS, r->name[i]);
    } else if (!r->quoted && n == 0 && r->value == VALUE_OF_JSON) {
        put_all(x, "{}");
    } else {
        if (!r->quoted)
            become_text(x);
        put_all(x, "\"");
    }
    r->quoted = false;
    r->n_name = 0;
}

/* ---- Tags ---- */

static void open_tag(reading *x, const char *key, int32_t n)
{
    reply_reader *r = x->r;
    if (r->quoted) /* in a text, where no tag is */
        return;
    if (has_tags(r)) {
        put_all(x, ", ");
    } else if (r->levels < MOST_LEVELS) {
        const bool list = r->levels > 0 && n == 4 && memcmp(key, "item", 4) == 0;
        r->came |= UINT64_C(1) << (MOST_LEVELS + r->levels) | (uint64_t)list << r->levels;
        put_all(x, list ? "[" : "{");
    }
    if (!is_list(r)) {
        put_all(x, "\"");
        put_escaped(x, key, n);
        put_all(x, "\": ");
    }
    r->value = VALUE_OF_EITHER;
    if (r->levels == 0)
        r->value = (int32_t)reply_values_find(&r->form, r->tool, key, (size_t)n);
    if (r->levels == MOST_LEVELS - 1)
        put_all(x, "null");
    r->levels++;
    r->n_name = 0;
    if (r->levels < MOST_LEVELS)
        r->came &= ~(UINT64_C(1) << r->levels) & ~(UINT64_C(1) << (MOST_LEVELS + r->levels));
}

static void close_tag(reading *x)
{
    reply_reader *r = x->r;
    if (has_tags(r))
        put_all(x, is_list(r) ? "]" : "}");
    else
        end_leaf(x);
    r->n_name = 0;
    r->levels--;
}

/* The call's own end, which is held: it is read again. */
static void end_arguments(reading *x)
{
    reply_reader *r = x->r;
    char held[sizeof r->held];
    int32_t n = r->n_held;
    memcpy(held, r->held, (size_t)n);
    for (; r->levels > 0;) /* what was left open */
        close_tag(x);
    put_all(x, has_tags(r) ? "}" : "{}");
    reading_flush(x);
    reading_give(x, DREY_REPLY_CALL_END, "", 0);
    reading_enter(x, IN_REST);
    for (int32_t i = 0; i < n; i++)
        reading_step(x, held[i]);
}

/* A whole tag is held, with the mark in front. */
static void take_tag(reading *x)
{
    reply_reader *r = x->r;
    const int32_t n_mark = (int32_t)strlen(x->f->tag), from = n_mark + 1;
    const char *tag = r->held + from;
    const int32_t n = r->n_held - from - 1;
    static const char end[] = "/invoke";
    const bool ends = n == (int32_t)sizeof end - 1 && memcmp(tag, end, sizeof end - 1) == 0;
    if (ends || (n > 0 && *tag == '/' && r->levels == 0)) {
        end_arguments(x);
        return;
    }
    if (n > 0 && *tag == '/')
        close_tag(x);
    else
        open_tag(x, tag, n);
    r->n_held = 0;
    r->at = IN_TAG_TEXT;
}

static void give_held(reading *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        read_text(x, x->r->held[0]);
        reading_drop_held(x, 1);
    }
}

void tags_begin(reading *x)
{
    reading_enter(x, IN_TAGS);
    x->r->levels = 0;
    x->r->came = 0;
    x->r->n_name = 0;
    x->r->quoted = false;
}

void tags_read(reading *x, char c)
{
    reply_reader *r = x->r;
    const char *mark = x->f->tag;
    const int32_t n_mark = (int32_t)strlen(mark);
    r->held[r->n_held++] = c;
    if (r->at == IN_TAG) {
        const bool is_tag = r->held[n_mark] == '<';
        if (is_tag && c == '>')
            take_tag(x);
        else if (!is_tag || r->n_held == (int32_t)sizeof r->held) {
            r->at = IN_TAG_TEXT;
            give_held(x, r->n_held);
        }
        return;
    }
    while (r->n_held > 0 &&
           memcmp(mark, r->held, (size_t)(r->n_held < n_mark ? r->n_held : n_mark)) != 0)
        give_held(x, 1);
    if (r->n_held == n_mark)
        r->at = IN_TAG;
}
