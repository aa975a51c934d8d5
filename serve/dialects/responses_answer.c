/* OpenAI's newer form of an answer, /v1/responses: items. Its last events repeat each item as a
 * whole, and then all of them, so a stream's records stay and are read again for each. */
#include "serve/answer/answer_parts.h"
#include "serve/dialects/dialect.h"
#include "serve/dialects/past.h"

#include <string.h>

/* ---- The response ---- */

static void put_front(const answer *a, const shared *s, const char *status, text_out *out)
{
    const task *t = a->task;
    out_format(out,
               "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"model\":", t->id.text,
               (long long)t->id.created);
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out,
               ",\"status\":\"%s\",\"error\":null,\"parallel_tool_calls\":true,\"tools\":[],"
               "\"tool_choice\":\"auto\",\"metadata\":{},\"temperature\":",
               status);
    out_number(out, (double)t->sampling.of.temperature);
    out_text(out, ",\"top_p\":");
    out_number(out, (double)t->sampling.of.top_p);
    out_text(out, ",\"output\":[");
}

/* Up to its items. */
static void front(const answer *a, const shared *s, text_out *out)
{
    bool whole = a->task->jobs[0]->statistics.finish == DREY_FINISH_STOP;
    put_front(a, s, whole ? "completed" : "incomplete", out);
}

static void close_response(const answer *a, const shared *s, text_out *out)
{
    (void)s;
    const job *j = a->task->jobs[0];
    long long n = (long long)a->task->n_ids, cached = (long long)j->counts.n_cached,
              written = (long long)j->statistics.generated_tokens;
    out_format(out,
               "],\"incomplete_details\":%s,\"usage\":{\"input_tokens\":%lld,"
               "\"input_tokens_details\":{\"cached_tokens\":%lld},\"output_tokens\":%lld,"
               "\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":%lld}}",
               j->statistics.finish == DREY_FINISH_STOP ? "null"
                                                        : "{\"reason\":\"max_output_tokens\"}",
               n, cached, written, n + written);
}

/* ---- Items ---- */

/* What is read again of the items: all of them, or something of one. */
typedef enum what { ITEMS, CONTENT_DONE, PART_DONE, ITEM_DONE } what;
typedef struct reading {
    answer *a;
    text_out *out;
    what what;
    int32_t item; /* of all but ITEMS */
} reading;

static void put_id(const answer *a, int32_t kind, int32_t item, text_out *out)
{
    static const char *const front_of[] = {
        [BLOCK_TEXT] = "msg", [BLOCK_REASONING] = "rs", [BLOCK_CALL] = "fc"};
    const char *digits = strchr(a->task->id.text, '_');
    out_format(out, "%s%s_%d", front_of[kind], digits ? digits : "_", item);
}

/* Up to its text; p: of a call, its name. */
static void put_item_front(const answer *a, int32_t kind, const drey_reply_part *p,
                           const char *status, text_out *out)
{
    char id[CALL_ID_BYTES];
    out_text(out, "{\"id\":\"");
    put_id(a, kind, a->block.n, out);
    if (kind == BLOCK_TEXT) {
        out_format(out,
                   "\",\"type\":\"message\",\"status\":\"%s\",\"role\":\"assistant\","
                   "\"content\":[",
                   status);
    } else if (kind == BLOCK_REASONING) {
        out_text(out, "\",\"type\":\"reasoning\",\"summary\":[],\"content\":[");
    } else {
        part_call_id(a->task, 0, p->call, id);
        out_format(out,
                   "\",\"type\":\"function_call\",\"status\":\"%s\",\"call_id\":\"%s\",\"name\":",
                   status, id);
        out_string(out, p->bytes, p->n_bytes);
        out_text(out, ",\"arguments\":\"");
    }
}

static const char *part_front_of(int32_t kind)
{
    return kind == BLOCK_TEXT ? "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],"
                                "\"text\":\""
           : kind == BLOCK_REASONING ? "{\"type\":\"reasoning_text\",\"text\":\""
                                     : "";
}

/* ---- Events ---- */

static void open_event(answer *a, const char *type, text_out *out)
{
    out_format(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d", type, type,
               a->block.n_events++);
}

/* Of the item a->block.n. */
static void open_item_event(answer *a, const char *type, int32_t kind, bool in_content,
                            text_out *out)
{
    open_event(a, type, out);
    out_text(out, ",\"item_id\":\"");
    put_id(a, kind, a->block.n, out);
    out_format(out, "\",\"output_index\":%d", a->block.n);
    if (in_content)
        out_text(out, ",\"content_index\":0");
}

static void begin_done(const reading *x, int32_t kind, const drey_reply_part *p)
{
    static const char *const done[] = {[BLOCK_TEXT] = "response.output_text.done",
                                       [BLOCK_REASONING] = "response.reasoning_text.done",
                                       [BLOCK_CALL] = "response.function_call_arguments.done"};
    answer *a = x->a;
    text_out *out = x->out;
    if (x->what == CONTENT_DONE) {
        open_item_event(a, done[kind], kind, kind != BLOCK_CALL, out);
        if (kind == BLOCK_CALL) {
            out_text(out, ",\"name\":");
            out_string(out, p->bytes, p->n_bytes);
        }
        out_text(out, kind == BLOCK_TEXT        ? ",\"logprobs\":[],\"text\":\""
                      : kind == BLOCK_REASONING ? ",\"text\":\""
                                                : ",\"arguments\":\"");
    } else if (x->what == PART_DONE && kind != BLOCK_CALL) {
        open_item_event(a, "response.content_part.done", kind, true, out);
        out_format(out, ",\"part\":%s", part_front_of(kind));
    } else if (x->what == ITEM_DONE) {
        open_event(a, "response.output_item.done", out);
        out_format(out, ",\"output_index\":%d,\"item\":", a->block.n);
        put_item_front(a, kind, p, "completed", out);
        out_text(out, part_front_of(kind));
    }
}

/* ---- Reading again ---- */

static bool is_read(const reading *x)
{
    return x->what == ITEMS || x->a->block.n == x->item;
}

static void begin_item(const reading *x, int32_t kind, const drey_reply_part *p)
{
    answer *a = x->a;
    a->block.kind = kind;
    if (!is_read(x))
        return;
    if (x->what != ITEMS) {
        begin_done(x, kind, p);
        return;
    }
    out_text(x->out, a->block.n ? "," : "");
    put_item_front(a, kind, p, "completed", x->out);
    out_text(x->out, part_front_of(kind));
}

static void end_item(const reading *x)
{
    answer *a = x->a;
    bool call = a->block.kind == BLOCK_CALL;
    if (a->block.kind == BLOCK_NONE)
        return;
    if (is_read(x)) {
        if (x->what == ITEMS || x->what == ITEM_DONE)
            out_text(x->out, call ? "\"}" : "\"}]}");
        else if (x->what == CONTENT_DONE)
            out_text(x->out, "\"");
        else if (!call)
            out_text(x->out, "\"}");
        if (x->what != ITEMS && !(call && x->what == PART_DONE))
            part_close_chunk(x->out);
    }
    a->block.n++;
    a->block.kind = BLOCK_NONE;
}

static void on_part(void *user, const drey_reply_part *p)
{
    const reading *x = user;
    answer *a = x->a;
    int32_t kind = dialect_block(p);
    if (p->kind == DREY_REPLY_CALL || kind != a->block.kind) {
        end_item(x);
        begin_item(x, kind, p);
    }
    bool silent = p->kind == DREY_REPLY_CALL || (kind == BLOCK_CALL && x->what == PART_DONE);
    if (!silent && is_read(x))
        out_escaped(x->out, p->bytes, p->n_bytes);
}

static void begin_reading(answer *a)
{
    dialect_begin(a);
    a->block.kind = BLOCK_NONE;
    a->block.n = 0;
}

/* The next record; false: that was the last one. A response has one item at least. */
static bool read_on(reading *x)
{
    record r;
    if (answer_record(x->a, &r)) {
        dialect_read(x->a, &r, on_part, x);
        return true;
    }
    dialect_end(x->a, on_part, x);
    if (x->a->block.n == 0 && x->a->block.kind == BLOCK_NONE)
        begin_item(x, BLOCK_TEXT, NULL);
    end_item(x);
    return false;
}

/* ---- Keeping ---- */

/* The answer as a message of the assistant: what it thought, said and called. */
typedef struct message {
    const task *task;
    text_out *out;
    int32_t kind; /* of the parts that are put out */
    int32_t n;
} message;

static void on_message_part(void *user, const drey_reply_part *p)
{
    message *m = user;
    char id[CALL_ID_BYTES];
    if (dialect_block(p) != m->kind)
        return;
    if (p->kind == DREY_REPLY_CALL) {
        out_text(m->out, m->n++ ? "\"}}," : ",\"tool_calls\":[");
        part_call_id(m->task, 0, p->call, id);
        out_format(m->out, "{\"type\":\"function\",\"id\":\"%s\",\"function\":{\"name\":", id);
        out_string(m->out, p->bytes, p->n_bytes);
        out_text(m->out, ",\"arguments\":\"");
        return;
    }
    if (m->n++ == 0 && m->kind == BLOCK_REASONING)
        out_text(m->out, ",\"reasoning_content\":\"");
    out_escaped(m->out, p->bytes, p->n_bytes);
}

static void put_kind(answer *a, int32_t kind, const char *end, text_out *out)
{
    message m = {.task = a->task, .out = out, .kind = kind};
    record r;
    dialect_begin(a);
    while (answer_record(a, &r))
        dialect_read(a, &r, on_message_part, &m);
    dialect_end(a, on_message_part, &m);
    out_text(out, m.n || kind == BLOCK_TEXT ? end : "");
}

/* a's place in the records is not kept. */
static void keep(answer *a, const shared *s)
{
    text_out out;
    if (!s->past || !past_open(s->past, a->task->id.text, &out))
        return;
    out_text(&out, ",{\"role\":\"assistant\",\"content\":\"");
    put_kind(a, BLOCK_TEXT, "\"", &out);
    put_kind(a, BLOCK_REASONING, "\"", &out);
    put_kind(a, BLOCK_CALL, "\"}}]", &out);
    out_text(&out, "}");
    size_t n_messages = out.n;
    reading x = {.a = a, .out = &out, .what = ITEMS};
    front(a, s, &out);
    begin_reading(a);
    while (read_on(&x))
        ;
    close_response(a, s, &out);
    past_close(s->past, &out, n_messages);
}

/* ---- One value ---- */

static bool open(answer *a, text_out *out)
{
    reading x = {.a = a, .out = out, .what = ITEMS};
    if (a->pass == 0)
        return true;
    dialect_end(a, on_part, &x);
    if (a->block.n == 0 && a->block.kind == BLOCK_NONE)
        begin_item(&x, BLOCK_TEXT, NULL);
    end_item(&x);
    return false;
}

static void put_record(answer *a, const shared *s, const record *r, text_out *out)
{
    (void)s;
    dialect_read(a, r, on_part, &(reading){.a = a, .out = out, .what = ITEMS});
}

static void close_choice(answer *a, const shared *s, text_out *out)
{
    close_response(a, s, out);
    keep(a, s);
}

/* ---- As it comes ---- */

static void put_state(answer *a, const shared *s, const char *type, text_out *out)
{
    open_event(a, type, out);
    out_text(out, ",\"response\":");
    put_front(a, s, "in_progress", out);
    out_text(out, "]}");
}

static void begin(answer *a, const job *j, const shared *s, text_out *out)
{
    (void)j;
    put_state(a, s, "response.created", out);
    part_close_chunk(out);
    put_state(a, s, "response.in_progress", out);
    part_close_chunk(out);
}

static void ping(answer *a, text_out *out)
{
    open_event(a, "keepalive", out);
    part_close_chunk(out);
}

static void start_item(answer *a, int32_t kind, const drey_reply_part *p, text_out *out)
{
    a->block.n += a->block.kind != BLOCK_NONE;
    a->block.kind = kind;
    open_event(a, "response.output_item.added", out);
    out_format(out, ",\"output_index\":%d,\"item\":", a->block.n);
    put_item_front(a, kind, p, "in_progress", out);
    out_text(out, kind == BLOCK_CALL ? "\"}" : "]}");
    part_close_chunk(out);
    if (kind == BLOCK_CALL)
        return;
    open_item_event(a, "response.content_part.added", kind, true, out);
    out_format(out, ",\"part\":%s\"}", part_front_of(kind));
    part_close_chunk(out);
}

typedef struct streaming {
    answer *a;
    const job *j;
    const piece *piece; /* what comes with its first event; NULL: nothing */
    text_out *out;
} streaming;

static void on_delta(void *user, const drey_reply_part *p)
{
    static const char *const delta[] = {[BLOCK_TEXT] = "response.output_text.delta",
                                        [BLOCK_REASONING] = "response.reasoning_text.delta",
                                        [BLOCK_CALL] = "response.function_call_arguments.delta"};
    streaming *x = user;
    int32_t kind = dialect_block(p);
    if (p->kind == DREY_REPLY_CALL || kind != x->a->block.kind)
        start_item(x->a, kind, p, x->out);
    if (p->kind == DREY_REPLY_CALL || p->n_bytes == 0)
        return;
    open_item_event(x->a, delta[kind], kind, kind != BLOCK_CALL, x->out);
    out_text(x->out, kind == BLOCK_TEXT ? ",\"logprobs\":[],\"delta\":" : ",\"delta\":");
    out_string(x->out, p->bytes, p->n_bytes);
    if (x->piece)
        part_piece(x->j, x->piece, x->out);
    x->piece = NULL;
    part_close_chunk(x->out);
}

static void put_piece(answer *a, const job *j, const shared *s, const piece *p, text_out *out)
{
    if (p->text) {
        dialect_read(a, p->text, on_delta, &(streaming){a, j, p, out});
    } else if (p->progress) {
        put_state(a, s, "response.in_progress", out);
        part_piece(j, p, out);
        part_close_chunk(out);
    }
}

static void finish(answer *a, const job *j, const shared *s, text_out *out)
{
    (void)s;
    dialect_end(a, on_delta, &(streaming){a, j, NULL, out});
    if (a->block.kind == BLOCK_NONE)
        start_item(a, BLOCK_TEXT, NULL, out);
    a->block.n_items = a->block.n + 1;
}

/* Each item three times, then all of them. */
static bool last(answer *a, const shared *s, text_out *out)
{
    enum { STEPS = 3 };
    int32_t step = a->block.step;
    reading x = {a, out, CONTENT_DONE + (what)(step % STEPS), step / STEPS};
    bool items = x.item < a->block.n_items;
    if (x.item > a->block.n_items)
        return false;
    if (!items)
        x.what = ITEMS;
    if (!a->comma) {
        begin_reading(a);
        a->comma = true; /* it has begun */
        if (!items) {
            open_event(a, "response.completed", out);
            out_text(out, ",\"response\":");
            front(a, s, out);
        }
        return true;
    }
    if (read_on(&x))
        return true;
    a->comma = false;
    a->block.step += items ? 1 : STEPS;
    if (!items) {
        close_response(a, s, out);
        out_text(out, ",");
        part_timings(a->task, out);
        part_close_chunk(out);
        keep(a, s);
    }
    return true;
}

static void fail(const refusal *r, text_out *out)
{
    out_text(out, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{"
                  "\"object\":\"response\",\"status\":\"failed\",\"output\":[],\"error\":{"
                  "\"code\":\"server_error\",\"message\":");
    out_string(out, r->message, strlen(r->message));
    out_text(out, "}}}\n\n");
}

const answer_form answer_responses = {.id_prefix = "resp_",
                                      .keeps = true,
                                      .front = front,
                                      .open = open,
                                      .record = put_record,
                                      .close = close_choice,
                                      .ping = ping,
                                      .begin = begin,
                                      .piece = put_piece,
                                      .finish = finish,
                                      .last = last,
                                      .fail = fail};
