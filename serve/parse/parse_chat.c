/* Chats: messages become a prompt, by the model's template. See parse_fields.h and
 * parse_request.h. */
#include "serve/parse/parse_conversation.h"
#include "serve/parse/message_ends.h"

#include <time.h>

/* The first of its names that is a text with bytes; NULL: none is. */
static const json_value *reasoning_of(const json_value *message)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_member_text(message, names[i]) && *json_member_text(message, names[i]))
            return json_member(message, names[i]);
    return NULL;
}

/* Field 'continue_final_message': a flag, or which part of the message is continued, as
 * llama.cpp's server has it; *part is DREY_BEGUN_NOTHING where that depends on the message. */
static bool get_continues(const parsing *a, bool *continues, drey_reply_begun *part)
{
    static const char field[] = "continue_final_message";
    *part = json_member_is(a->body, field, "content")             ? DREY_BEGUN_CONTENT
            : json_member_is(a->body, field, "reasoning_content") ? DREY_BEGUN_REASONING
                                                                  : DREY_BEGUN_NOTHING;
    *continues = *continues || *part;
    return *part || parse_bool(a, field, continues);
}

/* Says which part of the last message the answer continues. */
static bool take_parts(const parsing *a, json_value *last, drey_reply_begun part, conversation *c)
{
    const json_value *reasoning = reasoning_of(last);
    json_value *whole = json_member(last, "content");
    const char *content;
    if (!parse_message_text(a, last, &content))
        return false;
    if (!*content && reasoning && part == DREY_BEGUN_CONTENT)
        return BAD(a, "Field 'continue_final_message' is \"content\", and the last message has "
                      "none: send its beginning.");
    if (part == DREY_BEGUN_NOTHING)
        part = !*content && reasoning ? DREY_BEGUN_REASONING : DREY_BEGUN_CONTENT;
    if (part == DREY_BEGUN_REASONING && whole)
        whole->type = JSON_NULL;
    c->reply.begun = *content || reasoning ? part : DREY_BEGUN_NOTHING;
    return true;
}

/* The last message is the beginning of the answer: if it is the assistant's, and nothing else is
 * asked for. */
static bool take_begun(const parsing *a, json_value *messages, conversation *c)
{
    json_value *last = NULL, *before = NULL;
    drey_reply_begun part;
    for (json_value *m = messages->first; m; before = last, last = m, m = m->next)
        ;
    bool continues = json_member_is(last, "role", "assistant") &&
                     !json_member(a->body, "add_generation_prompt") &&
                     !json_member(last, "tool_calls");
    const json_value *begins = json_member(a->body, "add_generation_prompt");
    if (!get_continues(a, &continues, &part))
        return false;
    c->request.continues = continues;
    if (!continues)
        return true;
    if (begins && begins->type == JSON_TRUE)
        return BAD(a, "Fields 'continue_final_message' and 'add_generation_prompt' contradict each "
                      "other: an answer is continued, or another one begins.");
    if (before && json_member_is(before, "role", "assistant"))
        return BAD(a, "The last two messages are the assistant's: it is not clear which of "
                      "them the answer continues. Make one of them.");
    if (!json_member_is(last, "role", "assistant"))
        return BAD(a, "Field 'continue_final_message' wants a last message of the assistant.");
    return take_parts(a, last, part, c);
}

/* Writes the template's variables; 'chat_template_kwargs' has the last word. */
static bool put_variables(const parsing *a, conversation *c, text_out *out)
{
    static const char *const own[] = {"reasoning_effort", "enable_thinking"};
    const json_value *variables = json_member(a->body, "chat_template_kwargs");
    const json_value thinks = {.type = a->options->no_reasoning ? JSON_FALSE : JSON_TRUE};
    bool flag;
    size_t from = out->n;
    if (variables && variables->type != JSON_OBJECT)
        return BAD(a, "Field 'chat_template_kwargs' takes an object.");
    if (json_member(a->body, own[0]) && json_member(a->body, own[0])->type != JSON_STRING)
        return BAD(a, "Field 'reasoning_effort' takes a word, which the template gets.");
    if (!parse_bool(a, own[1], &flag))
        return false;
    out_json(out, "{");
    for (int i = 0; i < 2; i++) {
        const json_value *v = json_member(a->body, own[i]);
        if (json_member(variables, own[i]) || (!v && i == 0))
            continue;
        out_json(out, "%s:", own[i]);
        out_value(out, v ? v : &thinks);
    }
    for (const json_value *one = variables ? variables->first : NULL; one; one = one->next)
        out_member(out, one);
    out_json(out, "}");
    c->request.variables_json = parse_text_end(out, from);
    return true;
}

static bool get_conversation(const parsing *a, text_out *out, conversation *c)
{
    json_value *messages = json_member(a->body, "messages");
    bool answers = true;
    *c = (conversation){.tools_json = NULL};
    drey_reply_options_init(&c->reply);
    drey_chat_request_init(&c->request);
    c->request.chat_template = a->options->chat_template;
    c->request.now_s = (int64_t)time(NULL);
    if (!messages || messages->type != JSON_ARRAY || messages->n == 0)
        return BAD(a, "Field 'messages' takes an array of at least one message.");
    if (!take_begun(a, messages, c) || !parse_bool(a, "add_generation_prompt", &answers))
        return false;
    c->request.no_generation_prompt = !answers;
    out_begin(out);
    if (!put_variables(a, c, out) || !parse_tools(a, c, out) ||
        !parse_messages(a, c, messages->first, out))
        return false;
    return !out->full || BAD(a, "The conversation is too long.");
}

bool parse_chat(const parsing *a, request *t, text_out *scratch)
{
    conversation c;
    drey_error err = {0};
    size_t room = (size_t)a->options->n_context;
    if (!get_conversation(a, scratch, &c))
        return false;
    drey_status status = drey_chat_encode(a->options->model, &c.request, DREY_TOKENIZE_BOS,
                                          t->prompts.ids, room, &t->prompts.n_ids, &err);
    if (t->prompts.n_ids > room)
        return refuse_too_long(a->refusal, t->prompts.n_ids, a->options->n_context);
    if (status == DREY_OK && !parse_answer(a, t, &c))
        return false;
    if (status == DREY_OK)
        message_ends_find(t, json_member(a->body, "messages"), a->options->model, scratch);
    return status == DREY_OK || refuse_error(a->refusal, &err);
}

bool parse_prompt_tokens(json_value *body, const serve_options *o, text_out *scratch, int32_t *ids,
                         size_t capacity, size_t *n, refusal *r)
{
    const parsing a = {.body = body, .options = o, .refusal = r};
    conversation c;
    drey_error err = {0};
    r->status = 0;
    *n = 0;
    if (!parse_supported(&a) || !get_conversation(&a, scratch, &c))
        return false;
    drey_status status =
        drey_chat_encode(o->model, &c.request, DREY_TOKENIZE_BOS, ids, capacity, n, &err);
    return status == DREY_OK || *n > capacity || refuse_error(r, &err);
}

bool parse_template(json_value *body, const serve_options *o, text_out *scratch, char **text,
                    size_t *n_bytes, refusal *r)
{
    const parsing a = {.body = body, .options = o, .refusal = r};
    conversation c;
    drey_error err = {0};
    r->status = 0;
    if (!parse_supported(&a) || !get_conversation(&a, scratch, &c))
        return false;
    return drey_chat_render(o->model, &c.request, text, n_bytes, &err) == DREY_OK ||
           refuse_error(r, &err);
}
