/* Writes JSON, piece by piece, through a function of the caller. The writer adds commas, line
 * breaks and escapes; the caller opens and closes arrays and objects in order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes n bytes. from: the bytes of the caller's string that they were made from (the same ones if
 * nothing was escaped); NULL if they are not from a string. */
typedef void json_put_fn(void *user, const char *bytes, size_t n, const char *from);

typedef struct json_span {
    const char *bytes;
    size_t n;
} json_span;

typedef struct json_writer {
    json_put_fn *put;
    void *user;
    /* The format. All zero: on one line, without blanks. */
    json_span indent;    /* the indentation of one level; bytes not NULL: each item has its own
                            line */
    json_span item, key; /* between items, and after a key; bytes NULL: "," and ":" */
    bool ascii;          /* write other characters as escapes */
    bool broken_utf8;    /* write bytes that are no UTF-8 as they are; else each part that might
                            have begun a character becomes U+FFFD, as Unicode recommends (3.9) */
    /* digits of numbers; 0: as many as are needed to read the same number back, at most 17 */
    int digits;
    /* Private to the writer. */
    int n_levels;
    int on_line; /* the level from which on all is on one line; 0: none */
    bool begun;  /* this level has an item already */
} json_writer;

/* Begins an item: the comma after the previous one, and the line. The functions below that take a
 * key do this themselves. */
void json_item(json_writer *w);
void json_open(json_writer *w, char bracket); /* '[' or '{' */
void json_close(json_writer *w, char bracket);
void json_after_key(json_writer *w);
/* Writes a number or word as it is. */
void json_raw(json_writer *w, const char *text);
void json_raw_number(json_writer *w, double number); /* null, where it is not finite */
/* Formats a number, with a NUL; returns how many bytes. digits: as in json_writer. */
size_t json_format(char out[static 32], double number, int digits);
/* Returns how many characters at the beginning are written as they are, in any format. */
size_t json_plain(const char *text, size_t n);
void json_raw_string(json_writer *w, const char *text, size_t n);
/* The same without quotes. */
void json_raw_escaped(json_writer *w, const char *text, size_t n);

/* Writes a member of an object, or, if key is NULL, an item of an array. */
void json_put_array(json_writer *w, const char *key);
void json_put_object(json_writer *w, const char *key);
void json_put_number(json_writer *w, const char *key, double number);
/* Several: JSON_PUT_EACH(w, {"rows", n}, {"seconds", s}). */
typedef struct json_number {
    const char *key;
    double value;
} json_number;
void json_put_each(json_writer *w, const json_number *numbers, size_t n);
#define JSON_PUT_EACH(w, ...)                                                                      \
    json_put_each(w, (const json_number[]){__VA_ARGS__},                                           \
                  sizeof((const json_number[]){__VA_ARGS__}) / sizeof(json_number))
/* One of them: a record's member under its own name. */
#define JSON_OF(record, member)                                                                    \
    {                                                                                              \
#member, (double)(record)->member                                                          \
    }
void json_put_bool(json_writer *w, const char *key, bool value);
void json_put_text(json_writer *w, const char *key, const char *text); /* NULL: null */
void json_put_numbers(json_writer *w, const char *key, const double *numbers,
                      int n); /* on one line */
