/* Requests become tasks: see ask.h. A key that is null is absent; one that nobody knows is ignored;
 * one that is known and would change the answer, but is not computed here, is refused. */
#include "serve/api/ask.h"
#include "serve/api/ask_grammar.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "drey/chat.h"

/* ---- Refusals ---- */

static const char *type_of(int status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 404 ? "not_found_error"
           : status == 501 ? "not_supported_error"
           : status == 503 ? "unavailable_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

bool refuse_with(refusal *r, int status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    *r = (refusal){.status = status, .type = type_of(status)};
    vsnprintf(r->message, sizeof r->message, format, values);
    va_end(values);
    return false;
}

bool refuse_error(refusal *r, const drey_error *err)
{
    bool asked_badly = err->code == DREY_ERR_USAGE || err->code == DREY_ERR_CONTEXT ||
                       err->code == DREY_ERR_UNSUPPORTED;
    int status = err->code == DREY_ERR_MEMORY ? 503 : asked_badly ? 400 : 500;
    return refuse_with(r, status, "%s", err->message);
}

static bool too_long(refusal *r, size_t n_ids, int32_t n_context)
{
    refuse_with(r, 400,
                "The prompt has %zu tokens and so exceeds the available context size of %d (one of "
                "them to write). Nothing is cut: send a shorter prompt, or start the server with a "
                "larger context.",
                n_ids, n_context);
    r->type = "exceed_context_size_error";
    r->n_prompt_tokens = (int64_t)n_ids;
    r->n_ctx = n_context;
    return false;
}

/* ---- Members of the right kind ---- */

typedef struct asking {
    const json_value *body;
    const serve_options *options;
    refusal *refusal;
} asking;
#define BAD(a, ...) refuse_with((a)->refusal, 400, __VA_ARGS__)

static bool get_real(const asking *a, const char *key, double least, double most, float *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    if (v->type != JSON_NUMBER || v->number < least || v->number > most)
        return BAD(a, "Field '%s' takes a number from %g to %g.", key, least, most);
    *out = (float)v->number;
    return true;
}

static bool get_count(const asking *a, const char *key, int64_t least, int64_t most, int32_t *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    bool whole = v->type == JSON_NUMBER && v->number == floor(v->number);
    if (!whole || v->number < (double)least || v->number > (double)most)
        return BAD(a, "Field '%s' takes a whole number from %lld to %lld.", key, (long long)least,
                   (long long)most);
    *out = (int32_t)v->number;
    return true;
}

static bool get_bool(const asking *a, const char *key, bool *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        return BAD(a, "Field '%s' takes true or false.", key);
    *out = v->type == JSON_TRUE;
    return true;
}

bool ask_flag(const json_value *body, const char *key, bool *out, refusal *r)
{
    const asking a = {.body = body, .refusal = r};
    return get_bool(&a, key, out);
}

static bool get_seed(const asking *a, task *t, bool *given)
{
    const json_value *v = json_member(a->body, "seed");
    if (!v)
        return true;
    if (v->type != JSON_NUMBER || !v->is_integer)
        return BAD(a, "Field 'seed' takes a whole number of up to 18 digits.");
    *given = v->integer >= 0; /* -1: any */
    t->sampling.seed = (uint64_t)v->integer;
    return true;
}

/* ---- What is known and not computed ---- */

static bool is_empty(const json_value *v)
{
    bool has_parts = v->type == JSON_STRING || v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    return v->type == JSON_FALSE || (has_parts && v->n == 0);
}

/* Numbers and parts that would change the text: a value that asks for nothing is accepted. */
enum { NUMBER, UP_TO, PARTS, ANY }; /* the value itself; that or less; nothing in it; none */
static const struct {
    const char *key;
    int neutral;
    double number;
} not_computed[] = {{"presence_penalty", NUMBER, 0},
                    {"frequency_penalty", NUMBER, 0},
                    {"repeat_penalty", NUMBER, 1},
                    {"typical_p", NUMBER, 1},
                    {"mirostat", NUMBER, 0},
                    {"dynatemp_range", NUMBER, 0},
                    {"xtc_probability", NUMBER, 0},
                    {"dry_multiplier", NUMBER, 0},
                    {"top_n_sigma", UP_TO, 0},
                    {"t_max_predict_ms", UP_TO, 0},
                    {"best_of", NUMBER, 1},
                    {"min_keep", NUMBER, 0},
                    {"n_indent", NUMBER, 0},
                    {"suffix", PARTS, 0},
                    {"echo", PARTS, 0},
                    {"tools", PARTS, 0},
                    {"functions", PARTS, 0},
                    {"audio", PARTS, 0},
                    {"web_search_options", ANY, 0},
                    {"lora", PARTS, 0},
                    {"response_fields", PARTS, 0},
                    {"post_sampling_probs", PARTS, 0},
                    {"samplers", PARTS, 0},
                    {"repetition_penalty", NUMBER, 1},
                    {"encoder_repetition_penalty", NUMBER, 1},
                    {"length_penalty", NUMBER, 1},
                    {"no_repeat_ngram_size", NUMBER, 0},
                    {"min_tokens", NUMBER, 0},
                    {"min_length", NUMBER, 0},
                    {"top_a", NUMBER, 0},
                    {"tfs", NUMBER, 1},
                    {"tfs_z", NUMBER, 1},
                    {"nsigma", UP_TO, 0},
                    {"epsilon_cutoff", NUMBER, 0},
                    {"eta_cutoff", NUMBER, 0},
                    {"smoothing_factor", NUMBER, 0},
                    {"guidance_scale", NUMBER, 1},
                    {"negative_prompt", PARTS, 0},
                    {"use_beam_search", PARTS, 0},
                    {"bad_words", PARTS, 0},
                    {"banned_tokens", PARTS, 0},
                    {"allowed_token_ids", PARTS, 0},
                    {"stop_token_ids", PARTS, 0},
                    {"include_stop_str_in_output", PARTS, 0},
                    {"truncate_prompt_tokens", ANY, 0},
                    {"prompt_logprobs", ANY, 0},
                    {"chat_template", PARTS, 0},
                    {"documents", PARTS, 0},
                    {"format", PARTS, 0},
                    {"options", PARTS, 0}};

static bool check_values(const asking *a)
{
    for (size_t i = 0; i < sizeof not_computed / sizeof *not_computed; i++) {
        const json_value *v = json_member(a->body, not_computed[i].key);
        bool number = v && v->type == JSON_NUMBER;
        bool neutral = not_computed[i].neutral == NUMBER
                           ? number && v->number == not_computed[i].number
                       : not_computed[i].neutral == UP_TO
                           ? number && v->number <= not_computed[i].number
                           : not_computed[i].neutral == PARTS && v && is_empty(v);
        if (v && !neutral)
            return BAD(a,
                       "Field '%s' is known, but this server does not compute it. Leave it "
                       "out.",
                       not_computed[i].key);
    }
    return true;
}

/* Fields that choose by a word; those that ask for nothing else than what is done may stand
 * there. */
static bool check_words(const asking *a)
{
    static const struct {
        const char *key, *words[2], *why;
    } known[] = {
        {"tool_choice", {"none", "auto"}, "takes \"none\" or \"auto\": this server calls no tools"},
        {"function_call",
         {"none", "auto"},
         "takes \"none\" or \"auto\": this server calls no tools"},
        {"reasoning_format",
         {"none", "auto"},
         "takes \"none\" or \"auto\": what a model thinks stays in its text"},
        {"enable_thinking",
         {NULL, NULL},
         "is not computed by this server: where the model's template knows it, send it in "
         "'chat_template_kwargs'"},
        {"thinking",
         {NULL, NULL},
         "is not computed by this server: what the model's template knows of it, send in "
         "'chat_template_kwargs'"},
        {"verbosity", {"medium", NULL}, "takes \"medium\": this server does not compute it"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const json_value *v = json_member(a->body, known[i].key);
        bool good = !v;
        for (int w = 0; w < 2 && known[i].words[w] && !good; w++)
            good = v->type == JSON_STRING && strcmp(v->text, known[i].words[w]) == 0;
        if (!good)
            return BAD(a, "Field '%s' %s.", known[i].key, known[i].why);
    }
    return true;
}

static bool check_unsupported(const asking *a)
{
    if (!check_values(a) || !check_words(a))
        return false;
    const json_value *modalities = json_member(a->body, "modalities"),
                     *one = modalities && modalities->type == JSON_ARRAY ? modalities->first : NULL;
    if (modalities &&
        (!one || modalities->n != 1 || one->type != JSON_STRING || strcmp(one->text, "text") != 0))
        return BAD(a, "Field 'modalities' takes [\"text\"]: this server writes nothing else.");
    return true;
}

/* Any name: there is one model, and the answer has its name. */
static bool check_model(const asking *a)
{
    const json_value *v = json_member(a->body, "model");
    return !v || v->type == JSON_STRING || BAD(a, "Field 'model' takes a text.");
}

/* ---- Stops and biases ---- */

static bool add_stop(const asking *a, task *t, const json_value *v, size_t *n_used)
{
    if (v->type != JSON_STRING)
        return BAD(a, "Field 'stop' takes a text, or an array of texts.");
    if (v->n == 0)
        return true;
    if (memchr(v->text, 0, v->n))
        return BAD(a, "A stop text must not hold a NUL.");
    if (t->stops.n == TASK_MOST_STOPS || v->n + 1 > sizeof t->stops.text - *n_used)
        return BAD(a, "Field 'stop' takes up to %d texts of together %d bytes.", TASK_MOST_STOPS,
                   TASK_STOP_BYTES);
    memcpy(t->stops.text + *n_used, v->text, v->n + 1);
    t->stops.of[t->stops.n++] = t->stops.text + *n_used;
    *n_used += v->n + 1;
    return true;
}

static bool get_stops(const asking *a, task *t)
{
    const json_value *v = json_member(a->body, "stop");
    size_t n_used = 0;
    if (!v)
        return true;
    if (v->type != JSON_ARRAY)
        return add_stop(a, t, v, &n_used);
    for (const json_value *one = v->first; one; one = one->next)
        if (!add_stop(a, t, one, &n_used))
            return false;
    return true;
}

static bool add_bias(const asking *a, task *t, int32_t id, const json_value *bias)
{
    bool number = bias && bias->type == JSON_NUMBER;
    if (!number && !(bias && bias->type == JSON_FALSE))
        return BAD(a, "A bias in 'logit_bias' is a number, or false for \"never\".");
    if (t->biases.n == TASK_MOST_BIASES)
        return BAD(a, "Field 'logit_bias' takes up to %d biases.", TASK_MOST_BIASES);
    t->biases.of[t->biases.n++] = (drey_bias){id, number ? (float)bias->number : -INFINITY};
    return true;
}

/* A token by its id, as a number or in digits, or the tokens of a text. */
static bool bias_tokens(const asking *a, task *t, const char *text, size_t n, double number,
                        const json_value *bias)
{
    drey_model_info info;
    drey_model_describe(a->options->model, &info);
    char *end = NULL;
    if (text && n > 0 && n < 12 && strspn(text, "0123456789") == n)
        number = strtod(text, &end);
    if (!text || end) {
        if (number < 0 || number >= info.n_vocab || number != floor(number))
            return BAD(a,
                       "Field 'logit_bias' names a token that the model has not: its ids "
                       "are 0 to %d.",
                       info.n_vocab - 1);
        return add_bias(a, t, (int32_t)number, bias);
    }
    int32_t ids[64];
    size_t n_ids = 0;
    drey_error err = {0};
    if (drey_tokenize(a->options->model, text, n, 0, ids, 64, &n_ids, &err) != DREY_OK)
        return BAD(a, "A text in 'logit_bias' is too long.");
    for (size_t i = 0; i < n_ids; i++)
        if (!add_bias(a, t, ids[i], bias))
            return false;
    return true;
}

static bool get_biases(const asking *a, task *t)
{
    const json_value *v = json_member(a->body, "logit_bias");
    if (!v)
        return true;
    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
        return BAD(a, "Field 'logit_bias' takes an object or an array.");
    for (const json_value *one = v->first; one; one = one->next) {
        if (v->type == JSON_OBJECT) {
            if (!bias_tokens(a, t, one->key, one->n_key, 0, one))
                return false;
            continue;
        }
        const json_value *what = one->type == JSON_ARRAY ? one->first : NULL;
        if (!what || one->n != 2 || (what->type != JSON_STRING && what->type != JSON_NUMBER))
            return BAD(a, "Field 'logit_bias' takes pairs of a token and its bias.");
        bool text = what->type == JSON_STRING;
        if (!bias_tokens(a, t, text ? what->text : NULL, text ? what->n : 0,
                         text ? 0 : what->number, what->next))
            return false;
    }
    return true;
}

/* ---- Prompts ---- */

static bool ask_ids(const json_value *text, int flags, const serve_options *o, int32_t *ids,
                    size_t capacity, size_t *n_ids, refusal *r)
{
    drey_error err = {0};
    size_t n = 0;
    drey_status status =
        drey_tokenize(o->model, text->text, text->n, flags, ids, capacity, &n, &err);
    *n_ids = n;
    if (n > capacity)
        return too_long(r, n, o->n_context);
    return status == DREY_OK || refuse_error(r, &err);
}

static bool add_text(const asking *a, task *t, const json_value *text, bool first)
{
    size_t n = 0, room = (size_t)a->options->n_context - t->n_ids;
    int flags = DREY_TOKENIZE_SPECIAL | (first ? DREY_TOKENIZE_BOS : 0);
    bool good = ask_ids(text, flags, a->options, t->ids + t->n_ids, room, &n, a->refusal);
    t->n_ids += n;
    return good;
}

static bool add_id(const asking *a, task *t, const json_value *id)
{
    drey_model_info info;
    drey_model_describe(a->options->model, &info);
    if (!id->is_integer || id->integer < 0 || id->integer >= info.n_vocab)
        return BAD(a, "The prompt holds a token that the model has not: its ids are 0 to %d.",
                   info.n_vocab - 1);
    if (t->n_ids >= (size_t)a->options->n_context)
        return too_long(a->refusal, t->n_ids + 1, a->options->n_context);
    t->ids[t->n_ids++] = (int32_t)id->integer;
    return true;
}

/* Texts and ids one after the other. */
static bool add_mixed(const asking *a, task *t, const json_value *list)
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

static bool get_prompt(const asking *a, task *t)
{
    const json_value *v = json_member(a->body, "prompt");
    if (json_member(a->body, "reasoning_effort"))
        return BAD(a, "Field 'reasoning_effort' is for chats: a prompt has no template.");
    if (!v)
        return BAD(a, "Field 'prompt' is missing.");
    if (v->type == JSON_STRING)
        return add_text(a, t, v, true);
    if (v->type != JSON_ARRAY)
        return BAD(a, "Field 'prompt' takes a text, or an array of texts and token ids.");
    bool lists = v->first && v->first->type == JSON_ARRAY, texts = v->n > 1;
    for (const json_value *one = v->first; one; one = one->next)
        texts = texts && one->type == JSON_STRING;
    if (texts || (lists && v->n > 1))
        return BAD(a, "Field 'prompt' holds %u prompts: send a request for each.", v->n);
    return add_mixed(a, t, lists ? v->first : v);
}

/* ---- Chats ---- */

/* The text of a message: a text, or parts of type "text", which are put together where they stand,
 * a newline between them. */
static bool message_text(const asking *a, json_value *message, const char **text)
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

/* A message with its content as text; what else it holds stays. */
static bool write_message(const asking *a, json_value *message, text_out *out)
{
    const json_value *role = json_member(message, "role");
    const char *text = "";
    if (!role || role->type != JSON_STRING)
        return BAD(a, "A message is an object with a 'role'.");
    if (!message_text(a, message, &text))
        return false;
    out_text(out, "{\"content\":");
    out_string(out, text, strlen(text));
    for (const json_value *one = message->first; one; one = one->next)
        if (strcmp(one->key, "content") != 0) {
            out_text(out, ",");
            out_string(out, one->key, one->n_key);
            out_text(out, ":");
            out_value(out, one);
        }
    out_text(out, "}");
    return true;
}

/* A conversation as the library takes it, in `out`, texts with a NUL after each. */
typedef struct conversation {
    drey_chat_request request;
    const char *begun; /* of the answer, which continues from there; NULL: nothing is */
} conversation;

static const char *end_text(text_out *out, size_t from)
{
    out_bytes(out, "", 1);
    return out->text + from;
}

/* The last message is the beginning of the answer: if it is the assistant's, and nothing else is
 * asked for. */
static bool take_begun(const asking *a, json_value *messages, conversation *c, json_value **last)
{
    for (json_value *m = messages->first; m; m = m->next)
        *last = m;
    bool continues = json_member_is(*last, "role", "assistant") &&
                     !json_member(a->body, "add_generation_prompt") &&
                     !json_member(*last, "tool_calls");
    if (!get_bool(a, "continue_final_message", &continues))
        return false;
    if (!continues) {
        *last = NULL;
        return true;
    }
    if (!json_member_is(*last, "role", "assistant"))
        return BAD(a, "Field 'continue_final_message' wants a last message of the assistant.");
    return message_text(a, *last, &c->begun);
}

/* Of the template. What 'chat_template_kwargs' says counts. */
static void put_variables(const json_value *variables, const json_value *effort, text_out *out)
{
    const char *comma = "";
    out_text(out, "{");
    if (effort && !json_member(variables, "reasoning_effort")) {
        out_text(out, "\"reasoning_effort\":");
        out_value(out, effort);
        comma = ",";
    }
    for (const json_value *one = variables ? variables->first : NULL; one; one = one->next) {
        out_text(out, comma);
        out_string(out, one->key, one->n_key);
        out_text(out, ":");
        out_value(out, one);
        comma = ",";
    }
    out_text(out, "}");
}

static bool get_conversation(const asking *a, text_out *out, conversation *c)
{
    json_value *messages = json_member(a->body, "messages"), *last = NULL;
    const json_value *variables = json_member(a->body, "chat_template_kwargs"),
                     *effort = json_member(a->body, "reasoning_effort");
    bool answers = true;
    *c = (conversation){.begun = NULL};
    drey_chat_request_init(&c->request);
    if (!messages || messages->type != JSON_ARRAY || messages->n == 0)
        return BAD(a, "Field 'messages' takes an array of messages.");
    if (variables && variables->type != JSON_OBJECT)
        return BAD(a, "Field 'chat_template_kwargs' takes an object.");
    if (effort && effort->type != JSON_STRING)
        return BAD(a, "Field 'reasoning_effort' takes a word, which the template gets.");
    if (!take_begun(a, messages, c, &last) || !get_bool(a, "add_generation_prompt", &answers))
        return false;
    c->request.no_generation_prompt = !answers && !c->begun; /* what is begun follows it */
    out->n = 0;
    out->full = false;
    out_text(out, "[");
    for (json_value *m = messages->first; m && m != last; m = m->next) {
        out_text(out, m == messages->first ? "" : ",");
        if (!write_message(a, m, out))
            return false;
    }
    out_text(out, "]");
    c->request.messages_json = end_text(out, 0);
    size_t from = out->n;
    if (variables || effort) {
        put_variables(variables, effort, out);
        c->request.variables_json = end_text(out, from);
    }
    return !out->full || BAD(a, "The conversation is too long.");
}

static bool get_chat(const asking *a, task *t, text_out *scratch)
{
    conversation c;
    drey_error err = {0};
    size_t room = (size_t)a->options->n_context, n_more = 0;
    if (!get_conversation(a, scratch, &c))
        return false;
    drey_status status = drey_chat_encode(a->options->model, &c.request, DREY_TOKENIZE_BOS, t->ids,
                                          room, &t->n_ids, &err);
    if (status == DREY_OK && c.begun) {
        status = drey_tokenize(a->options->model, c.begun, strlen(c.begun), 0, t->ids + t->n_ids,
                               room - t->n_ids, &n_more, &err);
        t->n_ids += n_more;
    }
    if (t->n_ids > room)
        return too_long(a->refusal, t->n_ids, a->options->n_context);
    return status == DREY_OK || refuse_error(a->refusal, &err);
}

bool ask_template(json_value *body, const serve_options *o, text_out *scratch, char **text,
                  size_t *n_bytes, const char **begun, refusal *r)
{
    const asking a = {.body = body, .options = o, .refusal = r};
    conversation c;
    drey_error err = {0};
    r->status = 0;
    if (!check_unsupported(&a) || !get_conversation(&a, scratch, &c))
        return false;
    *begun = c.begun ? c.begun : "";
    return drey_chat_render(o->model, &c.request, text, n_bytes, &err) == DREY_OK ||
           refuse_error(r, &err);
}

/* ---- The task ---- */

static bool get_sampling(const asking *a, task *t)
{
    drey_sampling *s = &t->sampling;
    *s = a->options->sampling;
    int32_t top_k = s->top_k;
    bool has_seed = false;
    if (!get_real(a, "temperature", 0, 100, &s->temperature) ||
        !get_real(a, "top_p", 0, 1, &s->top_p) || !get_real(a, "min_p", 0, 1, &s->min_p) ||
        !get_count(a, "top_k", -1, INT32_MAX, &top_k) || !get_seed(a, t, &has_seed))
        return false;
    s->top_k = top_k > 0 ? top_k : 0;
    if (!has_seed && s->temperature > 0 && a->options->sampling.seed == 0) {
        uint32_t any = 0;
        if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any)
            any = (uint32_t)time(NULL);
        s->seed = any;
    } else if (!has_seed) {
        s->seed = a->options->sampling.seed;
    }
    return true;
}

/* Of the names of the same thing the first that is there counts. -1: to the end; 0: the prompt
 * alone. */
static bool get_length(const asking *a, task *t)
{
    static const char *const names[] = {"max_completion_tokens", "max_tokens", "n_predict"};
    int32_t n = a->options->n_predict > 0 ? a->options->n_predict : -1;
    for (int i = 2; i >= 0; i--)
        if (!get_count(a, names[i], -1, INT32_MAX, &n))
            return false;
    t->n_predict = n >= 0 ? n : INT32_MAX;
    return true;
}

static bool get_logprobs(const asking *a, task *t)
{
    const json_value *v = json_member(a->body, "logprobs");
    int32_t n = -1, top = -1;
    if (v && v->type == JSON_NUMBER && !get_count(a, "logprobs", 0, DREY_MAX_TOP, &n))
        return false;
    if (v && v->type != JSON_NUMBER && !get_bool(a, "logprobs", &t->logprobs))
        return false;
    if (!get_count(a, "top_logprobs", 0, DREY_MAX_TOP, &top) ||
        !get_count(a, "n_probs", 0, DREY_MAX_TOP, t->kind == TASK_NATIVE ? &n : &top))
        return false;
    if (t->kind == TASK_CHAT && top > 0 && !t->logprobs)
        return BAD(a, "Field 'top_logprobs' needs 'logprobs': true.");
    t->logprobs = t->logprobs || n > 0 || (n == 0 && t->kind == TASK_COMPLETION);
    t->n_top = n > 0 ? n : top > 0 && t->logprobs ? top : 0;
    return true;
}

static bool get_flags(const asking *a, task *t)
{
    const json_value *options = json_member(a->body, "stream_options");
    const asking of_stream = {.body = options, .options = a->options, .refusal = a->refusal};
    t->keep = t->speculative = true;
    t->seat = -1;
    if (options && options->type != JSON_OBJECT)
        return BAD(a, "Field 'stream_options' takes an object.");
    return get_bool(a, "stream", &t->stream) && get_bool(&of_stream, "include_usage", &t->usage) &&
           get_bool(a, "return_progress", &t->progress) &&
           get_bool(a, "timings_per_token", &t->timings) &&
           get_bool(a, "drey_provisional", &t->provisional) &&
           get_bool(a, "return_tokens", &t->tokens) && get_bool(a, "ignore_eos", &t->ignore_eos) &&
           get_bool(a, "cache_prompt", &t->keep) && get_bool(a, "speculative", &t->speculative) &&
           get_count(a, "id_slot", -1, a->options->n_sessions - 1, &t->seat);
}

/* An answer that does not stream is kept until it is whole, all log-probabilities with it. */
static bool check_room(const asking *a, task *t)
{
    size_t room = t->jobs[0]->capacity / 2;
    size_t each = sizeof(record_head) + (size_t)(1 + t->n_top) * sizeof(drey_logprob);
    size_t left = (size_t)a->options->n_context - t->n_ids;
    size_t n = (size_t)t->n_predict < left ? (size_t)t->n_predict : left;
    if (!t->logprobs || t->stream || n <= room / each)
        return true;
    return refuse_with(
        a->refusal, 400,
        "Log-probabilities of %zu tokens, %d at each, are more than an answer keeps: "
        "ask for at most %zu tokens, or with 'stream': true.",
        n, 1 + t->n_top, room / each);
}

bool ask_choices(const json_value *body, const serve_options *o, int32_t *n, refusal *r)
{
    const asking a = {.body = body, .options = o, .refusal = r};
    int32_t most = o->n_sessions < TASK_MOST_CHOICES ? o->n_sessions : TASK_MOST_CHOICES;
    *n = 1;
    return get_count(&a, "n", 1, most, n);
}

static void make_id(task *t)
{
    static const char *const prefix[] = {"chatcmpl-", "cmpl-", "cmpl-"};
    uint64_t random[2] = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = (uint64_t)(serve_clock_s() * 1e9);
    snprintf(t->id.text, sizeof t->id.text, "%s%012llx%012llx", prefix[t->kind],
             (unsigned long long)(random[0] >> 16), (unsigned long long)(random[1] >> 16));
    t->id.created = (int64_t)time(NULL);
}

static bool fill_task(task *t, task_kind kind, json_value *body, const serve_options *o,
                      text_out *scratch, refusal *r)
{
    const asking a = {.body = body, .options = o, .refusal = r};
    r->status = 0;
    t->kind = kind;
    make_id(t);
    if (kind == TASK_NATIVE && t->n_choices > 1)
        return refuse_with(r, 400,
                           "Field 'n' takes 1 here: an answer of /completion has one text.");
    if (!check_model(&a) || !check_unsupported(&a) || !get_flags(&a, t) || !get_sampling(&a, t) ||
        !get_length(&a, t) || !get_logprobs(&a, t) || !get_stops(&a, t) || !get_biases(&a, t))
        return false;
    if (!ask_grammar(t, body, o, r))
        return false;
    if (!(kind == TASK_CHAT ? get_chat(&a, t, scratch) : get_prompt(&a, t)))
        return false;
    if (t->n_ids == 0)
        return refuse_with(r, 400, "The prompt is empty: send at least one token.");
    if (t->n_ids >= (size_t)o->n_context)
        return too_long(r, t->n_ids, o->n_context);
    return check_room(&a, t);
}

bool ask_task(task *t, task_kind kind, json_value *body, const serve_options *o, text_out *scratch,
              refusal *r)
{
    bool good = fill_task(t, kind, body, o, scratch, r);
    if (!good && r->n_ctx && kind != TASK_NATIVE)
        r->code = "context_length_exceeded";
    return good;
}
