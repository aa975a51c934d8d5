/* The grammar of arguments that are values between marks: see value_reader.c and reply_grammar.c.
 * Parameters come in the schema's order, each at most once, those that are required always. */
#include "reply/reply_writing.h"

#include <stdlib.h>
#include <string.h>

/* A text of the form between two of a parameter's parts. */
static void put_part(const writing *w, char from, char to)
{
    const char *begin = from ? strchr(w->f->parameter, from) + 1 : w->f->parameter;
    size_t n = to ? (size_t)(strchr(begin, to) - begin) : strlen(begin);
    writing_quoted(w->out, "", begin, n);
}

/* Any text in which the value does not end. */
static void put_text(const writing *w)
{
    fputs(" (%without", w->out);
    writing_word(w->out, strchr(w->f->parameter, REPLY_VALUE) + 1);
    fputs(" )", w->out);
}

/* One of the texts of "enum" or "const". False: there are none. */
static bool put_choices(const writing *w, const json_value *schema)
{
    const json_value *list = json_member_array(schema, "enum");
    const json_value *only = json_member(schema, "const"), *first = list ? list->first : only;
    if (!first)
        return false;
    fputs(" (", w->out);
    for (const json_value *one = first; one; one = list ? one->next : NULL) {
        fputs(one == first ? "" : " |", w->out);
        if (one->n > 0)
            writing_quoted(w->out, "", one->text, one->n);
        else
            fputs(" \"\"", w->out);
    }
    fputs(" )", w->out);
    return true;
}

static drey_status put_value(const writing *w, const json_value *parameters,
                             const json_value *schema, drey_error *err)
{
    reply_value_kind kind = reply_value_kind_of(parameters, schema);
    if (kind == VALUE_OF_TEXT && put_choices(w, schema))
        return DREY_OK;
    if (kind == VALUE_OF_TEXT || kind == VALUE_OF_TEXT_OR_NULL) {
        put_text(w);
        return DREY_OK;
    }
    char *text = reply_parameter_schema(parameters, schema);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a parameter");
    fprintf(w->out, " (%%json %s", text);
    if (kind == VALUE_OF_EITHER) { /* what looks like JSON is read as such */
        fputs(" | ([^{[]", w->out);
        put_text(w);
        fputs(" )?", w->out);
    }
    fputs(" )", w->out);
    free(text);
    return DREY_OK;
}

static bool is_required(const json_value *parameters, const char *key)
{
    const json_value *list = json_member_array(parameters, "required");
    for (const json_value *one = list ? list->first : NULL; one; one = one->next)
        if (one->type == JSON_STRING && strcmp(one->text, key) == 0)
            return true;
    return false;
}

/* Any parameters, with any values. */
static void put_any(const writing *w)
{
    fputs(" (", w->out);
    put_part(w, 0, REPLY_KEY);
    fputs(" [a-zA-Z0-9_.-]+", w->out);
    put_part(w, REPLY_KEY, REPLY_VALUE);
    fputs(" (%json {} | ([^{[]", w->out);
    put_text(w);
    fputs(" )? )", w->out);
    put_part(w, REPLY_VALUE, 0);
    fputs(" )*", w->out);
}

drey_status writing_values(const writing *w, const json_value *function, int32_t tool, bool loose,
                           drey_error *err)
{
    const json_value *parameters = json_member(function, "parameters");
    const json_value *all = json_member(parameters, "properties");
    fprintf(w->out, "arguments-%d ::= \"\"", (int)tool);
    if (loose || (all && all->type != JSON_OBJECT)) {
        put_any(w);
        return DREY_OK;
    }
    for (const json_value *p = all ? all->first : NULL; p && !writing_full(w); p = p->next) {
        fputs(" (", w->out);
        put_part(w, 0, REPLY_KEY);
        writing_quoted(w->out, "", p->key, p->n_key);
        put_part(w, REPLY_KEY, REPLY_VALUE);
        TRY(put_value(w, parameters, p, err));
        put_part(w, REPLY_VALUE, 0);
        fputs(is_required(parameters, p->key) ? " )" : " )?", w->out);
    }
    return DREY_OK;
}
