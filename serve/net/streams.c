/* Answers that outlive their connections: see streams.h. */
#include "serve/answer/serializer.h"
#include "serve/net/network.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds that an ended answer is kept, and that one without a reader is written: a page is loaded
 * again, a telephone wakes up. If another text waits for its session, it is written for less. */
static const double stream_kept_s = 600, stream_unread_s = 600, stream_in_way_s = 10;
static const double stream_ping_s = 0.7;

size_t stream_ring_bytes(int32_t n_context)
{
    const size_t least = 128 << 10, per_token = 256;
    size_t n = least + per_token * (size_t)n_context;
    return n < STREAM_MOST_BYTES ? n : STREAM_MOST_BYTES;
}

/* ---- Which there are ---- */

/* written: the name is one of a query. */
static kept_stream *find(const network *n, http_span name, bool written)
{
    for (int32_t i = 0; i < n->streams.n; i++) {
        kept_stream *k = &n->streams.of[i];
        if (k->name[0] && (written ? http_path_is(name, k->name) : http_span_is(name, k->name)))
            return k;
    }
    return NULL;
}

static bool has_reader(const network *n, const kept_stream *k)
{
    for (int32_t i = 0; i < n->http.n_clients; i++)
        if (network_connection(n, i)->stream.of == k)
            return true;
    return false;
}

/* A free place, or that of the one that has been over longest and has no reader; NULL: none. */
static kept_stream *make_place(network *n)
{
    kept_stream *oldest = NULL;
    for (int32_t i = 0; i < n->streams.n; i++) {
        kept_stream *k = &n->streams.of[i];
        if (!k->name[0])
            return k;
        if (k->ended && !has_reader(n, k) && (!oldest || k->put_s < oldest->put_s))
            oldest = k;
    }
    if (oldest)
        stream_drop(n, oldest, NULL);
    return oldest;
}

/* Cuts off, without the last chunk of the answer, so that the client knows. */
static void cut_off(connection *c)
{
    c->all_out = true;
    c->framed = c->http.keeps = false;
}

void stream_leave(connection *c)
{
    if (c->stream.of)
        c->stream.of->read_s = serve_clock_s();
    c->stream.of = NULL;
}

void stream_drop(network *n, kept_stream *k, const connection *stays)
{
    network_drop_request(n, &k->answer);
    for (int32_t i = 0; i < n->http.n_clients; i++) {
        connection *c = network_connection(n, i);
        if (c->stream.of != k)
            continue;
        c->stream.of = NULL;
        c->answer.usage = k->answer.usage;
        if (c != stays)
            cut_off(c);
    }
    char *ring = k->ring;
    memset(k, 0, sizeof *k);
    k->ring = ring;
}

void streams_begin(network *n, connection *c)
{
    http_span name = c->http.head.conversation;
    const request *t = c->answer.request;
    if (name.n == 0 || name.n >= STREAM_NAME_BYTES || !t->stream || c->answer.serializer->lines)
        return;
    kept_stream *k = find(n, name, false);
    if (k)
        stream_drop(n, k, NULL);
    k = make_place(n);
    if (!k)
        return;
    memcpy(k->name, name.text, name.n);
    k->answer = c->answer;
    memcpy(k->request_name, t->id.text, sizeof k->request_name);
    k->created = (int64_t)time(NULL);
    k->read_s = k->put_s = serve_clock_s();
    c->answer.request = NULL;
    c->stream.of = k;
    c->stream.at = 0;
}

/* ---- The ring ---- */

static void put(network *n, kept_stream *k, const char *bytes, size_t n_bytes)
{
    size_t n_ring = n->streams.n_ring;
    for (size_t left = n_bytes; left > 0;) {
        size_t at = (size_t)(k->n_put % n_ring);
        size_t part = left < n_ring - at ? left : n_ring - at;
        memcpy(k->ring + at, bytes, part);
        bytes += part;
        left -= part;
        k->n_put += part;
    }
    if (n_bytes > 0)
        k->put_s = serve_clock_s();
}

static uint64_t first_kept(const network *n, const kept_stream *k)
{
    return k->n_put > n->streams.n_ring ? k->n_put - n->streams.n_ring : 0;
}

/* Drops drafted text, which changes all the time, as later readers have no use for it. With the
 * lock. */
static void forget_shown(const request *t)
{
    for (int32_t i = 0; i < t->n_choices; i++)
        t->sequences[i]->shown_changed = false;
}

/* Bytes that may be put before the slowest reader would lose one. */
static size_t room(const network *n, const kept_stream *k)
{
    uint64_t behind = 0;
    for (int32_t i = 0; i < n->http.n_clients; i++) {
        const connection *c = network_connection(n, i);
        if (c->stream.of == k && k->n_put - c->stream.at > behind)
            behind = k->n_put - c->stream.at;
    }
    return n->streams.n_ring - (size_t)behind;
}

/* All that there is now and that has room, through the scratch. With the lock. */
static answer_state put_pieces(network *n, kept_stream *k, text_out *out)
{
    answer_state state = ANSWER_PIECE;
    while (state == ANSWER_PIECE && room(n, k) >= ANSWER_PIECE_BYTES) {
        state = answer_next(&k->answer, out);
        put(n, k, out->text, out->n);
        out->n = 0;
    }
    return state;
}

void stream_pump(network *n, kept_stream *k, bool ping)
{
    shared *s = n->shared;
    refusal r;
    answer_state state = ANSWER_WAITS;
    text_out out = {.text = n->scratch.text, .capacity = n->scratch.capacity};
    if (!k->answer.request)
        return;
    bool read = has_reader(n, k);
    pthread_mutex_lock(&s->lock);
    if (!k->begun)
        k->begun = (ping || answer_has_begun(&k->answer)) && answer_check(&k->answer, &r);
    if (k->begun) {
        if (ping)
            answer_ping(&k->answer, &out);
        if (!read)
            forget_shown(k->answer.request);
        state = put_pieces(n, k, &out);
    }
    pthread_mutex_unlock(&s->lock);
    if (state != ANSWER_ENDS)
        return;
    network_drop_request(n, &k->answer);
    k->ended = (int64_t)time(NULL);
}

void streams_pump(network *n)
{
    for (int32_t i = 0; i < n->streams.n; i++)
        stream_pump(n, &n->streams.of[i], false);
}

void stream_read(const network *n, connection *c, text_out *out)
{
    const kept_stream *k = c->stream.of;
    size_t n_ring = n->streams.n_ring;
    assert(c->stream.at >= first_kept(n, k));
    while (c->stream.at < k->n_put && out->n < out->capacity) {
        size_t at = (size_t)(c->stream.at % n_ring), space = out->capacity - out->n;
        uint64_t left = k->n_put - c->stream.at;
        size_t part = n_ring - at;
        part = part < space ? part : space;
        part = part < left ? part : (size_t)left;
        out_bytes(out, k->ring + at, part);
        c->stream.at += part;
    }
    c->all_out = k->ended && c->stream.at == k->n_put;
}

/* ---- Time ---- */

/* Returns whether one that is LIVE and that nobody reads is given up. */
static bool is_given_up(network *n, const kept_stream *k, double unread_s)
{
    refusal r;
    pthread_mutex_lock(&n->shared->lock);
    bool in_way = n->shared->n_queued > 0;
    bool failed = !k->begun && !answer_check(&k->answer, &r);
    pthread_mutex_unlock(&n->shared->lock);
    return failed || n->http.stopping || unread_s > (in_way ? stream_in_way_s : stream_unread_s);
}

void streams_tick(network *n, double now)
{
    for (int32_t i = 0; i < n->streams.n; i++) {
        kept_stream *k = &n->streams.of[i];
        if (!k->name[0])
            continue;
        bool read = has_reader(n, k);
        if (read)
            k->read_s = now;
        if (k->ended ? now - k->put_s > stream_kept_s && !read
                     : !read && is_given_up(n, k, now - k->read_s))
            stream_drop(n, k, NULL);
        else if (read && now - k->put_s > stream_ping_s)
            stream_pump(n, k, true);
    }
}

/* ---- Requests ---- */

/* The one that conv_id names; NULL: it was refused. */
static kept_stream *asked_stream(network *n, connection *c, bool *named)
{
    http_span name = http_query(c->http.head.query, "conv_id");
    refusal r;
    *named = name.n > 0;
    if (!*named) {
        refuse_with(&r, 400, "The request has to name its conversation: ?conv_id=NAME.");
        respond_refusal(n, c, &r);
        return NULL;
    }
    return find(n, name, true);
}

/* A number of bytes; false: it is none. */
static bool read_offset(http_span text, uint64_t *out)
{
    *out = 0;
    if (text.n > 18)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.text[i] < '0' || text.text[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(text.text[i] - '0');
    }
    return true;
}

void streams_get(network *n, connection *c)
{
    bool named;
    uint64_t from;
    refusal r;
    kept_stream *k = asked_stream(n, c, &named);
    if (!named)
        return;
    if (!k)
        refuse_with(&r, 404, "No stream of this conversation is kept here (any more).");
    else if (!read_offset(http_query(c->http.head.query, "from"), &from) || from > k->n_put)
        refuse_with(&r, 400, "'from' has to be a number of bytes, at most the %llu that there are.",
                    (unsigned long long)k->n_put);
    else if (from < first_kept(n, k))
        refuse_with(&r, 400, "The stream is kept from byte %llu on.",
                    (unsigned long long)first_kept(n, k));
    else if (c->http.head.method == HTTP_HEAD) {
        http_respond(&n->http, &c->http,
                     &(http_answer){.status = 200, .type = "text/event-stream"});
        return;
    } else {
        c->stream.of = k;
        c->stream.at = from;
        k->read_s = serve_clock_s();
        return;
    }
    respond_refusal(n, c, &r);
}

void streams_delete(network *n, connection *c)
{
    bool named;
    kept_stream *k = asked_stream(n, c, &named);
    if (!named)
        return;
    if (k)
        stream_drop(n, k, NULL);
    http_respond(&n->http, &c->http, &(http_answer){.status = 204});
}

void streams_lookup(network *n, connection *c, const json_value *body)
{
    const json_value *names = json_member_array(body, "conversation_ids");
    out_begin(&n->scratch);
    out_json(&n->scratch, "[");
    for (const json_value *v = names ? names->first : NULL; v; v = v->next) {
        const kept_stream *k =
            v->type == JSON_STRING ? find(n, (http_span){v->text, v->n}, false) : NULL;
        if (k)
            out_json(&n->scratch,
                     "{conversation_id:%s,is_done:%hhd,total_bytes:%llu,started_at:%lld,"
                     "completed_at:%lld}",
                     k->name, (bool)k->ended, (unsigned long long)k->n_put, (long long)k->created,
                     (long long)k->ended);
    }
    out_json(&n->scratch, "]");
    respond_json(n, c);
}
