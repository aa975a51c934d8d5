/* Texts become vectors: see embeddings.h. */
#include "serve/api/embeddings.h"
#include "serve/answer/serializer.h"
#include "serve/parse/parse_fields.h"
#include "serve/admin.h"

#include <string.h>

/* ---- Requests ---- */

/* Vectors of these texts and ids of so many tokens share the memory of an answer. */
static bool check_room(const parsing *a, const request *t, size_t n_texts, size_t n_ids)
{
    drey_model_info info;
    drey_model_describe(a->options->model, &info);
    size_t n = admin_pooling(a->options) == DREY_POOLING_NONE ? n_ids : n_texts;
    return admin_vector_bytes(n, (size_t)info.n_embd) + n_ids * sizeof *t->prompts.ids <=
               t->sequences[0]->capacity ||
           BAD(a,
               "%zu vectors of %d numbers and %zu tokens are more than an answer keeps: send "
               "fewer or shorter texts at a time.",
               n, info.n_embd, n_ids);
}

/* Each text may be as long as the context: its ids are read alone, and then kept (admin_text). */
static bool add_input(const parsing *a, request *t, const json_value *v)
{
    const int32_t before = t->parts.n ? t->parts.end[t->parts.n - 1] : 0;
    size_t n;
    if (t->parts.n == REQUEST_MOST_MESSAGES)
        return BAD(a, "Field 'input' takes up to %d texts at a time.", REQUEST_MOST_MESSAGES);
    t->prompts.n_ids = 0;
    if (!parse_tokens(a, t, v))
        return false;
    if (t->prompts.n_ids == 0)
        return BAD(a, "Text %d of 'input' is empty: it has no token.", t->parts.n);
    if (!check_room(a, t, (size_t)t->parts.n + 1, (size_t)before + t->prompts.n_ids))
        return false;
    t->parts.end[t->parts.n++] = before + (int32_t)t->prompts.n_ids;
    memcpy(admin_text(t->sequences[0], t->parts.n - 1, &n), t->prompts.ids,
           t->prompts.n_ids * sizeof *t->prompts.ids);
    return true;
}

/* Texts alone, or arrays, are an input each; anything with an id among texts is one input. */
static bool get_inputs(const parsing *a, request *t, const json_value *v)
{
    bool ids = false, lists = false, good = v->type == JSON_STRING || v->type == JSON_ARRAY;
    for (const json_value *one = v->type == JSON_ARRAY ? v->first : NULL; one; one = one->next) {
        good = good &&
               (one->type == JSON_STRING || one->type == JSON_NUMBER || one->type == JSON_ARRAY);
        ids = ids || one->type == JSON_NUMBER;
        lists = lists || one->type == JSON_ARRAY;
    }
    if (!good || (ids && lists) || (v->type == JSON_ARRAY && v->n == 0))
        return BAD(a, "Field 'input' takes a text, an array of token ids, or an array of such.");
    if ((v->type == JSON_STRING || ids) && !add_input(a, t, v))
        return false;
    for (const json_value *one = t->parts.n ? NULL : v->first; one; one = one->next)
        if (!add_input(a, t, one))
            return false;
    t->prompts.n_ids = (size_t)t->parts.end[t->parts.n - 1];
    return true;
}

/* A vector's length is the model's: a part of it would be another model's vector. */
static bool check_dimensions(const parsing *a)
{
    drey_model_info info;
    int32_t n;
    drey_model_describe(a->options->model, &info);
    n = info.n_embd;
    if (!parse_count(a, "dimensions", 1, INT32_MAX, &n))
        return false;
    return n == info.n_embd || BAD(a, "Field 'dimensions' takes %d, the model's own.", info.n_embd);
}

static bool get_format(const parsing *a, request *t)
{
    const json_value *v = json_member(a->body, "encoding_format");
    t->admin.norm = 2;
    t->admin.base64 = v && v->type == JSON_STRING && strcmp(v->text, "base64") == 0;
    if (v && !t->admin.base64 && (v->type != JSON_STRING || strcmp(v->text, "float") != 0))
        return BAD(a, "Field 'encoding_format' takes \"float\" or \"base64\".");
    return check_dimensions(a) && parse_count(a, "embd_normalize", -1, 2, &t->admin.norm);
}

bool parse_embedding(request *t, const json_value *body, bool native, const serve_options *o,
                     refusal *r)
{
    const parsing a = {.body = body, .options = o, .refusal = r};
    const json_value *input = json_member(body, "input"), *content = json_member(body, "content");
    r->status = 0;
    t->kind = REQUEST_EMBED;
    t->session.wanted = -1;
    t->admin.native = native || !input;
    if (admin_pooling(o) == DREY_POOLING_RANK)
        return refuse_with(r, 501,
                           "The model compares texts, which this server does not compute: "
                           "start it with --pooling mean, cls or last.");
    if (!input && !content)
        return refuse_with(r, 400, "Field 'input' is missing: a text, or an array of texts.");
    if (!t->admin.native && admin_pooling(o) == DREY_POOLING_NONE)
        return refuse_with(r, 400,
                           "This endpoint has one vector for a text, and the server was "
                           "started with --pooling none: ask /embeddings.");
    return get_format(&a, t) && get_inputs(&a, t, input ? input : content);
}

/* ---- Answers ---- */

static void put_front(const answer *a, text_out *out)
{
    if (a->request->admin.native)
        out_json(out, "[");
    else
        out_json(out, "{object:'list',model:%s,usage:{prompt_tokens:%zu,total_tokens:%zu},data:[",
                 a->request->shared->options->name, a->request->prompts.n_ids,
                 a->request->prompts.n_ids);
}

static void put_base64(const record_vector *v, text_out *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = (const unsigned char *)v->numbers;
    size_t n = (size_t)v->n * sizeof(float);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t x = (uint32_t)b[i] << 16 | (uint32_t)(i + 1 < n ? b[i + 1] : 0) << 8 |
                     (i + 2 < n ? b[i + 2] : 0);
        char four[] = {digits[x >> 18], digits[x >> 12 & 63], i + 1 < n ? digits[x >> 6 & 63] : '=',
                       i + 2 < n ? digits[x & 63] : '='};
        out_bytes(out, four, 4);
    }
}

static void put_record(answer *a, const record *r, text_out *out)
{
    const request *t = a->request;
    const bool native = t->admin.native,
               all = admin_pooling(a->request->shared->options) == DREY_POOLING_NONE;
    record_vector v;
    memcpy(&v, r->bytes, r->n);
    int32_t n_rows = all ? t->parts.end[v.input] - (v.input ? t->parts.end[v.input - 1] : 0) : 1;
    if (v.from == 0 && v.row == 0)
        out_json(out, native ? "{index:%d,embedding:[" : "{object:'embedding',index:%d,embedding:",
                 v.input);
    if (v.from == 0)
        out_json(out, t->admin.base64 ? "'" : "[");
    if (t->admin.base64)
        put_base64(&v, out);
    for (int32_t i = 0; i < v.n && !t->admin.base64; i++)
        out_json(out, "%g", (double)v.numbers[i]);
    if (v.from + v.n < v.n_all)
        return;
    out_json(out, t->admin.base64 ? "\"" : "]");
    if (v.row + 1 == n_rows)
        out_json(out, native ? "]}" : "}");
}

static void put_close(answer *a, text_out *out)
{
    out_json(out, a->request->admin.native ? "]" : "]}");
}

const serializer answer_embedding = {
    .id_prefix = "embd-", .front = put_front, .record = put_record, .close = put_close};
