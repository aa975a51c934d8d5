/* Tools and reasoning of chats: which calls an answer may have, and the grammar that holds it to
 * them. See parse_conversation.h. */
#include "serve/parse/parse_conversation.h"
#include "serve/parse/parse_grammar.h"

#include <string.h>

/* ---- What is asked for ---- */

/* "none", "auto", "required", or the tool that has to be called. */
static bool get_choice(const parsing *a, drey_reply_options *o)
{
    const json_value *v = json_member(a->body, "tool_choice");
    if (!v || json_member_is(a->body, "tool_choice", "auto"))
        return true;
    if (json_member_is(a->body, "tool_choice", "none")) {
        o->choice = DREY_TOOLS_NONE;
        return true;
    }
    o->choice = DREY_TOOLS_REQUIRED;
    if (json_member_is(a->body, "tool_choice", "required") ||
        json_member_is(a->body, "tool_choice", "any"))
        return true;
    o->tool = json_member_text(json_member(v, "function"), "name");
    return (o->tool && json_member_is(v, "type", "function")) ||
           BAD(a, "Field 'tool_choice' takes \"none\", \"auto\", \"required\", or {\"type\": "
                  "\"function\", \"function\": {\"name\": ...}}.");
}

static bool get_reasoning(const parsing *a, drey_reply_options *o)
{
    static const char *const apart[] = {"auto", "deepseek", "deepseek-legacy"};
    const json_value *v = json_member(a->body, "reasoning_format");
    bool good = !v;
    o->keep_reasoning = json_member_is(a->body, "reasoning_format", "none");
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        good = good || json_member_is(a->body, "reasoning_format", apart[i]);
    return good || o->keep_reasoning ||
           BAD(a, "Field 'reasoning_format' takes \"auto\" or \"deepseek\" (reasoning is taken "
                  "apart), or \"none\" (it stays in the text).");
}

static bool get_tools(const parsing *a, conversation *c, text_out *out)
{
    const json_value *tools = json_member(a->body, "tools");
    bool parallel = true;
    size_t from = out->n;
    if (!parse_bool(a, "parallel_tool_calls", &parallel))
        return false;
    c->reply.one_call = !parallel;
    if (tools && tools->type != JSON_ARRAY)
        return BAD(a, "Field 'tools' takes an array of tools.");
    if (!tools || tools->n == 0)
        return true;
    out_value(out, tools);
    c->tools_json = parse_text_end(out, from);
    return !out->full || BAD(a, "The tools are too long.");
}

bool parse_tools(const parsing *a, conversation *c, text_out *out)
{
    drey_error err = {0};
    if (!get_tools(a, c, out) || !get_choice(a, &c->reply) || !get_reasoning(a, &c->reply))
        return false;
    c->request.tools_json = c->tools_json;
    drey_status status =
        drey_reply_form_find(&c->form, a->options->model, &c->request, &c->reply, &err);
    if (c->form.described)
        c->request.tools_json = NULL;
    if (status == DREY_ERR_USAGE)
        return BAD(a, "Field 'tools' or 'tool_choice': %s.", err.message);
    return status == DREY_OK || refuse_error(a->refusal, &err);
}

/* ---- The answer's form ---- */

/* Looks at the end of the prompt: some templates open the reasoning. */
static void take_prompt_end(const parsing *a, const request *t, conversation *c)
{
    enum { LAST = 24 };
    char text[LAST * 256];
    size_t n_ids = t->prompts.n_ids < LAST ? t->prompts.n_ids : LAST, n = 0;
    if (drey_detokenize(a->options->model, t->prompts.ids + t->prompts.n_ids - n_ids, n_ids,
                        DREY_TOKENIZE_SPECIAL, text, sizeof text, &n, NULL) == DREY_OK)
        drey_reply_form_prompt(&c->form, text, n);
}

static bool take_grammar(const parsing *a, request *t, conversation *c)
{
    drey_error err = {0};
    char *gbnf, *not_held;
    size_t n;
    const drey_chat_request chat = {.tools_json = c->tools_json};
    if (t->grammar.n == REQUEST_GRAMMAR_BYTES)
        return BAD(a, "The schema of the answer is too long.");
    if (t->grammar.n > 0) {
        t->grammar.text[t->grammar.n] = 0;
        c->reply.schema_json = t->grammar.text;
    }
    drey_status status = drey_reply_grammar_held(&c->form, a->options->model, &chat, &c->reply,
                                                 &gbnf, &n, &not_held, &err);
    if (status == DREY_ERR_USAGE && c->form.calls)
        return BAD(a, "Field 'tools': %s.", err.message);
    if (status != DREY_OK)
        return refuse_error(a->refusal, &err);
    request_not_held(t, not_held ? not_held : "");
    drey_free(not_held);
    bool fits = n < REQUEST_GRAMMAR_BYTES;
    t->grammar.n = fits && gbnf ? n : 0;
    t->grammar.kind = DREY_GRAMMAR_GBNF;
    if (t->grammar.n)
        memcpy(t->grammar.text, gbnf, n);
    drey_free(gbnf);
    return fits || BAD(a, "The schemas of the tools are too long: together they may have %d bytes.",
                       REQUEST_GRAMMAR_BYTES);
}

bool parse_answer(const parsing *a, request *t, conversation *c)
{
    take_prompt_end(a, t, c);
    if (c->reply.begun == DREY_BEGUN_CONTENT) {
        if (c->form.required)
            return BAD(a, "Field 'tool_choice' asks for a call, but the last message is the "
                          "beginning of the answer.");
        c->form.calls = false;
    }
    t->reply = c->form;
    bool schema = t->grammar.n > 0 && t->grammar.kind == DREY_GRAMMAR_JSON_SCHEMA;
    if (c->form.calls && t->grammar.n > 0 && !schema)
        return BAD(a, "A grammar contradicts 'tools', which say how calls are written: send one "
                      "of the two, or a JSON Schema.");
    if (c->form.calls && t->length.ignore_eos)
        return BAD(a, "Field 'ignore_eos' contradicts 'tools': calls end the answer.");
    bool marked = (c->form.thinking || c->form.special) && c->reply.begun != DREY_BEGUN_CONTENT;
    if (!c->form.calls && !(marked && schema && t->grammar.text[0] == '{'))
        return true;
    return take_grammar(a, t, c);
}
