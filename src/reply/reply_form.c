/* Finds the form of a template: see reply_forms.h. */
#include "reply/reply_forms.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_writer.h"

void drey_reply_options_init(drey_reply_options *options)
{
    *options = (drey_reply_options){.choice = DREY_TOOLS_AUTO};
}

/* ---- Tools ---- */

bool reply_in_name(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-.:/@+", c));
}

/* Returns true where the name comes first, and where marks are special tokens that are spelled out,
 * unless JSON follows. */
bool reply_decides_by_name(const reply_family *f)
{
    const char *next = f->open ? f->open : f->call;
    bool token = f->begin && *f->begin == REPLY_TOKEN;
    while (*next == '\n')
        next++;
    if (*next == '[' && *f->call == REPLY_NAME)
        return true;
    return *next == REPLY_NAME || (token && *next != '[' && *next != '{');
}

/* Checks that all forms can write the name, and that no form ends a name with part of it. */
static bool good_name(const json_value *name)
{
    if (!name || name->type != JSON_STRING || name->n == 0 || name->n >= REPLY_NAME_BYTES)
        return false;
    for (uint32_t i = 0; i < name->n; i++)
        if (!reply_in_name(name->text[i]))
            return false;
    return true;
}

drey_status reply_tools_read(reply_tools *t, const char *tools_json, drey_error *err)
{
    *t = (reply_tools){.n = 0};
    if (!tools_json)
        return DREY_OK;
    const json_value *list = json_load(&t->document, tools_json, strlen(tools_json));
    if (!list || list->type != JSON_ARRAY)
        FAIL(err, DREY_ERR_USAGE, "tools are a JSON array");
    for (const json_value *one = list->first; one; one = one->next) {
        const json_value *function = json_member(one, "function");
        const json_value *parameters = json_member(function, "parameters"),
                         *name = json_member(function, "name");
        if (!json_member_is(one, "type", "function") || !good_name(name))
            FAIL(err, DREY_ERR_USAGE,
                 "a tool is {\"type\": \"function\", \"function\": {\"name\": ...}}, with a name "
                 "of letters, digits, '_', '-', '.' and at most %d bytes",
                 REPLY_NAME_BYTES - 1);
        if (parameters && parameters->type != JSON_OBJECT)
            FAIL(err, DREY_ERR_USAGE,
                 "the parameters of the tool \"%s\" are a JSON Schema, an object", name->text);
        if (t->n == REPLY_MOST_TOOLS)
            FAIL(err, DREY_ERR_USAGE, "there are more than %d tools", REPLY_MOST_TOOLS);
        t->functions[t->n] = function;
        t->names[t->n++] = name;
    }
    return DREY_OK;
}

void reply_tools_free(reply_tools *t)
{
    if (t->document.root)
        json_free(&t->document);
}

void reply_to_file(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    fwrite(bytes, 1, n, user);
}

static bool is_remark(const json_value *v)
{
    static const char *const remarks[] = {"description", "title",   "examples",
                                          "default",     "$schema", "$comment"};
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (strcmp(v->key, remarks[i]) == 0)
            return true;
    return false;
}

/* Members of such an object are schemas under their own names. */
static bool has_names(const json_value *v)
{
    return strcmp(v->key, "properties") == 0 || strcmp(v->key, "$defs") == 0 ||
           strcmp(v->key, "definitions") == 0;
}

static bool is_data(const json_value *v)
{
    return strcmp(v->key, "const") == 0 || strcmp(v->key, "enum") == 0 ||
           strcmp(v->key, "required") == 0;
}

static void put_schema(json_writer *w, const json_value *v, bool names);

static void put_members(json_writer *w, const json_value *v, bool names)
{
    for (const json_value *one = v->first; one; one = one->next) {
        bool member = v->type == JSON_OBJECT;
        if (member && !names && is_remark(one))
            continue;
        json_item(w);
        if (member) {
            json_raw_string(w, one->key, one->n_key);
            json_after_key(w);
        }
        if (member && !names && is_data(one))
            json_raw_value(w, one);
        else
            put_schema(w, one, member && !names && has_names(one));
    }
}

static void put_schema(json_writer *w, const json_value *v, bool names)
{
    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY) {
        json_raw_value(w, v);
        return;
    }
    json_open(w, v->type == JSON_OBJECT ? '{' : '[');
    put_members(w, v, names);
    json_close(w, v->type == JSON_OBJECT ? '}' : ']');
}

void reply_put_members(json_writer *w, const json_value *schema)
{
    if (schema->type == JSON_OBJECT)
        put_members(w, schema, false);
}

void reply_put_schemas(json_writer *w, const json_value *named)
{
    put_schema(w, named, true);
}

char *reply_tool_schema(const json_value *function, bool loose)
{
    const json_value *parameters = json_member(function, "parameters");
    if (!parameters && !loose)
        return strdup("{\"type\":\"object\",\"properties\":{}}");
    if (!parameters || parameters->n == 0 || loose)
        return strdup("{\"type\":\"object\"}");
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    put_schema(&(json_writer){.put = reply_to_file, .user = out}, parameters, false);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- The form ---- */

static bool contains(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

/* 0: none. */
static int32_t find_family(const char *text)
{
    const reply_family *f;
    for (int32_t i = 1; (f = reply_family_at(i)); i++)
        if (contains(text, f->signs[0]) && (!f->signs[1] || contains(text, f->signs[1])))
            return i;
    return 0;
}

static int32_t find_thinking(const char *text)
{
    const reply_thinking *t;
    for (int32_t i = 1; (t = reply_thinking_at(i)); i++)
        if (contains(text, t->sign))
            return i;
    return 0;
}

const reply_thinking *reply_thinking_of(const char *chat_template)
{
    return reply_thinking_at(find_thinking(chat_template));
}

const reply_family *reply_family_of(const char *chat_template)
{
    return reply_family_at(find_family(chat_template));
}

static bool knows_tools(const char *text, const reply_family *f)
{
    return contains(text, "tools") || (f->variable && contains(text, f->variable));
}

/* Returns whether it writes earlier calls and their results. */
static bool knows_calls(const char *text)
{
    return contains(text, "tool_calls") && (contains(text, "'tool'") || contains(text, "\"tool\""));
}

/* Returns whether one of the text's special tokens is left out of texts. */
static bool has_hidden(const char *text, reply_hidden_fn *hidden, const void *user)
{
    for (const char *at = text ? strchr(text, REPLY_TOKEN) : NULL; at;
         at = strchr(at + 1, REPLY_TOKEN)) {
        const char *end = strchr(at, REPLY_TOKEN_END);
        if (hidden(user, at + 1, (size_t)(end - at - 1)))
            return true;
    }
    return false;
}

static bool is_tool(const reply_tools *t, const char *name)
{
    for (int32_t i = 0; i < t->n; i++)
        if (strcmp(t->names[i]->text, name) == 0)
            return true;
    return false;
}

static drey_status check_tools(const reply_tools *t, const drey_reply_options *o, drey_error *err)
{
    if (o->tool && !is_tool(t, o->tool))
        FAIL(err, DREY_ERR_USAGE,
             "the tool \"%.100s\" that has to be called is not among the tools", o->tool);
    if (o->choice == DREY_TOOLS_REQUIRED && t->n == 0)
        FAIL(err, DREY_ERR_USAGE, "a call is required, but there are no tools");
    return DREY_OK;
}

static void find_form(reply_form *form, const char *text, int32_t n_tools,
                      const drey_reply_options *options)
{
    form->family = find_family(text);
    form->thinking = options->keep_reasoning ? 0 : find_thinking(text);
    form->kept = options->keep_reasoning ? (uint8_t)find_thinking(text) : 0;
    form->begun = (uint8_t)options->begun;
    form->calls = n_tools > 0 && options->choice != DREY_TOOLS_NONE;
    form->one_call = options->one_call;
    form->required = options->choice == DREY_TOOLS_REQUIRED;
    const reply_family *f = reply_family_at(form->family);
    form->text_arguments = f->as_text;
    form->described = n_tools > 0 && (form->family == 0 || !knows_tools(text, f));
    form->in_words = !knows_calls(text) && (form->described || form->family == 0);
    form->in_words = form->in_words || (form->described && form->family == 0);
    if (form->in_words)
        f = reply_family_at(form->family = 0);
    if (!form->calls && !f->content_open && !f->headers)
        f = reply_family_at(form->family = 0);
    form->bare = form->calls && f->bare[0] && !(f->begin && options->schema_json);
}

drey_status reply_form_of(reply_form *form, const char *chat_template, const char *tools_json,
                          const drey_reply_options *options, reply_hidden_fn *hidden,
                          const void *user, drey_error *err)
{
    reply_tools tools;
    drey_status status = reply_tools_read(&tools, tools_json, err);
    if (status == DREY_OK)
        status = check_tools(&tools, options, err);
    int32_t n_tools = tools.n;
    *form = (reply_form){.n_values = 0};
    if (status == DREY_OK)
        reply_values_take(form, &tools);
    reply_tools_free(&tools);
    TRY(status);
    find_form(form, chat_template, n_tools, options);
    const reply_family *f = reply_family_at(form->family);
    const char *const marks[] = {f->begin,
                                 f->open,
                                 f->call,
                                 f->next,
                                 f->close,
                                 f->header,
                                 f->content_open,
                                 f->content_close,
                                 f->bare[2],
                                 reply_thinking_at(form->thinking)->open,
                                 reply_thinking_at(form->thinking)->close};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        form->special = form->special || has_hidden(marks[i], hidden, user);
    form->reasons = form->thinking > 0;
    return DREY_OK;
}

/* Returns the beginning of the mark with which the text ends, blanks after it left aside; SIZE_MAX:
 * it does not end with it. */
static size_t ends_with(const char *text, size_t n, const char *mark)
{
    size_t n_mark = mark ? strlen(mark) : 0;
    while (n > 0 && strchr(" \n\t\r", text[n - 1]))
        n--;
    for (size_t i = n_mark; i > 0; i--) {
        if (mark[i - 1] == REPLY_TOKEN || mark[i - 1] == REPLY_TOKEN_END)
            continue;
        if (n == 0 || text[--n] != mark[i - 1])
            return SIZE_MAX;
    }
    return n_mark > 0 ? n : SIZE_MAX;
}

/* The opening mark of reasoning that stays in the content is a part of it. */
static void take_opened(reply_form *form, const char *text, size_t n)
{
    size_t n_blanks = 0;
    if (ends_with(text, n, reply_thinking_at(form->kept)->open) >= n)
        return;
    while (strchr(" \n\t\r", text[n - n_blanks - 1]))
        n_blanks++;
    if (n_blanks + 1 >= sizeof form->opened)
        return;
    form->opened[0] = 1;
    memcpy(form->opened + 1, text + n - n_blanks, n_blanks);
}

static void take_prompt(reply_form *form, const char *text, size_t n_bytes)
{
    const reply_thinking *t = reply_thinking_at(form->thinking);
    memset(form->opened, 0, sizeof form->opened);
    if (form->begun != DREY_BEGUN_NOTHING) { /* the prompt ends with what is begun */
        form->thinks = form->begun == DREY_BEGUN_REASONING && form->thinking > 0;
        form->thinking = form->thinks ? form->thinking : 0;
        return;
    }
    take_opened(form, text, n_bytes);
    form->thinks = form->thinking > 0 && ends_with(text, n_bytes, t->open) < n_bytes;
    if (form->thinking > 0 && ends_with(text, n_bytes, t->close) < n_bytes) {
        form->closed = (uint8_t)form->thinking; /* this answer has none, unless it writes one */
        form->thinking = 0;
    }
}

void drey_reply_form_prompt(drey_reply_form *form, const char *text, size_t n_bytes)
{
    reply_form *f = reply_form_in(form);
    take_prompt(f, text, n_bytes);
    f->reasons = f->thinking > 0;
}
