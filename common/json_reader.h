/* Reads JSON (RFC 8259, strictly, in UTF-8) from memory, one event after the other:
 *
 *     {"a":        [        1,           "x\n"        ]           }
 *     JSON_OBJECT  JSON_KEY  JSON_ARRAY  JSON_NUMBER  JSON_STRING  JSON_CLOSE  JSON_CLOSE JSON_DONE
 *
 * Nothing is copied, and the reader is all the memory that is needed. An event names its bytes in
 * the text; json_next_part gives the parts of a string, so that the caller knows of each decoded
 * byte which byte of the text it comes from. */
#ifndef DREY_COMMON_JSON_READER_H
#define DREY_COMMON_JSON_READER_H

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
    JSON_OBJECT, /* the last one that is a value */
    JSON_KEY,    /* of the value that follows */
    JSON_CLOSE,  /* the end of an array or object */
    JSON_DONE,   /* the end of the text */
    JSON_BROKEN  /* it is no JSON: see why */
} json_event;

enum { JSON_MOST_LEVELS = 128 };

typedef struct json_reader {
    const char *text; /* [n] */
    size_t n, at;
    size_t begin, end; /* the last event's bytes; of a string or key: what is between the quotes */
    const char *why;   /* of JSON_BROKEN: a sentence without its subject, and */
    size_t why_at;     /* the byte where it was seen, from 0 */
    size_t part_at;    /* where json_next_part continues */
    int n_levels, most_levels;
    bool broken_utf8; /* bytes that are no UTF-8 are taken as they are; else they are refused */
    bool half_pairs;  /* "\ud800" without its other half stands for U+FFFD; else it is refused */
    bool after_value, after_key;
    uint64_t objects[JSON_MOST_LEVELS / 64]; /* a bit for each level: an object, not an array */
} json_reader;

/* Arrays and objects may be nested most_levels (at most JSON_MOST_LEVELS) deep. The text is
 * borrowed. */
void json_reader_init(json_reader *r, const char *text, size_t n, int most_levels);
/* After JSON_DONE or JSON_BROKEN each further call returns the same. */
json_event json_next(json_reader *r);
/* Makes the reader refuse the rest for a reason of its caller's, at the last event. */
json_event json_refuse(json_reader *r, const char *why);
/* Whether a number has neither a fraction nor an exponent. */
bool json_is_whole(const json_reader *r);

/* A part of a string: bytes of the text, or the character that an escape stands for. */
typedef struct json_part {
    const char *bytes;
    size_t n;
    const char *from; /* in the text: bytes themselves, or what follows the escape's backslash */
    char character[4];
} json_part;

/* The next part of the last event's string or key; false: that was all. */
bool json_next_part(json_reader *r, json_part *part);

#endif
