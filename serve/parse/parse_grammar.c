/* Grammars of requests: see parse_grammar.h. One request has one: two that say different things are
 * refused. */
#include "serve/parse/parse_grammar.h"

#include <string.h>

#include "serve/text_out.h"

typedef struct form {
    const json_value *value; /* NULL: any text */
    const char *field;
    drey_grammar_kind kind;
    int n;
    bool strict; /* a form that cannot be held is refused */
} form;

/* Programs that speak to old and new servers give one form in two fields. */
static bool is_said(const form *f, const json_value *v, drey_grammar_kind kind)
{
    const json_value *is = f->value;
    return is && f->kind == kind && is->type == JSON_STRING && v->type == JSON_STRING &&
           is->n == v->n && memcmp(is->text, v->text, v->n) == 0;
}

static void offer(form *f, const json_value *v, const char *field, drey_grammar_kind kind)
{
    bool list = kind == DREY_GRAMMAR_CHOICES, text = !list && kind != DREY_GRAMMAR_JSON_SCHEMA;
    if (!v || (v->n == 0 && ((list && v->type == JSON_ARRAY) || (text && v->type == JSON_STRING))))
        return; /* it asks for nothing */
    if (is_said(f, v, kind))
        return;
    f->n++;
    *f = (form){v, field, kind, f->n, f->strict};
}

/* An object of any kind, for those who ask for JSON without a schema. */
static const json_value *any_object(void)
{
    static char object[] = "object";
    static json_value type = {
        .type = JSON_STRING, .n = 6, .n_key = 4, .key = "type", .text = object};
    static const json_value schema = {.type = JSON_OBJECT, .n = 1, .first = &type};
    return &schema;
}

static bool of_format(form *f, const json_value *format, refusal *r)
{
    const json_value *schema = json_member(format, "schema");
    const json_value *described = json_member(format, "json_schema");
    if (!format)
        return true;
    if (format->type != JSON_OBJECT)
        return refuse_with(r, 400, "Field 'response_format' takes an object.");
    if (!json_member(format, "type") || json_member_is(format, "type", "text"))
        return true;
    const bool is_schema = json_member_is(format, "type", "json_schema");
    if (json_member(described, "schema"))
        schema = json_member(described, "schema");
    if (!schema && (is_schema || described))
        return refuse_with(r, 400,
                           "Field 'response_format' needs a 'schema' in its 'json_schema', or next "
                           "to its 'type'.");
    if (!is_schema && !json_member_is(format, "type", "json_object")) {
        return refuse_with(r, 400,
                           "Field 'response_format' takes an object of the type \"text\", "
                           "\"json_object\" or \"json_schema\".");
    }
    if (!json_member_bool(described, "strict", &f->strict))
        json_member_bool(format, "strict", &f->strict);
    offer(f, schema ? schema : any_object(), "response_format", DREY_GRAMMAR_JSON_SCHEMA);
    return true;
}

static bool of_structured(form *f, const json_value *o, refusal *r)
{
    bool json = false;
    if (!o)
        return true;
    if (o->type != JSON_OBJECT || json_member(o, "structural_tag"))
        return refuse_with(r, 400,
                           "Field 'structured_outputs' takes an object with 'json', "
                           "'regex', 'choice', 'grammar' or 'json_object'.");
    offer(f, json_member(o, "json"), "structured_outputs", DREY_GRAMMAR_JSON_SCHEMA);
    offer(f, json_member(o, "regex"), "structured_outputs", DREY_GRAMMAR_REGEX);
    offer(f, json_member(o, "choice"), "structured_outputs", DREY_GRAMMAR_CHOICES);
    offer(f, json_member(o, "grammar"), "structured_outputs", DREY_GRAMMAR_GBNF);
    if (json_member_bool(o, "json_object", &json) && json)
        offer(f, any_object(), "structured_outputs", DREY_GRAMMAR_JSON_SCHEMA);
    return true;
}

static bool find_form(form *f, const json_value *body, refusal *r)
{
    if (!of_format(f, json_member(body, "response_format"), r) ||
        !of_structured(f, json_member(body, "structured_outputs"), r))
        return false;
    offer(f, json_member(body, "json_schema"), "json_schema", DREY_GRAMMAR_JSON_SCHEMA);
    offer(f, json_member(body, "guided_json"), "guided_json", DREY_GRAMMAR_JSON_SCHEMA);
    offer(f, json_member(body, "guided_regex"), "guided_regex", DREY_GRAMMAR_REGEX);
    offer(f, json_member(body, "guided_choice"), "guided_choice", DREY_GRAMMAR_CHOICES);
    offer(f, json_member(body, "guided_grammar"), "guided_grammar", DREY_GRAMMAR_GBNF);
    offer(f, json_member(body, "grammar"), "grammar", DREY_GRAMMAR_GBNF);
    return f->n <= 1 ||
           refuse_with(r, 400, "Field '%s' is one of %d that say what form the text has: send one.",
                       f->field, f->n);
}

/* Schemas may come as a text; notations always do. */
static bool write_form(request *t, const form *f, refusal *r)
{
    text_out out = {.text = t->grammar.text, .capacity = REQUEST_GRAMMAR_BYTES};
    bool notation = f->kind == DREY_GRAMMAR_GBNF || f->kind == DREY_GRAMMAR_REGEX;
    if (notation && f->value->type != JSON_STRING)
        return refuse_with(r, 400, "Field '%s' takes a text.", f->field);
    if (f->value->type == JSON_STRING && f->kind != DREY_GRAMMAR_CHOICES)
        out_bytes(&out, f->value->text, f->value->n);
    else
        out_value(&out, f->value);
    t->grammar.n = out.n;
    t->grammar.kind = f->kind;
    return !out.full ||
           refuse_with(r, 400, "Field '%s' takes up to %d bytes.", f->field, REQUEST_GRAMMAR_BYTES);
}

void request_not_held(request *t, const char *places)
{
    enum { MOST = REQUEST_NOT_HELD_BYTES - 8 };
    size_t n = strlen(places);
    if (n > MOST) /* whole places */
        for (n = MOST; n > 0 && places[n] != ',';)
            n--;
    memcpy(t->grammar.not_held, places, n);
    strcpy(t->grammar.not_held + n, places[n] ? ", ..." : "");
}

bool parse_grammar(request *t, const json_value *body, const serve_options *o, refusal *r)
{
    form f = {.n = 0};
    drey_grammar *tried;
    drey_error err = {0};
    if (!find_form(&f, body, r))
        return false;
    if (f.n == 0)
        return true;
    if (t->length.ignore_eos)
        return refuse_with(r, 400,
                           "Field 'ignore_eos' contradicts '%s', which says where the text "
                           "ends.",
                           f.field);
    if (!write_form(t, &f, r))
        return false;
    const unsigned strict = f.strict ? DREY_GRAMMAR_STRICT : 0;
    drey_status status = drey_grammar_open(&tried, o->model, (drey_grammar_kind)(f.kind | strict),
                                           t->grammar.text, t->grammar.n, &err);
    if (status == DREY_OK)
        request_not_held(t, drey_grammar_not_held(tried));
    drey_grammar_close(&tried);
    if (status == DREY_ERR_USAGE)
        return refuse_with(r, 400, "Field '%s': %s.", f.field, err.message);
    return status == DREY_OK || refuse_error(r, &err);
}
