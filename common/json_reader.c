/* Reading JSON: see json_reader.h. A string is walked through twice: by json_next, which checks it,
 * and by json_next_part. */
#include "common/json_reader.h"

#include <string.h>

#include "common/hex.h"
#include "common/utf8.h"

void json_reader_init(json_reader *r, const char *text, size_t n, int most_levels)
{
    *r = (json_reader){.text = text, .n = n, .most_levels = most_levels};
}

static json_event broken(json_reader *r, size_t at, const char *why)
{
    if (!r->why) {
        r->why = why;
        r->why_at = at;
    }
    return JSON_BROKEN;
}

json_event json_refuse(json_reader *r, const char *why)
{
    return broken(r, r->begin, why);
}

static void skip_blanks(json_reader *r)
{
    while (r->at < r->n && memchr(" \t\n\r", r->text[r->at], 4))
        r->at++;
}

static bool take(json_reader *r, char c)
{
    if (r->at >= r->n || r->text[r->at] != c)
        return false;
    r->at++;
    return true;
}

static bool in_object(const json_reader *r)
{
    int level = r->n_levels - 1;
    return level >= 0 && (r->objects[level / 64] >> level % 64 & 1) != 0;
}

/* ---- Strings ---- */

/* The value of four hexadecimal digits; UINT32_MAX: they are none. */
static uint32_t hex4(const json_reader *r, size_t at)
{
    uint32_t code = 0;
    if (r->n - at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(r->text[at++]);
        if (digit < 0)
            return UINT32_MAX;
        code = code << 4 | (uint32_t)digit;
    }
    return code;
}

/* The code that follows "\u" at part_at, in two escapes where it takes a pair of surrogates. */
static bool escaped_code(json_reader *r, uint32_t *code)
{
    *code = hex4(r, r->part_at);
    if (*code == UINT32_MAX)
        return !broken(r, r->part_at, "four hexadecimal digits have to follow \\u");
    r->part_at += 4;
    if (*code < 0xD800 || *code >= 0xE000)
        return true;
    size_t other = r->part_at;
    if (*code < 0xDC00 && r->n - other >= 6 && memcmp(r->text + other, "\\u", 2) == 0) {
        uint32_t pair = utf16_pair(*code, hex4(r, other + 2));
        if (pair) {
            r->part_at += 6;
            *code = pair;
            return true;
        }
    }
    if (!r->half_pairs)
        return !broken(r, other, "an escape is half of a pair of surrogates");
    *code = 0xFFFD;
    return true;
}

/* After the backslash. */
static bool escaped(json_reader *r, json_part *part)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    if (r->part_at >= r->n)
        return !broken(r, r->part_at, "a string has no end");
    part->from = r->text + r->part_at;
    char c = r->text[r->part_at++];
    const char *known = memchr(names, c, sizeof names - 1);
    if (known)
        code = (uint8_t)meanings[known - names];
    else if (c != 'u')
        return !broken(r, r->part_at, "an unknown character follows a \\");
    else if (!escaped_code(r, &code))
        return false;
    part->n = utf8_write(code, part->character);
    part->bytes = part->character;
    return true;
}

/* The longest part without an escape. */
static bool plain(json_reader *r, json_part *part)
{
    size_t begin = r->part_at, at = begin;
    while (at < r->n) {
        uint8_t c = (uint8_t)r->text[at];
        if (c == '"' || c == '\\')
            break;
        if (c < 0x20)
            return !broken(r, at, "a string holds a control character that has to be escaped");
        int length = utf8_length((const uint8_t *)r->text + at, r->n - at);
        if (length <= 0 && !r->broken_utf8)
            return !broken(r, at, "a string is no UTF-8");
        length = length > 0 ? length : 1;
        at += (size_t)length;
    }
    if (at >= r->n)
        return !broken(r, at, "a string has no end");
    part->from = part->bytes = r->text + begin;
    part->n = at - begin;
    r->part_at = at;
    return true;
}

/* false: the string's end, or an error. */
static bool scan_part(json_reader *r, json_part *part)
{
    if (r->part_at < r->n && r->text[r->part_at] == '"')
        return false;
    if (r->part_at < r->n && r->text[r->part_at] == '\\') {
        r->part_at++;
        return escaped(r, part);
    }
    return plain(r, part);
}

bool json_next_part(json_reader *r, json_part *part)
{
    return !r->why && r->part_at < r->end && scan_part(r, part);
}

/* After the first quote. */
static json_event read_string(json_reader *r, json_event event)
{
    json_part part;
    r->begin = r->part_at = r->at;
    while (scan_part(r, &part))
        ;
    if (r->why)
        return JSON_BROKEN;
    r->end = r->part_at;
    r->at = r->end + 1;
    r->part_at = r->begin;
    return event;
}

static json_event read_key(json_reader *r)
{
    if (!take(r, '"'))
        return broken(r, r->at, "an object's key is missing");
    if (read_string(r, JSON_KEY) == JSON_BROKEN)
        return JSON_BROKEN;
    skip_blanks(r);
    r->after_key = true;
    return take(r, ':') ? JSON_KEY : broken(r, r->at, "a \":\" is missing");
}

/* ---- Values ---- */

static size_t digits(const json_reader *r, size_t at)
{
    size_t n = 0;
    while (at + n < r->n && r->text[at + n] >= '0' && r->text[at + n] <= '9')
        n++;
    return n;
}

static json_event read_number(json_reader *r)
{
    size_t at = r->at + (r->text[r->at] == '-'), n = digits(r, at);
    bool good = n == 1 || (n > 1 && r->text[at] != '0');
    at += n;
    if (good && at < r->n && r->text[at] == '.') {
        n = digits(r, at + 1);
        good = n > 0;
        at += 1 + n;
    }
    if (good && at < r->n && (r->text[at] == 'e' || r->text[at] == 'E')) {
        at++;
        at += at < r->n && (r->text[at] == '+' || r->text[at] == '-');
        n = digits(r, at);
        good = n > 0;
        at += n;
    }
    if (!good)
        return broken(r, r->at,
                      at < r->n && r->text[at] == 'I' ? "NaN and Infinity are no numbers of JSON"
                                                      : "a number is written as JSON has none");
    r->begin = r->at;
    r->at = r->end = at;
    return JSON_NUMBER;
}

bool json_is_whole(const json_reader *r)
{
    for (size_t i = r->begin; i < r->end; i++)
        if (memchr(".eE", r->text[i], 3))
            return false;
    return true;
}

static json_event open_level(json_reader *r, json_event event)
{
    if (r->n_levels == r->most_levels)
        return broken(r, r->at, "arrays and objects are nested too deep");
    uint64_t bit = (uint64_t)1 << r->n_levels % 64, *objects = &r->objects[r->n_levels / 64];
    *objects = event == JSON_OBJECT ? *objects | bit : *objects & ~bit;
    r->n_levels++;
    r->after_value = false;
    r->end = ++r->at;
    return event;
}

static json_event read_value(json_reader *r)
{
    static const struct {
        const char *word;
        json_event event;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    if (r->at >= r->n)
        return broken(r, r->at, "it ends too early");
    char c = r->text[r->at];
    r->begin = r->at;
    r->after_value = true;
    r->after_key = false;
    if (c == '{' || c == '[')
        return open_level(r, c == '{' ? JSON_OBJECT : JSON_ARRAY);
    if (take(r, '"'))
        return read_string(r, JSON_STRING);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if (r->n - r->at >= n && memcmp(r->text + r->at, words[i].word, n) == 0) {
            r->end = r->at += n;
            return words[i].event;
        }
    }
    return broken(r, r->at,
                  c == 'N' || c == 'I' ? "NaN and Infinity are no numbers of JSON"
                                       : "a value is missing");
}

json_event json_next(json_reader *r)
{
    if (r->why)
        return JSON_BROKEN;
    skip_blanks(r);
    bool object = in_object(r);
    if (r->n_levels == 0 && r->after_value)
        return r->at == r->n ? JSON_DONE : broken(r, r->at, "something follows it");
    if (r->n_levels > 0 && !r->after_key) {
        bool opened = !r->after_value;
        if (take(r, object ? '}' : ']')) {
            r->begin = r->at - 1;
            r->end = r->at;
            r->n_levels--;
            r->after_value = true;
            return JSON_CLOSE;
        }
        if (!opened && !take(r, ','))
            return broken(r, r->at, "a \",\" or the end of an array or object is missing");
        skip_blanks(r);
    }
    return object && !r->after_key ? read_key(r) : read_value(r);
}
