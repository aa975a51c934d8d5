/* A JSON text as values in memory of fixed size. The text is part of that memory: strings are
 * decoded where they stand and end with a NUL. */
#ifndef DREY_COMMON_JSON_VALUE_H
#define DREY_COMMON_JSON_VALUE_H

#include "common/json_reader.h"
#include "common/json_writer.h"

typedef struct json_value json_value;
struct json_value {
    json_event type; /* JSON_NULL to JSON_OBJECT */
    bool is_integer; /* of a number: integer holds it exactly */
    uint32_t n;      /* elements, members, or bytes of text */
    uint32_t n_key;
    const char *key;  /* of an object's member; NUL after it */
    json_value *next; /* of the same array or object; NULL: it is the last */
    union {
        const char *text;  /* [n], and a NUL; it may hold others */
        json_value *first; /* NULL: there is none */
        double number;
    };
    int64_t integer;
};

enum { JSON_MOST_DEPTH = 64 };

typedef struct json_values {
    json_value *values; /* [capacity], the caller's */
    size_t capacity, n;
    const char *why; /* what was wrong, a sentence without its subject, and */
    size_t at;       /* where: bytes from the beginning */
} json_values;

/* Reads text[0..n), which is written into. NULL: it is no JSON, nested deeper than JSON_MOST_DEPTH,
 * or has more values than there is room for; see why. Of members with the same key all are kept:
 * the last one counts. */
json_value *json_parse(json_values *v, char *text, size_t n);

/* The same of a text that stays as it is, in memory of its own, which json_free gives back; bytes
 * that are no UTF-8 are taken as they are. NULL as above, or no memory. */
typedef struct json_document {
    json_value *root, *values;
    char *text;
} json_document;
json_value *json_load(json_document *d, const char *text, size_t n);
void json_free(json_document *d);

/* The member of that key; NULL: there is none, or it is null, or `object` is none (it may be NULL).
 */
json_value *json_member(const json_value *object, const char *key);
/* The same where it is an array; NULL: it is none. */
json_value *json_member_array(const json_value *object, const char *key);
/* Where it is a string: borrowed; NULL: it is none. */
const char *json_member_text(const json_value *object, const char *key);
/* Where it is a number; NAN: it is none. */
double json_member_number(const json_value *object, const char *key);
/* Where it is true or false; false: it is none. */
bool json_member_bool(const json_value *object, const char *key, bool *out);
/* Where it is an array of numbers, at most `most`: how many; -1: it is none. */
int json_member_numbers(const json_value *object, const char *key, double *out, int most);
/* Whether it is this text. */
bool json_member_is(const json_value *object, const char *key, const char *text);

/* Written again. */
void json_raw_value(json_writer *w, const json_value *v);

#endif
