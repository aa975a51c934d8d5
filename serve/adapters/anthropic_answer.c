/* Anthropic's form of an answer: a message of blocks. */
#include "serve/answer/answer_parts.h"
#include "serve/adapters/adapter.h"

#include <string.h>

static void put_usage(const sequence *j, text_out *out)
{
    long long cached = (long long)j->counts.n_cached;
    long long written = j->state == SEQUENCE_DONE ? (long long)j->statistics.generated_tokens
                                                  : (long long)j->counts.n_tokens;
    out_json(out,
             "usage:{input_tokens:%lld,cache_creation_input_tokens:0,"
             "cache_read_input_tokens:%lld,output_tokens:%lld}",
             (long long)j->request->prompts.n_ids - cached, cached, written);
}

/* Writes why it ended, and at which of its stop texts. */
static void put_reason(answer *a, const sequence *j, text_out *out)
{
    bool stopped = j->statistics.finish == DREY_FINISH_STOP;
    const char *word = part_stop_text(j);
    const char *reason = word                                     ? "stop_sequence"
                         : stopped && adapter_own(a)->n_calls > 0 ? "tool_use"
                         : stopped                                ? "end_turn"
                                                                  : "max_tokens";
    out_json(out, "stop_reason:%s,stop_sequence:%s", reason, word);
}

static void put_front(const answer *a, text_out *out)
{
    out_json(out, "{id:%s,type:'message',role:'assistant',model:%s,content:[", a->request->id.text,
             a->request->shared->options->name);
}

/* An answer that is being put together. */
typedef struct putting {
    answer *a;
    text_out *out;
} putting;

static void put_call_front(const answer *a, const drey_reply_part *p, text_out *out)
{
    char id[CALL_ID_BYTES];
    part_call_id(a->request, 0, p->call, id);
    out_json(out, "{type:'tool_use',id:%s,name:%.*s,input:", id, (int)p->n_bytes, p->bytes);
}

/* ---- Blocks, in one value ---- */

static void open_block(answer *a, int32_t kind, const drey_reply_part *p, text_out *out)
{
    if (kind == BLOCK_CALL)
        put_call_front(a, p, out);
    else
        out_json(out, kind == BLOCK_TEXT ? "{type:'text',text:'"
                                         : "{type:'thinking',signature:'',thinking:'");
    adapter_own(a)->kind = kind;
    adapter_own(a)->n++;
}

static void close_block(answer *a, text_out *out)
{
    if (adapter_own(a)->kind != BLOCK_NONE)
        out_json(out, adapter_own(a)->kind == BLOCK_CALL ? "}" : "\"}");
}

enum { PASS_COUNT, PASS_BLOCKS };

static void put_part(void *user, const drey_reply_part *p)
{
    answer *a = ((putting *)user)->a;
    text_out *out = ((putting *)user)->out;
    int32_t kind = adapter_block(p);
    if (a->pass == PASS_COUNT) {
        adapter_count(a, p);
        return;
    }
    if (kind == BLOCK_CALL && p->call >= adapter_own(a)->n_whole)
        return;
    if (p->kind == DREY_REPLY_CALL || kind != adapter_own(a)->kind) {
        close_block(a, out);
        open_block(a, kind, p, out);
    }
    if (p->kind == DREY_REPLY_ARGUMENTS)
        out_bytes(out, p->bytes, p->n_bytes);
    else if (kind != BLOCK_CALL)
        out_escaped(out, p->bytes, p->n_bytes);
}

/* A message has one block at least. */
static bool open(answer *a, text_out *out)
{
    putting x = {a, out};
    if (a->pass > PASS_COUNT) {
        a->pass--;
        adapter_end(a, put_part, &x);
        a->pass++;
    }
    if (a->pass <= PASS_BLOCKS)
        return true;
    if (adapter_own(a)->n == 0)
        open_block(a, BLOCK_TEXT, NULL, out);
    close_block(a, out);
    return false;
}

static void put_record(answer *a, const record *r, text_out *out)
{
    adapter_read(a, r, put_part, &(putting){a, out});
}

static void close_message(answer *a, text_out *out)
{
    const sequence *j = a->request->sequences[0];
    out_json(out, "]");
    put_reason(a, j, out);
    put_usage(j, out);
    out_json(out, "}");
}

/* ---- Events ---- */

static void begin(answer *a, const sequence *j, text_out *out)
{
    part_open_event("message_start", out);
    out_json(out, "message:");
    put_front(a, out);
    out_json(out, "]stop_reason:null,stop_sequence:null");
    put_usage(j, out);
    out_json(out, "}");
    part_close_event(out);
}

static void start_block(answer *a, int32_t kind, const drey_reply_part *p, text_out *out)
{
    part_open_event("content_block_start", out);
    out_json(out, "index:%d,content_block:", adapter_own(a)->n++);
    if (kind == BLOCK_CALL) {
        put_call_front(a, p, out);
        out_json(out, "{}}");
    } else {
        out_json(out, kind == BLOCK_TEXT ? "{type:'text',text:''}"
                                         : "{type:'thinking',thinking:'',signature:''}");
    }
    part_close_event(out);
    adapter_own(a)->kind = kind;
}

/* Thinking is signed by others; who sends it back sends a signature as well. */
static void stop_block(answer *a, text_out *out)
{
    const adapter_state *own = adapter_own(a);
    if (own->kind == BLOCK_NONE)
        return;
    if (own->kind == BLOCK_REASONING) {
        part_open_event("content_block_delta", out);
        out_json(out, "index:%d,delta:{type:'signature_delta',signature:''}", own->n - 1);
        part_close_event(out);
    }
    part_open_event("content_block_stop", out);
    out_json(out, "index:%d", own->n - 1);
    part_close_event(out);
}

static void stream_part(void *user, const drey_reply_part *p)
{
    static const char *const types[] = {[BLOCK_TEXT] = "text_delta",
                                        [BLOCK_REASONING] = "thinking_delta",
                                        [BLOCK_CALL] = "input_json_delta"};
    static const char *const keys[] = {
        [BLOCK_TEXT] = "text", [BLOCK_REASONING] = "thinking", [BLOCK_CALL] = "partial_json"};
    answer *a = ((putting *)user)->a;
    text_out *out = ((putting *)user)->out;
    int32_t kind = adapter_block(p);
    adapter_count(a, p);
    if (p->kind == DREY_REPLY_CALL || kind != adapter_own(a)->kind) {
        stop_block(a, out);
        start_block(a, kind, p, out);
    }
    if (p->kind == DREY_REPLY_CALL || p->n_bytes == 0)
        return;
    part_open_event("content_block_delta", out);
    out_json(out, "index:%d,delta:{type:%s,%s:%.*s}", adapter_own(a)->n - 1, types[kind],
             keys[kind], (int)p->n_bytes, p->bytes);
    part_close_event(out);
}

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    (void)j;
    if (p->text)
        adapter_read(a, p->text, stream_part, &(putting){a, out});
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    adapter_end(a, stream_part, &(putting){a, out});
    if (adapter_own(a)->n == 0)
        start_block(a, BLOCK_TEXT, NULL, out);
    stop_block(a, out);
    part_open_event("message_delta", out);
    out_json(out, "delta:{");
    put_reason(a, j, out);
    out_json(out, "}");
    put_usage(j, out);
    part_close_event(out);
    part_open_event("message_stop", out);
    part_close_event(out);
}

/* ---- Refusals ---- */

static const char *type_of(const refusal *r)
{
    int s = r->status;
    return s == 401   ? "authentication_error"
           : s == 403 ? "permission_error"
           : s == 404 ? "not_found_error"
           : s == 413 ? "request_too_large"
           : s == 503 ? "overloaded_error"
           : s >= 500 ? "api_error"
                      : "invalid_request_error";
}

/* Programs look for the words in front when a conversation has grown too long. */
static void refuse(const refusal *r, text_out *out)
{
    out_json(out, "{type:'error',error:{type:%s,message:'", type_of(r));
    if (r->n_ctx)
        out_format(out, "prompt is too long: %lld tokens > %lld maximum. ",
                   (long long)r->n_prompt_tokens, (long long)r->n_ctx - 1);
    out_escaped(out, r->message, strlen(r->message));
    out_json(out, "\"}request_id:null}");
}

static void fail(const refusal *r, text_out *out)
{
    out_text(out, "event: error\ndata: ");
    out->begun = false;
    refuse(r, out);
    out_text(out, "\n\n");
}

static void ping(answer *a, text_out *out)
{
    (void)a;
    part_open_event("ping", out);
    part_close_event(out);
}

const serializer answer_anthropic = {.id_prefix = "msg_",
                                     .ping = ping,
                                     .front = put_front,
                                     .open = open,
                                     .record = put_record,
                                     .close = close_message,
                                     .begin = begin,
                                     .piece = put_piece,
                                     .finish = finish,
                                     .refuse = refuse,
                                     .fail = fail};
