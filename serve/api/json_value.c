/* The JSON reader: see json_value.h. Recursive, at most JSON_MOST_DEPTH deep. */
#include "serve/api/json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    json_reader *reader;
    char *text;
    size_t n, at;
    int depth;
} cursor;

static json_value *read_value(cursor *c);

static bool bad(cursor *c, const char *why)
{
    if (!c->reader->why) {
        c->reader->why = why;
        c->reader->at = c->at;
    }
    return false;
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->n && c->text[c->at] && strchr(" \t\r\n", c->text[c->at]))
        c->at++;
}

static bool take(cursor *c, char byte)
{
    if (c->at >= c->n || c->text[c->at] != byte)
        return false;
    c->at++;
    return true;
}

static json_value *new_value(cursor *c, json_type type)
{
    json_reader *r = c->reader;
    if (r->n == r->capacity) {
        bad(c, "it has more values than a request may have");
        return NULL;
    }
    json_value *v = &r->values[r->n++];
    *v = (json_value){.type = type};
    return v;
}

/* ---- Strings ---- */

/* The four digits at the cursor; -1: they are none. */
static int32_t hex4(cursor *c)
{
    int32_t value = 0;
    if (c->n - c->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char digit = c->text[c->at + (size_t)i];
        int d = digit >= '0' && digit <= '9'   ? digit - '0'
                : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                               : -1;
        if (d < 0)
            return -1;
        value = value * 16 + d;
    }
    c->at += 4;
    return value;
}

static size_t put_utf8(char *out, int32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Behind "\u". Half a pair stands for no character: U+FFFD takes its place. */
static bool escaped_code(cursor *c, char *out, size_t *n)
{
    int32_t code = hex4(c);
    if (code < 0)
        return bad(c, "four hexadecimal digits belong behind \\u");
    if (code >= 0xD800 && code < 0xDC00 && c->n - c->at >= 6 && c->text[c->at] == '\\' &&
        c->text[c->at + 1] == 'u') {
        size_t before = c->at;
        c->at += 2;
        int32_t low = hex4(c);
        if (low >= 0xDC00 && low < 0xE000)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        else
            c->at = before;
    }
    if (code >= 0xD800 && code < 0xE000)
        code = 0xFFFD;
    *n += put_utf8(out + *n, code);
    return true;
}

static bool escaped(cursor *c, char *out, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->at >= c->n)
        return bad(c, "a string has no end");
    char what = c->text[c->at++];
    if (what == 'u')
        return escaped_code(c, out, n);
    const char *known = what ? strchr(from, what) : NULL;
    if (!known)
        return bad(c, "nobody knows what stands behind a \\");
    out[(*n)++] = to[known - from];
    return true;
}

/* The cursor stands behind the first quote. What is decoded is never longer than what stood there,
 * and the NUL takes the last quote's place at most. */
static bool read_string(cursor *c, const char **text, uint32_t *n_text)
{
    char *out = c->text + c->at;
    size_t n = 0;
    while (c->at < c->n) {
        unsigned char byte = (unsigned char)c->text[c->at];
        if (byte == '"') {
            c->at++;
            out[n] = '\0';
            *text = out;
            *n_text = (uint32_t)n;
            return true;
        }
        if (byte == '\\') {
            c->at++;
            if (!escaped(c, out, &n))
                return false;
            continue;
        }
        if (byte < 0x20)
            return bad(c, "a string holds a control character that has to be escaped");
        size_t length = utf8_character(c->text + c->at, c->n - c->at);
        if (length == 0)
            return bad(c, "a string is no UTF-8");
        memmove(out + n, c->text + c->at, length);
        n += length;
        c->at += length;
    }
    return bad(c, "a string has no end");
}

/* ---- Numbers ---- */

static size_t digits(const cursor *c, size_t at)
{
    size_t n = 0;
    while (at + n < c->n && c->text[at + n] >= '0' && c->text[at + n] <= '9')
        n++;
    return n;
}

static bool read_integer(const char *text, int64_t *value)
{
    char *end;
    long long read = strtoll(text, &end, 10);
    *value = read;
    return *end == '\0' && strlen(text) <= 18;
}

static json_value *read_number(cursor *c)
{
    char copy[128];
    size_t at = c->at + (c->text[c->at] == '-'), n = digits(c, at);
    if (n == 0 || (n > 1 && c->text[at] == '0')) {
        bad(c, "a number is written as JSON has none");
        return NULL;
    }
    at += n;
    bool whole = true;
    if (at < c->n && c->text[at] == '.') {
        n = digits(c, at + 1);
        at += n + 1;
        whole = false;
    }
    if (n && at < c->n && (c->text[at] == 'e' || c->text[at] == 'E')) {
        at++;
        at += at < c->n && (c->text[at] == '+' || c->text[at] == '-');
        n = digits(c, at);
        at += n;
        whole = false;
    }
    size_t length = at - c->at;
    if (n == 0 || length >= sizeof copy) {
        bad(c, n ? "a number is too long" : "a number is written as JSON has none");
        return NULL;
    }
    memcpy(copy, c->text + c->at, length);
    copy[length] = '\0';
    json_value *v = new_value(c, JSON_NUMBER);
    if (!v)
        return NULL;
    v->number = strtod(copy, NULL);
    v->is_integer = whole && read_integer(copy, &v->integer);
    if (!isfinite(v->number)) {
        bad(c, "a number is too large");
        return NULL;
    }
    c->at = at;
    return v;
}

/* ---- Arrays and objects ---- */

static bool read_key(cursor *c, const char **key, uint32_t *n_key)
{
    skip_blanks(c);
    if (!take(c, '"'))
        return bad(c, "an object's key is missing");
    if (!read_string(c, key, n_key))
        return false;
    skip_blanks(c);
    return take(c, ':') || bad(c, "a \":\" is missing");
}

/* The cursor stands behind the opening bracket. */
static json_value *read_members(cursor *c, json_type type)
{
    char end = type == JSON_ARRAY ? ']' : '}';
    json_value *list = new_value(c, type), *last = NULL;
    if (!list)
        return NULL;
    skip_blanks(c);
    if (take(c, end))
        return list;
    for (;;) {
        const char *key = NULL;
        uint32_t n_key = 0;
        if (type == JSON_OBJECT && !read_key(c, &key, &n_key))
            return NULL;
        json_value *v = read_value(c);
        if (!v)
            return NULL;
        v->key = key;
        v->n_key = n_key;
        if (last)
            last->next = v;
        else
            list->first = v;
        last = v;
        list->n++;
        skip_blanks(c);
        if (take(c, end))
            return list;
        if (!take(c, ',')) {
            bad(c, "a \",\" or the end of an array or object is missing");
            return NULL;
        }
    }
}

static json_value *read_word(cursor *c)
{
    static const struct {
        const char *word;
        json_type type;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);
        if (c->n - c->at >= n && memcmp(c->text + c->at, words[i].word, n) == 0) {
            c->at += n;
            return new_value(c, words[i].type);
        }
    }
    bad(c, "a value is missing");
    return NULL;
}

static json_value *read_value(cursor *c)
{
    skip_blanks(c);
    if (c->at >= c->n) {
        bad(c, "it ends too early");
        return NULL;
    }
    char first = c->text[c->at];
    if (first == '"') {
        json_value *v = new_value(c, JSON_STRING);
        c->at++;
        return v && read_string(c, &v->text, &v->n) ? v : NULL;
    }
    if (first == '-' || (first >= '0' && first <= '9'))
        return read_number(c);
    if (first != '[' && first != '{')
        return read_word(c);
    if (c->depth == JSON_MOST_DEPTH) {
        bad(c, "arrays and objects stand in each other too deep");
        return NULL;
    }
    c->at++;
    c->depth++;
    json_value *v = read_members(c, first == '[' ? JSON_ARRAY : JSON_OBJECT);
    c->depth--;
    return v;
}

json_value *serve_json_parse(json_reader *r, char *text, size_t n)
{
    cursor c = {.reader = r, .text = text, .n = n};
    r->n = 0;
    r->why = NULL;
    r->at = 0;
    json_value *v = n > UINT32_MAX / 2 && !bad(&c, "it is too long") ? NULL : read_value(&c);
    skip_blanks(&c);
    if (v && c.at < n && !bad(&c, "something stands behind it"))
        v = NULL;
    return v;
}

json_value *serve_json_member(const json_value *object, const char *key)
{
    json_value *found = NULL;
    size_t n = strlen(key);
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (json_value *v = object->first; v; v = v->next)
        if (v->n_key == n && memcmp(v->key, key, n) == 0)
            found = v;
    return found && found->type != JSON_NULL ? found : NULL;
}

void serve_json_put(const json_value *v, text_out *out)
{
    static const char *const words[] = {"null", "false", "true"};
    bool object = v->type == JSON_OBJECT;
    if (v->type <= JSON_TRUE) {
        out_text(out, words[v->type]);
    } else if (v->type == JSON_STRING) {
        out_string(out, v->text, v->n);
    } else if (v->type == JSON_NUMBER && v->is_integer) {
        out_format(out, "%lld", (long long)v->integer);
    } else if (v->type == JSON_NUMBER) {
        out_format(out, "%.17g", v->number);
    } else {
        out_text(out, object ? "{" : "[");
        for (const json_value *one = v->first; one; one = one->next) {
            out_text(out, one == v->first ? "" : ",");
            if (object) {
                out_string(out, one->key, one->n_key);
                out_text(out, ":");
            }
            serve_json_put(one, out);
        }
        out_text(out, object ? "}" : "]");
    }
}
