/* Inside of the reader of JSON Schema.
 *
 *   json_schema.c      which schemas a value satisfies together, references, choices, types
 *   schema_words.c     the words of JSON Schema, and which are refused
 *   schema_values.c    "const" and "enum": values that are known
 *   schema_scalars.c   texts and numbers
 *   schema_object.c, schema_array.c */
#pragma once

#include "grammar/json_text.h"
#include "grammar/languages.h"

enum {
    SCHEMA_MOST_MEMBERS = 2048,
    SCHEMA_MOST_REFERENCES = 1024,
    SCHEMA_MOST_TOGETHER = 16,
    SCHEMA_MOST_PATTERNS = 4, /* of names */
    SCHEMA_MOST_STEPS = 64 << 10,
    SCHEMA_FORMATS = 10,
    SCHEMA_PATH = 200
};

/* What a schema says, apart from these words. */
typedef enum schema_taken { TAKEN_ANY_OF = 1, TAKEN_ONE_OF = 2, TAKEN_PARTS = 4 } schema_taken;

/* Schemas that a value satisfies all of. */
typedef struct schema_set {
    const json_value *of[SCHEMA_MOST_TOGETHER];
    uint8_t taken[SCHEMA_MOST_TOGETHER]; /* of schema_taken */
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
} schema_member;

/* What other parts of the document refer to: a rule, which is read once. */
typedef struct schema_reference {
    schema_set set;
    int32_t rule;
} schema_reference;

typedef struct schema_reader {
    grammar_rules *g;
    json_rules json;
    const json_value *root;
    drey_error *err;
    schema_member members[SCHEMA_MOST_MEMBERS]; /* of the objects that are being read */
    int32_t n_members;
    schema_reference references[SCHEMA_MOST_REFERENCES];
    int32_t n_references;
    int32_t n_steps;
    int32_t format_rule[SCHEMA_FORMATS]; /* 0: not made yet; rule 0 is the root */
    char path[SCHEMA_PATH];              /* of what is being read, for messages */
    size_t n_path;
} schema_reader;

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

/* What drey cannot enforce is refused by its name. */
drey_status schema_check_words(schema_reader *r, const json_value *schema);
/* Whether it says anything about values, but for what was taken. */
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
/* What a value of the schemas is written as. Where nothing satisfies several of them together, that
 * is EXPR_NEVER. */
drey_status schema_set_expr(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_expr(schema_reader *r, const json_value *schema, expr *out);
/* The schema that "$ref" names. */
drey_status schema_target(schema_reader *r, const char *reference, const json_value **out);

drey_status schema_object(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_array(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_string(schema_reader *r, const schema_set *set, expr *out);
drey_status schema_number(schema_reader *r, const schema_set *set, bool whole, expr *out);

/* The value of "const" or the list of "enum" that one of the schemas has; NULL: none has. */
const json_value *schema_known_values(const schema_set *set, bool *is_list);
/* Those of them that satisfy all schemas. */
drey_status schema_values(schema_reader *r, const schema_set *set, expr *out);

/* ---- Languages ---- */

/* Languages for a while, which may be made of each other. */
typedef struct schema_languages {
    language *now, *other, *next; /* next: of the two */
} schema_languages;
drey_status schema_languages_init(schema_reader *r, schema_languages *l);
void schema_languages_free(schema_languages *l);
/* now becomes what it has in common with `other`, or what other does not have. word: what it is
 * about, for a message. */
drey_status schema_languages_both(schema_reader *r, schema_languages *l, bool but_not,
                                  const char *word);
/* The texts that match a pattern. */
drey_status schema_pattern(schema_reader *r, const json_value *pattern, language *out);
drey_status schema_too_large(schema_reader *r, const char *word);
/* now: the texts of "pattern", "format", "minLength" and "maxLength" of a schema; *any: all. */
drey_status schema_texts(schema_reader *r, const json_value *schema, schema_languages *l,
                         bool *any);
