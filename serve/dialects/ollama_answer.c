/* ollama's form of an answer: one value, or a value in each line. */
#include "serve/answer/answer_parts.h"
#include "serve/dialects/dialect.h"

#include <string.h>
#include <time.h>

static void put_front(const shared *s, text_out *out)
{
    char text[40];
    time_t now = time(NULL);
    struct tm date;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &date));
    out_text(out, "{\"model\":");
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out, ",\"created_at\":\"%s\",", text);
}

static void put_time(const char *key, double s, text_out *out)
{
    out_format(out, ",\"%s\":%lld", key, (long long)(s > 0 ? 1e9 * s : 0));
}

/* The members of the end. */
static void put_end(const job *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    out_format(out, "\"done\":true,\"done_reason\":\"%s\"", part_finish(j));
    put_time("total_duration", serve_clock_s() - j->queued_s, out);
    put_time("load_duration", 0, out);
    out_format(out, ",\"prompt_eval_count\":%zu", j->task->n_ids);
    put_time("prompt_eval_duration", s->prompt_s, out);
    out_format(out, ",\"eval_count\":%lld", (long long)s->generated_tokens);
    put_time("eval_duration", s->decode_s, out);
    out_text(out, "}");
}

static bool is_chat(const answer *a)
{
    return a->form == &answer_ollama_chat;
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
    if (p->call >= a->block.n_whole)
        return;
    if (p->kind == DREY_REPLY_CALL) {
        out_format(out, "%s{\"function\":{\"name\":", p->call ? "," : "");
        out_string(out, p->bytes, p->n_bytes);
        out_text(out, ",\"arguments\":");
    } else if (p->kind == DREY_REPLY_ARGUMENTS) {
        put_on_line(p->bytes, p->n_bytes, out);
    } else if (p->kind == DREY_REPLY_CALL_END) {
        out_text(out, "}}");
    }
}

static void put_part(void *user, const drey_reply_part *p)
{
    answer *a = ((putting *)user)->a;
    text_out *out = ((putting *)user)->out;
    if (a->pass == PASS_COUNT)
        dialect_count(a, p);
    else if (a->pass == PASS_CALLS)
        put_call(a, p, out);
    else if (p->kind == (a->pass == PASS_CONTENT ? DREY_REPLY_CONTENT : DREY_REPLY_REASONING)) {
        if (a->pass == PASS_THINKING && !a->comma)
            out_text(out, ",\"thinking\":\"");
        a->comma = true;
        out_escaped(out, p->bytes, p->n_bytes);
    }
}

static void front(const answer *a, const shared *s, text_out *out)
{
    put_front(s, out);
    out_text(out,
             is_chat(a) ? "\"message\":{\"role\":\"assistant\",\"content\":\"" : "\"response\":\"");
}

/* What the pass before this one leaves open is closed first. */
static bool open(answer *a, text_out *out)
{
    if (a->pass > 0) {
        a->pass--;
        dialect_end(a, put_part, &(putting){a, out});
        out_text(out, a->pass == PASS_CONTENT                ? "\""
                      : a->pass == PASS_THINKING && a->comma ? "\""
                      : a->pass == PASS_CALLS                ? "]"
                                                             : "");
        a->pass++;
    }
    if (a->pass == PASS_CALLS && a->block.n_whole == 0)
        a->pass++;
    if (a->pass == PASS_CALLS)
        out_text(out, ",\"tool_calls\":[");
    return a->pass < PASS_END;
}

static void put_record(answer *a, const shared *s, const record *r, text_out *out)
{
    (void)s;
    dialect_read(a, r, put_part, &(putting){a, out});
}

static void close_answer(answer *a, const shared *s, text_out *out)
{
    (void)s;
    out_text(out, is_chat(a) ? "}," : ",");
    put_end(a->task->jobs[0], out);
}

/* ---- Lines ---- */

typedef struct streaming {
    answer *a;
    const shared *s;
    text_out *out;
} streaming;

static void put_line(void *user, const drey_reply_part *p)
{
    const streaming *x = user;
    bool chat = is_chat(x->a), thinks = p->kind == DREY_REPLY_REASONING;
    dialect_count(x->a, p);
    if (p->kind != DREY_REPLY_CONTENT && !thinks)
        return;
    put_front(x->s, x->out);
    if (chat)
        out_text(x->out, "\"message\":{\"role\":\"assistant\",");
    out_text(x->out, chat ? "\"content\":" : "\"response\":");
    out_string(x->out, p->bytes, thinks ? 0 : p->n_bytes);
    if (thinks) {
        out_text(x->out, ",\"thinking\":");
        out_string(x->out, p->bytes, p->n_bytes);
    }
    out_text(x->out, chat ? "},\"done\":false}\n" : ",\"done\":false}\n");
}

static void put_piece(answer *a, const job *j, const shared *s, const piece *p, text_out *out)
{
    (void)j;
    if (p->text)
        dialect_read(a, p->text, put_line, &(streaming){a, s, out});
}

static void finish(answer *a, const job *j, const shared *s, text_out *out)
{
    (void)j;
    dialect_end(a, put_line, &(streaming){a, s, out});
}

static void on_call(void *user, const drey_reply_part *p)
{
    const streaming *x = user;
    put_call(x->a, p, x->out);
}

/* The calls, which are known to be whole now, in one line, and the end. */
static bool last(answer *a, const shared *s, text_out *out)
{
    enum { BEFORE, CALLS, END, AFTER };
    record r;
    if (a->block.kind == BEFORE)
        a->block.kind = a->block.n_whole > 0 ? CALLS : END;
    switch (a->block.kind) {
    case CALLS:
        if (a->pass == 0) {
            put_front(s, out);
            out_text(out, "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[");
            dialect_begin(a);
        } else if (answer_record(a, &r)) {
            dialect_read(a, &r, on_call, &(streaming){a, s, out});
        } else {
            dialect_end(a, on_call, &(streaming){a, s, out});
            out_text(out, "]},\"done\":false}\n");
            a->block.kind = END;
        }
        return true;
    case END:
        put_front(s, out);
        out_text(out, is_chat(a) ? "\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
                                 : "\"response\":\"\",");
        put_end(a->task->jobs[0], out);
        out_text(out, "\n");
        a->block.kind = AFTER;
        return true;
    default:
        return false;
    }
}

void ollama_refuse(const refusal *r, text_out *out)
{
    out_text(out, "{\"error\":");
    out_string(out, r->message, strlen(r->message));
    out_text(out, "}");
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
const answer_form answer_ollama_chat = OLLAMA_FORM, answer_ollama_generate = OLLAMA_FORM;

/* ---- What programs ask before ---- */

static void put_details(const drey_model_info *info, text_out *out)
{
    out_text(out, "\"details\":{\"parent_model\":\"\",\"format\":\"gguf\",\"family\":");
    out_string(out, info->architecture, strlen(info->architecture));
    out_text(out, ",\"families\":[");
    out_string(out, info->architecture, strlen(info->architecture));
    double billions = (double)info->n_parameters / 1e9;
    out_format(out, "],\"parameter_size\":\"%.*f%c\",\"quantization_level\":\"\"}",
               billions < 10 ? 1 : 0, billions < 1 ? 1e3 * billions : billions,
               billions < 1 ? 'M' : 'B');
}

static void put_model(const shared *s, const char *name, size_t n, bool running, text_out *out)
{
    drey_model_info info;
    char date[40];
    time_t began = (time_t)s->began;
    struct tm parts;
    drey_model_describe(s->options->model, &info);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&began, &parts));
    out_text(out, "{\"name\":");
    out_string(out, name, n);
    out_text(out, ",\"model\":");
    out_string(out, name, n);
    out_format(out, ",\"size\":%llu,\"digest\":\"\",", (unsigned long long)info.weight_bytes);
    if (running)
        out_format(out,
                   "\"expires_at\":\"9999-12-31T23:59:59Z\",\"size_vram\":0,"
                   "\"context_length\":%d,",
                   s->options->n_context);
    else
        out_format(out, "\"modified_at\":\"%s\",", date);
    put_details(&info, out);
    out_text(out, "}");
}

void ollama_tags(const shared *s, bool running, text_out *out)
{
    const char *name = s->options->name, *more = running ? NULL : s->options->aliases;
    out_text(out, "{\"models\":[");
    put_model(s, name, strlen(name), running, out);
    while (more && *more) {
        size_t n = strcspn(more + 1, ",");
        out_text(out, ",");
        put_model(s, more + 1, n, running, out);
        more += 1 + n;
    }
    out_text(out, "]}");
}

void ollama_show(const shared *s, text_out *out)
{
    drey_model_info info;
    drey_model_describe(s->options->model, &info);
    out_text(out, "{\"license\":\"\",\"modelfile\":\"\",\"parameters\":\"\",\"template\":\"\",");
    put_details(&info, out);
    out_text(out, ",\"model_info\":{\"general.architecture\":");
    out_string(out, info.architecture, strlen(info.architecture));
    out_format(out,
               ",\"general.parameter_count\":%lld,\"%s.context_length\":%d,"
               "\"%s.embedding_length\":%d,\"%s.block_count\":%d},"
               "\"capabilities\":[\"completion\",\"tools\"]}",
               (long long)info.n_parameters, info.architecture, s->options->n_context,
               info.architecture, info.n_embd, info.architecture, info.n_layers);
}

void ollama_loaded(const shared *s, bool chat, text_out *out)
{
    put_front(s, out);
    out_text(out, chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
                       : "\"response\":\"\",");
    out_text(out, "\"done\":true,\"done_reason\":\"load\"}");
}
