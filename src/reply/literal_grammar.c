/* The grammar of arguments in the model's notation, or within tags: see literal_reader.c,
 * tag_reader.c and reply_grammar.c.
 * Keys come in any order, each at most once, those that are required always.
 *
 * Where values are Python's or JSON's they are written as JSON of their schema, and texts may have
 * single quotes, words be Python's. With marks around texts, and within tags, a schema is followed
 * through lists and objects; what it says besides of those is left to the model. */
#include "common/json_writer.h"
#include "grammar/grammar.h"
#include "reply/reply_writing.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 24, MOST_REFERENCES = 3 };

static bool is_python(const writing *w)
{
    return !w->f->literal.quote && !w->f->tag;
}

/* ---- What all of them use ---- */

static void put_quote(const writing *w)
{
    if (!w->f->tag)
        writing_text(w, w->f->literal.quote, strlen(w->f->literal.quote));
}

/* "item": of lists. */
static void put_tag(const writing *w, const char *front, const char *name, size_t n)
{
    writing_text(w, w->f->tag, strlen(w->f->tag));
    fprintf(w->out, " \"%s\"", front);
    writing_quoted(w->out, "", name, n);
    fputs(" \">\"", w->out);
}

static void put_rule_of_tags(const writing *w, const char *rule, const char *name)
{
    fprintf(w->out, "%s ::= (", rule);
    writing_text(w, w->f->tag, strlen(w->f->tag));
    fprintf(w->out, " \"<\" %s \">\" literal-any", name);
    writing_text(w, w->f->tag, strlen(w->f->tag));
    fprintf(w->out, " \"</\" %s \">\" )*\n", name);
}

static void put_text_rule(const writing *w, const char *mark)
{
    fputs("literal-text ::= %unlike ( .*", w->out);
    writing_quoted(w->out, "", mark, strlen(mark));
    fputs(" )\n", w->out);
}

static void put_tag_rules(const writing *w)
{
    put_text_rule(w, w->f->tag);
    put_rule_of_tags(w, "literal-list", "\"item\"");
    put_rule_of_tags(w, "literal-object", "[a-zA-Z0-9_.-]+");
    fputs("literal-any ::= literal-text | literal-list | literal-object\n", w->out);
}

static void put_marked_rules(const writing *w)
{
    put_text_rule(w, w->f->literal.quote);
    fputs("literal-any ::=", w->out);
    put_quote(w);
    fputs(" literal-text", w->out);
    put_quote(w);
    fputs(" | %json {\"type\": [\"number\", \"boolean\", \"null\"]} | literal-list | "
          "literal-object\n"
          "literal-list ::= \"[\" (literal-any (\",\" literal-any)*)? \"]\"\n"
          "literal-object ::= \"{\" (literal-member (\",\" literal-member)*)? \"}\"\n"
          "literal-member ::= [a-zA-Z0-9_.-]+ \":\" literal-any\n"
          "literal-comma ::= \",\"\n",
          w->out);
}

void writing_literal_rules(const writing *w)
{
    if (!is_python(w)) {
        w->f->tag ? put_tag_rules(w) : put_marked_rules(w);
        return;
    }
    fputs("literal-single ::= \"'\" ([^'\\\\\\n] | \"\\\\\" [nt'\"\\\\])* \"'\"\n"
          "literal-member ::= [a-zA-Z_] [a-zA-Z0-9_]* \"=\" (%unordered {})\n"
          "literal-comma ::= \",\" \" \"?\n",
          w->out);
}

/* ---- Schemas ---- */

enum { HAS_TEXT = 1, HAS_BOOLEAN = 2, HAS_NULL = 4, HAS_ALL = 7 };

static int of_type(const json_value *type)
{
    static const char *const names[] = {"string", "boolean", "null"};
    for (int i = 0; i < 3; i++)
        if (type->type == JSON_STRING && strcmp(type->text, names[i]) == 0)
            return 1 << i;
    return 0;
}

/* Returns which of these types a schema has without saying more of them. */
static int types_of(const json_value *schema)
{
    static const char *const words[] = {"enum",    "const",  "anyOf",     "oneOf",
                                        "allOf",   "$ref",   "minLength", "maxLength",
                                        "pattern", "format", "not"};
    const json_value *type = json_member(schema, "type");
    int types = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_member(schema, words[i]))
            return 0;
    if (!type)
        return HAS_ALL;
    if (type->type != JSON_ARRAY)
        return of_type(type);
    for (const json_value *one = type->first; one; one = one->next)
        types |= of_type(one);
    return types;
}

static drey_status put_json(const writing *w, const json_value *root, const json_value *schema,
                            drey_error *err)
{
    char *text = reply_parameter_schema(root, schema);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a parameter");
    fprintf(w->out, " (%%unordered %s)", text);
    free(text);
    return DREY_OK;
}

static drey_status put_python(const writing *w, const json_value *root, const json_value *schema,
                              drey_error *err)
{
    const int types = types_of(schema);
    fputs(" (", w->out);
    TRY(put_json(w, root, schema, err));
    fprintf(w->out, "%s%s%s )", types & HAS_TEXT ? " | literal-single" : "",
            types & HAS_BOOLEAN ? " | \"True\" | \"False\"" : "",
            types & HAS_NULL ? " | \"None\"" : "");
    return DREY_OK;
}

/* ---- Values with marks around texts ---- */

/* A place in a schema. */
typedef struct place {
    const json_value *root; /* the parameters' schema, which has definitions */
    int depth, n_references;
} place;

static drey_status put_value(const writing *w, const json_value *schema, place at, drey_error *err);

/* A value that is known. */
static void put_known(const writing *w, const json_value *v)
{
    if (v->type == JSON_STRING) {
        put_quote(w);
        writing_quoted(w->out, "", v->text, v->n);
        put_quote(w);
    } else if (v->type == JSON_OBJECT || v->type == JSON_ARRAY) {
        fputs(v->type == JSON_OBJECT ? " literal-object" : " literal-list", w->out);
    } else {
        fputs(" (%json {\"const\": ", w->out);
        json_raw_value(&(json_writer){.put = reply_to_file, .user = w->out}, v);
        fputs("})", w->out);
    }
}

/* One of a list's schemas, or of a list's values. */
static drey_status put_one_of(const writing *w, const json_value *list, bool values, place at,
                              drey_error *err)
{
    const char *bar = " (";
    for (const json_value *one = list->first; one && !writing_full(w); one = one->next) {
        fputs(bar, w->out);
        if (values)
            put_known(w, one);
        else
            TRY(put_value(w, one, at, err));
        bar = " |";
    }
    fputs(bar[1] == '|' ? " )" : " literal-any", w->out);
    return DREY_OK;
}

static drey_status put_string(const writing *w, const json_value *schema)
{
    put_quote(w);
    if (!writing_text_schema(w, schema))
        fputs(" literal-text", w->out);
    put_quote(w);
    return DREY_OK;
}

static int32_t count_of(const json_value *schema, const char *word, int32_t otherwise)
{
    const json_value *v = json_member(schema, word);
    return v && v->type == JSON_NUMBER && v->number >= 0 && v->number < 1000 ? (int32_t)v->number
                                                                             : otherwise;
}

/* most -1: any number. */
static drey_status put_tag_list(const writing *w, const json_value *items, place at, int32_t least,
                                int32_t most, drey_error *err)
{
    fputs(" (", w->out);
    put_tag(w, "<", "item", 4);
    TRY(put_value(w, items, at, err));
    put_tag(w, "</", "item", 4);
    fprintf(w->out, " ){%d,", (int)least);
    if (most > 0)
        fprintf(w->out, "%d", (int)(most > least ? most : least));
    fputs("}", w->out);
    return DREY_OK;
}

static drey_status put_list(const writing *w, const json_value *schema, place at, drey_error *err)
{
    const json_value *items = json_member(schema, "items");
    const int32_t least = count_of(schema, "minItems", 0), most = count_of(schema, "maxItems", -1);
    if (!items || items->type != JSON_OBJECT || json_member(schema, "prefixItems")) {
        fputs(" literal-list", w->out);
        return DREY_OK;
    }
    if (most == 0) {
        fputs(w->f->tag ? " \"\"" : " \"[]\"", w->out);
        return DREY_OK;
    }
    if (w->f->tag)
        return put_tag_list(w, items, at, least, most, err);
    fputs(" \"[\" (", w->out);
    TRY(put_value(w, items, at, err));
    fputs(" (\",\"", w->out);
    TRY(put_value(w, items, at, err));
    fprintf(w->out, " ){%d,", least > 1 ? (int)least - 1 : 0);
    if (most > 0)
        fprintf(w->out, "%d", (int)(most > least ? most : least > 0 ? least : 1) - 1);
    fprintf(w->out, "})%s \"]\"", least > 0 ? "" : "?");
    return DREY_OK;
}

static bool is_required(const json_value *schema, const char *key)
{
    const json_value *list = json_member_array(schema, "required");
    for (const json_value *one = list ? list->first : NULL; one; one = one->next)
        if (one->type == JSON_STRING && strcmp(one->text, key) == 0)
            return true;
    return false;
}

static drey_status put_member(const writing *w, const json_value *p, place at, drey_error *err)
{
    const char text[2] = {at.depth > 0 ? ':' : w->f->literal.assign, 0};
    fputs(" (", w->out);
    if (w->f->tag) {
        put_tag(w, "<", p->key, p->n_key);
        TRY(put_value(w, p, at, err));
        put_tag(w, "</", p->key, p->n_key);
        return DREY_OK;
    }
    writing_quoted(w->out, "", p->key, p->n_key);
    writing_quoted(w->out, "", text, 1);
    return is_python(w) ? put_python(w, at.root, p, err) : put_value(w, p, at, err);
}

/* The members that a schema names, without brackets; any, where it names none or too many. */
static drey_status put_members(const writing *w, const json_value *schema, place at,
                               drey_error *err)
{
    const json_value *all = json_member(schema, "properties");
    if (!all || all->type != JSON_OBJECT || all->n == 0 || all->n > GRAMMAR_MOST_EACH) {
        const bool none = all && all->type == JSON_OBJECT && all->n == 0;
        fputs(none        ? " \"\""
              : w->f->tag ? " literal-object"
                          : " (literal-member (literal-comma literal-member)*)?",
              w->out);
        return DREY_OK;
    }
    fputs(w->f->tag ? " %each (" : " %each literal-comma (", w->out);
    for (const json_value *p = all->first; p && !writing_full(w); p = p->next) {
        TRY(put_member(w, p, at, err));
        fputs(is_required(schema, p->key) ? ")" : ")?", w->out);
    }
    fputs(" )", w->out);
    return DREY_OK;
}

static drey_status put_typed(const writing *w, const json_value *schema, const char *type, place at,
                             drey_error *err)
{
    if (strcmp(type, "string") == 0)
        return put_string(w, schema);
    if (strcmp(type, "array") == 0)
        return put_list(w, schema, at, err);
    if (strcmp(type, "object") == 0) {
        fputs(w->f->tag ? "" : " \"{\"", w->out);
        TRY(put_members(w, schema, at, err));
        fputs(w->f->tag ? "" : " \"}\"", w->out);
        return DREY_OK;
    }
    const json_value *types = json_member(schema, "type");
    if (types->type == JSON_STRING)
        return put_json(w, at.root, schema, err);
    fprintf(w->out, " (%%json {\"type\": \"%s\"})", type);
    return DREY_OK;
}

static bool is_known_type(const json_value *type)
{
    static const char *const names[] = {"string", "number", "integer", "boolean",
                                        "null",   "array",  "object"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (type->type == JSON_STRING && strcmp(type->text, names[i]) == 0)
            return true;
    return false;
}

static drey_status put_types(const writing *w, const json_value *schema, const json_value *types,
                             place at, drey_error *err)
{
    const char *bar = " (";
    for (const json_value *one = types->type == JSON_ARRAY ? types->first : types; one;
         one = types->type == JSON_ARRAY ? one->next : NULL) {
        if (!is_known_type(one))
            continue;
        fputs(bar, w->out);
        TRY(put_typed(w, schema, one->text, at, err));
        bar = " |";
    }
    fputs(bar[1] == '|' ? " )" : " literal-any", w->out);
    return DREY_OK;
}

static drey_status put_value(const writing *w, const json_value *schema, place at, drey_error *err)
{
    static const char *const lists[] = {"enum", "anyOf", "oneOf", "allOf"};
    const json_value *reference = json_member(schema, "$ref"), *type = json_member(schema, "type");
    const json_value *only = json_member(schema, "const"), *list = NULL, *target = NULL;
    at.depth++;
    if (reference && reference->type == JSON_STRING)
        target = reply_schema_target(at.root, reference->text);
    if (writing_full(w) || schema->type != JSON_OBJECT || at.depth > MOST_DEPTH ||
        (target && ++at.n_references > MOST_REFERENCES)) {
        fputs(" literal-any", w->out);
        return DREY_OK;
    }
    if (target)
        return put_value(w, target, at, err);
    if (only) {
        put_known(w, only);
        return DREY_OK;
    }
    for (int i = 0; i < 4; i++)
        if ((list = json_member_array(schema, lists[i])) && (i < 3 || list->n == 1))
            return put_one_of(w, list, i == 0, at, err);
    if (type)
        return put_types(w, schema, type, at, err);
    fputs(json_member(schema, "properties") ? " literal-object" : " literal-any", w->out);
    return DREY_OK;
}

/* ---- Arguments ---- */

drey_status writing_literal(const writing *w, const json_value *function, int32_t tool, bool loose,
                            drey_error *err)
{
    static const json_value any = {.type = JSON_OBJECT};
    const json_value *parameters = json_member(function, "parameters");
    const char open[2] = {w->f->literal.open, 0}, close[2] = {w->f->literal.close, 0};
    fprintf(w->out, "arguments-%d ::=", (int)tool);
    writing_quoted(w->out, "", open, strlen(open));
    if (parameters || loose)
        TRY(put_members(w, loose ? &any : parameters, (place){.root = parameters}, err));
    else if (w->f->tag)
        fputs(" \"\"", w->out);
    writing_quoted(w->out, "", close, strlen(close));
    fputs("\n", w->out);
    return DREY_OK;
}
