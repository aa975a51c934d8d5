/* Answers: see answer.h. In the forms that OpenAI's API and llama.cpp's server have. */
#include "serve/api/answer.h"

#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "serve/api/answer_parts.h"

/* ---- Records ---- */

typedef struct record {
    record_kind kind;
    const char *bytes; /* [n] */
    size_t n;
} record;

/* The published record at `at`; false: there is none. */
static bool record_at(const job *j, size_t at, record *out, size_t *next)
{
    record_head head;
    if (at >= j->n_published)
        return false;
    memcpy(&head, j->records + at, sizeof head);
    *out = (record){(record_kind)head.kind, j->records + at + sizeof head, head.n};
    *next = at + sizeof head + head.n;
    return true;
}

static int32_t get_token(const record *r, drey_logprob all[1 + DREY_MAX_TOP])
{
    memcpy(all, r->bytes, r->n);
    return (int32_t)(r->n / sizeof *all);
}

/* ---- What is common ---- */

static void put_front(const task *t, const shared *s, bool stream, text_out *out)
{
    const char *object = t->kind != TASK_CHAT ? "text_completion"
                         : stream             ? "chat.completion.chunk"
                                              : "chat.completion";
    out_format(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", t->id.text,
               object, (long long)t->id.created);
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out, ",\"system_fingerprint\":\"drey-%s\",", drey_version());
}

static void put_end(const task *t, text_out *out)
{
    part_timings(t, out);
    out_text(out, ",");
    part_drey(t, out);
}

/* The older form of log-probabilities: the most likely tokens as an object. */
static void put_top(const shared *s, const drey_logprob *all, int32_t n, text_out *out)
{
    out_text(out, "{");
    for (int32_t i = 1; i < n; i++) {
        out_text(out, i > 1 ? "," : "");
        part_token_text(s->options->model, all[i].id, out);
        out_format(out, ":%.9g", (double)(all[i].logprob >= -9999.0f ? all[i].logprob : -9999.0f));
    }
    out_text(out, "}");
}

/* Why it ended, and at which of its stop texts. */
static void put_native_stop(const job *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    bool stopped = s->finish == DREY_FINISH_STOP;
    const char *word = stopped && s->stop_text > 0 ? j->task->stops.of[s->stop_text - 1] : NULL;
    const char *type = word                              ? "word"
                       : stopped && s->stop_text == 0    ? "eos"
                       : s->finish == DREY_FINISH_LENGTH ? "limit"
                                                         : "none";
    out_format(out, "\"stop_type\":\"%s\",\"stopping_word\":", type);
    out_string(out, word ? word : "", word ? strlen(word) : 0);
    out_text(out, ",");
}

/* The text ended because there was no more room, whatever its length. */
static bool fills_context(const job *j, const shared *s)
{
    int64_t n = (int64_t)j->task->n_ids + j->statistics.generated_tokens;
    return j->statistics.finish == DREY_FINISH_LENGTH && n >= s->options->n_context;
}

/* What a text was written with, as llama.cpp's server reports it. */
static void put_settings(const task *t, text_out *out)
{
    const drey_sampling *p = &t->sampling;
    out_format(out,
               "\"generation_settings\":{\"seed\":%llu,\"n_predict\":%d,\"temperature\":%.9g,"
               "\"top_k\":%d,\"top_p\":%.9g,\"min_p\":%.9g,\"ignore_eos\":%s,\"stream\":%s,"
               "\"n_probs\":%d,\"stop\":[",
               (unsigned long long)p->seed, t->n_predict == INT32_MAX ? -1 : t->n_predict,
               (double)p->temperature, p->top_k, (double)p->top_p, (double)p->min_p,
               t->ignore_eos ? "true" : "false", t->stream ? "true" : "false", t->n_top);
    for (size_t i = 0; i < t->stops.n; i++) {
        out_text(out, i ? "," : "");
        out_string(out, t->stops.of[i], strlen(t->stops.of[i]));
    }
    out_text(out, "]},");
}

static void put_native_end(const job *j, const shared *s, text_out *out)
{
    const task *t = j->task;
    out_format(out, "\"id_slot\":%d,\"stop\":true,\"model\":", j->seat);
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out,
               ",\"tokens_predicted\":%lld,\"tokens_evaluated\":%zu,\"tokens_cached\":%lld,"
               "\"truncated\":%s,",
               (long long)j->statistics.generated_tokens, t->n_ids, (long long)j->counts.n_cached,
               fills_context(j, s) ? "true" : "false");
    put_settings(t, out);
    put_native_stop(j, out);
    put_end(t, out);
    out_text(out, "}");
}

/* Why a job that is done has no answer; false: it has one. */
static bool failed(const job *j, refusal *r)
{
    if (j->overflow)
        return !refuse_with(r, 500, "%s",
                            j->keep ? "The answer is longer than the server keeps: ask for "
                                      "fewer tokens, or with 'stream': true."
                                    : "The client reads more slowly than the text is "
                                      "written, and there is no more room to keep it.");
    if (j->status == DREY_OK)
        return false;
    refuse_error(r, &j->error);
    if (j->status == DREY_ERR_CANCELLED)
        refuse_with(r, 503, "%s", j->error.message);
    return true;
}

void answer_refusal(const refusal *r, text_out *out)
{
    out_text(out, "{\"error\":{\"code\":");
    if (r->code)
        out_string(out, r->code, strlen(r->code));
    else
        out_format(out, "%d", r->status);
    out_text(out, ",\"message\":");
    out_string(out, r->message, strlen(r->message));
    out_format(out, ",\"type\":\"%s\"", r->type);
    if (r->n_ctx)
        out_format(out, ",\"n_prompt_tokens\":%lld,\"n_ctx\":%lld", (long long)r->n_prompt_tokens,
                   (long long)r->n_ctx);
    out_text(out, "}}");
}

/* ---- One value at the end ---- */

enum {
    WHOLE_FRONT,
    WHOLE_CHOICE,
    WHOLE_TEXT,
    WHOLE_LISTS,
    WHOLE_LIST,
    WHOLE_CLOSE,
    WHOLE_TAIL,
    WHOLE_DONE
};

static void put_choice(const answer *a, text_out *out)
{
    const task *t = a->task;
    if (t->kind != TASK_NATIVE)
        out_format(out, "%s{", a->choice ? "," : "");
    out_format(out, "\"index\":%d,%s\"", a->choice,
               t->kind == TASK_CHAT         ? "\"message\":{\"role\":\"assistant\",\"content\":"
               : t->kind == TASK_COMPLETION ? "\"text\":"
                                            : "\"content\":");
}

/* The lists after the text, in which each token occurs once. */
static const char *const *lists_of(const task *t)
{
    static const char *const chat[] = {"\"logprobs\":{\"content\":[", "]},", NULL};
    static const char *const old[] = {"\"logprobs\":{\"tokens\":[",
                                      "],\"token_logprobs\":[",
                                      "],\"top_logprobs\":[",
                                      "],\"text_offset\":[",
                                      "]},",
                                      NULL};
    static const char *const native[] = {"\"completion_probabilities\":[", "],\"tokens\":[", "],",
                                         NULL};
    static const char *const tokens[] = {"", "\"tokens\":[", "],", NULL};
    static const char *const none[] = {"\"logprobs\":null,", NULL};
    static const char *const no_tokens[] = {"\"tokens\":[],", NULL};
    if (t->kind == TASK_NATIVE)
        return t->logprobs ? native : t->tokens ? tokens : no_tokens;
    return !t->logprobs ? none : t->kind == TASK_CHAT ? chat : old;
}

static void put_in_list(const answer *a, const shared *s, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    int32_t n = get_token(r, all);
    const task *t = a->task;
    const drey_model *m = s->options->model;
    out_text(out, a->comma ? "," : "");
    if (t->kind == TASK_NATIVE && a->list == 1)
        out_format(out, "%d", all[0].id);
    else if (t->kind != TASK_COMPLETION)
        part_token(m, all, n, out);
    else if (a->list == 0)
        part_token_text(m, all[0].id, out);
    else if (a->list == 1)
        out_number(out, (double)all[0].logprob);
    else if (a->list == 2)
        put_top(s, all, n, out);
    else
        out_format(out, "%zu", a->n_characters);
}

/* The next record of the text, or of a list. False: that was the last one. */
static bool put_record(answer *a, const shared *s, text_out *out)
{
    record r;
    size_t next;
    if (!record_at(a->task->jobs[a->choice], a->at, &r, &next))
        return false;
    a->at = next;
    if (a->stage == WHOLE_TEXT && r.kind == RECORD_TEXT)
        out_escaped(out, r.bytes, r.n);
    if (a->stage == WHOLE_LIST && r.kind == RECORD_TEXT)
        a->n_characters += utf8_count(r.bytes, r.n);
    if (a->stage == WHOLE_LIST && r.kind == RECORD_TOKEN) {
        put_in_list(a, s, &r, out);
        a->comma = true;
    }
    return true;
}

static void to(answer *a, int stage)
{
    a->stage = stage;
    a->at = a->n_characters = 0;
    a->comma = false;
}

static void next_list(answer *a, text_out *out)
{
    const char *const *lists = lists_of(a->task);
    out_text(out, lists[a->list]);
    if (!lists[a->list + 1])
        to(a, WHOLE_CLOSE);
    else if (!lists[a->list][0]) /* there is no such list */
        a->list++;
    else
        to(a, WHOLE_LIST);
}

static void close_choice(answer *a, const shared *s, text_out *out)
{
    const task *t = a->task;
    const job *j = t->jobs[a->choice];
    if (t->kind == TASK_NATIVE)
        put_native_end(j, s, out);
    else
        out_format(out, "\"finish_reason\":\"%s\"}", part_finish(j));
    a->choice++;
    to(a, t->kind == TASK_NATIVE     ? WHOLE_DONE
          : a->choice < t->n_choices ? WHOLE_CHOICE
                                     : WHOLE_TAIL);
}

static answer_state next_of_whole(answer *a, const shared *s, text_out *out)
{
    const task *t = a->task;
    switch (a->stage) {
    case WHOLE_FRONT:
        if (t->kind == TASK_NATIVE)
            out_text(out, "{");
        else
            put_front(t, s, false, out);
        out_text(out, t->kind == TASK_NATIVE ? "" : "\"choices\":[");
        to(a, WHOLE_CHOICE);
        return ANSWER_PIECE;
    case WHOLE_CHOICE:
        put_choice(a, out);
        to(a, WHOLE_TEXT);
        return ANSWER_PIECE;
    case WHOLE_TEXT:
        if (!put_record(a, s, out)) {
            out_text(out, t->kind == TASK_CHAT ? "\"}," : "\",");
            a->list = 0;
            to(a, WHOLE_LISTS);
        }
        return ANSWER_PIECE;
    case WHOLE_LISTS:
        next_list(a, out);
        return ANSWER_PIECE;
    case WHOLE_LIST:
        if (!put_record(a, s, out)) {
            a->list++;
            to(a, WHOLE_LISTS);
        }
        return ANSWER_PIECE;
    case WHOLE_CLOSE:
        close_choice(a, s, out);
        return ANSWER_PIECE;
    case WHOLE_TAIL:
        out_text(out, "],");
        part_usage(t, out);
        out_text(out, ",");
        put_end(t, out);
        out_text(out, "}");
        to(a, WHOLE_DONE);
        return ANSWER_PIECE;
    default:
        return ANSWER_ENDS;
    }
}

static answer_state whole(answer *a, const shared *s, text_out *out)
{
    for (int32_t i = 0; i < a->task->n_choices; i++)
        if (a->task->jobs[i]->state != JOB_DONE)
            return ANSWER_WAITS;
    return next_of_whole(a, s, out);
}

/* ---- Events as they come ---- */

enum { STREAM_GOES_ON, STREAM_USAGE, STREAM_DONE, STREAM_OVER };

static void open_chunk(const task *t, const shared *s, text_out *out)
{
    out_text(out, "data: ");
    if (t->kind == TASK_NATIVE)
        out_text(out, "{");
    else
        put_front(t, s, true, out);
}

static void close_chunk(text_out *out)
{
    out_text(out, "}\n\n");
}

/* A chunk of one choice; text NULL: nothing of it. token NULL: nothing about one. finish NULL: it
 * continues. */
typedef struct chunk {
    const record *text, *token;
    const char *role, *finish;
    size_t offset;
} chunk;

static void put_chunk_logprobs(const task *t, const shared *s, const chunk *c, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (!c->token || !t->logprobs) {
        out_text(out, "\"logprobs\":null,");
        return;
    }
    int32_t n = get_token(c->token, all);
    if (t->kind == TASK_CHAT) {
        out_text(out, "\"logprobs\":{\"content\":[");
        part_token(s->options->model, all, n, out);
        out_text(out, "]},");
        return;
    }
    out_text(out, "\"logprobs\":{\"tokens\":[");
    part_token_text(s->options->model, all[0].id, out);
    out_text(out, "],\"token_logprobs\":[");
    out_number(out, (double)all[0].logprob);
    out_text(out, "],\"top_logprobs\":[");
    put_top(s, all, n, out);
    out_format(out, "],\"text_offset\":[%zu]},", c->offset);
}

static void put_text(const record *text, text_out *out)
{
    out_string(out, text ? text->bytes : "", text ? text->n : 0);
}

static void put_native_chunk(const job *j, const shared *s, const chunk *c, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    out_format(out, "\"index\":%d,\"content\":", j->choice);
    put_text(c->text, out);
    out_text(out, ",\"tokens\":[");
    int32_t n = c->token ? get_token(c->token, all) : 0;
    if (n)
        out_format(out, "%d", all[0].id);
    out_text(out, "],");
    if (n && j->task->logprobs) {
        out_text(out, "\"completion_probabilities\":[");
        part_token(s->options->model, all, n, out);
        out_text(out, "],");
    }
    out_format(out,
               "\"id_slot\":%d,\"stop\":false,\"tokens_predicted\":%lld,"
               "\"tokens_evaluated\":%zu",
               j->seat, (long long)j->counts.n_tokens, j->task->n_ids);
}

static void put_choice_chunk(const job *j, const shared *s, const chunk *c, text_out *out)
{
    const task *t = j->task;
    out_format(out, "\"choices\":[{\"index\":%d,", j->choice);
    if (t->kind == TASK_COMPLETION) {
        out_text(out, "\"text\":");
        put_text(c->text, out);
        out_text(out, ",");
    } else if (c->role) {
        out_format(out, "\"delta\":{\"role\":\"%s\",\"content\":null},", c->role);
    } else if (c->text || c->token) {
        out_text(out, "\"delta\":{\"content\":");
        put_text(c->text, out);
        out_text(out, "},");
    } else {
        out_text(out, "\"delta\":{},");
    }
    put_chunk_logprobs(t, s, c, out);
    out_format(out, "\"finish_reason\":%s%s%s}]", c->finish ? "\"" : "",
               c->finish ? c->finish : "null", c->finish ? "\"" : "");
}

/* Without its end, so that more can follow. */
static void put_chunk(const job *j, const shared *s, const chunk *c, text_out *out)
{
    open_chunk(j->task, s, out);
    if (j->task->kind == TASK_NATIVE)
        put_native_chunk(j, s, c, out);
    else
        put_choice_chunk(j, s, c, out);
    if (j->task->timings && c->text) {
        out_text(out, ",");
        part_timings_now(j, out);
    }
}

static void put_progress(const job *j, const shared *s, const record *r, text_out *out)
{
    record_progress p;
    memcpy(&p, r->bytes, sizeof p);
    put_chunk(j, s, &(chunk){.text = NULL}, out);
    long long cached = (long long)j->counts.n_cached;
    out_format(out,
               ",\"prompt_progress\":{\"total\":%lld,\"cache\":%lld,\"processed\":%lld,"
               "\"time_ms\":%.0f}",
               (long long)p.total + cached, cached, (long long)p.done + cached, 1e3 * p.s);
    close_chunk(out);
}

/* A token goes with the text that it completes, where that came with it. */
static void put_next(answer *a, job *j, const shared *s, text_out *out)
{
    record r, text;
    size_t next, after_text;
    if (!record_at(j, j->n_read, &r, &next))
        return;
    if (r.kind == RECORD_PROGRESS) {
        put_progress(j, s, &r, out);
        j->n_read = next;
        return;
    }
    chunk c = {.offset = a->offset[j->choice]};
    if (r.kind == RECORD_TEXT) {
        c.text = &r;
    } else {
        c.token = &r;
        if (record_at(j, next, &text, &after_text) && text.kind == RECORD_TEXT) {
            c.text = &text;
            next = after_text;
        }
    }
    if (c.text)
        a->offset[j->choice] += utf8_count(c.text->bytes, c.text->n);
    put_chunk(j, s, &c, out);
    close_chunk(out);
    j->n_read = next;
}

static void put_shown(job *j, const shared *s, text_out *out)
{
    put_chunk(j, s, &(chunk){.text = NULL}, out);
    out_text(out, ",\"drey\":{\"provisional\":");
    out_string(out, j->shown, j->n_shown);
    out_text(out, "}");
    close_chunk(out);
    j->shown_changed = false;
}

static bool all_ended(const answer *a)
{
    for (int32_t i = 0; i < a->task->n_choices; i++)
        if (!a->ended[i])
            return false;
    return true;
}

static void put_finish(answer *a, const job *j, const shared *s, text_out *out)
{
    const task *t = a->task;
    a->ended[j->choice] = true;
    if (t->kind == TASK_NATIVE) {
        out_text(out, "data: {\"index\":0,\"content\":\"\",\"tokens\":[],");
        put_native_end(j, s, out);
        out_text(out, "\n\n");
    } else {
        put_chunk(j, s, &(chunk){.finish = part_finish(j)}, out);
        if (all_ended(a) && !t->usage) {
            out_text(out, ",");
            put_end(t, out);
        }
        close_chunk(out);
    }
    if (all_ended(a))
        a->stage = t->usage && t->kind != TASK_NATIVE ? STREAM_USAGE : STREAM_DONE;
}

/* One thing of one choice; false: there is nothing new. */
static bool put_of_choice(answer *a, int32_t choice, shared *s, text_out *out)
{
    refusal r;
    job *j = a->task->jobs[choice];
    bool news = j->n_read < j->n_published, done = j->state == JOB_DONE;
    if (a->ended[choice] || (!news && !done && !j->shown_changed))
        return false;
    if (done && !news && failed(j, &r)) {
        out_text(out, "data: ");
        answer_refusal(&r, out);
        out_text(out, "\n\n");
        a->stage = STREAM_OVER;
    } else if (!a->began[choice] && a->task->kind == TASK_CHAT) {
        put_chunk(j, s, &(chunk){.role = "assistant"}, out);
        close_chunk(out);
    } else if (news) {
        put_next(a, j, s, out);
    } else if (j->shown_changed) {
        put_shown(j, s, out);
    } else {
        put_finish(a, j, s, out);
    }
    a->began[choice] = true;
    return true;
}

static answer_state stream(answer *a, shared *s, text_out *out)
{
    const task *t = a->task;
    if (a->stage == STREAM_USAGE) {
        open_chunk(t, s, out);
        out_text(out, "\"choices\":[],");
        part_usage(t, out);
        out_text(out, ",");
        put_end(t, out);
        close_chunk(out);
        a->stage = STREAM_DONE;
        return ANSWER_PIECE;
    }
    if (a->stage == STREAM_DONE && t->kind != TASK_NATIVE) {
        out_text(out, "data: [DONE]\n\n");
        a->stage = STREAM_OVER;
        return ANSWER_PIECE;
    }
    if (a->stage != STREAM_GOES_ON)
        return ANSWER_ENDS;
    for (int32_t i = 0; i < t->n_choices; i++) {
        a->choice = (a->choice + 1) % t->n_choices;
        if (put_of_choice(a, a->choice, s, out))
            return ANSWER_PIECE;
    }
    return ANSWER_WAITS;
}

bool answer_has_begun(const answer *a)
{
    const task *t = a->task;
    int32_t n_done = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        if (t->stream && (t->jobs[i]->n_published > t->jobs[i]->n_read || a->began[i]))
            return true;
        n_done += t->jobs[i]->state == JOB_DONE;
    }
    return n_done == t->n_choices;
}

bool answer_check(const answer *a, refusal *r)
{
    bool whole = !a->task->stream;
    for (int32_t i = 0; i < a->task->n_choices; i++) {
        const job *j = a->task->jobs[i];
        if (j->state == JOB_DONE && (whole || j->n_read == j->n_published) && failed(j, r))
            return false;
    }
    return true;
}

answer_state answer_next(answer *a, shared *s, text_out *out)
{
    return a->task->stream ? stream(a, s, out) : whole(a, s, out);
}
