/* What requests of all these interfaces share: see dialect.h. */
#include "common/json_writer.h"
#include "serve/dialects/dialect.h"

#include <string.h>

void rewrite_member(text_out *out, const char *key, const json_value *value)
{
    if (!value)
        return;
    out_format(out, ",\"%s\":", key);
    out_value(out, value);
}

void rewrite_rest(const json_value *body, const char *known, text_out *out)
{
    char word[64];
    for (const json_value *one = body->first; one; one = one->next) {
        size_t n = one->n_key;
        if (n < sizeof word - 2) {
            word[0] = word[n + 1] = ' ';
            memcpy(word + 1, one->key, n);
            word[n + 2] = '\0';
            if (strstr(known, word))
                continue;
        }
        out_text(out, ",");
        out_string(out, one->key, n);
        out_text(out, ":");
        out_value(out, one);
    }
}

void rewrite_text(text_out *out, const char *comma, const json_value *text)
{
    out_format(out, "%s{\"type\":\"text\",\"text\":", comma);
    out_value(out, text);
    out_text(out, "}");
}

void rewrite_schema(text_out *out, const json_value *schema, const json_value *strict)
{
    out_text(out, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":");
    out_value(out, schema);
    rewrite_member(out, "strict", strict);
    out_text(out, "}}");
}

void rewrite_choice(text_out *out, const json_value *name)
{
    out_text(out, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":");
    out_value(out, name);
    out_text(out, "}}");
}

static void put_escaped(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    out_escaped(user, bytes, n);
}

void rewrite_quoted(text_out *out, const json_value *value)
{
    out_text(out, "\"");
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
