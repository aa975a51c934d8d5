/* OpenAI's /v1/responses as a chat: items become messages. What the assistant thought, said and
 * called one after the other is one message; system texts at the beginning are one as well, as
 * templates take no more. */
#include "serve/adapters/adapter.h"

#include <string.h>

/* Members about the account, or other servers, are ignored. */
static const char known[] =
    " input instructions previous_response_id store include metadata service_tier prompt_cache_key "
    "prompt_cache_retention safety_identifier user truncation client_metadata background "
    "max_tool_calls conversation prompt tools tool_choice parallel_tool_calls text "
    "max_output_tokens reasoning messages response_tools response_tool_choice ";

typedef struct writing {
    text_out *out;
    refusal *refusal;
    bool in_system; /* one of system texts is open, in the array of its parts */
    struct {
        bool open, content, calls; /* parts that it has already */
    } assistant;
    previous_conversation *before;
} writing;

/* ---- Messages ---- */

static void close_message(writing *w)
{
    if (w->in_system)
        out_json(w->out, "]}");
    if (w->assistant.calls)
        out_json(w->out, "]");
    if (w->assistant.open)
        out_json(w->out, w->assistant.content ? "}" : "content:''}");
    w->in_system = false;
    w->assistant.open = w->assistant.content = w->assistant.calls = false;
}

/* A new one, unless what comes belongs to the one that is open. */
static void open_assistant(writing *w, bool fits)
{
    if (w->assistant.open && fits)
        return;
    close_message(w);
    out_json(w->out, "{role:'assistant'");
    w->assistant.open = true;
}

/* The texts of a content, as parts of a message. */
static bool put_parts(const json_value *content, text_out *out, refusal *r)
{
    if (content && content->type == JSON_STRING) {
        rewrite_text(out, content);
        return true;
    }
    if (content && content->type != JSON_ARRAY)
        return refuse_with(r, 400, "The content of an item takes a text or an array of parts.");
    for (const json_value *part = content ? content->first : NULL; part; part = part->next) {
        const json_value *text = json_member(part, "text");
        if (json_member_is(part, "type", "input_image"))
            return refuse_with(r, 400,
                               "Parts of the type \"input_image\": image input is not "
                               "supported by this server. Send texts.");
        if (!text || text->type != JSON_STRING)
            return refuse_with(r, 400,
                               "A part of an item's content is of the type \"input_text\" "
                               "or \"output_text\": this server reads nothing else.");
        rewrite_text(out, text);
    }
    return true;
}

static bool put_content(writing *w, const json_value *content)
{
    out_json(w->out, "content:[");
    bool good = put_parts(content, w->out, w->refusal);
    out_json(w->out, "]");
    return good;
}

static bool put_message(writing *w, const json_value *item)
{
    const json_value *content = json_member(item, "content");
    bool system =
        json_member_is(item, "role", "system") || json_member_is(item, "role", "developer");
    if (json_member_is(item, "role", "assistant")) {
        open_assistant(w, !w->assistant.content && !w->assistant.calls);
        w->assistant.content = true;
        return put_content(w, content);
    }
    if (!system && !json_member_is(item, "role", "user"))
        return refuse_with(w->refusal, 400,
                           "An item of the type \"message\" has the 'role' "
                           "\"user\", \"assistant\", \"system\" or "
                           "\"developer\".");
    if (!content)
        return refuse_with(w->refusal, 400,
                           "An item of the type \"message\" has a 'content', a text or an array of "
                           "parts.");
    if (system && w->in_system)
        return put_parts(content, w->out, w->refusal);
    close_message(w);
    bool first = !w->out->begun;
    out_json(w->out, "{role:%s", system ? "system" : "user");
    if (system && first) {
        w->in_system = true;
        out_json(w->out, "content:[");
        return put_parts(content, w->out, w->refusal);
    }
    bool good = put_content(w, content);
    out_json(w->out, "}");
    return good;
}

/* ---- Other items ---- */

/* Writes the thoughts; where they were kept back, their summary. */
static void put_reasoning(writing *w, const json_value *item)
{
    const json_value *texts = json_member_array(item, "content");
    bool first = true;
    if (!texts || !texts->first)
        texts = json_member_array(item, "summary");
    if (!texts || !texts->first)
        return;
    open_assistant(w, false);
    out_json(w->out, "reasoning_content:'");
    for (const json_value *one = texts->first; one; one = one->next) {
        const json_value *text = json_member(one, "text");
        if (!text || text->type != JSON_STRING)
            continue;
        out_text(w->out, first ? "" : "\\n");
        out_escaped(w->out, text->text, text->n);
        first = false;
    }
    out_text(w->out, "\"");
}

static bool put_call(writing *w, const json_value *item)
{
    const json_value *id = json_member(item, "call_id"), *name = json_member(item, "name"),
                     *arguments = json_member(item, "arguments");
    if (!name || name->type != JSON_STRING || !rewrite_is_text(id, "call_id", w->refusal) ||
        !rewrite_is_text(arguments, "arguments", w->refusal))
        return refuse_with(w->refusal, 400,
                           "An item of the type \"function_call\" has a 'name', a "
                           "'call_id' and 'arguments', which are texts.");
    open_assistant(w, true);
    out_json(w->out, w->assistant.calls ? "{type:'function'" : "tool_calls:[{type:'function'");
    rewrite_member(w->out, "id", id);
    out_json(w->out, "function:{name:%p,arguments:", name);
    out_string(w->out, arguments ? arguments->text : "{}", arguments ? arguments->n : 2);
    out_json(w->out, "}}");
    w->assistant.calls = true;
    return true;
}

static bool put_output(writing *w, const json_value *item)
{
    const json_value *id = json_member(item, "call_id");
    if (!rewrite_is_text(id, "call_id", w->refusal))
        return false;
    close_message(w);
    out_json(w->out, "{role:'tool'");
    rewrite_member(w->out, "tool_call_id", id);
    bool good = put_content(w, json_member(item, "output"));
    out_json(w->out, "}");
    return good;
}

static bool put_item(writing *w, const json_value *item)
{
    if (!json_member(item, "type") || json_member_is(item, "type", "message"))
        return put_message(w, item);
    if (json_member_is(item, "type", "function_call"))
        return put_call(w, item);
    if (json_member_is(item, "type", "function_call_output"))
        return put_output(w, item);
    if (!json_member_is(item, "type", "reasoning"))
        return refuse_with(w->refusal, 400,
                           "An item of 'input' is of the type \"message\", \"function_call\", "
                           "\"function_call_output\" or \"reasoning\": this server reads nothing "
                           "else.");
    put_reasoning(w, item);
    return true;
}

/* Marks the beginning of the conversation. */
static void begin_conversation(writing *w)
{
    previous_conversation *before = w->before;
    if (before->n > 0)
        close_message(w);
    before->from = w->out->n;
    before->in_system = w->in_system;
    if (before->n > 0)
        out_item(w->out, before->messages, before->n);
}

static bool put_messages(writing *w, const json_value *body)
{
    const json_value *input = json_member(body, "input"),
                     *instructions = json_member(body, "instructions");
    if (!rewrite_is_text(instructions, "instructions", w->refusal))
        return false;
    out_json(w->out, "{messages:[");
    if (rewrite_asks(instructions)) {
        out_json(w->out, "{role:'system',content:[");
        w->in_system = true;
        put_parts(instructions, w->out, w->refusal);
    }
    begin_conversation(w);
    if (input && input->type == JSON_STRING) {
        close_message(w);
        out_json(w->out, "{role:'user'");
        rewrite_member(w->out, "content", input);
        out_json(w->out, "}");
    } else if (input && input->type == JSON_ARRAY) {
        for (const json_value *one = input->first; one; one = one->next)
            if (!put_item(w, one))
                return false;
    } else {
        return refuse_with(w->refusal, 400, "Field 'input' takes a text or an array of items.");
    }
    close_message(w);
    return true;
}

/* ---- Tools ---- */

/* Tools that are no functions (of OpenAI's own servers, or of the client's machine) are left out:
 * programs that know them get on with functions. */
static bool put_tools(const json_value *body, text_out *out, refusal *r)
{
    static const char *const members[] = {"description", "parameters", "strict"};
    const json_value *tools = json_member(body, "tools"),
                     *choice = json_member(body, "tool_choice");
    int n = 0;
    if (tools && tools->type != JSON_ARRAY)
        return refuse_with(r, 400, "Field 'tools' takes an array of tools.");
    for (const json_value *tool = tools ? tools->first : NULL; tool; tool = tool->next) {
        const json_value *name = json_member(tool, "name");
        if (!json_member_is(tool, "type", "function"))
            continue;
        if (!name || name->type != JSON_STRING)
            return refuse_with(r, 400, "A tool of the type \"function\" needs a 'name'.");
        out_json(out, n++ ? "{type:'function',function:{name:"
                          : "tools:[{type:'function',function:{name:");
        out_value(out, name);
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
            rewrite_member(out, members[i], json_member(tool, members[i]));
        out_json(out, "}}");
    }
    if (n > 0)
        out_json(out, "]");
    rewrite_member(out, "response_tools", tools);
    rewrite_member(out, "response_tool_choice", choice);
    if (n == 0)
        return true;
    rewrite_member(out, "parallel_tool_calls", json_member(body, "parallel_tool_calls"));
    if (json_member_is(choice, "type", "function") && json_member(choice, "name")) {
        rewrite_choice(out, json_member(choice, "name"));
        return true;
    }
    rewrite_member(out, "tool_choice", choice);
    return true;
}

/* ---- The rest ---- */

static bool put_format(const json_value *body, text_out *out, refusal *r)
{
    const json_value *format = json_member(json_member(body, "text"), "format");
    if (!format || json_member_is(format, "type", "text"))
        return true;
    if (json_member_is(format, "type", "json_object")) {
        out_json(out, "response_format:{type:'json_object'}");
        return true;
    }
    if (!json_member_is(format, "type", "json_schema") || !json_member(format, "schema"))
        return refuse_with(r, 400,
                           "Field 'text.format' is of the type \"text\", \"json_object\", or "
                           "\"json_schema\" with a 'schema'.");
    rewrite_schema(out, json_member(format, "schema"), json_member(format, "strict"));
    return true;
}

bool responses_request(const json_value *body, previous_conversation *before, text_out *out,
                       refusal *r)
{
    static const char *const elsewhere[] = {"conversation", "prompt", "background", NULL};
    writing w = {.out = out, .refusal = r, .before = before};
    if (!rewrite_has_none(body, elsewhere, r) || !put_messages(&w, body))
        return false;
    before->to = out->n;
    out_json(out, "]");
    if (!put_tools(body, out, r) || !put_format(body, out, r))
        return false;
    rewrite_member(out, "max_tokens", json_member(body, "max_output_tokens"));
    rewrite_member(out, "verbosity", json_member(json_member(body, "text"), "verbosity"));
    rewrite_member(out, "reasoning_effort", json_member(json_member(body, "reasoning"), "effort"));
    rewrite_rest(body, known, out);
    out_json(out, "}");
    return true;
}

bool adapter_keep(response_store *kept, const previous_conversation *p, const text_out *written)
{
    const char *text = written->text + p->from;
    size_t n = p->to - p->from;
    bool alone = n >= 2 && memcmp(text, "]}", 2) == 0; /* the instructions were all of it */
    const char *front = p->in_system && !alone ? "{\"role\":\"system\",\"content\":[" : "";
    if (p->in_system && alone) {
        text += 2;
        n -= 2;
    }
    if (n > 0 && *text == ',') {
        text++;
        n--;
    }
    return n > 0 && response_store_begin(kept, front, text, n);
}
