/* Reads JSON (RFC 8259, strictly, in UTF-8) from memory, one event after the other:
 *
 *     {"a":        [        1,           "x\n"        ]           }
 *     JSON_OBJECT  JSON_KEY  JSON_ARRAY  JSON_NUMBER  JSON_STRING  JSON_CLOSE  JSON_CLOSE JSON_DONE
 *
 * Nothing is copied, and no other memory than the reader is needed. An event gives its bytes in the
 * text; json_next_part gives the parts of a string, so that the caller knows for each decoded byte
 * from which byte of the text it comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum json_event {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT, /* the last event that is a value */
    JSON_KEY,    /* the key of the value that follows */
    JSON_CLOSE,  /* the end of an array or object */
    JSON_DONE,   /* the end of the text */
    JSON_BROKEN  /* it is no JSON: see why */
} json_event;

enum { JSON_MOST_LEVELS = 128 };

typedef struct json_reader {
    const char *text; /* [n] */
    size_t n, at;
    size_t begin, end; /* the last event's bytes; of a string or key: between the quotes */
    const char *why;   /* error of JSON_BROKEN: a sentence without its subject, and */
    size_t why_at;     /* the byte where it was seen, from 0 */
    size_t part_at;    /* position where json_next_part continues */
    int n_levels, most_levels;
    bool broken_utf8; /* accept bytes that are no UTF-8; else they are an error */
    bool half_pairs;  /* "\ud800" without its other half becomes U+FFFD; else it is an error */
    bool after_value, after_key;
    uint64_t objects[JSON_MOST_LEVELS / 64]; /* a bit for each level: an object, not an array */
} json_reader;

/* most_levels: how deep arrays and objects may be nested, at most JSON_MOST_LEVELS. The text is
 * borrowed. */
void json_reader_init(json_reader *r, const char *text, size_t n, int most_levels);
/* After JSON_DONE or JSON_BROKEN each further call returns the same. */
json_event json_next(json_reader *r);
/* Makes the reader fail at the last event, for a reason that the caller gives. */
json_event json_refuse(json_reader *r, const char *why);
/* Returns whether the number has neither a fraction nor an exponent. */
bool json_is_whole(const json_reader *r);

/* A part of a string: bytes of the text, or the character that an escape stands for. */
typedef struct json_part {
    const char *bytes;
    size_t n;
    const char *from; /* in the text: the bytes themselves, or what follows the escape's
                         backslash */
    char character[4];
} json_part;

/* The next part of the last event's string or key; false: that was all. */
bool json_next_part(json_reader *r, json_part *part);
