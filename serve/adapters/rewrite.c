/* Parts that requests of all these interfaces share: see adapter.h. */
#include "serve/adapters/adapter.h"
#include "serve/parse/parse_fields.h"

#include <string.h>

void rewrite_member(text_out *out, const char *key, const json_value *value)
{
    if (!value)
        return;
    out_json(out, "%s:", key);
    out_value(out, value);
}

void rewrite_rest(const json_value *body, const char *known, text_out *out)
{
    for (const json_value *one = body->first; one; one = one->next)
        if (!parse_lists(known, one))
            out_member(out, one);
}

void rewrite_text(text_out *out, const json_value *text)
{
    out_json(out, "{type:'text',text:%p}", text);
}

void rewrite_schema(text_out *out, const json_value *schema, const json_value *strict)
{
    out_json(out, "response_format:{type:'json_schema',json_schema:{schema:%p", schema);
    rewrite_member(out, "strict", strict);
    out_json(out, "}}");
}

void rewrite_choice(text_out *out, const json_value *name)
{
    out_json(out, "tool_choice:{type:'function',function:{name:%p}}", name);
}

static void put_escaped(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    out_escaped(user, bytes, n);
}

void rewrite_quoted(text_out *out, const json_value *value)
{
    out_json(out, "'");
    json_raw_value(&(json_writer){.put = put_escaped, .user = out}, value);
    out_text(out, "\"");
}

bool rewrite_is_text(const json_value *value, const char *name, refusal *r)
{
    return !value || value->type == JSON_STRING ||
           refuse_with(r, 400, "Field '%s' takes a text.", name);
}

bool rewrite_asks(const json_value *value)
{
    bool parts = value && (value->type == JSON_STRING || value->type == JSON_ARRAY ||
                           value->type == JSON_OBJECT);
    return value && value->type != JSON_FALSE && !(parts && value->n == 0);
}

bool rewrite_has_none(const json_value *body, const char *const *names, refusal *r)
{
    for (; *names; names++)
        if (rewrite_asks(json_member(body, *names)))
            return refuse_with(r, 400,
                               "Field '%s' is known, but this server does not compute it. Leave "
                               "it out.",
                               *names);
    return true;
}
