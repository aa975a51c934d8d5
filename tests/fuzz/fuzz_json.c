/* Property: any bytes are refused with a sentence and a place, or are values that lie within the
 * text, whose strings are UTF-8 with a NUL behind, no deeper than the bound; written as JSON and read
 * again they are the same. The bytes themselves as a JSON string are one, of as many characters as
 * are counted. */
#include "fuzz/fuzz.h"
#include "serve/api/json_value.h"
#include "serve/api/text_out.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 400, ROOM = 1 << 16 };

static void write_value(text_out *o, const json_value *v, int depth)
{
    FUZZ_CHECK(depth <= JSON_MOST_DEPTH);
    bool list = v->type == JSON_ARRAY, object = v->type == JSON_OBJECT;
    uint32_t n = 0;
    if (v->type == JSON_NULL)
        out_text(o, "null");
    if (v->type == JSON_TRUE || v->type == JSON_FALSE)
        out_text(o, v->type == JSON_TRUE ? "true" : "false");
    if (v->type == JSON_NUMBER)
        out_format(o, "%.17g", v->number);
    if (v->type == JSON_STRING)
        out_string(o, v->text, v->n);
    if (!list && !object)
        return;
    out_text(o, list ? "[" : "{");
    for (const json_value *child = v->first; child; child = child->next) {
        out_text(o, n++ ? "," : "");
        FUZZ_CHECK((child->key != NULL) == object);
        if (object) {
            out_string(o, child->key, child->n_key);
            out_text(o, ":");
        }
        write_value(o, child, depth + 1);
    }
    FUZZ_CHECK(n == v->n);
    out_text(o, list ? "]" : "}");
}

static size_t count(const char *text, size_t n)
{
    size_t n_characters = 0;
    for (size_t i = 0; i < n; n_characters++) {
        size_t length = utf8_character(text + i, n - i);
        FUZZ_CHECK(length > 0);
        i += length;
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
    text_out out = {.text = text, .capacity = ROOM};
    json_value value;
    json_reader r = {.values = &value, .capacity = 1};
    out_string(&out, bytes, n);
    const json_value *v = out.full ? NULL : serve_json_parse(&r, text, out.n);
    FUZZ_CHECK(out.full || (v && v->type == JSON_STRING));
    FUZZ_CHECK(out.full || count(v->text, v->n) == utf8_characters(bytes, n));
}

static void check(const json_value *v, const char *from, size_t n)
{
    if (v->key)
        check_text(v->key, v->n_key, from, n);
    if (v->type == JSON_STRING)
        check_text(v->text, v->n, from, n);
    if (v->type == JSON_NUMBER)
        FUZZ_CHECK(isfinite(v->number) && (!v->is_integer || (double)v->integer == v->number));
    if (v->type == JSON_ARRAY || v->type == JSON_OBJECT)
        for (const json_value *child = v->first; child; child = child->next)
            check(child, from, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static json_value values[MOST_VALUES], again[MOST_VALUES];
    static char first[ROOM], second[ROOM], read_again[ROOM];
    json_reader r = {.values = values, .capacity = MOST_VALUES};
    json_reader r2 = {.values = again, .capacity = MOST_VALUES};
    char *text = malloc(n_bytes ? n_bytes : 1);
    FUZZ_CHECK(text);
    if (n_bytes)
        memcpy(text, bytes, n_bytes);
    check_as_string(text, n_bytes);
    json_value *v = serve_json_parse(&r, text, n_bytes);
    FUZZ_CHECK((v == NULL) == (r.why != NULL));
    if (!v) {
        FUZZ_CHECK(r.at <= n_bytes && strlen(r.why) > 8);
        free(text);
        return 0;
    }
    FUZZ_CHECK(r.n <= MOST_VALUES);
    check(v, text, n_bytes);
    text_out out = {.text = first, .capacity = ROOM}, out2 = {.text = second, .capacity = ROOM};
    write_value(&out, v, 0);
    if (!out.full) {
        memcpy(read_again, first, out.n);
        json_value *v2 = serve_json_parse(&r2, read_again, out.n);
        FUZZ_CHECK(v2);
        write_value(&out2, v2, 0);
        FUZZ_CHECK(out2.n == out.n && memcmp(first, second, out.n) == 0);
    }
    free(text);
    return 0;
}
