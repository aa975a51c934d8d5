/* JSON as requests bring it, read strictly (RFC 8259, UTF-8) into values of fixed number. The text
 * is the values' memory: strings are decoded where they stand and end with a NUL. */
#ifndef DREY_SERVE_JSON_VALUE_H
#define DREY_SERVE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/api/text_out.h"

typedef enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_type;

typedef struct json_value json_value;
struct json_value {
    json_type type;
    bool is_integer; /* of a number: integer holds it exactly */
    uint32_t n;      /* elements, members, or bytes of text */
    uint32_t n_key;
    const char *key;  /* of an object's member; NUL behind it */
    json_value *next; /* of the same array or object; NULL: it is the last */
    union {
        const char *text;  /* [n], and a NUL; it may hold others */
        json_value *first; /* NULL: there is none */
        double number;
    };
    int64_t integer;
};

enum { JSON_MOST_DEPTH = 64 };

typedef struct json_reader {
    json_value *values; /* [capacity], the caller's */
    size_t capacity, n;
    const char *why; /* what was wrong, a sentence; and */
    size_t at;       /* where: bytes from the beginning */
} json_reader;

/* Reads text[0..n), which is written into. NULL: it is no JSON, too deep, or has more values than
 * there is room for; see why. Of members with the same key all are kept: the last one counts. */
json_value *serve_json_parse(json_reader *r, char *text, size_t n);

/* The member of that key; NULL: there is none, or it is null, or `object` is no object. */
json_value *serve_json_member(const json_value *object, const char *key);

/* Written as JSON again. */
void serve_json_put(const json_value *v, text_out *out);

#endif
