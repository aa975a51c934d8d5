/* Writes JSON, piece by piece, through a function of the caller's. The writer puts commas, line
 * breaks and escapes where they belong; the caller opens and closes arrays and objects in order. */
#ifndef DREY_COMMON_JSON_WRITER_H
#define DREY_COMMON_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes n bytes. from: the bytes of the caller's string that they stand for, which are the same
 * ones where nothing was escaped; NULL for what is no string's. */
typedef void json_put_fn(void *user, const char *bytes, size_t n, const char *from);

typedef struct json_span {
    const char *bytes;
    size_t n;
} json_span;

typedef struct json_writer {
    json_put_fn *put;
    void *user;
    /* How it looks. All zero: on one line, without blanks. */
    json_span indent;    /* of one level; bytes not NULL: each item has a line */
    json_span item, key; /* after an item that another one follows, and after a key; bytes NULL:
                          * "," and ":" */
    bool ascii;          /* other characters are written as escapes */
    bool broken_utf8;    /* bytes that are no UTF-8 stay; else each part that might have begun a
                          * character is U+FFFD, as Unicode recommends (3.9) */
    int digits;          /* of numbers; 0: as many as give the same number back, at most 17 */
    /* The writer's own. */
    int n_levels;
    int on_line; /* the level from which all is on one line; 0: none */
    bool begun;  /* there is an item on this level already */
} json_writer;

/* An item's beginning: the comma after the one before, and the line. The functions below that take
 * a key do that themselves. */
void json_item(json_writer *w);
void json_open(json_writer *w, char bracket); /* '[' or '{' */
void json_close(json_writer *w, char bracket);
void json_after_key(json_writer *w);
/* A number or word, as it is. */
void json_raw(json_writer *w, const char *text);
void json_raw_number(json_writer *w, double number); /* null, where it is not finite */
void json_raw_string(json_writer *w, const char *text, size_t n);
/* The same without quotes. */
void json_raw_escaped(json_writer *w, const char *text, size_t n);

/* A member of an object, or an item of an array, where key is NULL. */
void json_put_array(json_writer *w, const char *key);
void json_put_object(json_writer *w, const char *key);
void json_put_number(json_writer *w, const char *key, double number);
void json_put_bool(json_writer *w, const char *key, bool value);
void json_put_text(json_writer *w, const char *key, const char *text); /* NULL: null */
void json_put_numbers(json_writer *w, const char *key, const double *numbers,
                      int n); /* on one line */

/* A number as JSON has it, with its NUL; returns how many bytes. */
size_t json_format(char out[32], double number, int digits);

#endif
