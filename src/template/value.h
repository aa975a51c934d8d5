/* Values of a chat template, as in Python, and the room that contains all of them.
 *
 * A room is one mapping of a size that is known in advance: texts on one side, objects on the
 * other, freed as a whole. Nothing is freed before, so values can share data.
 *
 *     text     |abc|def|...            |    bytes of strings, appended at the end alone
 *     marks    |000|111|...            |    one each: 1 where a message or a tool said it
 *     objects  |list|map|scope|...     |
 *
 * Marks belong to bytes: copying a part of a string copies its marks, so that at the end it is
 * known for each byte whether the template or the conversation wrote it. A string whose bytes are
 * outside the room is the template's own.
 *
 * A string is made by appending: at = text_begin(r); text_put...(r, ...); v = text_end(r, at).
 * Nothing else may make one between the two. */
#pragma once

#include "base/arena.h"

#include <stdarg.h>

typedef enum value_kind {
    VALUE_UNDEFINED, /* text: what was asked for, for messages */
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_BIG, /* an integer of more than 64 bits: its digits; nothing is computed with it */
    VALUE_STRING,
    VALUE_LIST,
    VALUE_MAP,
    VALUE_NAMESPACE, /* a map whose members are attributes */
    VALUE_MACRO,
    VALUE_METHOD,   /* method of a string, list or map */
    VALUE_FUNCTION, /* one of the globals */
    VALUE_LOOP
} value_kind;

/* Python's type of a VALUE_LIST. */
typedef enum list_style {
    STYLE_LIST,
    STYLE_TUPLE,
    STYLE_VIEW,     /* dict.items() and its like */
    STYLE_GENERATOR /* true even if it is empty, and empty after it was iterated */
} list_style;

typedef struct value {
    uint8_t kind;
    uint8_t style; /* style of a list */
    bool marked;   /* said in the conversation; a string's bytes have their own marks */
    bool safe;     /* a string that "safe" made: what is added to it is escaped for HTML */
    uint32_t n;    /* bytes of text */
    union {
        bool b;
        int64_t i;
        double f;
        const char *text; /* [n], any bytes, no NUL after it */
        struct value_list *list;
        struct value_map *map;
        const struct macro *macro;
        const struct method *method;
        const struct loop_state *loop;
    };
} value;

typedef struct value_list {
    value *items; /* [n] */
    uint32_t n, capacity;
    bool consumed; /* a generator that was iterated */
} value_list;

typedef struct value_pair {
    value key, item;
} value_pair;

/* Pairs in the order in which keys were put in. */
typedef struct value_map {
    value_pair *pairs; /* [n] */
    uint32_t n, capacity;
} value_map;

typedef struct heap {
    arena memory;
    char *text;
    uint8_t *marks;
    size_t n_text, most_text;
    uint8_t *objects;
    size_t n_objects, most_objects;
    /* Work so far, in steps of about one value looked at or 64 bytes copied; above most_steps
     * everything fails. */
    uint64_t steps, most_steps;
    drey_status status; /* the first failure; everything is skipped from there on */
    drey_error *err;
    const char *where; /* "line %u of the chat template: ", for messages */
    uint32_t line;
} heap;

/* n_text bytes of strings (and as many marks), n_objects of all else. */
drey_status heap_init(heap *r, size_t n_text, size_t n_objects, uint64_t most_steps,
                      drey_error *err);
void heap_free(heap *r);

/* Sets the room's failure; only the first is kept, because later ones are its consequence. */
void heap_fail(heap *r, drey_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool heap_ok(const heap *r)
{
    return r->status == DREY_OK;
}
/* Counts work; false: too much, or an earlier failure. */
bool heap_charge(heap *r, uint64_t n_bytes);
/* Zeroed; NULL: no memory left, which is a failure of the room. */
void *heap_take(heap *r, size_t bytes);

/* ---- Strings ---- */

size_t text_begin(heap *r);
/* A copy with its marks; marked: as if all of it were marked. */
void text_put(heap *r, const char *s, size_t n);
void text_put_marked(heap *r, const char *s, size_t n, bool marked);
void text_put_value(heap *r, value string);
value text_end(heap *r, size_t at);

value string_of(const char *s);             /* borrowed: a constant of the program */
value string_span(const char *s, size_t n); /* borrowed */
value string_copy(heap *r, const char *s, size_t n, bool marked);
value string_join2(heap *r, value a, value b);
/* A part of a string. */
value string_part(value s, size_t begin, size_t end);
bool string_is(value v, const char *s); /* v is a string with this text */
bool text_equal(value a, value b);      /* compares two strings */
int text_order(value a, value b);
/* The bytes of the character that begins at p; broken ones are characters of a byte. */
size_t character_bytes(const char *p, size_t n);
uint32_t character_code(const char *p, size_t n_bytes);
/* Returns the beginning of the last character of s[begin..end). */
size_t last_character(const char *s, size_t begin, size_t end);
size_t string_characters(heap *r, value s);
size_t text_find(const char *s, size_t n, const char *what,
                 size_t n_what); /* SIZE_MAX: not there */
bool is_space(uint32_t code);    /* as Python's str.isspace and str.strip see it */

/* Returns whether this byte is from the conversation. */
static inline bool text_is_marked(const heap *r, const char *p)
{
    return p >= r->text && p < r->text + r->n_text && r->marks[p - r->text];
}

/* ---- All values ---- */

/* The numbers that digits, as JSON and Jinja write them, stand for: VALUE_INT, or VALUE_BIG. */
value int_from_text(value digits);
value float_from_text(heap *r, value digits);

value value_none(void);
value value_bool(bool b);
value value_int(int64_t i);
value value_float(double f);
value value_undefined(const char *name, size_t n);

bool value_true(value v);
static inline bool is_kind(value v, value_kind kind)
{
    return v.kind == kind;
}
static inline bool is_number(value v)
{
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT || v.kind == VALUE_FLOAT;
}
static inline bool is_whole(value v) /* an int of Python */
{
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT;
}
double number_float(value v);
int64_t number_int(value v); /* number of a value that is_whole */
bool value_equal(heap *r, value a, value b);
/* < 0, 0, > 0; what cannot be compared is a failure. */
int value_order(heap *r, value a, value b);
const char *value_type_name(value v); /* as in Python's error messages */

/* ---- Lists and maps ---- */

value list_new(heap *r, uint32_t capacity, list_style style); /* makes a VALUE_LIST */
void list_add(heap *r, value list, value item);
value map_new(heap *r, uint32_t capacity);
/* Keys that are equal are one; a new one goes last. */
void map_set(heap *r, value map, value key, value item);
value *map_get(heap *r, value map, value key); /* NULL: not there */
value *map_get_text(heap *r, value map, const char *key);

/* ---- Python's ways to write a value: appended to the text that is being made ---- */

void text_put_repr(heap *r, value v); /* repr(v) */
value string_from(heap *r, value v);  /* str(v); a string stays as it is */
void text_put_float(heap *r, double f, bool marked);
