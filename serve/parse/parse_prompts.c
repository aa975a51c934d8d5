/* Prompts that are no chats: texts, token ids, both, several; and what comes between two texts
 * ("fill in the middle"), as editors ask for it. */
#include "serve/parse/parse_fields.h"

#include <string.h>

static bool add_bytes(const parsing *a, request *t, const char *text, size_t n_bytes, int flags)
{
    drey_error err = {0};
    size_t n = 0, room = (size_t)a->options->n_context - t->prompts.n_ids;
    drey_status status = drey_tokenize(a->options->model, text, n_bytes, flags,
                                       t->prompts.ids + t->prompts.n_ids, room, &n, &err);
    t->prompts.n_ids += n;
    if (n > room)
        return refuse_too_long(a->refusal, t->prompts.n_ids, a->options->n_context);
    return status == DREY_OK || refuse_error(a->refusal, &err);
}

static bool add_text(const parsing *a, request *t, const json_value *text, bool first)
{
    return add_bytes(a, t, text->text, text->n,
                     DREY_TOKENIZE_SPECIAL | (first ? DREY_TOKENIZE_BOS : 0));
}

static bool add_token(const parsing *a, request *t, int32_t id)
{
    if (t->prompts.n_ids >= (size_t)a->options->n_context)
        return refuse_too_long(a->refusal, t->prompts.n_ids + 1, a->options->n_context);
    t->prompts.ids[t->prompts.n_ids++] = id;
    return true;
}

static bool add_id(const parsing *a, request *t, const json_value *id)
{
    drey_model_info info;
    drey_model_describe(a->options->model, &info);
    if (!id->is_integer || id->integer < 0 || id->integer >= info.n_vocab)
        return BAD(a, "The prompt holds a token that the model has not: its ids are 0 to %d.",
                   info.n_vocab - 1);
    return add_token(a, t, (int32_t)id->integer);
}

/* ---- One prompt, or several ---- */

/* Texts and ids one after the other. */
static bool add_mixed(const parsing *a, request *t, const json_value *list)
{
    for (const json_value *one = list->first; one; one = one->next) {
        bool good = one->type == JSON_NUMBER   ? add_id(a, t, one)
                    : one->type == JSON_STRING ? add_text(a, t, one, one == list->first)
                                               : BAD(a, "Field 'prompt' takes a text, or an "
                                                        "array of texts and token ids.");
        if (!good)
            return false;
    }
    return true;
}

bool parse_tokens(const parsing *a, request *t, const json_value *v)
{
    return v->type == JSON_STRING ? add_text(a, t, v, true) : add_mixed(a, t, v);
}

/* A text, an array of texts and ids, or {"prompt_string": text}. */
static bool add_prompt(const parsing *a, request *t, const json_value *v)
{
    const json_value *text = v->type == JSON_OBJECT ? json_member(v, "prompt_string") : v;
    size_t n = t->prompts.n_ids;
    if (v->type == JSON_OBJECT && json_member(v, "multimodal_data"))
        return BAD(a, "Field 'prompt' has 'multimodal_data': this server reads texts alone.");
    if (!text || (text->type != JSON_STRING && text->type != JSON_ARRAY))
        return BAD(a, "Field 'prompt' takes a text, or an array of texts and token ids.");
    if (!parse_tokens(a, t, text))
        return false;
    if (t->prompts.n_ids == n)
        return refuse_with(a->refusal, 400, "The prompt is empty: send at least one token.");
    t->prompts.end[t->prompts.n++] = t->prompts.n_ids;
    return true;
}

/* Returns whether an array is a list of prompts: not if it has ids, alone or between texts. */
static bool has_several(const json_value *v)
{
    bool several = v->type == JSON_ARRAY && v->n > 0;
    for (const json_value *one = several ? v->first : NULL; one; one = one->next)
        several = several && one->type != JSON_NUMBER;
    return several;
}

int32_t parse_n_prompts(const json_value *body)
{
    const json_value *v = json_member(body, "prompt");
    return v && has_several(v) ? (int32_t)(v->n < INT16_MAX ? v->n : INT16_MAX) : 1;
}

/* ---- In the middle ---- */

static bool add_member(const parsing *a, request *t, const json_value *object, const char *key)
{
    const json_value *v = object ? json_member(object, key) : NULL;
    if (v && v->type != JSON_STRING)
        return BAD(a, "Field '%s' takes a text.", key);
    return !v || add_bytes(a, t, v->text, v->n, 0);
}

/* A file of the project: its name after a token, or a line between files. */
static bool add_file(const parsing *a, request *t, const drey_fim *fim, const json_value *name,
                     const char *usual)
{
    static const char snippet[] = "\n\n--- snippet ---\n\n";
    if (name && name->type != JSON_STRING)
        return BAD(a, "Field 'filename' takes a text.");
    if (fim->file < 0)
        return add_bytes(a, t, snippet, sizeof snippet - 1, 0);
    return add_token(a, t, fim->file) &&
           add_bytes(a, t, name ? name->text : usual, name ? name->n : strlen(usual), 0) &&
           add_bytes(a, t, "\n", 1, 0);
}

static bool add_files(const parsing *a, request *t, const drey_fim *fim)
{
    const json_value *extra = json_member(a->body, "input_extra");
    if (extra && extra->type != JSON_ARRAY)
        return BAD(a, "Field 'input_extra' takes an array of {\"filename\", \"text\"}.");
    if (!extra || extra->n == 0)
        return true;
    if (fim->repo >= 0 && !(add_token(a, t, fim->repo) && add_bytes(a, t, "project\n", 8, 0)))
        return false;
    for (const json_value *one = extra->first; one; one = one->next) {
        const json_value *text = one->type == JSON_OBJECT ? json_member(one, "text") : NULL;
        if (!text || text->type != JSON_STRING)
            return BAD(a, "An item of 'input_extra' needs a 'text'.");
        if (!add_file(a, t, fim, json_member(one, "filename"), "tmp") ||
            !add_bytes(a, t, text->text, text->n, 0))
            return false;
    }
    return fim->file < 0 || add_file(a, t, fim, NULL, "file");
}

/* Files of the project, prefix, suffix; what is written comes between the last two. Texts in them
 * hold no special tokens. */
static bool add_middle(const parsing *a, request *t, const char *prefix, const char *suffix)
{
    drey_fim fim;
    if (t->prompts.echo)
        return BAD(a, "Field 'echo' does not go with 'suffix': leave one of them out.");
    if (!drey_model_fim(a->options->model, &fim))
        return refuse_with(a->refusal, 501,
                           "The model cannot fill in the middle of a text: its file names no "
                           "tokens for prefix, suffix and middle. Use a model for code.");
    bool good = add_bytes(a, t, "", 0, DREY_TOKENIZE_BOS) && add_files(a, t, &fim) &&
                add_token(a, t, fim.prefix) && add_member(a, t, a->body, prefix) &&
                add_member(a, t, strcmp(prefix, "prompt") ? a->body : NULL, "prompt") &&
                add_token(a, t, fim.suffix) && add_member(a, t, a->body, suffix) &&
                add_token(a, t, fim.middle);
    t->prompts.end[0] = t->prompts.n_ids;
    t->prompts.n = 1;
    return good;
}

/* Refuses fields that only chats have, unless they ask for nothing. */
static bool check_no_chat(const parsing *a)
{
    static const char *const keys[] = {"reasoning_effort", "enable_thinking", "reasoning_format",
                                       "tool_choice", "tools"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_value *v = json_member(a->body, keys[i]);
        bool nothing = i < 2   ? !v
                       : i < 4 ? !v || json_member_is(a->body, keys[i], "none") ||
                                     json_member_is(a->body, keys[i], "auto")
                               : !v || (v->type == JSON_ARRAY && v->n == 0);
        if (!nothing)
            return BAD(a, "Field '%s' is for chats: a prompt has no template.", keys[i]);
    }
    return true;
}

bool parse_prompts(const parsing *a, request *t)
{
    const json_value *v = json_member(a->body, "prompt"), *suffix = json_member(a->body, "suffix");
    bool fills = json_member(a->body, "input_prefix") || json_member(a->body, "input_suffix");
    if (!check_no_chat(a))
        return false;
    if (fills && t->kind == REQUEST_NATIVE)
        return add_middle(a, t, "input_prefix", "input_suffix");
    if (suffix && !(suffix->type == JSON_STRING && suffix->n == 0))
        return add_middle(a, t, "prompt", "suffix");
    if (!v)
        return BAD(a, "Field 'prompt' is missing.");
    if (!has_several(v))
        return add_prompt(a, t, v);
    for (const json_value *one = v->first; one; one = one->next)
        if (!add_prompt(a, t, one))
            return false;
    return true;
}
