/* Inside of the reader of JSON Schema.
 *
 *   json_schema.c      which schemas a value satisfies together, references, choices, types
 *   schema_words.c     the words of JSON Schema
 *   schema_values.c    "const" and "enum": values that are known
 *   schema_scalars.c   texts and numbers
 *   schema_object.c, schema_array.c
 *   schema/            conditions, schemas made of others, lists of which more is said */
#pragma once

#include "grammar/json_text.h"
#include "grammar/languages.h"

enum {
    SCHEMA_MOST_MEMBERS = 2048,
    SCHEMA_MOST_REFERENCES = 1024,
    SCHEMA_MOST_TOGETHER = 16,
    SCHEMA_MOST_PATTERNS = 4, /* patterns of names */
    SCHEMA_MOST_STEPS = 64 << 10,
    SCHEMA_FORMATS = 12,
    SCHEMA_MOST_MADE = 4096,
    SCHEMA_MOST_KNOWN = 512,
    SCHEMA_PATH = 200
};

/* Words of our own, in schemas that are made of others. */
#define SCHEMA_BUT      "\001but"      /* a list: none of these texts or numbers */
#define SCHEMA_UNLIKE   "\001unlike"   /* texts that do not match the pattern */
#define SCHEMA_FRACTION "\001fraction" /* true: no whole number */
#define SCHEMA_ABSENT   "\001absent"   /* a list of names: no such members */

/* Words of a schema that are handled elsewhere. */
typedef enum schema_taken { TAKEN_ANY_OF = 1, TAKEN_ONE_OF = 2, TAKEN_PARTS = 4 } schema_taken;

/* Schemas that a value satisfies all of. */
typedef struct schema_set {
    const json_value *of[SCHEMA_MOST_TOGETHER];
    uint8_t taken[SCHEMA_MOST_TOGETHER]; /* bits of schema_taken */
    int32_t n;
    bool never;  /* no value does */
    bool of_one; /* they are all parts of the first */
} schema_set;

/* A member of an object that may be written. */
typedef struct schema_member {
    const char *key;
    size_t n_key;
    const json_value *of[SCHEMA_MOST_TOGETHER];
    int32_t n_of;
    uint32_t named_by; /* bits: schemas of the object that say something about it */
    bool required;
    expr written; /* once it has been read: with its value */
} schema_member;

/* Reference to another part of the document: a rule, which is read once. */
typedef struct schema_reference {
    schema_set set;
    int32_t rule;
} schema_reference;

typedef struct schema_reader {
    grammar_rules *g;
    json_rules json;
    const json_value *root;
    drey_error *err;
    schema_member members[SCHEMA_MOST_MEMBERS]; /* members of the objects that are being read */
    int32_t n_members;
    schema_reference references[SCHEMA_MOST_REFERENCES];
    int32_t n_references;
    int32_t n_steps;
    int32_t format_rule[SCHEMA_FORMATS]; /* 0: not made yet; rule 0 is the root */
    char path[SCHEMA_PATH];              /* path of the value that is being read, for messages */
    size_t n_path;
    /* Schemas that were made, and of which one that is in the document. */
    json_value made[SCHEMA_MOST_MADE];
    const json_value *made_of[SCHEMA_MOST_MADE];
    int32_t n_made;
    struct {
        const json_value *of, *is; /* is NULL: it is being made, or cannot be held */
        bool negated;              /* else what is to be true because of the word `of` */
    } known[SCHEMA_MOST_KNOWN];
    int32_t n_known;
    int32_t most_choices; /* choices that are made for one value; 0: none, so that all has room */
} schema_reader;

/* A reader of a schema's text, and its document: both are released by schema_reader_close, or when
 * this fails. `g` and `err` are borrowed until then. */
drey_status schema_reader_open(schema_reader **out, json_document *d, grammar_rules *g,
                               const char *text, size_t n, drey_error *err);
void schema_reader_close(schema_reader **r, json_document *d);

/* Fails with the place in the schema. */
#define SCHEMA_FAIL(r, ...)                                                                        \
    do {                                                                                           \
        char what_[240];                                                                           \
        snprintf(what_, sizeof what_, __VA_ARGS__);                                                \
        FAIL((r)->err, DREY_ERR_USAGE, "the schema at #%s: %s", (r)->path, what_);                 \
    } while (0)

/* The path with one more part; returns what schema_leave takes. */
size_t schema_enter(schema_reader *r, const char *part, int32_t index);
void schema_leave(schema_reader *r, size_t n_path);

/* A word of the schema is not held: its place is noted (grammar_rules_leave_out). */
void schema_leave_out(schema_reader *r, const json_value *schema, const char *word);

/* ---- Words ---- */

enum { /* bits of types */
       TYPE_NULL = 1,
       TYPE_BOOLEAN = 2,
       TYPE_INTEGER = 4, /* whole numbers; TYPE_NUMBER: and others */
       TYPE_NUMBER = 8,
       TYPE_STRING = 16,
       TYPE_ARRAY = 32,
       TYPE_OBJECT = 64,
       TYPE_ANY = 127
};

enum { SCHEMA_TYPES = 7 };
typedef struct schema_type_name {
    const char *name;
    int32_t types; /* bits */
} schema_type_name;
extern const schema_type_name schema_type_names[SCHEMA_TYPES];

/* Returns whether the schema says anything about values, besides what was taken. */
bool schema_says(const json_value *schema, uint8_t taken);
/* The types that its words are about; 0: none. */
int32_t schema_types_meant(const json_value *schema);
/* The types that it allows. */
drey_status schema_types(schema_reader *r, const json_value *schema, int32_t *out);
/* A whole number that is not negative; `otherwise` where there is none. */
drey_status schema_count(schema_reader *r, const json_value *schema, const char *key,
                         int32_t otherwise, int32_t *out);
/* The same of all schemas: the most that one asks for, and the least that one allows. */
drey_status schema_counts(schema_reader *r, const schema_set *set, const char *least_key,
                          const char *most_key, int32_t *least, int32_t *most);
/* The member, also if it is null; NULL: there is none. */
const json_value *schema_word(const json_value *schema, const char *word);

/* ---- Sets ---- */

/* One more schema that the value satisfies. */
drey_status schema_set_add(schema_reader *r, schema_set *set, const json_value *schema);
/* Makes the expression of a value that satisfies the schemas. Where nothing satisfies several of
 * them together, that is EXPR_NEVER. */
drey_status schema_set_expr(schema_reader *r, const schema_set *set, expr *out);
/* The schema that "$ref" names; *out is NULL where it is in another document. */
drey_status schema_target(schema_reader *r, const char *reference, const json_value **out);
/* The values that satisfy the schemas, each once, as they are written: texts[*n]. *n is -1 where
 * they are not known, or more than `most`. */
drey_status schema_finite(schema_reader *r, const schema_set *set, expr *texts, int32_t most,
                          int32_t *n);

drey_status schema_object(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_array(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_string(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_number(schema_reader *r, const schema_set *set, bool whole, expr *out);

/* The value of "const" or the list of "enum" that one of the schemas has; NULL: none has. */
const json_value *schema_known_values(const schema_set *set, bool *is_list);
/* Makes the values among them that satisfy all schemas. */
drey_status schema_values(schema_reader *r, const schema_set *set, expr *out);

/* The values of a list, of "const" or "enum", that satisfy all schemas: texts[*n]. */
drey_status schema_values_kept(schema_reader *r, const schema_set *set, expr *texts, int32_t *n);

/* The same of whole numbers between bounds, without such a list; *n is -1 where there are more than
 * `most`. */
drey_status schema_integers(schema_reader *r, const schema_set *set, expr *texts, int32_t most,
                            int32_t *n);

/* ---- Schemas that are made of others (schema/) ---- */

/* A value for a schema that is made of `of`; NULL: there is no more room. key may be NULL. */
json_value *schema_make(schema_reader *r, const json_value *of, json_event type, const char *key);
/* Puts it at the end of an object or array; NULL as either does nothing. Returns the value. */
json_value *schema_put(json_value *to, json_value *value);
/* The same value for another place, with the key; NULL: there is no more room. */
json_value *schema_copy(schema_reader *r, const json_value *value, const char *key);
/* The schema of values that do not satisfy it: of all of them, but for some that are other ways to
 * do so (json_schema.c). NULL: it cannot be held. */
const json_value *schema_negated(schema_reader *r, const json_value *schema);
/* Adds to the set the schemas that "not", "if" and the words of dependence of a schema ask for, or
 * leaves them out. */
drey_status schema_conditions(schema_reader *r, schema_set *set, const json_value *schema);

/* The inside of an array's brackets. */
typedef struct schema_list {
    int32_t least, most;
    const schema_set *items;    /* schemas of each item */
    const json_value *unique;   /* the schema that says so; NULL: none */
    const json_value *contains; /* the schema that has it; NULL: none */
} schema_list;
/* The items of a list that says more of them than each item does; *held is false where it cannot be
 * held, and is left out. */
drey_status schema_unique(schema_reader *r, const schema_list *list, expr *inside, bool *held);
drey_status schema_containing(schema_reader *r, const schema_list *list, expr *inside, bool *held);

/* ---- Languages ---- */

/* Languages for a while, which may be made of each other. */
typedef struct schema_languages {
    language *now, *other, *next; /* next: of the two */
} schema_languages;
drey_status schema_languages_init(schema_reader *r, schema_languages *l);
void schema_languages_free(schema_languages *l);
/* now becomes what it has in common with `other`, or what other does not have. False: there is no
 * room, now is as it was. */
bool schema_languages_both(schema_languages *l, bool but_not);
/* The texts that match a pattern. *held: these are all, and no others. */
drey_status schema_pattern(schema_reader *r, const char *text, size_t n, language *out, bool *held);
/* now: the texts of "pattern", "format", "minLength" and "maxLength" of a schema; *any: all. */
drey_status schema_texts(schema_reader *r, const json_value *schema, schema_languages *l,
                         bool *any);
