/* Vectors as ollama's /api/embed has them, and the older /api/embeddings, which takes one text. */
#include "serve/adapters/adapter.h"

#include <string.h>

bool ollama_vectors_request(const json_value *body, text_out *out, refusal *r)
{
    const json_value *prompt = json_member(body, "prompt");
    if (!prompt || prompt->type != JSON_STRING)
        return refuse_with(r, 400, "Field 'prompt' takes a text.");
    out_json(out, "{input:%p}", prompt);
    return true;
}

/* ---- Answers ---- */

static bool is_older(const answer *a)
{
    return a->serializer == &answer_ollama_vector;
}

static void put_front(const answer *a, text_out *out)
{
    if (is_older(a))
        out_json(out, "{embedding:");
    else
        out_json(out, "{model:%s,embeddings:[", a->request->shared->options->name);
}

static void put_record(answer *a, const record *r, text_out *out)
{
    record_vector v;
    (void)a;
    memcpy(&v, r->bytes, r->n);
    if (v.from == 0)
        out_json(out, "[");
    for (int32_t i = 0; i < v.n; i++)
        out_json(out, "%g", (double)v.numbers[i]);
    if (v.from + v.n == v.n_all)
        out_json(out, "]");
}

static void close_answer(answer *a, text_out *out)
{
    double s_all = serve_clock_s() - a->request->sequences[0]->queued_s;
    if (!is_older(a))
        out_json(out, "]total_duration:%lld,load_duration:0,prompt_eval_count:%zu",
                 (long long)(1e9 * s_all), a->request->prompts.n_ids);
    out_json(out, "}");
}

const serializer answer_ollama_vectors = {.id_prefix = "embd-",
                                          .front = put_front,
                                          .record = put_record,
                                          .close = close_answer,
                                          .refuse = ollama_refuse};
const serializer answer_ollama_vector = {.id_prefix = "embd-",
                                         .front = put_front,
                                         .record = put_record,
                                         .close = close_answer,
                                         .refuse = ollama_refuse};
