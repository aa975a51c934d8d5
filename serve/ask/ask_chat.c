/* Chats: messages become a prompt, by the model's template. See ask_fields.h and ask.h. */
#include "serve/ask/ask_conversation.h"
#include "serve/ask/message_ends.h"

#include <string.h>
#include <time.h>

/* The last message is the beginning of the answer: if it is the assistant's, and nothing else is
 * asked for. */
static bool take_begun(const asking *a, json_value *messages, conversation *c, json_value **last)
{
    for (json_value *m = messages->first; m; m = m->next)
        *last = m;
    bool continues = json_member_is(*last, "role", "assistant") &&
                     !json_member(a->body, "add_generation_prompt") &&
                     !json_member(*last, "tool_calls");
    const json_value *begins = json_member(a->body, "add_generation_prompt");
    if (!ask_bool(a, "continue_final_message", &continues))
        return false;
    if (!continues) {
        *last = NULL;
        return true;
    }
    if (begins && begins->type == JSON_TRUE)
        return BAD(a, "Fields 'continue_final_message' and 'add_generation_prompt' contradict each "
                      "other: an answer is continued, or another one begins.");
    for (json_value *m = messages->first; m->next; m = m->next)
        if (m->next == *last && json_member_is(m, "role", "assistant"))
            return BAD(a, "The last two messages are the assistant's: it is not clear which of "
                          "them the answer continues. Make one of them.");
    if (!json_member_is(*last, "role", "assistant"))
        return BAD(a, "Field 'continue_final_message' wants a last message of the assistant.");
    return ask_message_text(a, *last, &c->begun);
}

static void put_variable(text_out *out, const char *key, size_t n_key, const json_value *v)
{
    out_text(out, out->text[out->n - 1] == '{' ? "" : ",");
    out_string(out, key, n_key);
    out_text(out, ":");
    out_value(out, v);
}

/* Of the template. What 'chat_template_kwargs' says counts. */
static bool put_variables(const asking *a, conversation *c, text_out *out)
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
    if (!ask_bool(a, own[1], &flag))
        return false;
    out_text(out, "{");
    for (int i = 0; i < 2; i++) {
        const json_value *v = json_member(a->body, own[i]);
        if (json_member(variables, own[i]) || (!v && i == 0))
            continue;
        put_variable(out, own[i], strlen(own[i]), v ? v : &thinks);
    }
    for (const json_value *one = variables ? variables->first : NULL; one; one = one->next)
        put_variable(out, one->key, one->n_key, one);
    out_text(out, "}");
    c->request.variables_json = ask_text_end(out, from);
    return true;
}

static bool get_conversation(const asking *a, text_out *out, conversation *c)
{
    json_value *messages = json_member(a->body, "messages"), *last = NULL;
    bool answers = true;
    *c = (conversation){.begun = NULL};
    drey_chat_request_init(&c->request);
    c->request.chat_template = a->options->chat_template;
    c->request.now_s = (int64_t)time(NULL);
    if (!messages || messages->type != JSON_ARRAY || messages->n == 0)
        return BAD(a, "Field 'messages' takes an array of messages.");
    if (!take_begun(a, messages, c, &last) || !ask_bool(a, "add_generation_prompt", &answers))
        return false;
    c->request.no_generation_prompt = !answers && !c->begun; /* what is begun follows it */
    out->n = 0;
    out->full = false;
    if (!ask_tools(a, c, out) || !ask_messages(a, c, messages->first, last, out) ||
        !put_variables(a, c, out))
        return false;
    return !out->full || BAD(a, "The conversation is too long.");
}

/* What is begun continues the prompt as if both were one text: no blank comes between them, but
 * where SentencePiece puts one, after a control token. */
static drey_status add_begun(const drey_model *m, const char *begun, int32_t *ids, size_t room,
                             size_t *n_ids, drey_error *err)
{
    size_t n_last = 0, n_more = 0;
    bool text = *n_ids > 0 && *n_ids <= room &&
                drey_detokenize(m, ids + *n_ids - 1, 1, DREY_TOKENIZE_INNER, NULL, 0, &n_last,
                                NULL) != DREY_OK;
    size_t left = *n_ids < room ? room - *n_ids : 0;
    drey_status status = drey_tokenize(m, begun, strlen(begun), text ? DREY_TOKENIZE_INNER : 0,
                                       ids + (room - left), left, &n_more, err);
    *n_ids += n_more;
    return status;
}

bool ask_chat(const asking *a, task *t, text_out *scratch)
{
    conversation c;
    drey_error err = {0};
    size_t room = (size_t)a->options->n_context;
    if (!get_conversation(a, scratch, &c))
        return false;
    drey_status status = drey_chat_encode(a->options->model, &c.request, DREY_TOKENIZE_BOS, t->ids,
                                          room, &t->n_ids, &err);
    if (status == DREY_OK && c.begun)
        status = add_begun(a->options->model, c.begun, t->ids, room, &t->n_ids, &err);
    if (t->n_ids > room)
        return refuse_too_long(a->refusal, t->n_ids, a->options->n_context);
    if (status == DREY_OK && !ask_answer(a, t, &c))
        return false;
    if (status == DREY_OK)
        message_ends_find(t, json_member(a->body, "messages"), a->options->model, scratch);
    return status == DREY_OK || refuse_error(a->refusal, &err);
}

bool ask_prompt_tokens(json_value *body, const serve_options *o, text_out *scratch, int32_t *ids,
                       size_t capacity, size_t *n, refusal *r)
{
    const asking a = {.body = body, .options = o, .refusal = r};
    conversation c;
    drey_error err = {0};
    r->status = 0;
    *n = 0;
    if (!ask_supported(&a) || !get_conversation(&a, scratch, &c))
        return false;
    drey_status status =
        drey_chat_encode(o->model, &c.request, DREY_TOKENIZE_BOS, ids, capacity, n, &err);
    if (status != DREY_OK && *n <= capacity)
        return refuse_error(r, &err);
    if (c.begun)
        add_begun(o->model, c.begun, ids, capacity, n, NULL);
    return true;
}

bool ask_template(json_value *body, const serve_options *o, text_out *scratch, char **text,
                  size_t *n_bytes, const char **begun, refusal *r)
{
    const asking a = {.body = body, .options = o, .refusal = r};
    conversation c;
    drey_error err = {0};
    r->status = 0;
    if (!ask_supported(&a) || !get_conversation(&a, scratch, &c))
        return false;
    *begun = c.begun ? c.begun : "";
    return drey_chat_render(o->model, &c.request, text, n_bytes, &err) == DREY_OK ||
           refuse_error(r, &err);
}
