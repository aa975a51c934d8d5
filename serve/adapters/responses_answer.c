/* OpenAI's newer form of an answer, /v1/responses: items. Its last events repeat each item as a
 * whole, and then all of them, so a stream's records stay and are read again for each. */
#include "serve/answer/answer_parts.h"
#include "serve/adapters/adapter.h"
#include "serve/adapters/response_store.h"

#include <string.h>

/* ---- The response ---- */

/* Keeps the tools as they were asked for, if they are no longer than two events have room for. */
static void take(request *t, const json_value *body)
{
    enum { MOST_BYTES = 16 << 10 };
    const json_value *tools = json_member(body, "response_tools"),
                     *choice = json_member(body, "response_tool_choice");
    text_out out = {.text = t->sequences[0]->records, .capacity = MOST_BYTES};
    if (!tools && !choice)
        return;
    out_json(&out, tools ? "tools:" : "tools:[]");
    if (tools)
        out_value(&out, tools);
    out_json(&out, choice ? "tool_choice:" : "tool_choice:'auto'");
    if (choice)
        out_value(&out, choice);
    if (!out.full)
        request_keep_own(t, out.n);
}

static void put_front(const answer *a, const char *status, text_out *out)
{
    const request *t = a->request;
    out_json(out,
             "{id:%s,object:'response',created_at:%lld,model:%s,status:%s,error:null,"
             "parallel_tool_calls:true,metadata:{},temperature:%g,top_p:%g",
             t->id.text, (long long)t->id.created, a->request->shared->options->name, status,
             (double)t->sampling.filters.temperature, (double)t->sampling.filters.top_p);
    if (t->n_own > 0)
        out_item(out, t->sequences[0]->records, t->n_own);
    else
        out_json(out, "tools:[],tool_choice:'auto'");
    out_json(out, "output:[");
}

/* Up to its items. */
static void front(const answer *a, text_out *out)
{
    bool whole = a->request->sequences[0]->statistics.finish == DREY_FINISH_STOP;
    put_front(a, whole ? "completed" : "incomplete", out);
}

static void close_response(const answer *a, text_out *out)
{
    const sequence *j = a->request->sequences[0];
    long long n = (long long)a->request->prompts.n_ids, cached = (long long)j->counts.n_cached,
              written = (long long)j->statistics.generated_tokens;
    out_json(out, j->statistics.finish == DREY_FINISH_STOP
                      ? "]incomplete_details:null"
                      : "]incomplete_details:{reason:'max_output_tokens'}");
    out_json(out,
             "usage:{input_tokens:%lld,input_tokens_details:{cached_tokens:%lld},"
             "output_tokens:%lld,output_tokens_details:{reasoning_tokens:0},total_tokens:%lld}}",
             n, cached, written, n + written);
}

/* ---- Items ---- */

/* Part of the items that is read again: all of them, or something of one. */
typedef enum what { ITEMS, CONTENT_DONE, PART_DONE, ITEM_DONE } what;
typedef struct reading {
    answer *a;
    text_out *out;
    what what;
    int32_t item; /* item of all kinds but ITEMS */
} reading;

static void put_id(answer *a, const char *key, int32_t kind, text_out *out)
{
    static const char *const front_of[] = {
        [BLOCK_TEXT] = "msg", [BLOCK_REASONING] = "rs", [BLOCK_CALL] = "fc"};
    const char *digits = strchr(a->request->id.text, '_');
    out_json(out, "%s:'%s%s_%d'", key, front_of[kind], digits ? digits : "_", adapter_own(a)->n);
}

/* Up to its text; p: of a call, its name. */
static void put_item_front(answer *a, int32_t kind, const drey_reply_part *p, const char *status,
                           text_out *out)
{
    char id[CALL_ID_BYTES];
    out_json(out, "{");
    put_id(a, "id", kind, out);
    if (kind == BLOCK_TEXT) {
        out_json(out, "type:'message',status:%s,role:'assistant',content:[", status);
    } else if (kind == BLOCK_REASONING) {
        out_json(out, "type:'reasoning',summary:[],content:[");
    } else {
        part_call_id(a->request, 0, p->call, id);
        out_json(out, "type:'function_call',status:%s,call_id:%s,name:%.*s,arguments:'", status, id,
                 (int)p->n_bytes, p->bytes);
    }
}

/* The part of a message or of reasoning, up to its text. */
static void put_part_front(int32_t kind, text_out *out)
{
    if (kind == BLOCK_TEXT)
        out_json(out, "{type:'output_text',annotations:[],logprobs:[],text:'");
    else if (kind == BLOCK_REASONING)
        out_json(out, "{type:'reasoning_text',text:'");
}

/* ---- Events ---- */

static void open_event(answer *a, const char *type, text_out *out)
{
    part_open_event(type, out);
    out_json(out, "sequence_number:%d", adapter_own(a)->n_events++);
}

/* The same about the item that is open. */
static void open_item_event(answer *a, const char *type, int32_t kind, bool in_content,
                            text_out *out)
{
    open_event(a, type, out);
    put_id(a, "item_id", kind, out);
    out_json(out, "output_index:%d", adapter_own(a)->n);
    if (in_content)
        out_json(out, "content_index:0");
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
        if (kind == BLOCK_CALL)
            out_json(out, "name:%.*s,arguments:'", (int)p->n_bytes, p->bytes);
        else
            out_json(out, kind == BLOCK_TEXT ? "logprobs:[],text:'" : "text:'");
    } else if (x->what == PART_DONE && kind != BLOCK_CALL) {
        open_item_event(a, "response.content_part.done", kind, true, out);
        out_json(out, "part:");
        put_part_front(kind, out);
    } else if (x->what == ITEM_DONE) {
        open_event(a, "response.output_item.done", out);
        out_json(out, "output_index:%d,item:", adapter_own(a)->n);
        put_item_front(a, kind, p, "completed", out);
        put_part_front(kind, out);
    }
}

/* ---- Reading again ---- */

static bool is_read(const reading *x)
{
    return x->what == ITEMS || adapter_own(x->a)->n == x->item;
}

static void begin_item(const reading *x, int32_t kind, const drey_reply_part *p)
{
    adapter_own(x->a)->kind = kind;
    if (!is_read(x))
        return;
    if (x->what != ITEMS) {
        begin_done(x, kind, p);
        return;
    }
    put_item_front(x->a, kind, p, "completed", x->out);
    put_part_front(kind, x->out);
}

static void end_item(const reading *x)
{
    adapter_state *own = adapter_own(x->a);
    bool call = own->kind == BLOCK_CALL;
    if (own->kind == BLOCK_NONE)
        return;
    if (is_read(x) && !(call && x->what == PART_DONE)) {
        bool item = x->what == ITEMS || x->what == ITEM_DONE;
        out_json(x->out, item && !call ? "\"}]}" : item || x->what == PART_DONE ? "\"}" : "\"");
        if (x->what != ITEMS)
            part_close_event(x->out);
    }
    own->n++;
    own->kind = BLOCK_NONE;
}

static void on_part(void *user, const drey_reply_part *p)
{
    const reading *x = user;
    int32_t kind = adapter_block(p);
    if (p->kind == DREY_REPLY_CALL || kind != adapter_own(x->a)->kind) {
        end_item(x);
        begin_item(x, kind, p);
    }
    bool silent = p->kind == DREY_REPLY_CALL || (kind == BLOCK_CALL && x->what == PART_DONE);
    if (!silent && is_read(x))
        out_escaped(x->out, p->bytes, p->n_bytes);
}

static void begin_reading(answer *a)
{
    adapter_begin(a);
    adapter_own(a)->kind = BLOCK_NONE;
    adapter_own(a)->n = 0;
}

/* A response has one item at least. */
static void end_reading(reading *x)
{
    const adapter_state *own = adapter_own(x->a);
    adapter_end(x->a, on_part, x);
    if (own->n == 0 && own->kind == BLOCK_NONE)
        begin_item(x, BLOCK_TEXT, NULL);
    end_item(x);
}

/* Reads the next record; false: that was the last one. */
static bool read_on(reading *x)
{
    record r;
    if (answer_record(x->a, &r)) {
        adapter_read(x->a, &r, on_part, x);
        return true;
    }
    end_reading(x);
    return false;
}

/* ---- Keeping ---- */

/* The answer as a message of the assistant: what it thought, said and called. */
typedef struct message {
    const request *request;
    text_out *out;
    int32_t kind; /* kind of the parts that are put out */
    int32_t n;
} message;

static void on_message_part(void *user, const drey_reply_part *p)
{
    message *m = user;
    char id[CALL_ID_BYTES];
    if (adapter_block(p) != m->kind)
        return;
    if (p->kind == DREY_REPLY_CALL) {
        out_json(m->out, m->n++ ? "\"}}" : "tool_calls:[");
        part_call_id(m->request, 0, p->call, id);
        out_json(m->out, "{type:'function',id:%s,function:{name:%.*s,arguments:'", id,
                 (int)p->n_bytes, p->bytes);
        return;
    }
    if (m->n++ == 0 && m->kind == BLOCK_REASONING)
        out_json(m->out, "reasoning_content:'");
    out_escaped(m->out, p->bytes, p->n_bytes);
}

static void put_kind(answer *a, int32_t kind, text_out *out)
{
    message m = {.request = a->request, .out = out, .kind = kind};
    record r;
    adapter_begin(a);
    while (answer_record(a, &r))
        adapter_read(a, &r, on_message_part, &m);
    adapter_end(a, on_message_part, &m);
    if (m.n || kind == BLOCK_TEXT)
        out_json(out, kind == BLOCK_CALL ? "\"}}]" : "\"");
}

/* a's place in the records is not kept. */
static void keep(answer *a)
{
    text_out out;
    if (!a->request->shared->store ||
        !response_store_open(a->request->shared->store, a->request->id.text, &out))
        return;
    out.begun = true; /* after other messages */
    out_json(&out, "{role:'assistant',content:'");
    put_kind(a, BLOCK_TEXT, &out);
    put_kind(a, BLOCK_REASONING, &out);
    put_kind(a, BLOCK_CALL, &out);
    out_json(&out, "}");
    out.begun = false;
    size_t n_messages = out.n;
    reading x = {.a = a, .out = &out, .what = ITEMS};
    front(a, &out);
    begin_reading(a);
    while (read_on(&x))
        ;
    close_response(a, &out);
    response_store_close(a->request->shared->store, &out, n_messages);
}

/* ---- One value ---- */

static bool open(answer *a, text_out *out)
{
    reading x = {.a = a, .out = out, .what = ITEMS};
    if (a->pass == 0)
        return true;
    end_reading(&x);
    return false;
}

static void put_record(answer *a, const record *r, text_out *out)
{
    adapter_read(a, r, on_part, &(reading){.a = a, .out = out, .what = ITEMS});
}

static void close_choice(answer *a, text_out *out)
{
    close_response(a, out);
    keep(a);
}

/* ---- As it comes ---- */

static void put_state(answer *a, const char *type, text_out *out)
{
    open_event(a, type, out);
    out_json(out, "response:");
    put_front(a, "in_progress", out);
    out_json(out, "]}");
}

static void begin(answer *a, const sequence *j, text_out *out)
{
    (void)j;
    put_state(a, "response.created", out);
    part_close_event(out);
    put_state(a, "response.in_progress", out);
    part_close_event(out);
}

static void ping(answer *a, text_out *out)
{
    open_event(a, "keepalive", out);
    part_close_event(out);
}

static void start_item(answer *a, int32_t kind, const drey_reply_part *p, text_out *out)
{
    adapter_state *own = adapter_own(a);
    own->n += own->kind != BLOCK_NONE;
    own->kind = kind;
    open_event(a, "response.output_item.added", out);
    out_json(out, "output_index:%d,item:", own->n);
    put_item_front(a, kind, p, "in_progress", out);
    out_json(out, kind == BLOCK_CALL ? "\"}" : "]}");
    part_close_event(out);
    if (kind == BLOCK_CALL)
        return;
    open_item_event(a, "response.content_part.added", kind, true, out);
    out_json(out, "part:");
    put_part_front(kind, out);
    out_json(out, "\"}");
    part_close_event(out);
}

typedef struct streaming {
    answer *a;
    const sequence *j;
    const piece *piece; /* piece that comes with its first event; NULL: nothing */
    text_out *out;
} streaming;

static void on_delta(void *user, const drey_reply_part *p)
{
    static const char *const delta[] = {[BLOCK_TEXT] = "response.output_text.delta",
                                        [BLOCK_REASONING] = "response.reasoning_text.delta",
                                        [BLOCK_CALL] = "response.function_call_arguments.delta"};
    streaming *x = user;
    int32_t kind = adapter_block(p);
    if (p->kind == DREY_REPLY_CALL || kind != adapter_own(x->a)->kind)
        start_item(x->a, kind, p, x->out);
    if (p->kind == DREY_REPLY_CALL || p->n_bytes == 0)
        return;
    open_item_event(x->a, delta[kind], kind, kind != BLOCK_CALL, x->out);
    out_json(x->out, kind == BLOCK_TEXT ? "logprobs:[],delta:%.*s" : "delta:%.*s", (int)p->n_bytes,
             p->bytes);
    if (x->piece)
        part_piece(x->j, x->piece, x->out);
    x->piece = NULL;
    part_close_event(x->out);
}

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    if (p->text) {
        adapter_read(a, p->text, on_delta, &(streaming){a, j, p, out});
    } else if (p->progress) {
        put_state(a, "response.in_progress", out);
        part_piece(j, p, out);
        part_close_event(out);
    }
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    adapter_end(a, on_delta, &(streaming){a, j, NULL, out});
    if (adapter_own(a)->kind == BLOCK_NONE)
        start_item(a, BLOCK_TEXT, NULL, out);
    adapter_own(a)->n_items = adapter_own(a)->n + 1;
}

/* Each item three times, then all of them. */
static bool last(answer *a, text_out *out)
{
    enum { STEPS = 3 };
    adapter_state *own = adapter_own(a);
    reading x = {a, out, CONTENT_DONE + (what)(own->step % STEPS), own->step / STEPS};
    bool items = x.item < own->n_items;
    if (x.item > own->n_items)
        return false;
    if (!items)
        x.what = ITEMS;
    if (!a->open) {
        begin_reading(a);
        a->open = true;
        if (!items) {
            open_event(a, "response.completed", out);
            out_json(out, "response:");
            front(a, out);
        }
        return true;
    }
    if (read_on(&x))
        return true;
    a->open = false;
    own->step += items ? 1 : STEPS;
    if (!items) {
        close_response(a, out);
        part_timings(a->request, out);
        part_close_event(out);
        keep(a);
    }
    return true;
}

static void fail(const refusal *r, text_out *out)
{
    part_open_event("response.failed", out);
    out_json(out,
             "response:{object:'response',status:'failed',output:[],error:{code:'server_error',"
             "message:%s}}",
             r->message);
    part_close_event(out);
}

const serializer answer_responses = {.id_prefix = "resp_",
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
                                     .take = take,
                                     .fail = fail};
