/* Byte order marks and UTF-16: see text_encoding.h. */
#include "common/text_encoding.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

/* Two bytes, in the order that the mark says. */
static uint32_t unit_at(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

/* out has room for 3 bytes of each unit: a pair of surrogates becomes 4. */
static const char *decode(const uint8_t *p, size_t n, bool big, char *out, size_t *n_out)
{
    *n_out = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        uint32_t code = unit_at(p + i, big);
        if (code >= 0xD800 && code < 0xE000) {
            code = utf16_pair(code, i + 3 < n ? unit_at(p + i + 2, big) : 0);
            if (code == 0)
                return "is UTF-16 with half a character in it; save it as UTF-8";
            i += 2;
        }
        *n_out += utf8_write(code, out + *n_out);
    }
    return n % 2 ? "is UTF-16 that ends in the middle of a character; save it as UTF-8" : NULL;
}

static const char *from_utf16(char **text, size_t *n)
{
    const uint8_t *p = (const uint8_t *)*text;
    size_t n_out;
    if (*n / 2 > SIZE_MAX / 4)
        return "is too long";
    char *out = malloc(*n / 2 * 3 + 1);
    if (!out)
        return "is UTF-16 that there is no memory to read; save it as UTF-8";
    const char *wrong = decode(p + 2, *n - 2, p[0] == 0xFE, out, &n_out);
    if (wrong) {
        free(out);
        return wrong;
    }
    out[n_out] = '\0';
    free(*text);
    *text = out;
    *n = n_out;
    return NULL;
}

const char *text_to_utf8(char **text, size_t *n)
{
    if (*n >= 3 && memcmp(*text, "\xEF\xBB\xBF", 3) == 0) {
        *n -= 3;
        memmove(*text, *text + 3, *n + 1);
        return NULL;
    }
    if (*n >= 4 && (memcmp(*text, "\xFF\xFE\0", 4) == 0 || memcmp(*text, "\0\0\xFE\xFF", 4) == 0))
        return "is UTF-32; save it as UTF-8";
    bool marked =
        *n >= 2 && (memcmp(*text, "\xFF\xFE", 2) == 0 || memcmp(*text, "\xFE\xFF", 2) == 0);
    return marked ? from_utf16(text, n) : NULL;
}
