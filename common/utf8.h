/* UTF-8: recognises complete, unfinished and broken characters, and writes characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_BROKEN = 0, UTF8_UNFINISHED = -1 };

/* The bytes of the character at p[0..n), n > 0: 1 to 4 (no surrogates, no overlong forms, nothing
 * past U+10FFFF). UTF8_UNFINISHED: all n bytes begin a character that is cut off. UTF8_BROKEN: p[0]
 * is not part of any. */
static inline int utf8_length(const uint8_t *p, size_t n)
{
    uint8_t lead = p[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return UTF8_BROKEN;
    int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    /* The second byte's range is what excludes overlong forms, surrogates and too large values. */
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (int i = 1; i < length; i++) {
        if ((size_t)i == n)
            return UTF8_UNFINISHED;
        if (p[i] < low || p[i] > high)
            return UTF8_BROKEN;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

/* The code point of a character that utf8_length found whole. */
static inline uint32_t utf8_code_point(const uint8_t *p, int length)
{
    if (length == 1)
        return p[0];
    uint32_t code = p[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++)
        code = code << 6 | (p[i] & 0x3Fu);
    return code;
}

/* Returns the character of two surrogates of UTF-16, high and low; 0: they are no pair. */
static inline uint32_t utf16_pair(uint32_t high, uint32_t low)
{
    bool pair = high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000;
    return pair ? 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00) : 0;
}

/* Returns whether a character steers a terminal or turns the text around it to the left: control
 * characters, separators of lines, and marks of direction. None of them belongs in a name. */
static inline bool utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the broken part at p[0..n), n > 0, which is no whole character: the longest part that
 * might have begun one, at least 1. It is replaced by one U+FFFD (Unicode 3.9). */
static inline size_t utf8_broken_length(const uint8_t *p, size_t n)
{
    size_t length = 1;
    while (length < n && utf8_length(p, length + 1) == UTF8_UNFINISHED)
        length++;
    return length;
}

/* Returns the bytes of the character at text[0..n), n > 0, or of its broken part. *plain: it is
 * whole, and no control character as above. */
static inline size_t utf8_look(const char *text, size_t n, bool *plain)
{
    const uint8_t *p = (const uint8_t *)text;
    int length = utf8_length(p, n);
    *plain = length > 0 && !utf8_is_control(utf8_code_point(p, length));
    return length > 0 ? (size_t)length : utf8_broken_length(p, n);
}

static inline bool utf8_is_whole(const char *text, size_t n)
{
    int length = 1;
    for (size_t i = 0; i < n && length > 0; i += (size_t)length)
        length = utf8_length((const uint8_t *)text + i, n - i);
    return length > 0;
}

/* The number of characters of a text; each broken part counts as one. */
static inline size_t utf8_count(const char *text, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        const uint8_t *p = (const uint8_t *)text + i;
        int length = utf8_length(p, n - i);
        i += length > 0 ? (size_t)length : utf8_broken_length(p, n - i);
    }
    return count;
}

/* Writes a code point of at most U+10FFFF; returns how many bytes. */
static inline size_t utf8_write(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0) | code);
    return n;
}
