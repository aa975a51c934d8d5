/* The schema of what does not satisfy a schema. It violates one of its words:
 *
 *     {"type": "string", "maxLength": 3}     {"anyOf": [{"type": ["null", "boolean", ...]},
 *                                                       {"type": "string", "minLength": 4}]}
 *
 * so that the rest of the reader needs to know nothing of it, but for a few words of our own
 * (schema_reader.h). A schema with a word whose violation is not known here has no such schema. */
#include <string.h>

#include "grammar/schema_reader.h"

/* ---- Making schemas ---- */

json_value *schema_make(schema_reader *r, const json_value *of, json_event type, const char *key)
{
    if (r->n_made == SCHEMA_MOST_MADE)
        return NULL;
    json_value *v = &r->made[r->n_made];
    r->made_of[r->n_made++] = of;
    *v = (json_value){.type = type, .key = key, .n_key = key ? (uint32_t)strlen(key) : 0};
    return v;
}

json_value *schema_put(json_value *to, json_value *value)
{
    if (!to || !value)
        return NULL;
    json_value **link = &to->first;
    while (*link)
        link = &(*link)->next;
    *link = value;
    to->n++;
    return value;
}

json_value *schema_copy(schema_reader *r, const json_value *value, const char *key)
{
    json_value *v = schema_make(r, value, value->type, key);
    if (!v)
        return NULL;
    const char *own = v->key;
    const uint32_t n_key = v->n_key;
    *v = *value;
    v->key = own;
    v->n_key = n_key;
    v->next = NULL;
    return v;
}

static json_value *make_number(schema_reader *r, const json_value *of, double x, const char *key)
{
    json_value *v = schema_make(r, of, JSON_NUMBER, key);
    if (v)
        v->number = x;
    return v;
}

/* ---- Types ---- */

/* "type" of these: "integer" only where "number" is not among them. */
static json_value *make_types(schema_reader *r, const json_value *of, int32_t types)
{
    json_value *list = schema_make(r, of, JSON_ARRAY, "type");
    for (int i = 0; i < SCHEMA_TYPES; i++) {
        const schema_type_name *named = &schema_type_names[i];
        const bool is = named->types == TYPE_INTEGER
                            ? (types & (TYPE_INTEGER | TYPE_NUMBER)) == TYPE_INTEGER
                            : (types & named->types) == named->types;
        json_value *name = is ? schema_make(r, of, JSON_STRING, NULL) : NULL;
        if (is && !schema_put(list, name))
            return NULL;
        if (is) {
            name->text = named->name;
            name->n = (uint32_t)strlen(name->text);
        }
    }
    return list;
}

/* ---- Alternatives ---- */

typedef struct negation {
    schema_reader *r;
    const json_value *of; /* schema that is negated */
    json_value *list;     /* the alternatives */
    bool held;
} negation;

/* One more: values of these types of which the word is true, if it is not NULL. */
static void offer(negation *x, int32_t types, json_value *word)
{
    json_value *one = schema_make(x->r, x->of, JSON_OBJECT, NULL);
    x->held = x->held && schema_put(one, make_types(x->r, x->of, types)) &&
              (!word || schema_put(one, word)) && schema_put(x->list, one);
}

static void offer_number(negation *x, int32_t types, const char *key, double number)
{
    json_value *v = make_number(x->r, x->of, number, key);
    x->held = x->held && v;
    if (v)
        offer(x, types, v);
}

static void offer_copy(negation *x, int32_t types, const json_value *v, const char *key)
{
    json_value *word = schema_copy(x->r, v, key);
    x->held = x->held && word;
    if (word)
        offer(x, types, word);
}

/* A value of the schema as it is. */
static void offer_schema(negation *x, const json_value *schema)
{
    json_value *one = schema_copy(x->r, schema, NULL);
    x->held = x->held && schema_put(x->list, one);
}

/* ---- Words ---- */

static void not_types(negation *x, const json_value *schema)
{
    int32_t types;
    if (schema_types(x->r, schema, &types) != DREY_OK) {
        x->held = false;
        return;
    }
    if (types & TYPE_INTEGER && !(types & TYPE_NUMBER)) {
        json_value *fraction = schema_make(x->r, x->of, JSON_TRUE, SCHEMA_FRACTION);
        x->held = x->held && fraction;
        if (fraction)
            offer(x, TYPE_NUMBER | TYPE_INTEGER, fraction);
    }
    types = TYPE_ANY & ~types;
    if (!(types & TYPE_NUMBER))
        types &= ~TYPE_INTEGER;
    if (types)
        offer(x, types, NULL);
}

static int32_t type_of_value(const json_value *v)
{
    return v->type == JSON_NULL     ? TYPE_NULL
           : v->type == JSON_NUMBER ? TYPE_NUMBER | TYPE_INTEGER
           : v->type == JSON_STRING ? TYPE_STRING
           : v->type == JSON_ARRAY  ? TYPE_ARRAY
           : v->type == JSON_OBJECT ? TYPE_OBJECT
                                    : TYPE_BOOLEAN;
}

/* Other values than those of "enum" or "const": texts and numbers by what they are not. */
static void not_values(negation *x, const json_value *known, bool is_list)
{
    int32_t types = 0, booleans = 0;
    json_value *list = schema_make(x->r, x->of, JSON_ARRAY, SCHEMA_BUT);
    for (const json_value *v = is_list ? known->first : known; v; v = is_list ? v->next : NULL) {
        types |= type_of_value(v);
        booleans |= v->type == JSON_TRUE ? 1 : v->type == JSON_FALSE ? 2 : 0;
        x->held = x->held && schema_put(list, schema_copy(x->r, v, NULL));
    }
    if (types & (TYPE_ARRAY | TYPE_OBJECT) || !x->held) {
        x->held = false;
        return;
    }
    if (types & TYPE_STRING)
        offer_copy(x, TYPE_STRING, list, SCHEMA_BUT);
    if (types & TYPE_NUMBER)
        offer_copy(x, TYPE_NUMBER | TYPE_INTEGER, list, SCHEMA_BUT);
    if (booleans == 1 || booleans == 2) {
        json_value *other =
            schema_make(x->r, x->of, booleans == 1 ? JSON_FALSE : JSON_TRUE, "const");
        x->held = x->held && other;
        if (other)
            offer(x, TYPE_BOOLEAN, other);
    }
    offer(x, TYPE_ANY & ~types, NULL);
}

/* Each of the names is missing in another alternative. */
static void not_required(negation *x, const json_value *names)
{
    for (const json_value *v = names->type == JSON_ARRAY ? names->first : NULL; v; v = v->next) {
        json_value *list = schema_make(x->r, x->of, JSON_ARRAY, SCHEMA_ABSENT);
        x->held = x->held && schema_put(list, schema_copy(x->r, v, NULL));
        if (x->held)
            offer(x, TYPE_OBJECT, list);
    }
}

/* One of the members is there and does not satisfy its schema. */
static void not_properties(negation *x, const json_value *members)
{
    for (const json_value *v = members->type == JSON_OBJECT ? members->first : NULL; v && x->held;
         v = v->next) {
        const json_value *other = schema_negated(x->r, v);
        x->held = x->held && other;
        if (!x->held || other->type == JSON_FALSE)
            continue;
        json_value *one = schema_make(x->r, x->of, JSON_OBJECT, NULL);
        json_value *names = schema_make(x->r, x->of, JSON_ARRAY, "required");
        json_value *name = schema_make(x->r, x->of, JSON_STRING, NULL);
        json_value *all = schema_make(x->r, x->of, JSON_OBJECT, "properties");
        json_value *member = schema_copy(x->r, other, v->key);
        x->held = schema_put(one, make_types(x->r, x->of, TYPE_OBJECT)) &&
                  schema_put(names, name) && schema_put(one, names) && schema_put(all, member) &&
                  schema_put(one, all) && schema_put(x->list, one);
        if (!x->held)
            return;
        member->n_key = v->n_key;
        name->text = v->key;
        name->n = v->n_key;
    }
}

/* All of the list's negations together, or each of them alone. */
static void not_list(negation *x, const json_value *list, bool together)
{
    json_value *all = schema_make(x->r, x->of, JSON_ARRAY, "allOf");
    json_value *one = schema_make(x->r, x->of, JSON_OBJECT, NULL);
    for (const json_value *v = list->type == JSON_ARRAY ? list->first : NULL; v && x->held;
         v = v->next) {
        const json_value *other = schema_negated(x->r, v);
        x->held = x->held && other &&
                  schema_put(together ? all : x->list, schema_copy(x->r, other, NULL));
    }
    if (together)
        x->held = x->held && schema_put(one, all) && schema_put(x->list, one);
}

/* Some item, or no item, satisfies it not. */
static void not_items(negation *x, const json_value *schema, const json_value *v, const char *word)
{
    const json_value *other = v->type == JSON_ARRAY ? NULL : schema_negated(x->r, v);
    if (json_member(schema, "prefixItems") || json_member(schema, "minContains") ||
        json_member(schema, "maxContains"))
        other = NULL;
    x->held = x->held && other;
    if (other)
        offer_copy(x, TYPE_ARRAY, other, word);
}

/* A bound: what is beyond it. False: the word is none. */
static bool not_bound(negation *x, const json_value *v)
{
    enum { NUMBERS = TYPE_NUMBER | TYPE_INTEGER };
    static const struct {
        const char *word, *other;
        int32_t types, more;
    } bounds[] = {{"minimum", "exclusiveMaximum", NUMBERS, 0},
                  {"maximum", "exclusiveMinimum", NUMBERS, 0},
                  {"exclusiveMinimum", "maximum", NUMBERS, 0},
                  {"exclusiveMaximum", "minimum", NUMBERS, 0},
                  {"minLength", "maxLength", TYPE_STRING, -1},
                  {"maxLength", "minLength", TYPE_STRING, 1},
                  {"minItems", "maxItems", TYPE_ARRAY, -1},
                  {"maxItems", "minItems", TYPE_ARRAY, 1},
                  {"minProperties", "maxProperties", TYPE_OBJECT, -1},
                  {"maxProperties", "minProperties", TYPE_OBJECT, 1}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(v->key, bounds[i].word) != 0)
            continue;
        if (v->type != JSON_NUMBER)
            x->held = false;
        else if (v->number + bounds[i].more >= 0 || bounds[i].types == NUMBERS)
            offer_number(x, bounds[i].types, bounds[i].other, v->number + bounds[i].more);
        return true;
    }
    return false;
}

/* Words whose violation is not known here. */
static bool is_unknown(const char *word)
{
    static const char *const unknown[] = {"format",
                                          "multipleOf",
                                          "patternProperties",
                                          "propertyNames",
                                          "uniqueItems",
                                          "prefixItems",
                                          "additionalProperties",
                                          "unevaluatedProperties",
                                          "additionalItems",
                                          "unevaluatedItems",
                                          "if",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "dependencies",
                                          "$dynamicRef",
                                          "$recursiveRef"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (strcmp(word, unknown[i]) == 0)
            return true;
    return false;
}

static void not_reference(negation *x, const json_value *v)
{
    const json_value *target = NULL;
    if (v->type == JSON_STRING && schema_target(x->r, v->text, &target) == DREY_OK && target)
        target = schema_negated(x->r, target);
    x->held = x->held && target;
    if (x->held)
        offer_schema(x, target);
}

static void not_word(negation *x, const json_value *schema, const json_value *v)
{
    const char *word = v->key;
    if (schema_word(schema, word) != v || not_bound(x, v))
        return; /* of equal words the last one counts */
    if (strcmp(word, "type") == 0)
        not_types(x, schema);
    else if (strcmp(word, "const") == 0 || strcmp(word, "enum") == 0)
        not_values(x, v, word[0] == 'e');
    else if (strcmp(word, "pattern") == 0)
        offer_copy(x, TYPE_STRING, v, SCHEMA_UNLIKE);
    else if (strcmp(word, "required") == 0)
        not_required(x, v);
    else if (strcmp(word, "properties") == 0)
        not_properties(x, v);
    else if (strcmp(word, "items") == 0)
        not_items(x, schema, v, "contains");
    else if (strcmp(word, "contains") == 0)
        not_items(x, schema, v, "items");
    else if (strcmp(word, "not") == 0)
        offer_schema(x, v);
    else if (strcmp(word, "anyOf") == 0 || strcmp(word, "oneOf") == 0)
        not_list(x, v, true);
    else if (strcmp(word, "allOf") == 0)
        not_list(x, v, false);
    else if (strcmp(word, "$ref") == 0)
        not_reference(x, v);
    else if (is_unknown(word))
        x->held = false;
}

/* ---- A schema ---- */

static const json_value never = {.type = JSON_FALSE}, always = {.type = JSON_TRUE};

static const json_value *negate(schema_reader *r, const json_value *schema)
{
    negation x = {.r = r, .of = schema, .held = true};
    json_value *out = schema_make(r, schema, JSON_OBJECT, NULL);
    x.list = schema_make(r, schema, JSON_ARRAY, "anyOf");
    if (!out || !x.list)
        return NULL;
    for (const json_value *v = schema->first; v && x.held; v = v->next)
        not_word(&x, schema, v);
    if (!x.held)
        return NULL;
    if (x.list->n == 0) /* it allows everything */
        return &never;
    if (x.list->n == 1)
        return x.list->first;
    schema_put(out, x.list);
    return out;
}

const json_value *schema_negated(schema_reader *r, const json_value *schema)
{
    if (schema->type == JSON_TRUE || schema->type == JSON_FALSE)
        return schema->type == JSON_TRUE ? &never : &always;
    if (schema->type != JSON_OBJECT)
        return NULL;
    for (int32_t i = 0; i < r->n_known; i++)
        if (r->known[i].of == schema && r->known[i].negated)
            return r->known[i].is;
    if (r->n_known == SCHEMA_MOST_KNOWN)
        return NULL;
    const int32_t i = r->n_known++;
    r->known[i].of = schema;
    r->known[i].is = NULL;
    r->known[i].negated = true;
    const json_value *is = negate(r, schema);
    r->known[i].is = is;
    return is;
}
