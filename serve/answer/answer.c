/* Answers: see answer.h. */
#include "serve/answer/serializer.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/utf8.h"

/* ---- Records ---- */

/* The published record at `at`; false: there is none. */
static bool record_at(const sequence *j, size_t at, record *out, size_t *next)
{
    record_head head;
    if (at >= j->n_published)
        return false;
    memcpy(&head, j->records + at, sizeof head);
    *out = (record){(record_kind)head.kind, j->records + at + sizeof head, head.n};
    *next = at + sizeof head + head.n;
    return true;
}

size_t answer_first_record(const answer *a)
{
    return a->choice == 0 ? a->request->n_own : 0;
}

bool answer_record(answer *a, record *out)
{
    return record_at(a->request->sequences[a->choice], a->at, out, &a->at);
}

int32_t record_token(const record *r, drey_logprob all[1 + DREY_MAX_TOP])
{
    memcpy(all, r->bytes, r->n);
    return (int32_t)(r->n / sizeof *all);
}

/* ---- Failures ---- */

/* Says why a sequence that is done has no answer; false: it has one. */
static bool failed(const sequence *j, refusal *r)
{
    if (j->overflow)
        return !refuse_fixed(r, 500,
                             j->keep ? "The answer is longer than the server keeps: ask for "
                                       "fewer tokens, or with 'stream': true."
                                     : "The client reads more slowly than the text is "
                                       "written, and there is no more room to keep it.");
    if (j->status == DREY_OK)
        return false;
    refuse_error(r, &j->error);
    if (j->status == DREY_ERR_CANCELLED)
        refuse_fixed(r, 503, j->error.message);
    return true;
}

void answer_refusal(const serializer *form, const refusal *r, text_out *out)
{
    if (form && form->refuse) {
        form->refuse(r, out);
        return;
    }
    if (r->code)
        out_json(out, "{error:{code:%s", r->code);
    else
        out_json(out, "{error:{code:%d", r->status);
    out_json(out, "message:%s,type:%s", r->message, r->type);
    if (r->n_ctx)
        out_json(out, "n_prompt_tokens:%lld,n_ctx:%lld", (long long)r->n_prompt_tokens,
                 (long long)r->n_ctx);
    out_json(out, "}}");
}

/* ---- One value at the end ---- */

enum { WHOLE_FRONT, WHOLE_OPEN, WHOLE_RECORDS, WHOLE_CLOSE, WHOLE_TAIL, WHOLE_DONE };

static void begin_pass(answer *a)
{
    a->stage = WHOLE_RECORDS;
    drey_reply_begin(&a->readers[a->choice], &a->request->reply);
    a->at = answer_first_record(a);
    a->n_characters = 0;
    a->open = false;
}

/* The next record of this pass. False: that was the last one. */
static bool put_record(answer *a, text_out *out)
{
    record r;
    if (!answer_record(a, &r))
        return false;
    a->serializer->record(a, &r, out);
    if (r.kind == RECORD_TEXT)
        a->n_characters += utf8_count(r.bytes, r.n);
    return true;
}

static void close_choice(answer *a, text_out *out)
{
    a->serializer->close(a, out);
    a->choice++;
    a->pass = 0;
    a->stage = a->choice < a->request->n_choices ? WHOLE_OPEN : WHOLE_TAIL;
}

static answer_state next_of_whole(answer *a, text_out *out)
{
    switch (a->stage) {
    case WHOLE_FRONT:
        a->serializer->front(a, out);
        a->stage = WHOLE_OPEN;
        return ANSWER_PIECE;
    case WHOLE_OPEN:
        if (a->serializer->open ? a->serializer->open(a, out) : a->pass == 0)
            begin_pass(a);
        else
            a->stage = WHOLE_CLOSE;
        return ANSWER_PIECE;
    case WHOLE_RECORDS:
        if (!put_record(a, out)) {
            a->pass++;
            a->stage = WHOLE_OPEN;
        }
        return ANSWER_PIECE;
    case WHOLE_CLOSE:
        close_choice(a, out);
        return ANSWER_PIECE;
    case WHOLE_TAIL:
        if (a->serializer->tail)
            a->serializer->tail(a, out);
        a->stage = WHOLE_DONE;
        return ANSWER_PIECE;
    default:
        return ANSWER_ENDS;
    }
}

static answer_state whole(answer *a, text_out *out)
{
    for (int32_t i = 0; i < a->request->n_choices; i++)
        if (a->request->sequences[i]->state != SEQUENCE_DONE)
            return ANSWER_WAITS;
    return next_of_whole(a, out);
}

/* ---- Events as they come ---- */

enum { STREAM_CONTINUES, STREAM_LAST, STREAM_OVER };

/* A token goes with the text that it completes, where that came with it. */
static void put_next(answer *a, sequence *j, text_out *out)
{
    record r, text;
    size_t next, after_text;
    if (!record_at(j, j->n_read, &r, &next))
        return;
    piece p = {.offset = a->offset[j->choice]};
    if (r.kind == RECORD_PROGRESS) {
        p.progress = &r;
    } else if (r.kind == RECORD_TEXT) {
        p.text = &r;
    } else {
        p.token = &r;
        if (record_at(j, next, &text, &after_text) && text.kind == RECORD_TEXT) {
            p.text = &text;
            next = after_text;
        }
    }
    if (p.text)
        a->offset[j->choice] += utf8_count(p.text->bytes, p.text->n);
    a->serializer->piece(a, j, &p, out);
    j->n_read = next;
}

bool answer_all_ended(const answer *a)
{
    for (int32_t i = 0; i < a->request->n_choices; i++)
        if (!a->ended[i])
            return false;
    return true;
}

static void put_finish(answer *a, const sequence *j, text_out *out)
{
    a->ended[j->choice] = true;
    a->serializer->finish(a, j, out);
    if (answer_all_ended(a)) {
        a->stage = STREAM_LAST;
        a->pass = 0;
        a->choice = 0;
        a->at = answer_first_record(a);
    }
}

static void put_failure(answer *a, const refusal *r, text_out *out)
{
    if (a->serializer->fail) {
        a->serializer->fail(r, out);
    } else {
        out_text(out, "data: ");
        out->begun = false;
        answer_refusal(NULL, r, out);
        out_text(out, "\n\n");
    }
    a->stage = STREAM_OVER;
}

/* One thing of one choice; false: there is nothing new. */
static bool put_of_choice(answer *a, int32_t choice, text_out *out)
{
    refusal r;
    sequence *j = a->request->sequences[choice];
    bool news = j->n_read < j->n_published, done = j->state == SEQUENCE_DONE;
    if (a->ended[choice] || (!news && !done && !j->shown_changed))
        return false;
    if (!a->began[choice])
        drey_reply_begin(&a->readers[choice], &a->request->reply);
    if (done && !news && failed(j, &r)) {
        put_failure(a, &r, out);
    } else if (!a->began[choice] && a->serializer->begin) {
        a->serializer->begin(a, j, out);
    } else if (news) {
        put_next(a, j, out);
    } else if (j->shown_changed) {
        a->serializer->piece(a, j, &(piece){.shown = true}, out);
        j->shown_changed = false;
    } else {
        put_finish(a, j, out);
    }
    a->began[choice] = true;
    return true;
}

static answer_state put_last(answer *a, text_out *out)
{
    if (!a->serializer->last || !a->serializer->last(a, out))
        return ANSWER_ENDS;
    a->pass++;
    return ANSWER_PIECE;
}

static answer_state stream(answer *a, text_out *out)
{
    const request *t = a->request;
    if (a->stage == STREAM_LAST)
        return put_last(a, out);
    if (a->stage == STREAM_OVER)
        return ANSWER_ENDS;
    for (int32_t i = 0; i < t->n_choices; i++) {
        a->choice = (a->choice + 1) % t->n_choices;
        if (put_of_choice(a, a->choice, out))
            return ANSWER_PIECE;
    }
    return ANSWER_WAITS;
}

/* Clients that wait for an event do not count a comment: those of forms with events for it get the
 * first ones before the prompt has been read. */
void answer_ping(answer *a, text_out *out)
{
    if (a->serializer->lines)
        return;
    if (!a->serializer->ping) {
        out_text(out, ":\n\n");
    } else if (a->began[0]) {
        a->serializer->ping(a, out);
    } else {
        drey_reply_begin(&a->readers[0], &a->request->reply);
        a->serializer->begin(a, a->request->sequences[0], out);
        a->began[0] = true;
    }
}

const char *answer_stream_type(const answer *a)
{
    return a->serializer->lines ? "application/x-ndjson" : "text/event-stream";
}

bool answer_keeps(const answer *a)
{
    return !a->request->stream || a->serializer->keeps;
}

/* Seconds for the tokens after the first one. */
static double written_s(const sequence *j)
{
    if (j->state == SEQUENCE_DONE)
        return j->statistics.decode_s;
    return j->counts.first_s > 0 ? serve_clock_s() - j->counts.first_s : 0;
}

serve_usage answer_usage(const answer *a)
{
    const request *t = a->request;
    serve_usage u = {.n_prompt = (int64_t)t->prompts.n_ids,
                     .n_cached = t->sequences[0]->counts.n_cached};
    double longest_s = 0, first_s = 0;
    int64_t n_after = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        const sequence *j = t->sequences[i];
        int64_t n = j->state == SEQUENCE_DONE ? j->statistics.generated_tokens : j->counts.n_tokens;
        double s = written_s(j), at_s = j->counts.first_s;
        first_s = at_s > 0 && (first_s <= 0 || at_s < first_s) ? at_s : first_s;
        u.cut = u.cut || j->cancelled;
        u.n_written += n;
        n_after += n > 1 ? n - 1 : 0;
        longest_s = s > longest_s ? s : longest_s;
    }
    u.first_s = first_s;
    u.tokens_per_s = longest_s > 0 ? (double)n_after / longest_s : 0;
    return u;
}

void answer_name(const answer *a)
{
    request *t = a->request;
    uint64_t random[2] = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = (uint64_t)(serve_clock_s() * 1e9);
    snprintf(t->id.text, sizeof t->id.text, "%s%012llx%012llx", a->serializer->id_prefix,
             (unsigned long long)(random[0] >> 16), (unsigned long long)(random[1] >> 16));
    t->id.created = (int64_t)time(NULL);
}

bool answer_has_begun(const answer *a)
{
    const request *t = a->request;
    int32_t n_done = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        if (t->stream && (t->sequences[i]->n_published > t->sequences[i]->n_read || a->began[i]))
            return true;
        n_done += t->sequences[i]->state == SEQUENCE_DONE;
    }
    return n_done == t->n_choices;
}

bool answer_check(const answer *a, refusal *r)
{
    bool whole = !a->request->stream;
    for (int32_t i = 0; i < a->request->n_choices; i++) {
        const sequence *j = a->request->sequences[i];
        if (j->state == SEQUENCE_DONE && (whole || j->n_read == j->n_published) && failed(j, r))
            return false;
    }
    return true;
}

answer_state answer_next(answer *a, text_out *out)
{
    out->begun = a->begun;
    answer_state state = a->request->stream ? stream(a, out) : whole(a, out);
    a->begun = out->begun;
    return state;
}
