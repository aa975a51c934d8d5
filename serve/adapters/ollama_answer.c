/* ollama's form of an answer: one value, or a value in each line. */
#include "serve/answer/answer_parts.h"
#include "serve/adapters/adapter.h"

#include <stdio.h>
#include <string.h>

static void put_front(const serve_options *o, text_out *out)
{
    char text[DATE_BYTES];
    out->begun = false;
    out_json(out, "{model:%s,created_at:%s", o->name, ollama_date(time(NULL), text));
}

static long long ns_of(double s)
{
    return (long long)(s > 0 ? 1e9 * s : 0);
}

/* The members of the end. */
static void put_end(const sequence *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    out_json(out,
             "done:true,done_reason:%s,total_duration:%lld,load_duration:0,prompt_eval_count:%zu,"
             "prompt_eval_duration:%lld,eval_count:%lld,eval_duration:%lld}",
             part_finish(j), ns_of(serve_clock_s() - j->queued_s), j->request->prompts.n_ids,
             ns_of(s->prompt_s), (long long)s->generated_tokens, ns_of(s->decode_s));
}

/* The member of a text that is empty. */
static void put_empty(bool chat, text_out *out)
{
    out_json(out, chat ? "message:{role:'assistant',content:''}" : "response:''");
}

static bool is_chat(const answer *a)
{
    return a->serializer == &answer_ollama_chat;
}

/* ---- One value ---- */

/* Passes over the text, each of which puts out one kind of its parts. */
enum { PASS_CONTENT, PASS_THINKING, PASS_COUNT, PASS_CALLS, PASS_END };

typedef struct putting {
    answer *a;
    text_out *out;
} putting;

/* Arguments as they are, but on one line. */
static void put_on_line(const char *bytes, size_t n, text_out *out)
{
    for (size_t i = 0; i < n; i++)
        out_bytes(out, bytes[i] == '\n' || bytes[i] == '\r' ? " " : bytes + i, 1);
}

static void put_call(answer *a, const drey_reply_part *p, text_out *out)
{
    if (p->call >= adapter_own(a)->n_whole)
        return;
    if (p->kind == DREY_REPLY_CALL)
        out_json(out, "{function:{name:%.*s,arguments:", (int)p->n_bytes, p->bytes);
    else if (p->kind == DREY_REPLY_ARGUMENTS)
        put_on_line(p->bytes, p->n_bytes, out);
    else if (p->kind == DREY_REPLY_CALL_END)
        out_json(out, "}}");
}

static void put_part(void *user, const drey_reply_part *p)
{
    answer *a = ((putting *)user)->a;
    text_out *out = ((putting *)user)->out;
    if (a->pass == PASS_COUNT)
        adapter_count(a, p);
    else if (a->pass == PASS_CALLS)
        put_call(a, p, out);
    else if (p->kind == (a->pass == PASS_CONTENT ? DREY_REPLY_CONTENT : DREY_REPLY_REASONING)) {
        if (a->pass == PASS_THINKING && !a->open)
            out_json(out, "thinking:'");
        a->open = true;
        out_escaped(out, p->bytes, p->n_bytes);
    }
}

static void front(const answer *a, text_out *out)
{
    put_front(a->request->shared->options, out);
    out_json(out, is_chat(a) ? "message:{role:'assistant',content:'" : "response:'");
}

/* Closes what the pass before this one leaves open first. */
static bool open(answer *a, text_out *out)
{
    if (a->pass > 0) {
        a->pass--;
        adapter_end(a, put_part, &(putting){a, out});
        if (a->pass == PASS_CONTENT || a->pass == PASS_CALLS ||
            (a->pass == PASS_THINKING && a->open))
            out_json(out, a->pass == PASS_CALLS ? "]" : "\"");
        a->pass++;
    }
    if (a->pass == PASS_CALLS && adapter_own(a)->n_whole == 0)
        a->pass++;
    if (a->pass == PASS_CALLS)
        out_json(out, "tool_calls:[");
    return a->pass < PASS_END;
}

static void put_record(answer *a, const record *r, text_out *out)
{
    adapter_read(a, r, put_part, &(putting){a, out});
}

static void close_answer(answer *a, text_out *out)
{
    if (is_chat(a))
        out_json(out, "}");
    put_end(a->request->sequences[0], out);
}

/* ---- Lines ---- */

static void put_line(void *user, const drey_reply_part *p)
{
    const putting *x = user;
    bool chat = is_chat(x->a), thinks = p->kind == DREY_REPLY_REASONING;
    adapter_count(x->a, p);
    if (p->kind != DREY_REPLY_CONTENT && !thinks)
        return;
    put_front(x->a->request->shared->options, x->out);
    out_json(x->out, chat ? "message:{role:'assistant',content:%.*s" : "response:%.*s",
             thinks ? 0 : (int)p->n_bytes, p->bytes);
    if (thinks)
        out_json(x->out, "thinking:%.*s", (int)p->n_bytes, p->bytes);
    out_json(x->out, chat ? "}done:false}" : "done:false}");
    out_text(x->out, "\n");
}

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    (void)j;
    if (p->text)
        adapter_read(a, p->text, put_line, &(putting){a, out});
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    (void)j;
    adapter_end(a, put_line, &(putting){a, out});
}

static void on_call(void *user, const drey_reply_part *p)
{
    const putting *x = user;
    put_call(x->a, p, x->out);
}

/* The calls, which are known to be whole now, in one line, and the end. */
static bool last(answer *a, text_out *out)
{
    enum { BEFORE, CALLS, END, AFTER };
    adapter_state *own = adapter_own(a);
    record r;
    if (own->kind == BEFORE)
        own->kind = own->n_whole > 0 ? CALLS : END;
    switch (own->kind) {
    case CALLS:
        if (a->pass == 0) {
            put_front(a->request->shared->options, out);
            out_json(out, "message:{role:'assistant',content:'',tool_calls:[");
            adapter_begin(a);
        } else if (answer_record(a, &r)) {
            adapter_read(a, &r, on_call, &(putting){a, out});
        } else {
            adapter_end(a, on_call, &(putting){a, out});
            out_json(out, "]}done:false}");
            out_text(out, "\n");
            own->kind = END;
        }
        return true;
    case END:
        put_front(a->request->shared->options, out);
        put_empty(is_chat(a), out);
        put_end(a->request->sequences[0], out);
        out_text(out, "\n");
        own->kind = AFTER;
        return true;
    default:
        return false;
    }
}

void ollama_refuse(const refusal *r, text_out *out)
{
    out->begun = false;
    out_json(out, "{error:%s}", r->message);
}

static void fail(const refusal *r, text_out *out)
{
    ollama_refuse(r, out);
    out_text(out, "\n");
}

#define OLLAMA_FORM                                                                                \
    {                                                                                              \
        .id_prefix = "ollama-", .keeps = true, .lines = true, .front = front, .open = open,        \
        .record = put_record, .close = close_answer, .piece = put_piece, .finish = finish,         \
        .last = last, .refuse = ollama_refuse, .fail = fail                                        \
    }
const serializer answer_ollama_chat = OLLAMA_FORM, answer_ollama_generate = OLLAMA_FORM;

/* ---- What programs ask before ---- */

const char *ollama_date(time_t at, char out[DATE_BYTES])
{
    struct tm date;
    strftime(out, DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &date));
    return out;
}

static void put_details(const drey_model_info *info, text_out *out)
{
    char size[32];
    double billions = (double)info->n_parameters / 1e9;
    snprintf(size, sizeof size, "%.*f%c", billions < 10 ? 1 : 0,
             billions < 1 ? 1e3 * billions : billions, billions < 1 ? 'M' : 'B');
    ollama_put_details(info->architecture, size, out);
}

void ollama_put_details(const char *family, const char *size, text_out *out)
{
    out_json(out, "details:{parent_model:'',format:'gguf',family:%s,families:[", family);
    if (*family)
        out_json(out, "%s", family);
    out_json(out, "]parameter_size:%s,quantization_level:''}", size);
}

void ollama_put_model(const char *name, size_t n, uint64_t bytes, time_t changed, text_out *out)
{
    char date[DATE_BYTES];
    out_json(out, "{name:%.*s,model:%.*s,size:%llu,digest:''", (int)n, name, (int)n, name,
             (unsigned long long)bytes);
    if (changed)
        out_json(out, "modified_at:%s", ollama_date(changed, date));
    else
        out_json(out, "expires_at:'9999-12-31T23:59:59Z',size_vram:0");
}

static void put_model(const shared *s, const char *name, size_t n, bool running, text_out *out)
{
    drey_model_info info;
    drey_model_describe(s->options->model, &info);
    ollama_put_model(name, n, info.weight_bytes, running ? 0 : (time_t)s->began, out);
    if (running)
        out_json(out, "context_length:%d", s->options->n_context);
    put_details(&info, out);
    out_json(out, "}");
}

void ollama_tags(const shared *s, bool running, text_out *out)
{
    const char *name = s->options->name, *more = running ? NULL : s->options->aliases;
    out_json(out, "{models:[");
    put_model(s, name, strlen(name), running, out);
    while (more && *more) {
        size_t n = strcspn(more + 1, ",");
        put_model(s, more + 1, n, running, out);
        more += 1 + n;
    }
    out_json(out, "]}");
}

void ollama_show(const shared *s, text_out *out)
{
    drey_model_info info;
    drey_model_describe(s->options->model, &info);
    const char *name = info.architecture;
    out_json(out, "{license:'',modelfile:'',parameters:'',template:''");
    put_details(&info, out);
    out_json(out,
             "model_info:{general.architecture:%s,general.parameter_count:%lld,"
             "'%s.context_length':%d,'%s.embedding_length':%d,'%s.block_count':%d},"
             "capabilities:['completion','tools']}",
             name, (long long)info.n_parameters, name, s->options->n_context, name, info.n_embd,
             name, info.n_layers);
}

void ollama_loaded(const shared *s, bool chat, text_out *out)
{
    put_front(s->options, out);
    put_empty(chat, out);
    out_json(out, "done:true,done_reason:'load'}");
}
