/* Prints the contents of a GGUF file as text: drey_inspect.
 *
 * The file may come from anyone and the text goes to a terminal, so control characters and bytes
 * that are no UTF-8 are written as escapes, and everything long is cut. */
#include "common/num.h"
#include "drey/drey_model.h"
#include "gguf/header.h"
#include "gguf/types.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { longest_value = 512, longest_name = 200, longest_item = 40, most_items = 8 };

typedef struct text {
    char bytes[longest_value];
    size_t n; /* without the final NUL, which is always there */
} text;

static void append(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends whole or not at all. */
static void append(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, arguments);
    va_end(arguments);
    if (n >= 0 && (size_t)n < sizeof t->bytes - t->n)
        t->n += (size_t)n;
    t->bytes[t->n] = '\0';
}

/* Length of the printable UTF-8 character at s, 0 if there is none. Overlong forms and surrogates
 * are accepted: terminals can handle them. */
static size_t printable_bytes(const uint8_t *s, size_t n)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool control = s[0] == 0xc2 && s[1] < 0xa0;
    return control ? 0 : length;
}

/* At most n_most bytes of s, then "...". */
static void append_escaped(text *t, gguf_string s, size_t n_most)
{
    const uint8_t *bytes = (const uint8_t *)s.text;
    size_t i = 0;
    while (i < s.n_bytes && i < n_most) {
        size_t n = printable_bytes(bytes + i, s.n_bytes - i);
        if (n)
            append(t, "%.*s", (int)n, s.text + i);
        else if (bytes[i] == '\n')
            append(t, "\\n");
        else if (bytes[i] == '\t')
            append(t, "\\t");
        else
            append(t, "\\x%02x", bytes[i]);
        i += n ? n : 1;
    }
    if (i < s.n_bytes)
        append(t, "...");
}

/* The shortest form that gives the same number when read; whole numbers without an exponent. */
static void append_number(text *t, double value, bool is_float)
{
    char digits[40];
    if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value) {
        append(t, "%" PRId64, (int64_t)value);
        return;
    }
    for (int n = 1; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        double again = strtod(digits, NULL);
        if (is_float ? (float)again == (float)value : again == value)
            break;
    }
    append(t, "%s", digits);
}

static void append_scalar(text *t, const gguf_key *key, gguf_kind kind, uint64_t i)
{
    if (kind == GGUF_BOOL)
        append(t, "%s", gguf_item_int(key, i) ? "true" : "false");
    else if (kind == GGUF_F32 || kind == GGUF_F64)
        append_number(t, gguf_item_number(key, i), kind == GGUF_F32);
    else if (kind == GGUF_U64)
        append(t, "%" PRIu64, header_u64(key->value + 8 * i));
    else
        append(t, "%" PRId64, gguf_item_int(key, i));
}

static void append_array(text *t, const gguf_key *key)
{
    gguf_cursor cursor = gguf_strings(key);
    gguf_string string;
    append(t, "[");
    uint64_t n = min_u64(key->n_items, most_items);
    for (uint64_t i = 0; i < n; i++) {
        append(t, "%s", i ? ", " : "");
        if (key->item_kind != GGUF_STRING) {
            append_scalar(t, key, key->item_kind, i);
        } else if (gguf_next_string(&cursor, &string)) {
            append(t, "\"");
            append_escaped(t, string, longest_item);
            append(t, "\"");
        }
    }
    append(t, n < key->n_items ? ", ...]" : "]");
}

static void show_key(const drey_inspector *to, const gguf_key *key)
{
    text name = {0}, type = {0}, value = {0};
    append_escaped(&name, key->name, longest_name);
    if (key->kind == GGUF_ARRAY) {
        append(&type, "%s[%" PRIu64 "]", gguf_kind_name(key->item_kind), key->n_items);
        append_array(&value, key);
    } else {
        append(&type, "%s", gguf_kind_name(key->kind));
        if (key->kind == GGUF_STRING)
            append_escaped(&value, gguf_text_of(key), longest_name);
        else
            append_scalar(&value, key, key->kind, 0);
    }
    to->key(to->user, name.bytes, type.bytes, value.bytes);
}

void gguf_show(const gguf *g, const drey_inspector *to)
{
    if (to->header)
        to->header(to->user, gguf_version(g), gguf_n_keys(g), gguf_n_tensors(g),
                   gguf_file_bytes(g));
    for (uint64_t i = 0; to->key && i < gguf_n_keys(g); i++)
        show_key(to, gguf_key_at(g, i));
    for (uint64_t i = 0; to->tensor && i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        const type_traits *traits = type_find(t->type);
        to->tensor(to->user, t->name, traits->name, t->dims, t->n_dims, t->n_bytes, t->offset,
                   traits->runnable);
    }
}

drey_status drey_inspect(const char *path, const drey_inspector *inspector, drey_error *err)
{
    if (!path || !inspector)
        FAIL(err, DREY_ERR_USAGE, "drey_inspect needs a path and an inspector; pass both");
    gguf *g;
    TRY(gguf_open(&g, path, err));
    gguf_show(g, inspector);
    gguf_close(&g);
    return DREY_OK;
}
