/* Inside of the reader of JSON Schema. */
#pragma once

#include "grammar/json_text.h"

enum { SCHEMA_MOST_MEMBERS = 2048, SCHEMA_MOST_REFERENCES = 1024, SCHEMA_PATH = 200 };

/* A member of an object that may be written. */
typedef struct schema_member {
    const char *key;
    size_t n_key;
    const json_value *schema; /* NULL: any value */
    bool required;
} schema_member;

/* A schema that another part of the document refers to: a rule, which is read once. */
typedef struct schema_reference {
    const json_value *schema;
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
    char path[SCHEMA_PATH]; /* of what is being read, for messages */
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

/* What a value of the schema is written as. */
drey_status schema_expr(schema_reader *r, const json_value *schema, expr *out);
/* The schema that "$ref" names. */
drey_status schema_target(schema_reader *r, const char *reference, const json_value **out);
drey_status schema_object(schema_reader *r, const json_value *schema, expr *out);
drey_status schema_array(schema_reader *r, const json_value *schema, expr *out);
/* A whole number that is not negative; `otherwise` where there is none. */
drey_status schema_count(schema_reader *r, const json_value *schema, const char *key,
                         int32_t otherwise, int32_t *out);
