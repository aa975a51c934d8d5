/* OpenAI's /v1/chat/completions: see serializer.h. A text is taken apart by the request's form
 * (drey/reply.h) each time that it is put out. */
#include "serve/answer/serializer.h"
#include "serve/answer/answer_parts.h"

/* ---- One value ---- */

static void front(const answer *a, text_out *out)
{
    part_front(a->request, "chat.completion", out);
    out_json(out, "choices:[");
}

/* Passes over a text, each of which puts out one kind of its parts. */
enum { PASS_REASONING, PASS_CONTENT, PASS_CALLS, PASS_LOGPROBS, PASS_END };

typedef struct putting {
    answer *a;
    text_out *out;
} putting;

/* The member begins with its first part. */
static void put_text(const putting *p, const char *key, const drey_reply_part *part)
{
    if (!p->a->open)
        out_json(p->out, "%s:'", key);
    p->a->open = true;
    out_escaped(p->out, part->bytes, part->n_bytes);
}

static void put_call(const putting *p, const drey_reply_part *part)
{
    char id[CALL_ID_BYTES];
    answer *a = p->a;
    if (part->kind == DREY_REPLY_ARGUMENTS)
        out_escaped(p->out, part->bytes, part->n_bytes);
    if (part->kind != DREY_REPLY_CALL)
        return;
    part_call_id(a->request, a->choice, part->call, id);
    out_json(p->out, a->open ? "\"}}" : "tool_calls:[");
    a->open = true;
    out_json(p->out, "{id:%s,type:'function',function:{name:%.*s,arguments:'", id,
             (int)part->n_bytes, part->bytes);
}

static void put_part(void *user, const drey_reply_part *part)
{
    const putting *p = user;
    int32_t pass = p->a->pass;
    if (pass == PASS_CALLS)
        put_call(p, part);
    else if (pass == PASS_CONTENT && part->kind == DREY_REPLY_CONTENT)
        put_text(p, "content", part);
    else if (pass == PASS_REASONING && part->kind == DREY_REPLY_REASONING)
        put_text(p, "reasoning_content", part);
}

/* Closes what the pass before this one leaves open. */
static void end_pass(answer *a, text_out *out)
{
    drey_reply_reader *r = &a->readers[a->choice];
    int32_t pass = a->pass;
    if (pass > PASS_CALLS)
        return;
    drey_reply_end(r, put_part, &(putting){a, out});
    if (a->open)
        out_json(out, pass == PASS_CALLS ? "\"}}]" : "\"");
    else if (pass == PASS_CONTENT)
        out_json(out, r->n_calls ? "content:null" : "content:''");
}

/* Reasoning, content, calls, and the log-probabilities of the tokens. */
static bool open(answer *a, text_out *out)
{
    const request *t = a->request;
    if (a->pass == PASS_REASONING) {
        out_json(out, "{index:%d,message:{role:'assistant'", a->choice);
        a->pass += t->reply.thinking ? 0 : 1;
        return true;
    }
    a->pass--;
    end_pass(a, out);
    a->pass++;
    a->pass += a->pass == PASS_CALLS && !t->reply.calls;
    if (a->pass == PASS_LOGPROBS)
        out_json(out, t->tokens.logprobs ? "}logprobs:{content:[" : "}logprobs:null");
    else if (a->pass == PASS_END)
        out_json(out, "]}");
    return a->pass < PASS_LOGPROBS || (a->pass == PASS_LOGPROBS && t->tokens.logprobs);
}

static void put_record(answer *a, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (r->kind == RECORD_TEXT) {
        drey_reply_read(&a->readers[a->choice], r->bytes, r->n, put_part, &(putting){a, out});
    } else if (a->pass == PASS_LOGPROBS && r->kind == RECORD_TOKEN) {
        int32_t n = record_token(r, all);
        part_token(a->request->shared->options->model, all, n, false, out);
    }
}

/* Calls that are whole are why the answer ends; one that was broken off is not. */
static const char *finish_word(const answer *a, const sequence *j)
{
    bool calls = a->readers[j->choice].n_calls > 0;
    return calls && j->statistics.finish == DREY_FINISH_STOP ? "tool_calls" : part_finish(j);
}

static void close_choice(answer *a, text_out *out)
{
    out_json(out, "finish_reason:%s}", finish_word(a, a->request->sequences[a->choice]));
}

/* ---- Events ---- */

static const char chunk_object[] = "chat.completion.chunk";

/* Up to what is new. */
static void open_chunk(const sequence *j, text_out *out)
{
    part_open_event(NULL, out);
    part_front(j->request, chunk_object, out);
    out_json(out, "choices:[{index:%d,delta:", j->choice);
}

/* After what is new; token NULL: it brings none. */
static void close_choice_event(const sequence *j, const record *token, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (!token || !j->request->tokens.logprobs) {
        out_json(out, "logprobs:null,finish_reason:null}]");
        return;
    }
    int32_t n = record_token(token, all);
    out_json(out, "logprobs:{content:[");
    part_token(j->request->shared->options->model, all, n, false, out);
    out_json(out, "]}finish_reason:null}]");
}

static void begin(answer *a, const sequence *j, text_out *out)
{
    (void)a;
    open_chunk(j, out);
    out_json(out, "{role:'assistant',content:null}logprobs:null,finish_reason:null}]");
    part_close_event(out);
}

/* The events of one piece of text: one for each of its parts. */
typedef struct streaming {
    const sequence *j;
    const piece *p;
    text_out *out;
    int32_t n_events;
} streaming;

static void put_delta(const streaming *x, const drey_reply_part *part)
{
    text_out *out = x->out;
    char id[CALL_ID_BYTES];
    const int n = (int)part->n_bytes;
    if (part->kind == DREY_REPLY_CONTENT || part->kind == DREY_REPLY_REASONING) {
        bool content = part->kind == DREY_REPLY_CONTENT;
        out_json(out, content ? "{content:%.*s}" : "{reasoning_content:%.*s}", n, part->bytes);
    } else if (part->kind == DREY_REPLY_CALL) {
        part_call_id(x->j->request, x->j->choice, part->call, id);
        out_json(out,
                 "{tool_calls:[{index:%d,id:%s,type:'function',function:{name:%.*s,"
                 "arguments:''}}]}",
                 part->call, id, n, part->bytes);
    } else {
        out_json(out, "{tool_calls:[{index:%d,function:{arguments:%.*s}}]}", part->call, n,
                 part->bytes);
    }
}

/* part NULL: an event without text. What belongs to the piece goes with its first event. */
static void put_event(streaming *x, const drey_reply_part *part)
{
    const piece *p = x->n_events++ == 0 ? x->p : NULL;
    open_chunk(x->j, x->out);
    if (part)
        put_delta(x, part);
    else
        out_json(x->out, p && p->token ? "{content:''}" : "{}");
    close_choice_event(x->j, p ? p->token : NULL, x->out);
    if (p)
        part_piece(x->j, p, x->out);
    part_close_event(x->out);
}

static void on_part(void *user, const drey_reply_part *part)
{
    if (part->kind != DREY_REPLY_CALL_END)
        put_event(user, part);
}

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    streaming x = {.j = j, .p = p, .out = out};
    const request *t = j->request;
    if (p->text)
        drey_reply_read(&a->readers[j->choice], p->text->bytes, p->text->n, on_part, &x);
    bool held = p->text && (t->reply.calls || t->reply.thinking) && !t->tokens.logprobs;
    if (x.n_events == 0 && !held)
        put_event(&x, NULL);
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    streaming x = {.j = j, .out = out};
    drey_reply_reader last = a->readers[j->choice];
    drey_reply_end(&last, on_part, &x);
    open_chunk(j, out);
    out_json(out, "{}logprobs:null,finish_reason:%s}]", finish_word(a, j));
    part_close_last(a, out);
}

static bool last(answer *a, text_out *out)
{
    return part_last(a, chunk_object, out);
}

const serializer answer_chat = {.id_prefix = "chatcmpl-",
                                .front = front,
                                .open = open,
                                .record = put_record,
                                .close = close_choice,
                                .tail = part_tail,
                                .begin = begin,
                                .piece = put_piece,
                                .finish = finish,
                                .last = last};
