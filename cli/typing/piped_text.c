/* Texts from pipes: see piped_text.h. */
#include "cli/typing/piped_text.h"

#include <stdint.h>
#include <string.h>

#include "common/utf8.h"

static const char is_utf32[] = "is UTF-32; save it as UTF-8";

/* UINT32_MAX: the end. A single byte there is half a character. */
static uint32_t next_unit(const piped_text *t, FILE *in)
{
    int first = getc(in), second = first == EOF ? EOF : getc(in);
    if (first == EOF)
        return UINT32_MAX;
    if (second == EOF)
        return 0xFFFD;
    return t->big ? (uint32_t)first << 8 | (uint32_t)second
                  : (uint32_t)second << 8 | (uint32_t)first;
}

static bool read_wide(piped_text *t, FILE *in)
{
    uint32_t code = next_unit(t, in);
    if (code == 0 && t->fresh && !t->big) /* the mark was the first half of UTF-32's */
        t->wrong = is_utf32;
    t->fresh = false;
    if (code == UINT32_MAX || t->wrong)
        return false;
    if (code >= 0xD800 && code < 0xDC00) {
        uint32_t pair = utf16_pair(code, next_unit(t, in));
        code = pair ? pair : 0xFFFD;
    } else if (code >= 0xDC00 && code < 0xE000) {
        code = 0xFFFD;
    }
    t->n_ahead = utf8_write(code, t->ahead);
    t->taken = 0;
    return true;
}

/* Reads no more than may belong to a mark: a person may be typing. false: the text ends here, or a
 * signal has come, after which it begins once more. */
static bool begin(piped_text *t, FILE *in)
{
    static const struct {
        char bytes[4];
        size_t n;
    } marks[] = {{"\xEF\xBB\xBF", 3}, {"\xFF\xFE", 2}, {"\xFE\xFF", 2}, {"\0\0\xFE\xFF", 4}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks;) {
        size_t n = marks[i].n;
        if (memcmp(t->ahead, marks[i].bytes, t->n_ahead < n ? t->n_ahead : n) != 0) {
            i++;
            continue;
        }
        if (t->n_ahead == n) {
            t->wide = t->fresh = i > 0;
            t->big = i == 2;
            t->wrong = i == 3 ? is_utf32 : NULL;
            t->n_ahead = 0;
            break;
        }
        int c = getc(in);
        if (c == EOF && (t->n_ahead == 0 || ferror(in)))
            return false;
        if (c == EOF)
            break;
        t->ahead[t->n_ahead++] = (char)c;
    }
    return true;
}

int piped_text_byte(piped_text *t, FILE *in)
{
    if (!t->begun && !begin(t, in))
        return EOF;
    t->begun = true;
    if (t->wrong || (t->taken == t->n_ahead && t->wide && !read_wide(t, in)))
        return EOF;
    return t->taken < t->n_ahead ? (uint8_t)t->ahead[t->taken++] : getc(in);
}
