/* A JSON text as values in memory of fixed size. The text is part of that memory: strings are
 * decoded in place and end with a NUL. */
#pragma once

#include "common/json_reader.h"

typedef struct json_writer json_writer;

typedef struct json_value json_value;
struct json_value {
    json_event type; /* JSON_NULL to JSON_OBJECT */
    bool is_integer; /* the number is whole: integer holds it exactly */
    uint32_t n;      /* elements, members, or bytes of text */
    uint32_t n_key;
    const char *key;  /* name of an object's member; NUL after it */
    json_value *next; /* the next in the same array or object; NULL: it is the last */
    union {
        const char *text;  /* [n], and a NUL; it may contain others */
        json_value *first; /* NULL: there is none */
        double number;
    };
    int64_t integer;
};

enum { JSON_MOST_DEPTH = 64 };

typedef struct json_values {
    json_value *values; /* [capacity], the caller's */
    size_t capacity, n;
    const char *why; /* error, a sentence without its subject, and */
    size_t at;       /* its position: bytes from the beginning */
} json_values;

/* Reads text[0..n), which is modified. NULL: it is no JSON, nested deeper than JSON_MOST_DEPTH, or
 * has more values than there is room for; see `why`. If several members have the same key, all are
 * kept and the last one counts. */
json_value *json_parse(json_values *v, char *text, size_t n);

/* The same for a text that is not modified, in its own memory, which json_free frees; bytes that
 * are no UTF-8 are accepted. NULL as above, or no memory. */
typedef struct json_document {
    json_value *root, *values;
    char *text;
    const char *why; /* error of json_load: what was wrong, as in json_values; NULL: memory */
    size_t at;
} json_document;
json_value *json_load(json_document *d, const char *text, size_t n);
void json_free(json_document *d);

/* The member with that key; NULL: there is none, it is null, or `object` is no object (it may be
 * NULL).
 */
json_value *json_member(const json_value *object, const char *key);
/* The same if it is an array; else NULL. */
json_value *json_member_array(const json_value *object, const char *key);
/* The string, borrowed; NULL if it is none. */
const char *json_member_text(const json_value *object, const char *key);
/* The number; NAN if it is none. */
double json_member_number(const json_value *object, const char *key);
/* True or false; false if it is neither. */
bool json_member_bool(const json_value *object, const char *key, bool *out);
/* Reads an array of at most `most` numbers; returns how many, -1 if it is none. */
int json_member_numbers(const json_value *object, const char *key, double *out, int most);
/* Returns whether the member is this text. */
bool json_member_is(const json_value *object, const char *key, const char *text);

/* Returns whether both say the same: numbers by their values, members in any order. */
bool json_same(const json_value *a, const json_value *b);

/* Writes a value. */
void json_raw_value(json_writer *w, const json_value *v);
