/* OpenAI's /v1/chat/completions: see answer_form.h. A text is taken apart by the task's form
 * (drey/reply.h) each time that it is put out. */
#include "serve/answer/answer_form.h"
#include "serve/answer/answer_parts.h"

/* ---- One value ---- */

static void front(const answer *a, const shared *s, text_out *out)
{
    part_front(a->task, s, "chat.completion", out);
    out_text(out, "\"choices\":[");
}

/* Passes over a text, each of which puts out one kind of its parts. */
enum { PASS_REASONING, PASS_CONTENT, PASS_CALLS, PASS_LOGPROBS, PASS_END };

typedef struct putting {
    answer *a;
    text_out *out;
} putting;

/* The member begins with its first part. */
static void begin_member(answer *a, const char *text, text_out *out)
{
    if (!a->comma)
        out_text(out, text);
    a->comma = true;
}

static void put_call(putting *p, const drey_reply_part *part)
{
    char id[CALL_ID_BYTES];
    answer *a = p->a;
    if (part->kind == DREY_REPLY_ARGUMENTS)
        out_escaped(p->out, part->bytes, part->n_bytes);
    if (part->kind != DREY_REPLY_CALL)
        return;
    out_text(p->out, a->comma ? "\"}}," : ",\"tool_calls\":[");
    a->comma = true;
    part_call_id(a->task, a->choice, part->call, id);
    out_format(p->out, "{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", id);
    out_string(p->out, part->bytes, part->n_bytes);
    out_text(p->out, ",\"arguments\":\"");
}

static void put_part(void *user, const drey_reply_part *part)
{
    putting *p = user;
    int32_t pass = p->a->pass;
    if (pass == PASS_CALLS) {
        put_call(p, part);
    } else if (pass == PASS_CONTENT && part->kind == DREY_REPLY_CONTENT) {
        begin_member(p->a, "\"content\":\"", p->out);
        out_escaped(p->out, part->bytes, part->n_bytes);
    } else if (pass == PASS_REASONING && part->kind == DREY_REPLY_REASONING) {
        begin_member(p->a, "\"reasoning_content\":\"", p->out);
        out_escaped(p->out, part->bytes, part->n_bytes);
    }
}

/* What the pass before this one leaves open. */
static void end_pass(answer *a, text_out *out)
{
    drey_reply_reader *r = &a->readers[a->choice];
    int32_t pass = a->pass;
    if (pass > PASS_CALLS)
        return;
    drey_reply_end(r, put_part, &(putting){a, out});
    if (pass == PASS_REASONING)
        out_text(out, a->comma ? "\"," : "");
    else if (pass == PASS_CONTENT)
        out_text(out, a->comma ? "\"" : r->n_calls ? "\"content\":null" : "\"content\":\"\"");
    else
        out_text(out, a->comma ? "\"}}]" : "");
}

/* Reasoning, content, calls, and the log-probabilities of the tokens. */
static bool open(answer *a, text_out *out)
{
    const task *t = a->task;
    if (a->pass == PASS_REASONING) {
        out_format(out, "%s{\"index\":%d,\"message\":{\"role\":\"assistant\",",
                   a->choice ? "," : "", a->choice);
        a->pass += t->reply.reasons ? 0 : 1;
        return true;
    }
    a->pass--;
    end_pass(a, out);
    a->pass++;
    a->pass += a->pass == PASS_CALLS && !t->reply.calls;
    if (a->pass == PASS_LOGPROBS)
        out_format(out, "},\"logprobs\":%s", t->logprobs ? "{\"content\":[" : "null,");
    else if (a->pass == PASS_END)
        out_text(out, "]},");
    return a->pass < PASS_LOGPROBS || (a->pass == PASS_LOGPROBS && t->logprobs);
}

static void put_record(answer *a, const shared *s, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (r->kind == RECORD_TEXT) {
        drey_reply_read(&a->readers[a->choice], r->bytes, r->n, put_part, &(putting){a, out});
    } else if (a->pass == PASS_LOGPROBS && r->kind == RECORD_TOKEN) {
        out_text(out, a->comma ? "," : "");
        int32_t n = record_token(r, all);
        part_token(s->options->model, all, n, false, out);
        a->comma = true;
    }
}

/* Calls that are whole are why the answer ends; one that was broken off is not. */
static const char *finish_word(const answer *a, const job *j)
{
    bool calls = a->readers[j->choice].n_calls > 0;
    return calls && j->statistics.finish == DREY_FINISH_STOP ? "tool_calls" : part_finish(j);
}

static void close_choice(answer *a, const shared *s, text_out *out)
{
    (void)s;
    out_format(out, "\"finish_reason\":\"%s\"}", finish_word(a, a->task->jobs[a->choice]));
}

/* ---- Events ---- */

static const char chunk_object[] = "chat.completion.chunk";

/* Up to what is new. */
static void open_chunk(const job *j, const shared *s, text_out *out)
{
    part_open_chunk(j->task, s, chunk_object, out);
    out_format(out, "\"choices\":[{\"index\":%d,\"delta\":", j->choice);
}

static void put_logprobs(const job *j, const shared *s, const record *token, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (!token || !j->task->logprobs) {
        out_text(out, ",\"logprobs\":null");
        return;
    }
    int32_t n = record_token(token, all);
    out_text(out, ",\"logprobs\":{\"content\":[");
    part_token(s->options->model, all, n, false, out);
    out_text(out, "]}");
}

static void begin(answer *a, const job *j, const shared *s, text_out *out)
{
    (void)a;
    open_chunk(j, s, out);
    out_text(out, "{\"role\":\"assistant\",\"content\":null}");
    put_logprobs(j, s, NULL, out);
    out_text(out, ",\"finish_reason\":null}]");
    part_close_chunk(out);
}

/* The events of one piece of text: one for each of its parts. */
typedef struct streaming {
    const job *j;
    const shared *s;
    const piece *p;
    text_out *out;
    int32_t n_events;
} streaming;

static void put_delta(const streaming *x, const drey_reply_part *part)
{
    text_out *out = x->out;
    char id[CALL_ID_BYTES];
    if (part->kind == DREY_REPLY_CONTENT || part->kind == DREY_REPLY_REASONING) {
        out_text(out,
                 part->kind == DREY_REPLY_CONTENT ? "{\"content\":" : "{\"reasoning_content\":");
        out_string(out, part->bytes, part->n_bytes);
        out_text(out, "}");
        return;
    }
    out_format(out, "{\"tool_calls\":[{\"index\":%d,", part->call);
    if (part->kind == DREY_REPLY_CALL) {
        part_call_id(x->j->task, x->j->choice, part->call, id);
        out_format(out, "\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", id);
        out_string(out, part->bytes, part->n_bytes);
        out_text(out, ",\"arguments\":\"\"}}]}");
    } else {
        out_text(out, "\"function\":{\"arguments\":");
        out_string(out, part->bytes, part->n_bytes);
        out_text(out, "}}]}");
    }
}

/* part NULL: an event without text. What belongs to the piece goes with its first event. */
static void put_event(streaming *x, const drey_reply_part *part)
{
    const piece *p = x->n_events++ == 0 ? x->p : NULL;
    open_chunk(x->j, x->s, x->out);
    if (part)
        put_delta(x, part);
    else
        out_text(x->out, p && p->token ? "{\"content\":\"\"}" : "{}");
    put_logprobs(x->j, x->s, p ? p->token : NULL, x->out);
    out_text(x->out, ",\"finish_reason\":null}]");
    if (p)
        part_piece(x->j, p, x->out);
    part_close_chunk(x->out);
}

static void on_part(void *user, const drey_reply_part *part)
{
    if (part->kind != DREY_REPLY_CALL_END)
        put_event(user, part);
}

static void put_piece(answer *a, const job *j, const shared *s, const piece *p, text_out *out)
{
    streaming x = {.j = j, .s = s, .p = p, .out = out};
    const task *t = j->task;
    if (p->text)
        drey_reply_read(&a->readers[j->choice], p->text->bytes, p->text->n, on_part, &x);
    bool held = p->text && (t->reply.calls || t->reply.reasons) && !t->logprobs;
    if (x.n_events == 0 && !held)
        put_event(&x, NULL);
}

static void finish(answer *a, const job *j, const shared *s, text_out *out)
{
    streaming x = {.j = j, .s = s, .out = out};
    drey_reply_reader last = a->readers[j->choice];
    drey_reply_end(&last, on_part, &x);
    open_chunk(j, s, out);
    out_text(out, "{}");
    put_logprobs(j, s, NULL, out);
    out_format(out, ",\"finish_reason\":\"%s\"}]", finish_word(a, j));
    part_close_last(a, s, out);
}

static bool last(answer *a, const shared *s, text_out *out)
{
    return part_last(a, s, chunk_object, out);
}

const answer_form answer_chat = {.id_prefix = "chatcmpl-",
                                 .front = front,
                                 .open = open,
                                 .record = put_record,
                                 .close = close_choice,
                                 .tail = part_tail,
                                 .begin = begin,
                                 .piece = put_piece,
                                 .finish = finish,
                                 .last = last};
