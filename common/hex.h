/* Hexadecimal digits, and bytes that are written as %41. */
#pragma once

#include <stddef.h>

/* Returns the value of a digit of either case; -1: it is none. */
static inline int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Returns the byte that text[0..3) is, of n bytes; -1: no percent sign with two digits is there. */
static inline int hex_percent(const char *text, size_t n)
{
    int high = n >= 3 && text[0] == '%' ? hex_digit(text[1]) : -1;
    int low = high >= 0 ? hex_digit(text[2]) : -1;
    return low >= 0 ? 16 * high + low : -1;
}
