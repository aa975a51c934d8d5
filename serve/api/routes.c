/* Endpoints: which there are, and what each does with a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "serve/adapters/adapter.h"
#include "serve/net/network.h"
#include "serve/net/routes.h"
#include "serve/api/embeddings.h"
#include "serve/api/slots.h"

typedef void handler(network *n, connection *c, json_value *body);

typedef struct route {
    const char *path;
    bool get, post, open; /* open: without a key */
    handler *handle;
    const serializer *form; /* form of its answers, and of its refusals; NULL: it has no requests */
    void (*report)(network *n, text_out *out); /* instead of `handle`: its answer */
} route;

static void refuse_now(network *n, connection *c, int status, const char *why)
{
    refusal r;
    refuse_fixed(&r, status, why);
    respond_refusal(n, c, &r);
}

/* ---- Of the server itself ---- */

static void health(network *n, connection *c, json_value *body)
{
    (void)body;
    pthread_mutex_lock(&n->shared->lock);
    bool ready = n->shared->ready;
    pthread_mutex_unlock(&n->shared->lock);
    if (!ready || n->http.stopping) {
        refuse_now(n, c, 503, ready ? "The server is being stopped." : "Loading model");
        return;
    }
    http_respond_text(&n->http, &c->http, "{\"status\":\"ok\"}");
}

static void metrics(network *n, connection *c, json_value *body)
{
    (void)body;
    char began[64];
    out_begin(&n->scratch);
    report_metrics(n, &n->scratch);
    snprintf(began, sizeof began, "Process-Start-Time-Unix: %lld\r\n", (long long)n->shared->began);
    http_respond(&n->http, &c->http,
                 &(http_answer){.status = 200,
                                .type = "text/plain; version=0.0.4; charset=utf-8",
                                .headers = began,
                                .body = n->scratch.text,
                                .n = n->scratch.n});
}

static void slots(network *n, connection *c, json_value *body)
{
    (void)body;
    pthread_mutex_lock(&n->shared->lock);
    bool busy = n->shared->n_running == n->options->n_sessions;
    pthread_mutex_unlock(&n->shared->lock);
    if (busy && http_query(c->http.head.query, "fail_on_no_slot").text) {
        refuse_now(n, c, 503, "No slot is idle.");
        return;
    }
    out_begin(&n->scratch);
    report_slots(n, &n->scratch);
    respond_json(n, c);
}

/* The next of the names, each after a comma; false: there is none. */
static bool next_alias(const char **names, char word[128])
{
    if (!*names || !**names)
        return false;
    size_t n = strcspn(*names + 1, ",");
    snprintf(word, 128, "%.*s", (int)n, *names + 1);
    *names += 1 + n;
    return true;
}

static void report_models(network *n, text_out *out)
{
    char word[128];
    const char *names = n->options->aliases;
    out_json(out, "{object:'list',data:[");
    report_model(n, n->options->name, out);
    while (next_alias(&names, word))
        report_model(n, word, out);
    out_json(out, "]}");
}

static void one_model(network *n, connection *c, http_span name)
{
    char word[128];
    const char *names = n->options->aliases;
    bool known = http_path_is(name, n->options->name);
    snprintf(word, sizeof word, "%s", n->options->name);
    while (!known && next_alias(&names, word))
        known = http_path_is(name, word);
    if (!known) {
        refusal r;
        refuse_with(&r, 404, "The model \"%.*s\" is not here; this server has \"%.100s\".",
                    (int)(name.n < 100 ? name.n : 100), name.text, n->options->name);
        respond_refusal(n, c, &r);
        return;
    }
    out_begin(&n->scratch);
    report_model(n, word, &n->scratch);
    respond_json(n, c);
}

static void page(network *n, connection *c, json_value *body)
{
    (void)body;
    http_respond_page(&n->http, &c->http);
}

/* ---- Tokens and templates ---- */

/* Bytes that are no text alone, as parts of a character, are an array of numbers. */
static void put_token_piece(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n = 0;
    drey_detokenize(m, &id, 1, DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER, bytes, sizeof bytes, &n,
                    NULL);
    n = n < sizeof bytes ? n : sizeof bytes;
    out_json(out, "{id:%d,piece:", id);
    if (utf8_is_whole(bytes, n)) {
        out_string(out, bytes, n);
    } else {
        out_json(out, "[");
        for (size_t i = 0; i < n; i++)
            out_json(out, "%d", (unsigned char)bytes[i]);
        out_json(out, "]");
    }
    out_json(out, "}");
}

static void tokenize(network *n, connection *c, json_value *body)
{
    const serve_options *o = n->options;
    const json_value *content = json_member(body, "content");
    bool add = false, parse = true, pieces = false;
    refusal r;
    size_t n_ids = 0;
    if (!content || content->type != JSON_STRING) {
        refuse_now(n, c, 400, "Field 'content' takes a text.");
        return;
    }
    if (!parse_flag(body, "add_special", &add, &r) ||
        !parse_flag(body, "parse_special", &parse, &r) ||
        !parse_flag(body, "with_pieces", &pieces, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    int flags = (add ? DREY_TOKENIZE_BOS : 0) | (parse ? DREY_TOKENIZE_SPECIAL : 0);
    drey_error err = {0};
    drey_status status =
        drey_tokenize(o->model, content->text, content->n, flags, n->ids, n->n_ids, &n_ids, &err);
    if (status != DREY_OK) {
        if (n_ids > n->n_ids)
            refuse_with(&r, 400,
                        "The text has %zu tokens, more than the %zu that this server gives "
                        "a request.",
                        n_ids, n->n_ids);
        else
            refuse_error(&r, &err);
        respond_refusal(n, c, &r);
        return;
    }
    out_begin(&n->scratch);
    out_json(&n->scratch, "{tokens:[");
    for (size_t i = 0; i < n_ids; i++)
        if (pieces)
            put_token_piece(o->model, n->ids[i], &n->scratch);
        else
            out_json(&n->scratch, "%d", n->ids[i]);
    out_json(&n->scratch, "]}");
    respond_json(n, c);
}

/* The text of tokens goes through the half of scratch that the answer does not need yet: escaped it
 * may be longer, and is in the other. */
static void detokenize(network *n, connection *c, json_value *body)
{
    const json_value *tokens = json_member(body, "tokens");
    size_t n_ids = 0, n_bytes = 0, half = n->scratch.capacity / 2;
    bool good = tokens && tokens->type == JSON_ARRAY && tokens->n <= n->n_ids;
    for (const json_value *v = good ? tokens->first : NULL; v && good; v = v->next) {
        good = v->type == JSON_NUMBER && v->is_integer && v->integer >= 0 && v->integer < INT32_MAX;
        if (good)
            n->ids[n_ids++] = (int32_t)v->integer;
    }
    if (!good) {
        refuse_now(n, c, 400, "Field 'tokens' takes an array of token ids.");
        return;
    }
    drey_error err = {0};
    out_begin(&n->scratch);
    drey_status status = drey_detokenize(n->options->model, n->ids, n_ids, DREY_TOKENIZE_SPECIAL,
                                         n->scratch.text + half, half, &n_bytes, &err);
    if (status != DREY_OK) {
        refusal r;
        refuse_error(&r, &err);
        respond_refusal(n, c, &r);
        return;
    }
    text_out out = {.text = n->scratch.text, .capacity = half};
    out_json(&out, "{content:%.*s}", (int)(n_bytes), n->scratch.text + half);
    n->scratch.n = out.n;
    n->scratch.full = out.full;
    respond_json(n, c);
}

static void apply_template(network *n, connection *c, json_value *body)
{
    refusal r;
    char *text = NULL;
    size_t n_text = 0;
    if (!parse_template(body, n->options, &n->scratch, &text, &n_text, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    out_begin(&n->scratch);
    out_json(&n->scratch, "{prompt:%.*s}", (int)(n_text), text);
    drey_free(text);
    respond_json(n, c);
}

/* ---- Texts ---- */

/* Nobody has a place for it: how many have one, when there may be another, and whether memory would
 * let the server write more at a time. With the lock. */
static void refuse_full(const network *n, int32_t n_choices, refusal *r)
{
    const shared *s = n->shared;
    const serve_options *o = n->options;
    const drey_plan *p = &s->plan;
    double each_s = s->totals.sequence_s > 0 ? s->totals.sequence_s : 10;
    double wait_s = each_s * (double)(s->n_queued + n_choices) / o->n_sessions;
    bool unlimited = p->budget_bytes == DREY_MEMORY_UNLIMITED;
    char left[64] = "memory is not limited";
    if (!unlimited)
        snprintf(left, sizeof left, "the memory budget has %.1f MiB left",
                 (double)p->spare_bytes / 1048576);
    refuse_with(r, 503,
                "%d texts are here: this server writes %d at a time and lets %d wait, and the "
                "request asks for %d. One session more would take %.1f MiB, and %s%s. There may be "
                "room in about %.0f seconds.",
                s->n_running + s->n_queued, o->n_sessions, o->n_queue, n_choices,
                (double)p->session_bytes / 1048576, left,
                unlimited || p->spare_bytes >= p->session_bytes
                    ? ": the server could be started with more"
                    : "",
                wait_s < 1 ? 1 : wait_s);
    r->retry_s = wait_s < 1 ? 1 : wait_s > 3600 ? 3600 : (int32_t)wait_s;
}

static bool take_request(network *n, connection *c, int32_t n_choices, refusal *r)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    /* Among those in the queue are some that an idle session will take in a moment. */
    bool room =
        s->n_queued + s->n_running + n_choices <= n->options->n_queue + n->options->n_sessions;
    request *t = room && !n->http.stopping ? request_take(s, n_choices) : NULL;
    if (n->http.stopping)
        refuse_with(r, 503, "The server is being stopped: ask again in a moment.");
    else if (!t)
        refuse_full(n, n_choices, r);
    s->totals.refused += !t;
    pthread_mutex_unlock(&s->lock);
    c->answer = (answer){.request = t, .serializer = c->answer.serializer};
    return t != NULL;
}

/* The request was filled, or why it was not. */
static void queue_request(network *n, connection *c, bool good, const refusal *r)
{
    shared *s = n->shared;
    request *t = c->answer.request;
    pthread_mutex_lock(&s->lock);
    s->totals.requests++;
    if (good)
        request_queue(s, t, answer_keeps(&c->answer));
    else
        request_release(s, t);
    pthread_mutex_unlock(&s->lock);
    if (good) {
        streams_begin(n, c);
        return;
    }
    c->answer.request = NULL;
    respond_refusal(n, c, r);
}

static void begin_request(network *n, connection *c, json_value *body, request_kind kind)
{
    refusal r;
    int32_t n_choices;
    if (!parse_choices(body, kind, n->options, &n_choices, &r) ||
        !take_request(n, c, n_choices, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    answer_name(&c->answer);
    bool good = parse_request(c->answer.request, kind, body, n->options, &n->scratch, &r);
    if (good && c->answer.serializer->take)
        c->answer.serializer->take(c->answer.request, body);
    queue_request(n, c, good, &r);
}

static void chat(network *n, connection *c, json_value *body)
{
    begin_request(n, c, body, REQUEST_CHAT);
}

static void completion(network *n, connection *c, json_value *body)
{
    begin_request(n, c, body, REQUEST_COMPLETION);
}

static void native(network *n, connection *c, json_value *body)
{
    begin_request(n, c, body, REQUEST_NATIVE);
}

/* Reads or deletes an answer that outlives its connection. */
static void one_stream(network *n, connection *c, json_value *body)
{
    (void)body;
    if (c->http.head.method == HTTP_DELETE)
        streams_delete(n, c);
    else
        streams_get(n, c);
}

static void lookup_streams(network *n, connection *c, json_value *body)
{
    streams_lookup(n, c, body);
}

/* ---- Other interfaces ---- */

/* The body as a chat's; NULL: it is refused. What the body was read into is used again. */
static json_value *rewrite(network *n, connection *c, const json_value *body, adapter_fn *put_chat)
{
    text_out *out = &n->rewritten;
    json_values values = {.values = n->values, .capacity = n->n_values};
    refusal r;
    out_begin(out);
    if (!put_chat(body, out, &r)) {
        respond_refusal(n, c, &r);
        return NULL;
    }
    json_value *chat = out->full ? NULL : json_parse(&values, out->text, out->n);
    if (!chat)
        refuse_now(n, c, 413, "The conversation is larger than this server takes.");
    return chat;
}

static void begin_adapted(network *n, connection *c, json_value *body, adapter_fn *put_chat)
{
    json_value *chat_body = rewrite(n, c, body, put_chat);
    if (chat_body)
        begin_request(n, c, chat_body, REQUEST_CHAT);
}

static void count_tokens(network *n, connection *c, json_value *body, const char *object)
{
    refusal r;
    size_t n_tokens;
    if (!body)
        return;
    if (!parse_prompt_tokens(body, n->options, &n->scratch, n->ids, n->n_ids, &n_tokens, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    out_begin(&n->scratch);
    out_json(&n->scratch, "{");
    if (object)
        out_json(&n->scratch, "object:%s", object);
    out_json(&n->scratch, "input_tokens:%zu}", n_tokens);
    respond_json(n, c);
}

static void chat_tokens(network *n, connection *c, json_value *body)
{
    count_tokens(n, c, body, NULL);
}

static void anthropic(network *n, connection *c, json_value *body)
{
    begin_adapted(n, c, body, anthropic_request);
}

static void anthropic_tokens(network *n, connection *c, json_value *body)
{
    count_tokens(n, c, rewrite(n, c, body, anthropic_request), NULL);
}

/* Responses that are kept can be continued; what is kept of this one has no id yet. */
static json_value *rewrite_response(network *n, connection *c, const json_value *body, bool *kept)
{
    const json_value *id = json_member(body, "previous_response_id");
    text_out *out = &n->rewritten;
    json_values values = {.values = n->values, .capacity = n->n_values};
    previous_conversation before = {.n = 0};
    const json_value *store = json_member(body, "store");
    refusal r;
    out_begin(out);
    if (id) {
        const stored_response *e =
            id->type == JSON_STRING ? response_store_find(&n->store, id->text, id->n) : NULL;
        if (!e) {
            refuse_now(n, c, 404,
                       "Field 'previous_response_id': no such response is kept (any "
                       "more). Send the whole conversation in 'input'.");
            return NULL;
        }
        before.messages = n->store.memory + e->at;
        before.n = e->n_messages;
    }
    if (!responses_request(body, &before, out, &r)) {
        respond_refusal(n, c, &r);
        return NULL;
    }
    *kept = !(store && store->type == JSON_FALSE) && !out->full &&
            adapter_keep(&n->store, &before, out);
    json_value *asked = out->full ? NULL : json_parse(&values, out->text, out->n);
    if (!asked)
        refuse_now(n, c, 413, "The conversation is larger than this server takes.");
    return asked;
}

static void responses(network *n, connection *c, json_value *body)
{
    bool kept = false;
    json_value *asked = rewrite_response(n, c, body, &kept);
    if (asked)
        begin_request(n, c, asked, REQUEST_CHAT);
    if (kept && c->answer.request)
        response_store_name(&n->store, c->answer.request->id.text);
    else if (kept)
        response_store_forget(&n->store, &n->store.entries[n->store.n_entries - 1]);
}

static void response_tokens(network *n, connection *c, json_value *body)
{
    bool kept = false;
    json_value *asked = rewrite_response(n, c, body, &kept);
    if (kept)
        response_store_forget(&n->store, &n->store.entries[n->store.n_entries - 1]);
    count_tokens(n, c, asked, "response.input_tokens");
}

static const char response_path[] = "/v1/responses/";

static void one_response(network *n, connection *c, json_value *body)
{
    (void)body;
    http_span path = c->http.head.path;
    size_t n_front = http_path_front(path, response_path);
    const stored_response *e =
        response_store_find(&n->store, path.text + n_front, path.n - n_front);
    if (!e) {
        refuse_now(n, c, 404, "No such response is kept (any more).");
        return;
    }
    out_begin(&n->scratch);
    if (c->http.head.method == HTTP_DELETE) {
        out_json(&n->scratch, "{id:%s,object:'response',deleted:true}", e->id);
        response_store_forget(&n->store, e);
    } else {
        out_bytes(&n->scratch, n->store.memory + e->at + e->n_messages, e->n_response);
    }
    respond_json(n, c);
}

static void ollama_chat(network *n, connection *c, json_value *body)
{
    const json_value *messages = json_member_array(body, "messages");
    if (messages && messages->n > 0) {
        begin_adapted(n, c, body, ollama_chat_request);
        return;
    }
    out_begin(&n->scratch);
    ollama_loaded(n->shared, true, &n->scratch);
    respond_json(n, c);
}

static void ollama_generate(network *n, connection *c, json_value *body)
{
    bool text = ollama_is_text(body);
    if (rewrite_asks(json_member(body, "prompt"))) {
        json_value *asked = rewrite(n, c, body, ollama_generate_request);
        if (asked)
            begin_request(n, c, asked, text ? REQUEST_COMPLETION : REQUEST_CHAT);
        return;
    }
    out_begin(&n->scratch);
    ollama_loaded(n->shared, false, &n->scratch);
    respond_json(n, c);
}

static void report_tags(network *n, text_out *out)
{
    ollama_tags(n->shared, false, out);
}

static void report_running(network *n, text_out *out)
{
    ollama_tags(n->shared, true, out);
}

static void report_shown(network *n, text_out *out)
{
    ollama_show(n->shared, out);
}

static void report_version(network *n, text_out *out)
{
    (void)n;
    out_json(out, "{version:%s}", drey_version());
}

/* ---- Sessions in files ---- */

static const char slot_path[] = "/slots/";

static void slot_action(network *n, connection *c, json_value *body)
{
    refusal r;
    const http_head *h = &c->http.head;
    size_t n_front = http_path_front(h->path, slot_path);
    const http_span id = {h->path.text + n_front, h->path.n - n_front};
    if (!take_request(n, c, 1, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    answer_name(&c->answer);
    queue_request(n, c, parse_slot(c->answer.request, id, h->query, body, n->options, &r), &r);
}

static void infill(network *n, connection *c, json_value *body)
{
    if (json_member(body, "input_prefix") && json_member(body, "input_suffix"))
        begin_request(n, c, body, REQUEST_NATIVE);
    else
        refuse_now(n, c, 400, "Fields 'input_prefix' and 'input_suffix' are missing.");
}

/* ---- Vectors ---- */

static void begin_embedding(network *n, connection *c, const json_value *body, bool native)
{
    refusal r;
    if (!take_request(n, c, 1, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    answer_name(&c->answer);
    queue_request(n, c, parse_embedding(c->answer.request, body, native, n->options, &r), &r);
}

static void embedding(network *n, connection *c, json_value *body)
{
    begin_embedding(n, c, body, false);
}

static void native_embedding(network *n, connection *c, json_value *body)
{
    begin_embedding(n, c, body, true);
}

static void ollama_vector(network *n, connection *c, json_value *body)
{
    const json_value *asked = rewrite(n, c, body, ollama_vectors_request);
    if (asked)
        begin_embedding(n, c, asked, false);
}

static bool are_texts(const json_value *list)
{
    bool good = list && list->type == JSON_ARRAY && list->n > 0;
    for (const json_value *one = good ? list->first : NULL; one; one = one->next)
        good = good && one->type == JSON_STRING;
    return good;
}

static void rerank(network *n, connection *c, json_value *body)
{
    const json_value *documents = json_member(body, "documents");
    if (!json_member_text(body, "query") ||
        !are_texts(documents ? documents : json_member(body, "texts"))) {
        refuse_now(n, c, 400, "Field 'query' takes a text, and 'documents' an array of texts.");
        return;
    }
    refuse_now(n, c, 501,
               "This server compares no texts: it runs decoders, whose files have no head for "
               "that. Compare vectors of /v1/embeddings instead.");
}

/* ---- The table ---- */

static const route routes[] = {
    {"/", true, false, true, page, NULL, NULL},
    {"/index.html", true, false, true, page, NULL, NULL},
    {"/health", true, false, true, health, NULL, NULL},
    {"/v1/health", true, false, true, health, NULL, NULL},
    {"/metrics", true, false, false, metrics, NULL, NULL},
    {"/slots", true, false, false, slots, NULL, NULL},
    {"/props", true, false, false, NULL, NULL, report_props},
    {"/models", true, false, false, NULL, NULL, report_models},
    {"/v1/models", true, false, false, NULL, NULL, report_models},
    {"/tokenize", false, true, false, tokenize, NULL, NULL},
    {"/detokenize", false, true, false, detokenize, NULL, NULL},
    {"/apply-template", false, true, false, apply_template, NULL, NULL},
    {"/completion", false, true, false, native, &answer_native, NULL},
    {"/completions", false, true, false, native, &answer_native, NULL},
    {"/infill", false, true, false, infill, &answer_native, NULL},
    {"/v1/completions", false, true, false, completion, &answer_completion, NULL},
    {"/chat/completions", false, true, false, chat, &answer_chat, NULL},
    {"/v1/chat/completions", false, true, false, chat, &answer_chat, NULL},
    {"/chat/completions/input_tokens", false, true, false, chat_tokens, NULL, NULL},
    {"/v1/chat/completions/input_tokens", false, true, false, chat_tokens, NULL, NULL},
    {"/embedding", false, true, false, native_embedding, &answer_embedding, NULL},
    {"/embeddings", false, true, false, native_embedding, &answer_embedding, NULL},
    {"/v1/embeddings", false, true, false, embedding, &answer_embedding, NULL},
    {"/rerank", false, true, false, rerank, NULL, NULL},
    {"/reranking", false, true, false, rerank, NULL, NULL},
    {"/v1/rerank", false, true, false, rerank, NULL, NULL},
    {"/v1/reranking", false, true, false, rerank, NULL, NULL},
    {"/v1/messages", false, true, false, anthropic, &answer_anthropic, NULL},
    {"/v1/messages/count_tokens", false, true, false, anthropic_tokens, &answer_anthropic, NULL},
    {"/v1/stream", true, false, false, one_stream, NULL, NULL},
    {"/v1/streams/lookup", false, true, false, lookup_streams, NULL, NULL},
    {"/responses", false, true, false, responses, &answer_responses, NULL},
    {"/v1/responses", false, true, false, responses, &answer_responses, NULL},
    {"/responses/input_tokens", false, true, false, response_tokens, &answer_responses, NULL},
    {"/v1/responses/input_tokens", false, true, false, response_tokens, &answer_responses, NULL},
    {"/api/chat", false, true, false, ollama_chat, &answer_ollama_chat, NULL},
    {"/api/generate", false, true, false, ollama_generate, &answer_ollama_generate, NULL},
    {"/api/embed", false, true, false, embedding, &answer_ollama_vectors, NULL},
    {"/api/embeddings", false, true, false, ollama_vector, &answer_ollama_vector, NULL},
    {"/api/tags", true, false, false, NULL, &answer_ollama_chat, report_tags},
    {"/api/ps", true, false, false, NULL, &answer_ollama_chat, report_running},
    {"/api/show", false, true, false, NULL, &answer_ollama_chat, report_shown},
    {"/api/version", true, false, false, NULL, &answer_ollama_chat, report_version},
};

static const char model_path[] = "/v1/models/";

/* Returns the name of a model that follows it; n 0: it is another path. */
static http_span model_name(http_span path)
{
    size_t n = http_path_front(path, model_path);
    return n ? (http_span){path.text + n, path.n - n} : (http_span){"", 0};
}

static const route *find_route(http_span path)
{
    static const route response = {response_path,     true, false, false, one_response,
                                   &answer_responses, NULL};
    static const route slot = {slot_path, false, true, false, slot_action, &answer_slot, NULL};
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (http_path_is(path, routes[i].path))
            return &routes[i];
    return http_path_front(path, slot_path)       ? &slot
           : http_path_front(path, response_path) ? &response
                                                  : NULL;
}

static void count_bad(network *n)
{
    pthread_mutex_lock(&n->shared->lock);
    n->shared->totals.bad++;
    pthread_mutex_unlock(&n->shared->lock);
}

/* Endpoints that can be switched off. */
static bool is_closed(const char *closed, const route *r)
{
    const char *word = r->handle == page      ? "page"
                       : r->handle == metrics ? "metrics"
                       : r->handle == slots   ? "slots"
                                              : NULL;
    return word && access_lists(closed, word);
}

bool route_is_health(http_span path)
{
    const route *r = find_route(path);
    return r && r->handle == health;
}

const serializer *route_serializer(http_span path)
{
    const route *r = find_route(path);
    return r ? r->form : NULL;
}

bool route_is_open(http_span path)
{
    const route *r = find_route(path);
    return r && r->open;
}

bool route_exists(const http_head *h, const char *closed, refusal *why)
{
    const route *r = find_route(h->path);
    bool model = model_name(h->path).n > 0,
         reads = h->method == HTTP_GET || h->method == HTTP_HEAD ||
                 (h->method == HTTP_DELETE && r &&
                  (r->handle == one_response || r->handle == one_stream));
    bool off = r && is_closed(closed, r);
    if ((!r && !model) || (off && r->handle == page))
        return refuse_with(why, 404,
                           "There is no \"%.*s\" here: the API of OpenAI is below /v1, as "
                           "/v1/chat/completions.",
                           (int)(h->path.n < 100 ? h->path.n : 100), h->path.text);
    if (off)
        return refuse_with(why, 501, "This server was started with this endpoint closed.");
    if (model ? reads : (reads && r->get) || (h->method == HTTP_POST && r->post))
        return true;
    return refuse_fixed(why, 405,
                        model || r->get ? "This endpoint takes GET." : "This endpoint takes POST.");
}

bool route_head(network *n, connection *c)
{
    const http_head *h = &c->http.head;
    refusal why;
    c->answer.serializer = route_serializer(h->path);
    bool needs_key = h->method != HTTP_OPTIONS && !route_is_open(h->path);
    if (!access_allows(&n->http.rules, h, needs_key, &why)) {
        count_bad(n);
        respond_refusal(n, c, &why);
        return true;
    }
    if (h->method == HTTP_OPTIONS) {
        http_respond(
            &n->http, &c->http,
            &(http_answer){.status = 204, .headers = "Allow: GET, POST, DELETE, OPTIONS\r\n"});
        return true;
    }
    if (route_exists(h, n->options->closed, &why))
        return false;
    respond_refusal(n, c, &why);
    return true;
}

static void report(network *n, connection *c, const route *r)
{
    out_begin(&n->scratch);
    r->report(n, &n->scratch);
    respond_json(n, c);
}

void route_request(network *n, connection *c)
{
    const route *r = find_route(c->http.head.path);
    if (!r) {
        one_model(n, c, model_name(c->http.head.path));
        return;
    }
    if (r->report && !r->post) {
        report(n, c, r);
        return;
    }
    if (!r->post || (c->http.n_body == 0 && r->handle == slot_action)) { /* it may need no body */
        r->handle(n, c, NULL);
        return;
    }
    static const char mark[] = "\xEF\xBB\xBF"; /* which some editors put in front of UTF-8 */
    json_values values = {.values = n->values, .capacity = n->n_values};
    size_t n_mark = c->http.n_body >= 3 && memcmp(c->http.body, mark, 3) == 0 ? 3 : 0;
    json_value *body = json_parse(&values, c->http.body + n_mark, c->http.n_body - n_mark);
    if (body && body->type == JSON_OBJECT && r->report) {
        report(n, c, r);
        return;
    }
    if (body && body->type == JSON_OBJECT) {
        r->handle(n, c, body);
        return;
    }
    refusal why;
    count_bad(n);
    if (!body)
        refuse_with(&why, 400, "The request's body is no JSON: at byte %zu %s.", values.at,
                    values.why);
    else
        refuse_with(&why, 400, "The request's body has to be a JSON object.");
    respond_refusal(n, c, &why);
}
