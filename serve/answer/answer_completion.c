/* OpenAI's /v1/completions: see answer_form.h. Its log-probabilities have the older form: lists of
 * the tokens, of their bytes (which OpenAI's lacks), of their log-probabilities, of the most likely
 * ones, and of where each begins. */
#include "serve/answer/answer_form.h"
#include "serve/answer/answer_parts.h"

#include <math.h>

static const char object[] = "text_completion";

/* The first of an echoed prompt has none. */
static void put_logprob(const drey_logprob *token, text_out *out)
{
    if (isnan(token->logprob))
        out_text(out, "null");
    else
        out_number(out, (double)token->logprob);
}

/* The most likely tokens as an object. */
static void put_top(const shared *s, const drey_logprob *all, int32_t n, text_out *out)
{
    if (isnan(all[0].logprob)) {
        out_text(out, "null");
        return;
    }
    out_text(out, "{");
    for (int32_t i = 1; i < n; i++) {
        out_text(out, i > 1 ? "," : "");
        part_token_text(s->options->model, all[i].id, out);
        out_format(out, ":%.9g", (double)(all[i].logprob >= -9999.0f ? all[i].logprob : -9999.0f));
    }
    out_text(out, "}");
}

/* ---- One value ---- */

enum { TEXT, TOKENS, BYTES, LOGPROBS, TOP, OFFSETS, END };

static void front(const answer *a, const shared *s, text_out *out)
{
    part_front(a->task, s, object, out);
    out_text(out, "\"choices\":[");
}

static bool open(answer *a, text_out *out)
{
    static const char *const before[] = {[BYTES] = "],\"bytes\":[",
                                         [LOGPROBS] = "],\"token_logprobs\":[",
                                         [TOP] = "],\"top_logprobs\":[",
                                         [OFFSETS] = "],\"text_offset\":[",
                                         [END] = "]},"};
    bool logprobs = a->task->logprobs;
    if (a->pass == TEXT)
        out_format(out, "%s{\"index\":%d,\"text\":\"", a->choice ? "," : "", a->choice);
    else if (a->pass == TOKENS)
        out_format(out, "\",\"logprobs\":%s", logprobs ? "{\"tokens\":[" : "null,");
    else
        out_text(out, before[a->pass]);
    return a->pass == TEXT || (logprobs && a->pass < END);
}

static void put_in_list(const answer *a, const shared *s, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    int32_t n = record_token(r, all);
    if (a->pass == TOKENS)
        part_token_text(s->options->model, all[0].id, out);
    else if (a->pass == BYTES)
        part_token_bytes(s->options->model, all[0].id, out);
    else if (a->pass == LOGPROBS)
        put_logprob(&all[0], out);
    else if (a->pass == TOP)
        put_top(s, all, n, out);
    else
        out_format(out, "%zu", a->n_characters);
}

static void put_record(answer *a, const shared *s, const record *r, text_out *out)
{
    if (a->pass == TEXT && r->kind == RECORD_TEXT) {
        out_escaped(out, r->bytes, r->n);
    } else if (a->pass != TEXT && r->kind == RECORD_TOKEN) {
        out_text(out, a->comma ? "," : "");
        put_in_list(a, s, r, out);
        a->comma = true;
    }
}

static void close_choice(answer *a, const shared *s, text_out *out)
{
    (void)s;
    out_format(out, "\"finish_reason\":\"%s\"}", part_finish(a->task->jobs[a->choice]));
}

/* ---- Events ---- */

static void put_logprobs(const job *j, const shared *s, const piece *p, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (!p->token || !j->task->logprobs) {
        out_text(out, "\"logprobs\":null,");
        return;
    }
    int32_t n = record_token(p->token, all);
    out_text(out, "\"logprobs\":{\"tokens\":[");
    part_token_text(s->options->model, all[0].id, out);
    out_text(out, "],\"bytes\":[");
    part_token_bytes(s->options->model, all[0].id, out);
    out_text(out, "],\"token_logprobs\":[");
    put_logprob(&all[0], out);
    out_text(out, "],\"top_logprobs\":[");
    put_top(s, all, n, out);
    out_format(out, "],\"text_offset\":[%zu]},", p->offset);
}

/* Up to its reason to end. */
static void open_chunk(const job *j, const shared *s, const piece *p, text_out *out)
{
    part_open_chunk(j->task, s, object, out);
    out_format(out, "\"choices\":[{\"index\":%d,\"text\":", j->choice);
    part_text(p->text, out);
    out_text(out, ",");
    put_logprobs(j, s, p, out);
}

static void put_piece(answer *a, const job *j, const shared *s, const piece *p, text_out *out)
{
    (void)a;
    open_chunk(j, s, p, out);
    out_text(out, "\"finish_reason\":null}]");
    part_piece(j, p, out);
    part_close_chunk(out);
}

static void finish(answer *a, const job *j, const shared *s, text_out *out)
{
    open_chunk(j, s, &(piece){.text = NULL}, out);
    out_format(out, "\"finish_reason\":\"%s\"}]", part_finish(j));
    part_close_last(a, s, out);
}

static bool last(answer *a, const shared *s, text_out *out)
{
    return part_last(a, s, object, out);
}

const answer_form answer_completion = {.id_prefix = "cmpl-",
                                       .front = front,
                                       .open = open,
                                       .record = put_record,
                                       .close = close_choice,
                                       .tail = part_tail,
                                       .piece = put_piece,
                                       .finish = finish,
                                       .last = last};
