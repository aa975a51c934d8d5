/* Fields and refusals: see parse_fields.h. */
#include "serve/parse/parse_fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* A value as short as it can be said. */
static void put_value(text_out *out, char size, char kind, bool is_field, va_list *values)
{
    if (kind == 's') {
        const char *text = va_arg(*values, const char *);
        out_text(out, is_field ? text : "...");
    } else if (kind == 'f' || kind == 'g')
        out_format(out, "%.4g", va_arg(*values, double));
    else if (size == 'z')
        out_format(out, "%zu", va_arg(*values, size_t));
    else if (size == 'l')
        out_format(out, "%lld", va_arg(*values, long long));
    else
        out_format(out, "%d", va_arg(*values, int));
}

static void put_fixed(text_out *out, const char *format, va_list *values)
{
    static const char field[] = "Field '";
    const size_t n_field = sizeof field - 1;
    for (const char *at = format; *at;) {
        size_t n = strcspn(at, "%");
        out_bytes(out, at, n);
        at += n;
        if (!*at)
            break;
        bool is_field =
            (size_t)(at - format) >= n_field && memcmp(at - n_field, field, n_field) == 0;
        at += 1 + strspn(at + 1, "0123456789.");
        if (*at == '*') {
            va_arg(*values, int);
            at++;
            is_field = false;
        }
        const char size = *at;
        at += strspn(at, "lz");
        put_value(out, size, *at++, is_field, values);
    }
}

bool refuse_with(refusal *r, int status, const char *format, ...)
{
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    *r = (refusal){.status = status, .type = type_of(status)};
    vsnprintf(r->message, sizeof r->message, format, values);
    text_out fixed = {.text = r->fixed, .capacity = sizeof r->fixed - 1};
    if (strcmp(format, "%s") != 0) /* else it would say nothing */
        put_fixed(&fixed, format, &again);
    r->fixed[fixed.n] = '\0';
    va_end(again);
    va_end(values);
    return false;
}

bool refuse_fixed(refusal *r, int status, const char *sentence)
{
    refuse_with(r, status, "%s", sentence);
    snprintf(r->fixed, sizeof r->fixed, "%s", sentence);
    return false;
}

bool refuse_error(refusal *r, const drey_error *err)
{
    bool asked_badly = err->code == DREY_ERR_USAGE || err->code == DREY_ERR_CONTEXT ||
                       err->code == DREY_ERR_UNSUPPORTED;
    int status = err->code == DREY_ERR_MEMORY ? 503 : asked_badly ? 400 : 500;
    return refuse_with(r, status, "%s", err->message);
}

bool refuse_too_long(refusal *r, size_t n_ids, int32_t n_context)
{
    refuse_with(
        r, 400,
        "The prompt is too long: it has %zu tokens and so exceeds the available context size "
        "of %d (one of them to write). Nothing is cut: send a shorter prompt, or start the "
        "server with a larger context.",
        n_ids, n_context);
    r->type = "exceed_context_size_error";
    r->n_prompt_tokens = (int64_t)n_ids;
    r->n_ctx = n_context;
    return false;
}

/* ---- Members of the right kind ---- */

bool parse_lists(const char *keys, const json_value *member)
{
    char word[64];
    int n = snprintf(word, sizeof word, " %s ", member->key);
    return n < (int)sizeof word && strstr(keys, word);
}

bool parse_real(const parsing *a, const char *key, double least, double most, float *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    if (v->type != JSON_NUMBER || v->number < least || v->number > most)
        return BAD(a, "Field '%s' takes a number from %g to %g.", key, least, most);
    *out = (float)v->number;
    return true;
}

bool parse_count(const parsing *a, const char *key, int64_t least, int64_t most, int32_t *out)
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

bool parse_bool(const parsing *a, const char *key, bool *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        return BAD(a, "Field '%s' takes true or false.", key);
    *out = v->type == JSON_TRUE;
    return true;
}

bool parse_flag(const json_value *body, const char *key, bool *out, refusal *r)
{
    const parsing a = {.body = body, .refusal = r};
    return parse_bool(&a, key, out);
}

static bool add_text(const parsing *a, const char *key, const json_value *v, text_list *out)
{
    if (v->type != JSON_STRING || memchr(v->text, 0, v->n))
        return BAD(a, "Field '%s' takes a text without NUL, or an array of such.", key);
    if (v->n == 0)
        return true;
    if (out->n == out->most || v->n + 1 > out->n_bytes - out->n_used)
        return BAD(a, "Field '%s' takes up to %zu texts of together %zu bytes.", key, out->most,
                   out->n_bytes);
    out->of[out->n++] = memcpy(out->text + out->n_used, v->text, v->n + 1);
    out->n_used += v->n + 1;
    return true;
}

bool parse_texts(const parsing *a, const char *key, text_list *out)
{
    const json_value *v = json_member(a->body, key);
    if (!v)
        return true;
    if (v->type != JSON_ARRAY)
        return add_text(a, key, v, out);
    for (const json_value *one = v->first; one; one = one->next)
        if (!add_text(a, key, one, out))
            return false;
    return true;
}

/* ---- What an answer is expected to repeat ---- */

/* OpenAI's 'prediction', from which lookup drafts. Its tokens come after the prompt's, as far as
 * the context has room. */
static bool add_predicted(const parsing *a, request *t, const json_value *text)
{
    drey_error err = {0};
    size_t n = 0, used = t->prompts.n_ids + t->prompts.n_predicted,
           room = (size_t)a->options->n_context - used;
    drey_status status = drey_tokenize(a->options->model, text->text, text->n, 0,
                                       t->prompts.ids + used, room, &n, &err);
    t->prompts.n_predicted += n < room ? n : room;
    return n > room || status == DREY_OK || refuse_error(a->refusal, &err);
}

/* A part of a content. */
static const json_value *text_of(const json_value *part)
{
    bool good = part->type == JSON_OBJECT && json_member_is(part, "type", "text");
    const json_value *text = good ? json_member(part, "text") : NULL;
    return text && text->type == JSON_STRING ? text : NULL;
}

bool parse_prediction(const parsing *a, request *t)
{
    const json_value *v = json_member(a->body, "prediction");
    if (!v)
        return true;
    const json_value *content = v->type == JSON_OBJECT ? json_member(v, "content") : NULL;
    if (content && json_member_is(v, "type", "content") && content->type == JSON_STRING)
        return add_predicted(a, t, content);
    if (!content || !json_member_is(v, "type", "content") || content->type != JSON_ARRAY)
        return BAD(a,
                   "Field 'prediction' takes {\"type\": \"content\", \"content\": text, or parts "
                   "of the type \"text\"}.");
    for (const json_value *part = content->first; part; part = part->next) {
        const json_value *text = text_of(part);
        if (!text)
            return BAD(a, "Parts in 'prediction' take {\"type\": \"text\", \"text\": ...}.");
        if (!add_predicted(a, t, text))
            return false;
    }
    return true;
}
