/* Requests become requests: see parse_request.h. A key that is null is absent; one that nobody
 * knows is ignored; one that is known and would change the answer, but is not computed here, is
 * refused. */
#include "serve/parse/parse_fields.h"
#include "serve/parse/parse_grammar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- What is known and not computed ---- */

static bool is_empty(const json_value *v)
{
    bool has_parts = v->type == JSON_STRING || v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    return v->type == JSON_FALSE || (has_parts && v->n == 0);
}

/* Numbers and parts that would change the text: a value that asks for nothing is accepted. */
enum {
    NUMBER, /* the value itself */
    UP_TO,  /* the value or less */
    PARTS,  /* nothing in it, or false */
    SET,    /* true */
    ANY     /* none */
};
static const struct {
    int neutral;
    double number;
    const char *keys; /* keys of OpenAI, other servers and front ends: parse_lists */
} not_computed[] = {
    {NUMBER, 1,
     " best_of typical_p n_cmpl length_penalty num_beams encoder_repetition_penalty "
     "guidance_scale tfs tfs_z typical "},
    {PARTS, 0,
     " functions audio grammar_lazy lora image_data chat_template documents "
     "use_beam_search bad_words allowed_token_ids stop_token_ids "
     "include_stop_str_in_output logits_processors return_tokens_as_token_ids "
     "return_token_ids prompt_embeds watermark details decoder_input_details "
     "return_full_text adapter_id negative_prompt plugins dynamic_temperature "
     "ban_eos_token banned_tokens banned_strings custom_token_bans grammar_string "
     "format options "},
    {ANY, 0, " web_search_options truncate_prompt_tokens prompt_logprobs "},
    {NUMBER, 0,
     " mirostat dynatemp_range xtc_probability min_keep min_tokens penalty_alpha "
     "min_length min_new_tokens no_repeat_ngram_size epsilon_cutoff eta_cutoff top_a "
     "smoothing_factor mirostat_mode "},
    {UP_TO, 0, " top_n_sigma top_n_tokens nsigma "},
    {UP_TO, -0.001, " adaptive_target "},
    {UP_TO, -1, " reasoning_budget_tokens thinking_budget_tokens thinking_token_budget "},
    {SET, 0, " skip_special_tokens include_reasoning add_bos_token "}};

/* Returns whether the value asks for nothing. */
static bool is_neutral(const json_value *v, int neutral, double number)
{
    switch (neutral) {
    case NUMBER:
        return v->type == JSON_NUMBER && v->number == number;
    case UP_TO:
        return v->type == JSON_NUMBER && v->number <= number;
    case PARTS:
        return is_empty(v);
    case SET:
        return v->type == JSON_TRUE;
    default:
        return false;
    }
}

/* Front ends send the names of several servers: of those, one that is computed is enough. */
static bool is_said_again(const parsing *a, const char *key)
{
    static const char *const pairs[][2] = {{"grammar_string", "grammar"},
                                           {"ban_eos_token", "ignore_eos"},
                                           {"custom_token_bans", "logit_bias"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(key, pairs[i][0]) == 0)
            return json_member(a->body, pairs[i][1]);
    return false;
}

static bool check_values(const parsing *a)
{
    for (const json_value *v = a->body->first; v; v = v->next)
        for (size_t i = 0; i < sizeof not_computed / sizeof *not_computed; i++)
            if (v->type != JSON_NULL && parse_lists(not_computed[i].keys, v) &&
                !is_said_again(a, v->key) &&
                !is_neutral(v, not_computed[i].neutral, not_computed[i].number))
                return BAD(a,
                           "Field '%s' is known, but this server does not compute it. Leave it "
                           "out.",
                           v->key);
    return true;
}

/* Fields that choose by a word: those words are accepted that ask for nothing else than what is
 * done. */
static bool check_words(const parsing *a)
{
    static const struct {
        const char *key, *words[2], *why;
    } known[] = {
        {"function_call",
         {"none", "auto"},
         "takes \"none\" or \"auto\": it is the older form, send 'tools' and 'tool_choice'"},
        {"thinking",
         {NULL, NULL},
         "is not computed by this server: what the model's template knows of it, send in "
         "'chat_template_kwargs'"},
        {"reasoning",
         {NULL, NULL},
         "is not computed here: send 'reasoning_effort', or 'enable_thinking'"},
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

bool parse_supported(const parsing *a)
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
static bool check_model(const parsing *a)
{
    const json_value *v = json_member(a->body, "model");
    return !v || v->type == JSON_STRING || BAD(a, "Field 'model' takes a text.");
}

/* ---- Stops and biases ---- */

/* Reads the first that is there of several names of the same field. */
static bool get_stops(const parsing *a, request *t)
{
    static const char *const names[] = {"stop", "stop_sequences", "stopping_strings",
                                        "stop_sequence"};
    size_t i = 0;
    text_list stops = TEXT_LIST(t->stops.text, t->stops.of);
    while (i < 3 && !json_member(a->body, names[i]))
        i++;
    bool good = parse_texts(a, names[i], &stops);
    t->stops.n = stops.n;
    return good;
}

static bool get_fields(const parsing *a, request *t)
{
    text_list fields = TEXT_LIST(t->fields.text, t->fields.of);
    if (t->kind != REQUEST_NATIVE)
        return true;
    bool good = parse_texts(a, "response_fields", &fields);
    t->fields.n = fields.n;
    t->tokens.ids = t->tokens.ids || t->stream; /* each event has its tokens */
    return good;
}

static bool add_bias(const parsing *a, request *t, int32_t id, const json_value *bias)
{
    bool number = bias && bias->type == JSON_NUMBER;
    if (!number && !(bias && bias->type == JSON_FALSE))
        return BAD(a, "A bias in 'logit_bias' is a number, or false for \"never\".");
    if (t->sampling.n_biases == REQUEST_MOST_BIASES)
        return BAD(a, "Field 'logit_bias' takes up to %d biases.", REQUEST_MOST_BIASES);
    t->sampling.biases[t->sampling.n_biases++] =
        (drey_bias){id, number ? (float)bias->number : -INFINITY};
    return true;
}

/* A token by its id, as a number or in digits, or the tokens of a text. */
static bool bias_tokens(const parsing *a, request *t, const char *text, size_t n, double number,
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

static bool get_biases(const parsing *a, request *t)
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

/* ---- The request ---- */

/* Reads the first that is there of several names of the same field. -1: to the end; 0: the prompt
 * alone. */
static bool get_length(const parsing *a, request *t)
{
    enum { N_NAMES = 4 };
    static const char *const names[N_NAMES] = {"max_completion_tokens", "max_tokens", "n_predict",
                                               "max_new_tokens"};
    int32_t n = a->options->n_predict > 0 ? a->options->n_predict : -1;
    for (int i = N_NAMES - 1; i >= 0; i--)
        if (!parse_count(a, names[i], -1, INT32_MAX, &n))
            return false;
    t->length.n_predict = n >= 0 ? n : INT32_MAX;
    return parse_count(a, "t_max_predict_ms", -1, INT32_MAX, &t->length.most_ms) &&
           parse_count(a, "n_indent", 0, INT32_MAX, &t->length.indent);
}

static bool get_logprobs(const parsing *a, request *t)
{
    const json_value *v = json_member(a->body, "logprobs");
    int32_t n = -1, top = -1;
    if (v && v->type == JSON_NUMBER && !parse_count(a, "logprobs", 0, DREY_MAX_TOP, &n))
        return false;
    if (v && v->type != JSON_NUMBER && !parse_bool(a, "logprobs", &t->tokens.logprobs))
        return false;
    if (!parse_count(a, "top_logprobs", 0, DREY_MAX_TOP, &top) ||
        !parse_count(a, "n_probs", 0, DREY_MAX_TOP, t->kind == REQUEST_NATIVE ? &n : &top))
        return false;
    if (!parse_bool(a, "post_sampling_probs", &t->tokens.filtered))
        return false;
    if (t->tokens.filtered && t->kind != REQUEST_NATIVE)
        return BAD(a, "Field 'post_sampling_probs' is for /completion.");
    if (t->kind == REQUEST_CHAT && top > 0 && !t->tokens.logprobs)
        return BAD(a, "Field 'top_logprobs' needs 'logprobs': true.");
    t->tokens.logprobs = t->tokens.logprobs || n > 0 || (n == 0 && t->kind == REQUEST_COMPLETION);
    t->tokens.n_top = n > 0 ? n : top > 0 && t->tokens.logprobs ? top : 0;
    return true;
}

static bool get_echo(const parsing *a, request *t)
{
    return parse_bool(a, "echo", &t->prompts.echo) &&
           (!t->prompts.echo || t->kind == REQUEST_COMPLETION ||
            BAD(a, "Field 'echo' is for /v1/completions: here a prompt is not repeated."));
}

static bool get_flags(const parsing *a, request *t)
{
    const json_value *options = json_member(a->body, "stream_options");
    const parsing of_stream = {.body = options, .options = a->options, .refusal = a->refusal};
    t->session.keep = t->session.speculative = true;
    t->session.wanted = -1;
    if (options && options->type != JSON_OBJECT)
        return BAD(a, "Field 'stream_options' takes an object.");
    return parse_bool(a, "stream", &t->stream) &&
           parse_bool(&of_stream, "include_usage", &t->events.usage) &&
           parse_bool(a, "return_progress", &t->events.progress) &&
           parse_bool(a, "timings_per_token", &t->events.timings) &&
           parse_bool(a, "drey_provisional", &t->events.provisional) &&
           parse_bool(a, "return_tokens", &t->tokens.ids) &&
           parse_bool(a, "verbose", &t->events.verbose) &&
           parse_bool(a, "ignore_eos", &t->length.ignore_eos) &&
           parse_bool(a, "cache_prompt", &t->session.keep) &&
           parse_bool(a, "speculative", &t->session.speculative) &&
           parse_count(a, "id_slot", -1, a->options->n_sessions - 1, &t->session.wanted);
}

/* An answer that does not stream is kept until it is whole, all log-probabilities with it; those of
 * an echoed prompt are there at once. */
static bool check_room(const parsing *a, request *t)
{
    size_t room = t->sequences[0]->capacity / 2;
    size_t each = sizeof(record_head) + (size_t)(1 + t->tokens.n_top) * sizeof(drey_logprob);
    size_t shortest = t->prompts.n_ids;
    for (int32_t i = 0; i < t->n_choices; i++)
        shortest = sequence_n_prompt(t->sequences[i]) < shortest
                       ? sequence_n_prompt(t->sequences[i])
                       : shortest;
    size_t left = (size_t)a->options->n_context - shortest;
    size_t n = (size_t)t->length.n_predict < left ? (size_t)t->length.n_predict : left;
    n = (t->stream ? 0 : n) + (t->prompts.echo ? t->prompts.n_ids : 0);
    if (!t->tokens.logprobs || n <= room / each)
        return true;
    return refuse_with(
        a->refusal, 400,
        "Log-probabilities of %zu tokens, %d at each, are more than an answer keeps: "
        "ask for at most %zu tokens%s.",
        n, 1 + t->tokens.n_top, room / each,
        t->prompts.echo ? ", with those of the prompt" : ", or with 'stream': true");
}

bool parse_choices(const json_value *body, request_kind kind, const serve_options *o, int32_t *n,
                   refusal *r)
{
    const parsing a = {.body = body, .options = o, .refusal = r};
    int32_t most = o->n_sessions < REQUEST_MOST_CHOICES ? o->n_sessions : REQUEST_MOST_CHOICES;
    int32_t n_prompts = kind == REQUEST_CHAT ? 1 : parse_n_prompts(body);
    *n = 1;
    if (!parse_count(&a, "n", 1, most, n))
        return false;
    if (n_prompts > REQUEST_MOST_CHOICES / *n)
        return BAD(&a, "Field 'prompt' holds %d prompts: one request is for up to %d texts.",
                   n_prompts, REQUEST_MOST_CHOICES);
    *n *= n_prompts;
    return true;
}

static bool fill_request(request *t, request_kind kind, json_value *body, const serve_options *o,
                         text_out *scratch, refusal *r)
{
    const parsing a = {.body = body, .options = o, .refusal = r};
    r->status = 0;
    t->kind = kind;
    if (kind == REQUEST_NATIVE && t->n_choices > parse_n_prompts(body))
        return refuse_with(r, 400,
                           "Field 'n' takes 1 here: an answer of /completion has one text.");
    if (!check_model(&a) || !parse_supported(&a) || !get_flags(&a, t) || !get_echo(&a, t) ||
        !parse_sampling(&a, t) || !get_length(&a, t) || !get_logprobs(&a, t) || !get_stops(&a, t) ||
        !get_fields(&a, t) || !get_biases(&a, t))
        return false;
    if (!parse_grammar(t, body, o, r))
        return false;
    if (!(kind == REQUEST_CHAT ? parse_chat(&a, t, scratch) : parse_prompts(&a, t)))
        return false;
    if (kind == REQUEST_CHAT)
        t->prompts.end[t->prompts.n++] = t->prompts.n_ids;
    if (t->prompts.n_ids == 0)
        return refuse_with(r, 400, "The prompt is empty: send at least one token.");
    if (t->prompts.n_ids >= (size_t)o->n_context)
        return refuse_too_long(r, t->prompts.n_ids, o->n_context);
    return parse_prediction(&a, t) && check_room(&a, t);
}

bool parse_request(request *t, request_kind kind, json_value *body, const serve_options *o,
                   text_out *scratch, refusal *r)
{
    bool good = fill_request(t, kind, body, o, scratch, r);
    if (!good && r->n_ctx && kind != REQUEST_NATIVE)
        r->code = "context_length_exceeded";
    return good;
}
