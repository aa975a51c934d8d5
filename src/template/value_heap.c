/* The room of a chat template's values, and its strings: see value.h. */
#include "template/value.h"

#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "common/size_text.h"
#include "common/utf8.h"

drey_status heap_init(heap *r, size_t n_text, size_t n_objects, uint64_t most_steps,
                      drey_error *err)
{
    *r = (heap){
        .most_text = n_text, .most_objects = n_objects, .most_steps = most_steps, .err = err};
    size_t n_bytes = 2 * arena_size(n_text) + arena_size(n_objects);
    TRY(arena_init(&r->memory, n_bytes, false, err));
    r->text = arena_take(&r->memory, n_text);
    r->marks = arena_take(&r->memory, n_text);
    r->objects = arena_take(&r->memory, n_objects);
    return DREY_OK;
}

void heap_free(heap *r)
{
    arena_free(&r->memory);
    *r = (heap){0};
}

void heap_fail(heap *r, drey_status code, const char *format, ...)
{
    if (r->status != DREY_OK)
        return;
    r->status = code;
    char message[sizeof r->err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (r->line)
        error_set(r->err, code, "%s, line %u: %s", r->where, r->line, message);
    else
        error_set(r->err, code, "%s", message);
}

bool heap_charge(heap *r, uint64_t n_bytes)
{
    r->steps += 1 + n_bytes / 64;
    if (r->steps > r->most_steps)
        heap_fail(r, DREY_ERR_UNSUPPORTED,
                  "this takes more than the %llu million steps that a template may have; write the "
                  "prompt in the model's own format, or shorten the conversation",
                  (unsigned long long)(r->most_steps / 1000000));
    return heap_ok(r);
}

static void full(heap *r)
{
    heap_fail(r, DREY_ERR_UNSUPPORTED,
              "this takes more than the %s that it may have for a conversation of this length; "
              "write the prompt in the model's own format, or shorten the conversation",
              SIZE_TEXT(r->memory.size_bytes));
}

void *heap_take(heap *r, size_t bytes)
{
    size_t rounded = (bytes + 7) & ~(size_t)7;
    if (bytes > r->most_objects || rounded > r->most_objects - r->n_objects) {
        full(r);
        return NULL;
    }
    void *p = r->objects + r->n_objects;
    r->n_objects += rounded;
    return p;
}

/* ---- Making strings ---- */

size_t text_begin(heap *r)
{
    return r->n_text;
}

/* Room for n bytes at the end; false: there is none. */
static bool reserve(heap *r, size_t n)
{
    if (!heap_charge(r, n))
        return false;
    if (n > r->most_text - r->n_text) {
        full(r);
        return false;
    }
    return true;
}

void text_put(heap *r, const char *s, size_t n)
{
    if (n == 0 || !reserve(r, n))
        return;
    memcpy(r->text + r->n_text, s, n);
    if (s >= r->text && s < r->text + r->n_text)
        memcpy(r->marks + r->n_text, r->marks + (s - r->text), n);
    else
        memset(r->marks + r->n_text, 0, n);
    r->n_text += n;
}

void text_put_marked(heap *r, const char *s, size_t n, bool marked)
{
    size_t at = r->n_text;
    text_put(r, s, n);
    if (marked)
        memset(r->marks + at, 1, r->n_text - at);
}

void text_put_value(heap *r, value string)
{
    text_put(r, string.text, string.n);
}

value text_end(heap *r, size_t at)
{
    return string_span(r->text + at, r->n_text - at);
}

value string_span(const char *s, size_t n)
{
    return (value){.kind = VALUE_STRING, .n = (uint32_t)n, .text = s};
}

value string_of(const char *s)
{
    return string_span(s, strlen(s));
}

value string_copy(heap *r, const char *s, size_t n, bool marked)
{
    size_t at = text_begin(r);
    text_put_marked(r, s, n, marked);
    return text_end(r, at);
}

/* If a is the last string that was made, b is appended in place, so that strings that grow piece by
 * piece are not copied each time. */
value string_join2(heap *r, value a, value b)
{
    if (a.n == 0)
        return string_span(b.text, b.n);
    if (b.n == 0)
        return string_span(a.text, a.n);
    if (a.text + a.n == r->text + r->n_text && a.text >= r->text) {
        size_t before = r->n_text;
        text_put_value(r, b);
        return string_span(a.text, a.n + (r->n_text - before));
    }
    size_t at = text_begin(r);
    text_put_value(r, a);
    text_put_value(r, b);
    return text_end(r, at);
}

/* ---- Looking at strings ---- */

value string_part(value s, size_t begin, size_t end)
{
    value part = s;
    part.text = s.text + begin;
    part.n = (uint32_t)(end - begin);
    return part;
}

bool string_is(value v, const char *s)
{
    return v.kind == VALUE_STRING && v.n == strlen(s) && memcmp(v.text, s, v.n) == 0;
}

bool text_equal(value a, value b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

/* Compares by code points, which in UTF-8 is by bytes. */
int text_order(value a, value b)
{
    size_t n = min_size(a.n, b.n);
    int order = n ? memcmp(a.text, b.text, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

size_t character_bytes(const char *p, size_t n)
{
    int length = utf8_length((const uint8_t *)p, n);
    return length > 0 ? (size_t)length : 1;
}

uint32_t character_code(const char *p, size_t n_bytes)
{
    /* A broken byte is no white space, digit or letter. */
    if (n_bytes == 1 && (uint8_t)*p >= 0x80)
        return UINT32_MAX;
    return utf8_code_point((const uint8_t *)p, (int)n_bytes);
}

size_t last_character(const char *s, size_t begin, size_t end)
{
    size_t last = end - 1;
    while (last > begin && end - last < 4 && (s[last] & 0xC0) == 0x80)
        last--;
    return character_bytes(s + last, end - last) == end - last ? last : end - 1;
}

size_t string_characters(heap *r, value s)
{
    size_t n = 0;
    heap_charge(r, s.n);
    for (size_t at = 0; at < s.n; n++)
        at += character_bytes(s.text + at, s.n - at);
    return n;
}

size_t text_find(const char *s, size_t n, const char *what, size_t n_what)
{
    const char *at = n_what == 0 ? s : n ? memmem(s, n, what, n_what) : NULL;
    return at ? (size_t)(at - s) : SIZE_MAX;
}

bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}
