/* Text that is put together in memory of fixed size: answers, and JSON in them. What does not fit
 * is left out, and `full` says so. */
#ifndef DREY_SERVE_TEXT_OUT_H
#define DREY_SERVE_TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_out {
    char *text;
    size_t n, capacity;
    bool full;
} text_out;

void out_bytes(text_out *o, const char *bytes, size_t n);
void out_text(text_out *o, const char *text);
void out_format(text_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string with its quotes. What is no UTF-8 becomes U+FFFD: one for each longest part that
 * might have begun a character, as Unicode recommends (3.9). */
void out_string(text_out *o, const char *text, size_t n);
/* The same without quotes. */
void out_escaped(text_out *o, const char *text, size_t n);
/* A JSON number: what is not finite is null. */
void out_number(text_out *o, double value);

/* Bytes of the UTF-8 character at text[0..n), n > 0; 0: it is none (no surrogates, nothing overlong).
 */
size_t utf8_character(const char *text, size_t n);
/* Characters of a text as out_string writes it, each U+FFFD one of them. */
size_t utf8_characters(const char *text, size_t n);

#endif
