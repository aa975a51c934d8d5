/* The words of JSON Schema: what each is about. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

typedef struct schema_word_row {
    const char *word;
    int32_t about; /* types; 0: of any */
    uint8_t taken; /* the schema_taken that says it */
} schema_word_row;

static const schema_word_row words[] = {{"$ref", 0, TAKEN_PARTS},
                                        {"$dynamicRef", 0, TAKEN_PARTS},
                                        {"$recursiveRef", 0, TAKEN_PARTS},
                                        {"allOf", 0, TAKEN_PARTS},
                                        {"anyOf", 0, TAKEN_ANY_OF},
                                        {"oneOf", 0, TAKEN_ONE_OF},
                                        {"type", 0, 0},
                                        {"const", 0, 0},
                                        {"enum", 0, 0},
                                        {"not", 0, TAKEN_PARTS},
                                        {"if", 0, TAKEN_PARTS},
                                        {"dependentRequired", TYPE_OBJECT, TAKEN_PARTS},
                                        {"dependentSchemas", TYPE_OBJECT, TAKEN_PARTS},
                                        {"dependencies", TYPE_OBJECT, TAKEN_PARTS},
                                        {SCHEMA_BUT, 0, 0},
                                        {SCHEMA_UNLIKE, 0, 0},
                                        {SCHEMA_FRACTION, 0, 0},
                                        {SCHEMA_ABSENT, 0, 0},
                                        {"properties", TYPE_OBJECT, 0},
                                        {"required", TYPE_OBJECT, 0},
                                        {"additionalProperties", TYPE_OBJECT, 0},
                                        {"patternProperties", TYPE_OBJECT, 0},
                                        {"propertyNames", TYPE_OBJECT, 0},
                                        {"minProperties", TYPE_OBJECT, 0},
                                        {"maxProperties", TYPE_OBJECT, 0},
                                        {"unevaluatedProperties", TYPE_OBJECT, 0},
                                        {"items", TYPE_ARRAY, 0},
                                        {"prefixItems", TYPE_ARRAY, 0},
                                        {"additionalItems", TYPE_ARRAY, 0},
                                        {"unevaluatedItems", TYPE_ARRAY, 0},
                                        {"minItems", TYPE_ARRAY, 0},
                                        {"maxItems", TYPE_ARRAY, 0},
                                        {"uniqueItems", TYPE_ARRAY, 0},
                                        {"contains", TYPE_ARRAY, 0},
                                        {"pattern", TYPE_STRING, 0},
                                        {"format", TYPE_STRING, 0},
                                        {"minLength", TYPE_STRING, 0},
                                        {"maxLength", TYPE_STRING, 0},
                                        {"minimum", TYPE_NUMBER, 0},
                                        {"maximum", TYPE_NUMBER, 0},
                                        {"exclusiveMinimum", TYPE_NUMBER, 0},
                                        {"exclusiveMaximum", TYPE_NUMBER, 0},
                                        {"multipleOf", TYPE_NUMBER, 0}};
enum { N_WORDS = sizeof words / sizeof *words };

const json_value *schema_word(const json_value *schema, const char *word)
{
    const json_value *found = NULL;
    for (const json_value *v = schema->type == JSON_OBJECT ? schema->first : NULL; v; v = v->next)
        if (strcmp(v->key, word) == 0)
            found = v;
    return found;
}

bool schema_says(const json_value *schema, uint8_t taken)
{
    for (int i = 0; i < N_WORDS; i++)
        if (!(words[i].taken & taken) && schema_word(schema, words[i].word))
            return true;
    return false;
}

int32_t schema_types_meant(const json_value *schema)
{
    int32_t types = 0;
    for (int i = 0; i < N_WORDS; i++)
        if (words[i].about && schema_word(schema, words[i].word))
            types |= words[i].about;
    return types;
}

/* ---- Types ---- */

const schema_type_name schema_type_names[SCHEMA_TYPES] = {
    {"null", TYPE_NULL},       {"boolean", TYPE_BOOLEAN},
    {"integer", TYPE_INTEGER}, {"number", TYPE_NUMBER | TYPE_INTEGER},
    {"string", TYPE_STRING},   {"array", TYPE_ARRAY},
    {"object", TYPE_OBJECT},
};

static int32_t type_named(const char *name)
{
    for (int i = 0; i < SCHEMA_TYPES; i++)
        if (strcmp(name, schema_type_names[i].name) == 0)
            return schema_type_names[i].types;
    return 0;
}

static drey_status types_of(schema_reader *r, const json_value *types, int32_t *out)
{
    *out = 0;
    if (types->type != JSON_STRING && (types->type != JSON_ARRAY || types->n == 0))
        SCHEMA_FAIL(r, "\"type\" is a name or a list of names");
    for (const json_value *v = types->type == JSON_STRING ? types : types->first; v;
         v = types->type == JSON_STRING ? NULL : v->next) {
        int32_t one = v->type == JSON_STRING ? type_named(v->text) : 0;
        if (v->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"type\" is a name or a list of names");
        if (!one)
            SCHEMA_FAIL(r, "there is no type \"%.40s\"", v->text);
        *out |= one;
    }
    return DREY_OK;
}

drey_status schema_types(schema_reader *r, const json_value *schema, int32_t *out)
{
    const json_value *types = schema_word(schema, "type");
    bool nullable = false;
    *out = TYPE_ANY;
    if (types)
        TRY(types_of(r, types, out));
    if (types && json_member_bool(schema, "nullable", &nullable) && nullable)
        *out |= TYPE_NULL;
    return DREY_OK;
}

/* ---- Counts ---- */

drey_status schema_count(schema_reader *r, const json_value *schema, const char *key,
                         int32_t otherwise, int32_t *out)
{
    const json_value *v = json_member(schema, key);
    *out = otherwise;
    if (!v)
        return DREY_OK;
    if (v->type != JSON_NUMBER || !(v->number >= 0) || v->number != floor(v->number))
        SCHEMA_FAIL(r, "\"%s\" is a whole number that is not negative", key);
    *out = (int32_t)min_f64(v->number, RULES_MOST_REPEATS);
    return DREY_OK;
}

drey_status schema_counts(schema_reader *r, const schema_set *set, const char *least_key,
                          const char *most_key, int32_t *least, int32_t *most)
{
    *least = 0;
    *most = REPEAT_FOREVER;
    for (int32_t i = 0; i < set->n; i++) {
        int32_t a, b;
        TRY(schema_count(r, set->of[i], least_key, 0, &a));
        TRY(schema_count(r, set->of[i], most_key, REPEAT_FOREVER, &b));
        if (b != REPEAT_FOREVER && b < a)
            SCHEMA_FAIL(r, "\"%s\" is less than \"%s\"", most_key, least_key);
        *least = max_i32(*least, a);
        if (b != REPEAT_FOREVER)
            *most = *most == REPEAT_FOREVER ? b : min_i32(*most, b);
    }
    return DREY_OK;
}
