/* ollama's requests as chats: options become fields, arguments of calls texts. */
#include "serve/adapters/adapter.h"

#include <string.h>

/* Members that say how a model is loaded are ignored: this server has one, as it was started. */
static const char known[] = " messages tools format options stream think keep_alive truncate shift "
                            "prompt system template context raw images suffix ";
static const char of_loading[] = " num_ctx num_batch num_gpu main_gpu use_mmap num_thread num_keep "
                                 "low_vram numa f16_kv vocab_only use_mlock logits_all "
                                 "num_predict penalize_newline ";

static bool no_images(const json_value *holder, refusal *r)
{
    return !rewrite_asks(json_member(holder, "images")) ||
           refuse_with(r, 400, "Field 'images': image input is not supported by this server.");
}

/* ---- Messages ---- */

static bool put_call(const json_value *call, int n, text_out *out, refusal *r)
{
    const json_value *function = json_member(call, "function"),
                     *name = json_member(function, "name"),
                     *arguments = json_member(function, "arguments");
    if (!name || name->type != JSON_STRING)
        return refuse_with(r, 400, "A call in 'tool_calls' needs a 'function' with a 'name'.");
    out_json(out, "{id:'call_%d',type:'function',function:{name:", n);
    out_value(out, name);
    out_json(out, "arguments:");
    if (!arguments)
        out_json(out, "'{}'");
    else if (arguments->type == JSON_STRING)
        out_value(out, arguments);
    else
        rewrite_quoted(out, arguments);
    out_json(out, "}}");
    return true;
}

static bool put_message(const json_value *message, text_out *out, refusal *r)
{
    const json_value *calls = json_member(message, "tool_calls"),
                     *content = json_member(message, "content");
    int n = 0;
    if (!json_member(message, "role") || !rewrite_is_text(content, "content", r))
        return refuse_with(r, 400, "A message is an object with a 'role' and a 'content', a text.");
    if (!no_images(message, r))
        return false;
    out_json(out, "{role:%p,content:", json_member(message, "role"));
    out_string(out, content ? content->text : "", content ? content->n : 0);
    rewrite_member(out, "reasoning_content", json_member(message, "thinking"));
    rewrite_member(out, "name", json_member(message, "tool_name"));
    rewrite_member(out, "tool_call_id", json_member(message, "tool_call_id"));
    if (rewrite_asks(calls)) {
        out_json(out, "tool_calls:[");
        for (const json_value *one = calls->type == JSON_ARRAY ? calls->first : NULL; one;
             one = one->next)
            if (!put_call(one, n++, out, r))
                return false;
        out_json(out, "]");
    }
    out_json(out, "}");
    return true;
}

/* ---- What both have ---- */

static bool put_format(const json_value *format, text_out *out, refusal *r)
{
    if (!rewrite_asks(format))
        return true;
    if (format->type == JSON_STRING && strcmp(format->text, "json") == 0) {
        out_json(out, "response_format:{type:'json_object'}");
        return true;
    }
    if (format->type != JSON_OBJECT)
        return refuse_with(r, 400, "Field 'format' takes \"json\" or a JSON schema.");
    rewrite_schema(out, format, NULL);
    return true;
}

/* -1: to the end; -2, which is the same where a context ends a text. */
static bool put_options(const json_value *options, text_out *out, refusal *r)
{
    const json_value *n = json_member(options, "num_predict");
    if (options && options->type != JSON_OBJECT)
        return refuse_with(r, 400, "Field 'options' takes an object.");
    if (!options)
        return true;
    if (n && n->type == JSON_NUMBER && n->number < 0)
        out_json(out, "max_tokens:-1");
    else
        rewrite_member(out, "max_tokens", n);
    rewrite_rest(options, of_loading, out);
    return true;
}

static bool put_rest(const json_value *body, bool chat, text_out *out, refusal *r)
{
    static const char *const no_members[] = {"logprobs", NULL}; /* answers have no place for them */
    const json_value *stream = json_member(body, "stream"), *think = json_member(body, "think");
    bool flag = think && (think->type == JSON_TRUE || think->type == JSON_FALSE);
    if (think && !flag && think->type != JSON_STRING)
        return refuse_with(r, 400, "Field 'think' takes true, false, or a word for how much.");
    if (chat && flag)
        rewrite_member(out, "enable_thinking", think);
    else if (chat)
        rewrite_member(out, "reasoning_effort", think);
    if (!rewrite_has_none(body, no_members, r) ||
        !put_format(json_member(body, "format"), out, r) ||
        !put_options(json_member(body, "options"), out, r))
        return false;
    rewrite_rest(body, known, out);
    out_json(out, stream ? "stream:" : "stream:true");
    if (stream)
        out_value(out, stream);
    out_json(out, "}");
    return true;
}

/* ---- The two requests ---- */

bool ollama_chat_request(const json_value *body, text_out *out, refusal *r)
{
    const json_value *messages = json_member(body, "messages");
    if (!messages || messages->type != JSON_ARRAY)
        return refuse_with(r, 400, "Field 'messages' takes an array of messages.");
    out_json(out, "{messages:[");
    for (const json_value *one = messages->first; one; one = one->next)
        if (!put_message(one, out, r))
            return false;
    out_json(out, "]");
    if (rewrite_asks(json_member(body, "tools")))
        rewrite_member(out, "tools", json_member(body, "tools"));
    return put_rest(body, true, out, r);
}

bool ollama_is_text(const json_value *body)
{
    bool raw = false;
    json_member_bool(body, "raw", &raw);
    return raw || rewrite_asks(json_member(body, "suffix"));
}

bool ollama_generate_request(const json_value *body, text_out *out, refusal *r)
{
    static const char *const unknown[] = {"template", "context", NULL};
    const json_value *prompt = json_member(body, "prompt"), *system = json_member(body, "system");
    if (!rewrite_has_none(body, unknown, r) || !no_images(body, r) ||
        !rewrite_is_text(prompt, "prompt", r) || !rewrite_is_text(system, "system", r))
        return false;
    if (ollama_is_text(body)) {
        out_json(out, "{prompt:%.*s", (int)(prompt ? prompt->n : 0), prompt ? prompt->text : "");
        rewrite_member(out, "suffix", json_member(body, "suffix"));
        return put_rest(body, false, out, r);
    }
    out_json(out, "{messages:[");
    if (rewrite_asks(system)) {
        out_json(out, "{role:'system',content:%p}", system);
    }
    out_json(out, "{role:'user',content:%.*s}]", (int)(prompt ? prompt->n : 0),
             prompt ? prompt->text : "");
    return put_rest(body, true, out, r);
}
