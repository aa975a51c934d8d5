/* Property: any bytes are refused with a sentence and a place, or are values that lie within the
 * text, whose strings are UTF-8 and end in a NUL, no deeper than the bound; written as JSON, on
 * one line or on many, and read again they are the same. The bytes themselves as a JSON string are
 * one, of as many characters as are counted. */
#include "common/json_value.h"
#include "common/json_writer.h"
#include "common/utf8.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 400, ROOM = 1 << 16 };

typedef struct buffer {
    char *text;
    size_t n;
    bool full;
} buffer;

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    buffer *b = user;
    FUZZ_CHECK(n > 0 || !from);
    if (n > ROOM - b->n)
        b->full = true;
    else
        memcpy(b->text + b->n, bytes, n), b->n += n;
}

static void write_value(buffer *b, const json_value *v, bool lines)
{
    json_writer w = {.put = put, .user = b, .ascii = lines};
    if (lines)
        w.indent = (json_span){"\t", 1};
    json_raw_value(&w, v);
    FUZZ_CHECK(w.n_levels == 0);
}

static size_t count(const char *text, size_t n)
{
    size_t n_characters = 0;
    for (size_t i = 0; i < n; n_characters++) {
        int length = utf8_length((const uint8_t *)text + i, n - i);
        FUZZ_CHECK(length > 0);
        i += (size_t)length;
    }
    return n_characters;
}

static void check_text(const char *text, uint32_t n, const char *from, size_t n_all)
{
    FUZZ_CHECK(text >= from && text + n < from + n_all && text[n] == '\0');
    count(text, n);
}

static void check_as_string(const char *bytes, size_t n)
{
    static char text[ROOM];
    buffer out = {.text = text};
    json_value value;
    json_values all = {.values = &value, .capacity = 1};
    json_raw_string(&(json_writer){.put = put, .user = &out}, bytes, n);
    const json_value *v = out.full ? NULL : json_parse(&all, text, out.n);
    FUZZ_CHECK(out.full || (v && v->type == JSON_STRING));
    FUZZ_CHECK(out.full || count(v->text, v->n) == utf8_count(bytes, n));
}

static void check(const json_value *v, const char *from, size_t n, int depth)
{
    FUZZ_CHECK(depth <= JSON_MOST_DEPTH);
    if (v->key)
        check_text(v->key, v->n_key, from, n);
    if (v->type == JSON_STRING)
        check_text(v->text, v->n, from, n);
    if (v->type == JSON_NUMBER)
        FUZZ_CHECK(isfinite(v->number) && (!v->is_integer || (double)v->integer == v->number));
    if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
        return;
    uint32_t n_children = 0;
    for (const json_value *child = v->first; child; child = child->next, n_children++) {
        FUZZ_CHECK((child->key != NULL) == (v->type == JSON_OBJECT));
        check(child, from, n, depth + 1);
    }
    FUZZ_CHECK(n_children == v->n);
}

/* Written, read and written again. */
static void check_again(const json_value *v, bool lines)
{
    static json_value again[MOST_VALUES];
    static char first[ROOM], second[ROOM], copy[ROOM];
    buffer out = {.text = first}, out2 = {.text = second};
    json_values all = {.values = again, .capacity = MOST_VALUES};
    write_value(&out, v, lines);
    if (out.full)
        return;
    memcpy(copy, first, out.n);
    const json_value *v2 = json_parse(&all, copy, out.n);
    FUZZ_CHECK(v2);
    write_value(&out2, v2, lines);
    FUZZ_CHECK(out2.n == out.n && memcmp(first, second, out.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static json_value values[MOST_VALUES];
    json_values all = {.values = values, .capacity = MOST_VALUES};
    json_document loaded;
    char *text = fuzz_copy(bytes, n_bytes);
    check_as_string(text, n_bytes);
    json_value *v = json_load(&loaded, text, n_bytes);
    json_free(&loaded);
    bool good = v != NULL;
    v = json_parse(&all, text, n_bytes);
    FUZZ_CHECK((v == NULL) == (all.why != NULL) && (good || !v));
    if (v) {
        FUZZ_CHECK(all.n <= MOST_VALUES);
        check(v, text, n_bytes, 0);
        check_again(v, false);
        check_again(v, true);
    } else {
        FUZZ_CHECK(all.at <= n_bytes && strlen(all.why) > 8);
    }
    free(text);
    return 0;
}
