/* Reading JSON: see json.h. */
#include "template/json.h"

#include "common/json_reader.h"

enum { MOST_NESTED = 100 }; /* conversations and schemas have a dozen levels */

typedef struct from_json {
    heap *r;
    json_reader in;
    bool marked;
} from_json;

/* Returns whether a byte was said in the conversation: all bytes, or this one. */
static bool said(const from_json *j, const char *at)
{
    return j->marked || text_is_marked(j->r, at);
}

static value take_string(from_json *j)
{
    json_part part;
    size_t at = text_begin(j->r);
    while (heap_ok(j->r) && json_next_part(&j->in, &part))
        text_put_marked(j->r, part.bytes, part.n,
                        part.bytes == part.from ? j->marked : said(j, part.from));
    return text_end(j->r, at);
}

static value take_number(from_json *j, bool marked)
{
    value digits = string_copy(j->r, j->in.text + j->in.begin, j->in.end - j->in.begin, marked);
    return json_is_whole(&j->in) ? int_from_text(digits) : float_from_text(j->r, digits);
}

static value take_value(from_json *j, json_event event);

static value take_members(from_json *j, bool is_map)
{
    value all = is_map ? map_new(j->r, 0) : list_new(j->r, 0, STYLE_LIST), key = value_none();
    for (;;) {
        json_event event = json_next(&j->in);
        if (!heap_ok(j->r) || event == JSON_CLOSE || event == JSON_BROKEN)
            return all;
        if (event == JSON_KEY)
            key = take_string(j);
        else if (is_map)
            map_set(j->r, all, key, take_value(j, event));
        else
            list_add(j->r, all, take_value(j, event));
    }
}

/* The value that an event begins. */
static value take_value(from_json *j, json_event event)
{
    bool marked = said(j, j->in.text + j->in.begin);
    value v = value_none();
    if (event == JSON_BROKEN || !heap_charge(j->r, 0))
        return v;
    if (event == JSON_STRING)
        return take_string(j);
    if (event == JSON_ARRAY || event == JSON_OBJECT)
        v = take_members(j, event == JSON_OBJECT);
    else if (event == JSON_NUMBER)
        v = take_number(j, marked);
    else if (event != JSON_NULL)
        v = value_bool(event == JSON_TRUE);
    v.marked = marked;
    return v;
}

value value_from_json(heap *r, const char *text, size_t n, bool marked, const char *what)
{
    from_json j = {.r = r, .marked = marked};
    json_reader_init(&j.in, text, n, MOST_NESTED);
    heap_charge(r, n);
    value v = take_value(&j, json_next(&j.in));
    if (heap_ok(r))
        json_next(&j.in);
    if (heap_ok(r) && j.in.why)
        heap_fail(r, DREY_ERR_USAGE, "byte %zu of %s: %s", j.in.why_at + 1, what, j.in.why);
    return v;
}
