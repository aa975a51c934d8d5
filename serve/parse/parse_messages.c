/* Messages of chats, written again as the model's template takes them: texts without parts, calls
 * with their arguments as objects, and all in words where the template knows no tools. */
#include "serve/parse/parse_conversation.h"

#include <stdio.h>
#include <string.h>

const char *parse_text_end(text_out *out, size_t from)
{
    out_bytes(out, "", 1);
    out->begun = false;
    return out->text + from;
}

/* The text of a message: a text, or parts of type "text", which are put together where they stand,
 * a newline between them. */
bool parse_message_text(const parsing *a, json_value *message, const char **text)
{
    json_value *content = json_member(message, "content");
    if (!content || content->type == JSON_STRING) {
        *text = content ? content->text : "";
        if (content && memchr(content->text, 0, content->n))
            return BAD(a, "A message must not hold a NUL.");
        return true;
    }
    char *all = NULL;
    size_t n = 0;
    if (content->type == JSON_ARRAY)
        for (json_value *part = content->first; part; part = part->next) {
            const json_value *from = json_member(part, "text");
            if (!json_member_is(part, "type", "text") || !from || from->type != JSON_STRING ||
                memchr(from->text, 0, from->n))
                return BAD(a, "Parts of a message's content are of type \"text\": this server "
                              "reads nothing else.");
            if (!all)
                all = (char *)from->text;
            else
                all[n++] = '\n';
            memmove(all + n, from->text, from->n);
            n += from->n;
            all[n] = '\0';
        }
    *text = all ? all : "";
    return content->type == JSON_ARRAY ||
           BAD(a, "A message's 'content' takes a text or an array of parts.");
}

/* ---- Calls of earlier answers ---- */

static bool is_json(const json_value *text)
{
    json_document d;
    if (!json_load(&d, text->text, text->n))
        return false;
    json_free(&d);
    return true;
}

/* Templates want an object, and clients send its text. */
static void write_arguments(const conversation *c, const json_value *v, text_out *out)
{
    if (v->type == JSON_STRING && !c->form.text_arguments && is_json(v))
        out_item(out, v->text, v->n);
    else
        out_value(out, v);
}

typedef void write_member_fn(const conversation *c, const json_value *member, text_out *out);

/* An object, with another way to write one of its members. */
static void write_object(const conversation *c, const json_value *v, const char *key,
                         write_member_fn *write, text_out *out)
{
    if (v->type != JSON_OBJECT) {
        out_value(out, v);
        return;
    }
    out_json(out, "{");
    for (const json_value *one = v->first; one; one = one->next) {
        if (strcmp(one->key, key) != 0) {
            out_member(out, one);
            continue;
        }
        out_json(out, "%s:", key);
        write(c, one, out);
    }
    out_json(out, "}");
}

static void write_function(const conversation *c, const json_value *function, text_out *out)
{
    write_object(c, function, "arguments", write_arguments, out);
}

static void write_calls(const conversation *c, const json_value *calls, text_out *out)
{
    out_json(out, "[");
    for (const json_value *one = calls->first; one; one = one->next)
        write_object(c, one, "function", write_function, out);
    out_json(out, "]");
}

/* Writes the calls into a JSON string, in the form that drey_reply_tools_text describes. */
static void describe_calls(const json_value *calls, text_out *out)
{
    for (const json_value *one = calls->first; one; one = one->next) {
        const json_value *function = json_member(one, "function");
        const char *name = json_member_text(function, "name");
        const json_value *arguments = json_member(function, "arguments");
        bool text = arguments && arguments->type == JSON_STRING;
        out_text(out, "\\n<tool_call>\\n{\\\"name\\\": \\\"");
        out_escaped(out, name ? name : "", name ? strlen(name) : 0);
        out_text(out, "\\\", \\\"arguments\\\": ");
        out_escaped(out, text ? arguments->text : "{}", text ? arguments->n : 2);
        out_text(out, "}\\n</tool_call>");
    }
}

/* ---- Messages ---- */

static bool is_role(const json_value *message, const char *role)
{
    return json_member_is(message, "role", role);
}

/* Writes the results of tools, one after the other, as one message of the user's. */
static bool describe_results(const parsing *a, json_value **at, text_out *out)
{
    const char *text = "";
    json_value *m = *at;
    out_json(out, "{role:'user',content:'");
    for (; m && is_role(m, "tool"); *at = m, m = m->next) {
        if (!parse_message_text(a, m, &text))
            return false;
        out_text(out, "<tool_response>\\n");
        out_escaped(out, text, strlen(text));
        out_text(out, "\\n</tool_response>\\n");
    }
    out_json(out, "\"}");
    return true;
}

/* gpt-oss's template has another name for what was thought before a call, and takes it in place of
 * a text. */
static void write_thought(const json_value *message, text_out *out)
{
    const json_value *thought = json_member(message, "reasoning_content");
    if (!thought || json_member(message, "thinking"))
        return;
    out_json(out, "thinking:%p", thought);
}

/* A message with its content as text; what else it holds stays. */
static bool write_message(const parsing *a, const conversation *c, json_value *message,
                          const char *more, text_out *out)
{
    const json_value *calls = json_member_array(message, "tool_calls");
    const char *text = "";
    if (!parse_message_text(a, message, &text))
        return false;
    out_json(out, "{content:'");
    out_escaped(out, text, strlen(text));
    out_escaped(out, more, strlen(more));
    if (calls && c->form.in_words)
        describe_calls(calls, out);
    out_text(out, "\"");
    if (calls && !*text)
        write_thought(message, out);
    for (const json_value *one = message->first; one; one = one->next) {
        bool is_calls = strcmp(one->key, "tool_calls") == 0 && one->type == JSON_ARRAY;
        if (strcmp(one->key, "content") == 0 || (is_calls && (c->form.in_words || one->n == 0)))
            continue;
        if (is_calls) {
            out_json(out, "tool_calls:");
            write_calls(c, one, out);
        } else {
            out_member(out, one);
        }
    }
    out_json(out, "}");
    return true;
}

/* A name, and no marker such as "<|im_start|>", which templates have between quotes as well. */
static bool is_name(const char *role)
{
    for (const char *at = role; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!letter && !(*at >= '0' && *at <= '9') && !strchr("_-. ", *at))
            return false;
    }
    return *role;
}

/* The template mentions it, as a text between quotes. */
static bool knows_role(const parsing *a, const conversation *c, const char *role)
{
    const char *chat = a->options->chat_template;
    size_t n = chat ? strlen(chat) : 0;
    char quoted[64];
    bool tools = !chat && c->tools_json;
    if (tools)
        drey_model_named_template(a->options->model, "tool_use", &chat, &n);
    if (!chat || (tools && n == 0))
        drey_model_chat_template(a->options->model, &chat, &n);
    for (const char *quote = "'\""; *quote; quote++) {
        int length = snprintf(quoted, sizeof quoted, "%c%s%c", *quote, role, *quote);
        if ((size_t)length < sizeof quoted && memmem(chat, n, quoted, (size_t)length))
            return true;
    }
    return false;
}

/* A role that no template could write is refused; instructions of the developer are the system's
 * where the template has no other place for them. */
static bool check_role(const parsing *a, const conversation *c, json_value *message)
{
    static const char *const usual[] = {"user", "assistant", "tool", "system", "function"};
    static const char system[] = "system", developer[] = "developer";
    json_value *role = json_member(message, "role");
    if (!role || role->type != JSON_STRING)
        return BAD(a, "A message is an object with a 'role'.");
    bool known = false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !known; i++)
        known = strcmp(role->text, usual[i]) == 0;
    known = known || (is_name(role->text) && knows_role(a, c, role->text));
    if (!known && strcmp(role->text, developer) == 0) {
        role->text = system;
        role->n = sizeof system - 1;
        known = true;
    }
    bool wants = strcmp(role->text, "user") == 0 || strcmp(role->text, developer) == 0 ||
                 strcmp(role->text, system) == 0;
    if (known && wants && !json_member(message, "content"))
        return BAD(a,
                   "A message with the role \"%s\" needs a 'content': a text or an array of parts.",
                   role->text);
    return known || BAD(a,
                        "A message's 'role' is \"system\", \"developer\", \"user\", \"assistant\" "
                        "or \"tool\", or another one that the model's template knows; it is not "
                        "\"%.40s\".",
                        role->text);
}

static bool write_all(const parsing *a, const conversation *c, json_value *first, const char *tools,
                      text_out *out)
{
    if (*tools && !is_role(first, "system"))
        out_json(out, "{role:'system',content:%s}", tools);
    for (json_value *m = first; m; m = m->next) {
        bool good =
            c->form.in_words && is_role(m, "tool")
                ? describe_results(a, &m, out)
                : write_message(a, c, m, m == first && is_role(m, "system") ? tools : "", out);
        if (!good)
            return false;
    }
    return true;
}

bool parse_messages(const parsing *a, conversation *c, json_value *first, text_out *out)
{
    drey_error err = {0};
    char *tools = NULL;
    size_t n, from = out->n;
    for (json_value *m = first; m; m = m->next)
        if (!check_role(a, c, m))
            return false;
    if (c->form.described &&
        drey_reply_tools_text(&c->form, c->tools_json, &tools, &n, &err) != DREY_OK)
        return refuse_error(a->refusal, &err);
    out_json(out, "[");
    bool good = write_all(a, c, first, tools ? tools : "", out);
    out_json(out, "]");
    c->request.messages_json = parse_text_end(out, from);
    drey_free(tools);
    return good;
}
