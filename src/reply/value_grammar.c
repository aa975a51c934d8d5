/* The grammar of arguments that are values between marks: see value_reader.c and reply_grammar.c.
 * Parameters come in any order, each at most once, those that are required always. The end of a
 * value, of the call and the call's last mark may each be missing, where another one follows. */
#include "common/json_writer.h"
#include "reply/reply_writing.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/grammar.h"

enum { MOST_DEPTH = 8 };

/* ---- What ends a value ---- */

/* A text of the form between two of a parameter's parts. */
static const char *part_of(const writing *w, char from, char to, size_t *n)
{
    const char *begin = from ? strchr(w->f->parameter, from) + 1 : w->f->parameter;
    while (!from && *begin == '\n')
        begin++;
    *n = to ? (size_t)(strchr(begin, to) - begin) : strlen(begin);
    return begin;
}

/* Line breaks between marks may be missing. */
static void put_part(const writing *w, char from, char to)
{
    size_t n;
    const char *text = part_of(w, from, to, &n), *line = memchr(text, '\n', n);
    if (line && from == REPLY_KEY && line + 1 < text + n) {
        writing_text(w, text, (size_t)(line - text));
        fputs(" blanks", w->out);
        n -= (size_t)(line + 1 - text);
        text = line + 1;
    }
    writing_text(w, text, n);
}

/* One of the words of a parameter's type, with '|' between them. */
static void put_words(const writing *w, const char *words)
{
    const char *bar = " (";
    while (*words) {
        size_t n = strcspn(words, "|");
        fputs(bar, w->out);
        writing_quoted(w->out, "", words, n);
        words += n + (words[n] == '|');
        bar = " |";
    }
    fputs(" )", w->out);
}

/* The marks between a parameter's name and its value, which say whether it is a text. */
static void put_front(const writing *w, bool text)
{
    if (!w->f->types[0]) {
        put_part(w, REPLY_KEY, REPLY_VALUE);
        return;
    }
    put_part(w, REPLY_KEY, REPLY_TYPE);
    put_words(w, w->f->types[!text]);
    put_part(w, REPLY_TYPE, REPLY_VALUE);
}

/* The first character after a parameter's name. */
static void put_after_key(const writing *w, char out[static 8])
{
    char c = strchr(w->f->parameter, REPLY_KEY)[1];
    snprintf(out, 8, c == '"' ? " \"\\\"\"" : " \"%c\"", c);
}

/* The beginnings of parameters by their names; any: of any name. */
static void put_parameters(const writing *w, const reply_tools *tools, bool any)
{
    name_list names = {.n = 0};
    char rest[8];
    size_t n;
    const char *front = part_of(w, 0, REPLY_KEY, &n);
    writing_quoted(w->out, "", front, n);
    for (int32_t i = 0; i < tools->n; i++) {
        const json_value *all =
            json_member(json_member(tools->functions[i], "parameters"), "properties");
        const json_value *p = all && all->type == JSON_OBJECT ? all->first : NULL;
        for (; p && names.n < 2 * REPLY_MOST_TOOLS; p = p->next)
            if (p->n_key > 0) {
                names.of[names.n] = p->key;
                names.n_of[names.n++] = p->n_key;
            }
        any = any || names.n == 2 * REPLY_MOST_TOOLS || reply_tool_is_open(tools->functions[i]);
    }
    put_after_key(w, rest);
    if (!any && names.n > 0)
        writing_names(w, &names, rest);
}

static void put_ends(const writing *w, const reply_mark *ends, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) {
        fputs(i > from ? " |" : "", w->out);
        writing_quoted(w->out, "", ends[i].text, ends[i].n);
    }
}

/* See fits_end of value_reader.c. */
void writing_value_text(const writing *w, const reply_tools *tools)
{
    static const char blanks[] = " [ \\t\\r\\n]*";
    const bool lines = strchr(w->f->parameter, REPLY_VALUE)[1] == '\n';
    const char *front = !reply_values_apart(w->f) ? " | (.* \"\\n\")? [ \\t\\r]* (" : " | .* (";
    size_t n_mark;
    const char *mark = part_of(w, REPLY_VALUE, 0, &n_mark);
    reply_mark ends[REPLY_MOST_ENDS];
    int32_t n = reply_value_ends(w->f, ends);
    fputs("value-text ::= %unlike ( .*", w->out);
    writing_quoted(w->out, "", mark + lines, n_mark - lines);
    fprintf(w->out, "%s (", blanks);
    put_ends(w, ends, 0, n);
    fputs(" |", w->out);
    put_parameters(w, tools, false);
    fputs(" )", w->out);
    if (lines) { /* as the form has it */
        fputs(" | .*", w->out);
        writing_quoted(w->out, "", mark, n_mark);
        fputs(" \"\\n\"", w->out);
        put_parameters(w, tools, true);
    }
    fputs(front, w->out);
    put_parameters(w, tools, false);
    for (int32_t i = 0; i < n; i++) {
        fputs(" |", w->out);
        put_ends(w, ends, i, i + 1);
        fprintf(w->out, "%s (", blanks);
        writing_quoted(w->out, "", w->f->begin, strlen(w->f->begin));
        fputs(i + 1 < n ? " |" : "", w->out);
        put_ends(w, ends, i + 1, n);
        fputs(" )", w->out);
    }
    fputs(" ) )\nvalue-close ::=", w->out);
    writing_text(w, mark, n_mark);
    fputs("\nvalue-end ::= (", w->out);
    writing_text(w, mark, n_mark);
    fputs(reply_values_apart(w->f) ? " )?\n" : " | \"\\n\" )\n", w->out);
}

/* ---- Texts of a schema ---- */

/* One of the texts of "enum" or "const". False: there are none. */
static bool put_choices(const writing *w, const json_value *schema)
{
    const json_value *list = json_member_array(schema, "enum");
    const json_value *only = json_member(schema, "const"), *first = list ? list->first : only;
    const char *bar = " (";
    if (!first)
        return false;
    for (const json_value *one = first; one; one = list ? one->next : NULL) {
        if (one->type != JSON_STRING)
            continue;
        fputs(bar, w->out);
        if (one->n > 0)
            writing_quoted(w->out, "", one->text, one->n);
        else
            fputs(" \"\"", w->out);
        bar = " |";
    }
    fputs(*bar == ' ' && bar[1] == '|' ? " )" : "", w->out);
    return bar[1] == '|';
}

static void put_texts(const writing *w, const json_value *parameters, const json_value *schema,
                      int depth);

/* One of the alternatives that are texts. */
static void put_alternatives(const writing *w, const json_value *parameters, const json_value *list,
                             int depth)
{
    const char *bar = " (";
    for (const json_value *one = list->first; one; one = one->next) {
        if (reply_value_kind_of(parameters, one) == VALUE_OF_JSON)
            continue;
        fputs(bar, w->out);
        put_texts(w, parameters, one, depth);
        bar = " |";
    }
    fputs(bar[1] == '|' ? " )" : " value-text value-end", w->out);
}

bool writing_text_schema(const writing *w, const json_value *schema)
{
    static const char *const words[] = {"minLength", "maxLength", "pattern", "format"};
    json_writer out = {.put = reply_to_file, .user = w->out};
    bool any = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const json_value *v = json_member(schema, words[i]);
        if (!v)
            continue;
        if (!any) {
            fputs(" %text ", w->out);
            json_open(&out, '{');
        }
        any = true;
        json_item(&out);
        json_raw_string(&out, words[i], strlen(words[i]));
        json_after_key(&out);
        json_raw_value(&out, v);
    }
    if (any)
        json_close(&out, '}');
    return any;
}

static void put_texts(const writing *w, const json_value *parameters, const json_value *schema,
                      int depth)
{
    static const char *const lists[] = {"anyOf", "oneOf", "allOf"};
    const json_value *target = json_member(schema, "$ref"), *list = NULL;
    if (put_choices(w, schema)) {
        fputs(" value-end", w->out);
        return;
    }
    if (writing_text_schema(w, schema)) {
        fputs(" value-close", w->out);
        return;
    }
    if (target && target->type == JSON_STRING)
        target = reply_schema_target(parameters, target->text);
    for (int i = 0; i < 3 && !list; i++)
        list = json_member_array(schema, lists[i]);
    if (target && target->type == JSON_OBJECT && depth < MOST_DEPTH)
        put_texts(w, parameters, target, depth + 1);
    else if (list && list->first && depth < MOST_DEPTH)
        put_alternatives(w, parameters, list, depth + 1);
    else
        fputs(" value-text value-end", w->out);
}

/* A value of which the marks say whether it is a text. */
static drey_status put_typed_value(const writing *w, const json_value *parameters,
                                   const json_value *schema, reply_value_kind kind, drey_error *err)
{
    const bool texts = kind != VALUE_OF_JSON;
    fputs(" (", w->out);
    if (texts) {
        put_front(w, true);
        put_texts(w, parameters, schema, 0);
        fputs(kind == VALUE_OF_TEXT ? " )\n" : " |", w->out);
    }
    if (kind == VALUE_OF_TEXT)
        return DREY_OK;
    put_front(w, false);
    if (kind == VALUE_OF_TEXT_OR_NULL) {
        fputs(" \"null\" value-end )\n", w->out);
        return DREY_OK;
    }
    char *text = reply_parameter_schema(parameters, schema);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a parameter");
    fprintf(w->out, " (%%unordered %s) value-end )\n", text);
    free(text);
    return DREY_OK;
}

/* A value with its marks. The end of a text of a schema is always there: without it, the text could
 * be longer than it is read. */
static drey_status put_value(const writing *w, const json_value *parameters,
                             const json_value *schema, drey_error *err)
{
    reply_value_kind kind = reply_value_kind_of(parameters, schema);
    if (w->f->types[0])
        return put_typed_value(w, parameters, schema, kind, err);
    put_front(w, true);
    if (kind == VALUE_OF_TEXT || kind == VALUE_OF_TEXT_OR_NULL) {
        fputs(" (", w->out);
        put_texts(w, parameters, schema, 0);
        fputs(kind == VALUE_OF_TEXT ? " )\n" : " | \"null\" value-end )\n", w->out);
        return DREY_OK;
    }
    char *text = reply_parameter_schema(parameters, schema);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a parameter");
    fprintf(w->out, " (%%unordered %s", text);
    free(text);
    if (kind == VALUE_OF_EITHER) { /* what looks like JSON is read as such */
        fputs(" |", w->out);
        if (!put_choices(w, schema))
            fputs(" ([^{[] value-text)?", w->out);
    }
    fputs(" ) value-end\n", w->out);
    return DREY_OK;
}

/* ---- Arguments ---- */

static bool is_required(const json_value *parameters, const char *key)
{
    const json_value *list = json_member_array(parameters, "required");
    for (const json_value *one = list ? list->first : NULL; one; one = one->next)
        if (one->type == JSON_STRING && strcmp(one->text, key) == 0)
            return true;
    return false;
}

/* Any parameters, with any values. */
static void put_any(const writing *w, int32_t tool)
{
    fprintf(w->out, "arguments-%d ::= ( blanks", (int)tool);
    put_part(w, 0, REPLY_KEY);
    fputs(" [a-zA-Z0-9_.-]+", w->out);
    if (w->f->types[0]) {
        fputs(" (", w->out);
        put_front(w, true);
        fputs(" value-text |", w->out);
        put_front(w, false);
        fputs(" %unordered {} )", w->out);
    } else {
        put_front(w, true);
        fputs(" (%unordered {} | ([^{[] value-text)? )", w->out);
    }
    put_part(w, REPLY_VALUE, 0);
    fputs(" )*", w->out);
}

/* Writes the parameters of a tool: in any order if they are few. */
static void put_order(const writing *w, const json_value *parameters, const json_value *all,
                      int32_t tool)
{
    const bool each = !all || all->n <= GRAMMAR_MOST_EACH;
    int32_t k = 0;
    fprintf(w->out, "arguments-%d ::= %s(", (int)tool, each ? "%each " : "\"\" ");
    for (const json_value *p = all ? all->first : NULL; p; p = p->next, k++)
        fprintf(w->out, " parameter-%d-%d%s", (int)tool, (int)k,
                is_required(parameters, p->key) ? "" : "?");
    fputs(k || each ? " )" : " \"\" )", w->out);
}

drey_status writing_values(const writing *w, const json_value *function, int32_t tool, bool loose,
                           drey_error *err)
{
    const json_value *parameters = json_member(function, "parameters");
    const json_value *all = json_member(parameters, "properties");
    int32_t k = 0;
    if (loose || (all && all->type != JSON_OBJECT)) {
        put_any(w, tool);
        return DREY_OK;
    }
    for (const json_value *p = all ? all->first : NULL; p && !writing_full(w); p = p->next, k++) {
        fprintf(w->out, "parameter-%d-%d ::= blanks", (int)tool, (int)k);
        put_part(w, 0, REPLY_KEY);
        writing_quoted(w->out, "", p->key, p->n_key);
        TRY(put_value(w, parameters, p, err));
    }
    put_order(w, parameters, all, tool);
    return DREY_OK;
}

/* One of the marks at its end may be missing. */
void writing_value_call(const writing *w, const char *name, int32_t tool)
{
    reply_mark ends[REPLY_MOST_ENDS];
    const char *rest = strchr(w->f->call, REPLY_ARGUMENTS);
    int32_t n = reply_value_ends(w->f, ends);
    char front[100];
    snprintf(front, sizeof front, "%.*s", (int)(rest + 1 - w->f->call), w->f->call);
    writing_pattern(w, front, name, tool);
    fputs(" blanks", w->out);
    if (n == 1 || w->f->close) {
        writing_text(w, ends[0].text, ends[0].n);
        fprintf(w->out, "\nhalf-%d ::=", (int)tool);
        writing_pattern(w, front, name, tool);
        return;
    }
    fputs(" (", w->out);
    writing_text(w, ends[0].text, ends[0].n);
    fputs(" (blanks", w->out);
    writing_text(w, ends[1].text, ends[1].n);
    fputs(" )? |", w->out);
    writing_text(w, ends[1].text, ends[1].n);
    fputs(" )", w->out);
}
