/* OpenAI's /v1/completions: see serializer.h. Its log-probabilities have the older form: lists of
 * the tokens, of their bytes (which OpenAI's lacks), of their log-probabilities, of the most likely
 * ones, and of where each begins. */
#include "serve/answer/serializer.h"
#include "serve/answer/answer_parts.h"

#include <math.h>

static const char object[] = "text_completion";

/* The most likely tokens as an object. */
static void put_top(const drey_model *m, const drey_logprob *all, int32_t n, text_out *out)
{
    if (isnan(all[0].logprob)) {
        out_json(out, "null");
        return;
    }
    out_json(out, "{");
    for (int32_t i = 1; i < n; i++) {
        part_token_text(m, all[i].id, out);
        out_json(out, ":%g", (double)(all[i].logprob >= -9999.0f ? all[i].logprob : -9999.0f));
    }
    out_json(out, "}");
}

/* ---- One value ---- */

enum { TEXT, TOKENS, BYTES, LOGPROBS, TOP, OFFSETS, END };

static void front(const answer *a, text_out *out)
{
    part_front(a->request, object, out);
    out_json(out, "choices:[");
}

static bool open(answer *a, text_out *out)
{
    static const char *const keys[] = {[BYTES] = "bytes",
                                       [LOGPROBS] = "token_logprobs",
                                       [TOP] = "top_logprobs",
                                       [OFFSETS] = "text_offset"};
    bool logprobs = a->request->tokens.logprobs;
    if (a->pass == TEXT) {
        out_json(out, "{index:%d,text:'", a->choice);
    } else if (a->pass == TOKENS) {
        out_json(out, logprobs ? "\"logprobs:{tokens:[" : "\"logprobs:null");
    } else if (a->pass == END) {
        out_json(out, "]}");
    } else {
        out_json(out, "]%s:[", keys[a->pass]);
    }
    return a->pass == TEXT || (logprobs && a->pass < END);
}

static void put_in_list(const answer *a, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    int32_t n = record_token(r, all);
    if (a->pass == TOKENS)
        part_token_text(a->request->shared->options->model, all[0].id, out);
    else if (a->pass == BYTES)
        part_token_bytes(a->request->shared->options->model, all[0].id, out);
    else if (a->pass == LOGPROBS)
        out_json(out, "%g", (double)all[0].logprob); /* the first of an echoed prompt has none */
    else if (a->pass == TOP)
        put_top(a->request->shared->options->model, all, n, out);
    else
        out_json(out, "%zu", a->n_characters);
}

static void put_record(answer *a, const record *r, text_out *out)
{
    if (a->pass == TEXT && r->kind == RECORD_TEXT) {
        out_escaped(out, r->bytes, r->n);
    } else if (a->pass != TEXT && r->kind == RECORD_TOKEN) {
        put_in_list(a, r, out);
    }
}

static void close_choice(answer *a, text_out *out)
{
    out_json(out, "finish_reason:%s}", part_finish(a->request->sequences[a->choice]));
}

/* ---- Events ---- */

static void put_logprobs(const sequence *j, const piece *p, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (!p->token || !j->request->tokens.logprobs) {
        out_json(out, "logprobs:null");
        return;
    }
    int32_t n = record_token(p->token, all);
    out_json(out, "logprobs:{tokens:[");
    part_token_text(j->request->shared->options->model, all[0].id, out);
    out_json(out, "]bytes:[");
    part_token_bytes(j->request->shared->options->model, all[0].id, out);
    out_json(out, "]token_logprobs:[%g],top_logprobs:[", (double)all[0].logprob);
    put_top(j->request->shared->options->model, all, n, out);
    out_json(out, "]text_offset:[%zu]}", p->offset);
}

/* Up to its reason to end. */
static void open_chunk(const sequence *j, const piece *p, text_out *out)
{
    part_open_event(NULL, out);
    part_front(j->request, object, out);
    out_json(out, "choices:[{index:%d,text:", j->choice);
    part_text(p->text, out);
    put_logprobs(j, p, out);
}

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    (void)a;
    open_chunk(j, p, out);
    out_json(out, "finish_reason:null}]");
    part_piece(j, p, out);
    part_close_event(out);
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    open_chunk(j, &(piece){.text = NULL}, out);
    out_json(out, "finish_reason:%s}]", part_finish(j));
    part_close_last(a, out);
}

static bool last(answer *a, text_out *out)
{
    return part_last(a, object, out);
}

const serializer answer_completion = {.id_prefix = "cmpl-",
                                      .front = front,
                                      .open = open,
                                      .record = put_record,
                                      .close = close_choice,
                                      .tail = part_tail,
                                      .piece = put_piece,
                                      .finish = finish,
                                      .last = last};
