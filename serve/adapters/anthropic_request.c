/* Anthropic's /v1/messages as a chat: blocks become parts of messages, results of tools their own
 * messages, thinking the message's reasoning. */
#include "serve/adapters/adapter.h"

#include <string.h>

/* Members about the account, or where a cache begins, are ignored. */
static const char known[] = " system messages tools tool_choice stop_sequences thinking metadata "
                            "output_config output_format service_tier cache_control stop ";

/* ---- Blocks ---- */

/* A note that a client of Anthropic's writes to its maker, other words each time. */
static bool is_billing(const json_value *text)
{
    static const char front[] = "x-anthropic-billing-header:";
    return text->n >= sizeof front - 1 && memcmp(text->text, front, sizeof front - 1) == 0;
}

static const json_value *block_text(const json_value *block, refusal *r)
{
    const json_value *text = json_member(block, "text");
    if (json_member_is(block, "type", "image"))
        refuse_with(r, 400,
                    "Blocks of the type \"image\": image input is not supported by this "
                    "server. Send texts.");
    else if (!json_member_is(block, "type", "text") || !text || text->type != JSON_STRING)
        refuse_with(r, 400,
                    "A block is an object of the type \"text\", \"thinking\", \"tool_use\" or "
                    "\"tool_result\": this server reads nothing else.");
    else
        return text;
    return NULL;
}

/* A text, or blocks of texts, as a message's content; billing: with such notes. */
static bool put_texts(const json_value *content, bool billing, text_out *out, refusal *r)
{
    if (!content || content->type == JSON_STRING) {
        out_string(out, content ? content->text : "", content ? content->n : 0);
        return true;
    }
    if (content->type != JSON_ARRAY)
        return refuse_with(r, 400, "The content of a message takes a text or an array of blocks.");
    out_json(out, "[");
    for (const json_value *block = content->first; block; block = block->next) {
        const json_value *text = block_text(block, r);
        if (!text)
            return false;
        if (billing || !is_billing(text))
            rewrite_text(out, text);
    }
    out_json(out, "]");
    return true;
}

/* ---- Messages ---- */

typedef struct writing {
    text_out *out;
    refusal *refusal;
    bool open; /* a message of the user's, in the array of its parts */
} writing;

static void close_user(writing *w)
{
    if (w->open)
        out_json(w->out, "]}");
    w->open = false;
}

static bool put_result(writing *w, const json_value *block)
{
    const json_value *id = json_member(block, "tool_use_id");
    if (!rewrite_is_text(id, "tool_use_id", w->refusal))
        return false;
    close_user(w);
    out_json(w->out, "{role:'tool'");
    rewrite_member(w->out, "tool_call_id", id);
    out_json(w->out, "content:");
    if (!put_texts(json_member(block, "content"), true, w->out, w->refusal))
        return false;
    out_json(w->out, "}");
    return true;
}

/* Texts in a row are one message. */
static bool put_user_block(writing *w, const json_value *block)
{
    if (json_member_is(block, "type", "tool_result"))
        return put_result(w, block);
    const json_value *text = block_text(block, w->refusal);
    if (!text)
        return false;
    if (!w->open)
        out_json(w->out, "{role:'user',content:[");
    rewrite_text(w->out, text);
    w->open = true;
    return true;
}

static bool put_call(const json_value *block, text_out *out, refusal *r)
{
    const json_value *id = json_member(block, "id"), *name = json_member(block, "name"),
                     *input = json_member(block, "input");
    if (!name || name->type != JSON_STRING || !rewrite_is_text(id, "id", r))
        return refuse_with(r, 400, "A block of the type \"tool_use\" needs a 'name'.");
    out_json(out, "{type:'function'");
    rewrite_member(out, "id", id);
    out_json(out, "function:{name:%p,arguments:", name);
    if (input)
        rewrite_quoted(out, input);
    else
        out_json(out, "'{}'");
    out_json(out, "}}");
    return true;
}

/* The blocks of one kind of an assistant's message, its texts, its thinking or its calls, as a
 * member that is left open. *n: how many there were; 0: there is no member. */
static bool put_kind(const json_value *blocks, const char *kind, const char *front, text_out *out,
                     refusal *r, int *n)
{
    *n = 0;
    for (const json_value *block = blocks->first; block; block = block->next) {
        if (!json_member_is(block, "type", kind))
            continue;
        const json_value *text = json_member(block, kind);
        bool call = strcmp(kind, "tool_use") == 0;
        if (*n == 0)
            out_json(out, call ? "%s:[" : "%s:'", front);
        if (call) {
            if (!put_call(block, out, r))
                return false;
        } else if (text && text->type == JSON_STRING) {
            out_text(out, *n ? "\\n" : "");
            out_escaped(out, text->text, text->n);
        }
        ++*n;
    }
    return true;
}

static bool put_assistant(writing *w, const json_value *content)
{
    text_out *out = w->out;
    int n;
    out_json(out, "{role:'assistant'");
    if (content->type == JSON_STRING) {
        rewrite_member(out, "content", content);
        out_json(out, "}");
        return true;
    }
    for (const json_value *block = content->first; block; block = block->next)
        if (!json_member_is(block, "type", "thinking") &&
            !json_member_is(block, "type", "redacted_thinking") &&
            !json_member_is(block, "type", "tool_use") && !block_text(block, w->refusal))
            return false;
    if (!put_kind(content, "text", "content", out, w->refusal, &n))
        return false;
    out_json(out, n ? "\"" : "content:''");
    if (!put_kind(content, "thinking", "reasoning_content", out, w->refusal, &n))
        return false;
    out_text(out, n ? "\"" : "");
    if (!put_kind(content, "tool_use", "tool_calls", out, w->refusal, &n))
        return false;
    out_json(out, n ? "]}" : "}");
    return true;
}

static bool put_message(writing *w, const json_value *message)
{
    const json_value *content = json_member(message, "content");
    bool assistant = json_member_is(message, "role", "assistant"),
         system = json_member_is(message, "role", "system");
    if (!assistant && !system && !json_member_is(message, "role", "user"))
        return refuse_with(w->refusal, 400,
                           "A message's 'role' is \"user\", \"assistant\" or \"system\".");
    if (!content || (content->type != JSON_STRING && content->type != JSON_ARRAY))
        return refuse_with(w->refusal, 400,
                           "A message is an object with a 'role' and a 'content', which takes a "
                           "text or an array of blocks.");
    if (assistant)
        return put_assistant(w, content);
    if (system || content->type == JSON_STRING) {
        out_json(w->out, "{role:%s,content:", system ? "system" : "user");
        bool good = put_texts(content, true, w->out, w->refusal);
        out_json(w->out, "}");
        return good;
    }
    for (const json_value *block = content->first; block; block = block->next)
        if (!put_user_block(w, block))
            return false;
    close_user(w);
    return true;
}

static bool put_messages(const json_value *body, text_out *out, refusal *r)
{
    const json_value *system = json_member(body, "system"),
                     *messages = json_member(body, "messages");
    writing w = {.out = out, .refusal = r};
    if (!messages || messages->type != JSON_ARRAY)
        return refuse_with(r, 400, "Field 'messages' takes an array of at least one message.");
    out_json(out, "messages:[");
    if (system) {
        out_json(out, "{role:'system',content:");
        if (!put_texts(system, false, out, r))
            return false;
        out_json(out, "}");
    }
    for (const json_value *one = messages->first; one; one = one->next)
        if (!put_message(&w, one))
            return false;
    out_json(out, "]");
    return true;
}

/* ---- Tools ---- */

/* Tools that Anthropic's own servers run have no schema, and are left out. */
static bool put_tools(const json_value *tools, text_out *out, refusal *r)
{
    int n = 0;
    if (!tools)
        return true;
    if (tools->type != JSON_ARRAY)
        return refuse_with(r, 400, "Field 'tools' takes an array of tools.");
    for (const json_value *tool = tools->first; tool; tool = tool->next) {
        const json_value *schema = json_member(tool, "input_schema"),
                         *name = json_member(tool, "name");
        if (!name || name->type != JSON_STRING)
            return refuse_with(r, 400, "A tool is an object with a 'name' and an 'input_schema'.");
        if (!schema)
            continue;
        out_json(out, n++ ? "{type:'function',function:{name:"
                          : "tools:[{type:'function',function:{name:");
        out_value(out, name);
        rewrite_member(out, "description", json_member(tool, "description"));
        rewrite_member(out, "parameters", schema);
        rewrite_member(out, "strict", json_member(tool, "strict"));
        out_json(out, "}}");
    }
    if (n)
        out_json(out, "]");
    return true;
}

static bool put_choice(const json_value *choice, text_out *out, refusal *r)
{
    const json_value *name = json_member(choice, "name");
    bool one_call = false;
    if (!choice)
        return true;
    json_member_bool(choice, "disable_parallel_tool_use", &one_call);
    if (one_call)
        out_json(out, "parallel_tool_calls:false");
    if (json_member_is(choice, "type", "tool") && name && name->type == JSON_STRING) {
        rewrite_choice(out, name);
        return true;
    }
    const char *word = json_member_is(choice, "type", "auto")   ? "auto"
                       : json_member_is(choice, "type", "any")  ? "required"
                       : json_member_is(choice, "type", "none") ? "none"
                                                                : NULL;
    if (!word)
        return refuse_with(r, 400,
                           "Field 'tool_choice' takes an object of the type \"auto\", \"any\", "
                           "\"none\", or \"tool\" with a 'name'.");
    out_json(out, "tool_choice:%s", word);
    return true;
}

/* ---- The rest ---- */

static bool put_thinking(const json_value *body, text_out *out, refusal *r)
{
    const json_value *thinking = json_member(body, "thinking");
    bool enabled = json_member_is(thinking, "type", "enabled"),
         disabled = json_member_is(thinking, "type", "disabled");
    if (thinking && !enabled && !disabled && !json_member_is(thinking, "type", "adaptive"))
        return refuse_with(r, 400,
                           "Field 'thinking' takes an object of the type \"enabled\", "
                           "\"disabled\" or \"adaptive\".");
    if (enabled || disabled)
        out_json(out, "enable_thinking:%hhd", enabled);
    return true;
}

static bool put_output(const json_value *body, text_out *out, refusal *r)
{
    const json_value *config = json_member(body, "output_config"),
                     *format = json_member(body, "output_format");
    if (!format)
        format = json_member(config, "format");
    rewrite_member(out, "reasoning_effort", json_member(config, "effort"));
    if (!format)
        return true;
    if (!json_member_is(format, "type", "json_schema") || !json_member(format, "schema"))
        return refuse_with(r, 400,
                           "The format of an output is of the type \"json_schema\", with a "
                           "'schema'.");
    rewrite_schema(out, json_member(format, "schema"), json_member(format, "strict"));
    return true;
}

bool anthropic_request(const json_value *body, text_out *out, refusal *r)
{
    static const char *const elsewhere[] = {"mcp_servers", "container", NULL};
    out_json(out, "{");
    if (!rewrite_has_none(body, elsewhere, r) || !put_messages(body, out, r) ||
        !put_tools(json_member(body, "tools"), out, r) ||
        (json_member(body, "tools") && !put_choice(json_member(body, "tool_choice"), out, r)) ||
        !put_thinking(body, out, r) || !put_output(body, out, r))
        return false;
    rewrite_member(out, "stop", json_member(body, "stop_sequences"));
    rewrite_rest(body, known, out);
    out_json(out, "}");
    return true;
}
