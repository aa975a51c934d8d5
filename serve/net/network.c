/* Answers of one model's server: what http_server.h reads is answered, or begins a request,
 * whose text is put out as the worker publishes it. Nothing here blocks, and what takes long is
 * the worker's. */
#include "serve/net/network.h"

#include <stdio.h>
#include <string.h>

#include "serve/net/routes.h"

static const double ping_s = 0.7;
/* Seconds before the end of the grace: texts are cancelled then, so that their last events are
 * sent. */
static const double ending_s = 1;

/* The request may still run: its sequences are cancelled, and given back where they are done. */
void network_drop_request(network *n, answer *a)
{
    shared *s = n->shared;
    request *t = a->request;
    if (!t)
        return;
    pthread_mutex_lock(&s->lock);
    a->usage = answer_usage(a);
    if (!request_release(s, t)) {
        request_abandon(s, t);
        if (!request_release(s, t))
            t->abandoned = true;
    }
    pthread_mutex_unlock(&s->lock);
    a->request = NULL;
}

/* ---- Events for the owner ---- */

static void report(const network *n, const serve_event *e)
{
    if (n->options->on_event)
        n->options->on_event(n->options->user, e);
}

static void warn(const network *n, const char *text)
{
    serve_event e = {.kind = SERVE_WARNING};
    snprintf(e.of.note, sizeof e.of.note, "%s", text);
    report(n, &e);
}

/* left: its client has gone before the end. */
static void report_request(network *n, connection *c, bool left)
{
    if (!c->report.open)
        return;
    c->report.open = false;
    serve_event e =
        event_of_request(&c->http.head, c->report.status, serve_clock_s() - c->http.clock.began_s);
    const answer *a = c->stream.of ? &c->stream.of->answer : &c->answer;
    serve_request *r = &e.of.request;
    r->left = left;
    r->usage = a->usage;
    if (a->request) {
        pthread_mutex_lock(&n->shared->lock);
        r->usage = answer_usage(a);
        pthread_mutex_unlock(&n->shared->lock);
    }
    r->usage.cut = r->usage.cut && n->http.stopping && !left;
    double first_s = r->usage.first_s - c->http.clock.began_s;
    r->usage.first_s = first_s > 0 ? first_s : 0;
    if (r->status >= 400) {
        snprintf(r->why, sizeof r->why, "%s", c->report.why);
        listen_peer(&n->http.listening, c->http.socket.fd, r->peer, sizeof r->peer);
    }
    report(n, &e);
}

static void close_connection(void *user, http_client *c)
{
    network *n = user;
    connection *closed = (connection *)c;
    report_request(n, closed, true);
    network_drop_request(n, &closed->answer);
    stream_leave(closed);
}

/* Reports a client that was refused just now. */
static void turned_out(void *user, http_client *c)
{
    connection *closed = (connection *)c;
    if (closed->report.status == 0) {
        closed->report.status = 503;
        report_request(user, closed, false);
    }
}

static void begin_request(void *user, http_client *c)
{
    connection *begun = (connection *)c;
    (void)user;
    stream_leave(begun);
    begun->answer = (answer){.request = NULL};
    begun->report.status = 0;
    begun->report.why[0] = '\0';
    begun->report.open = false;
    begun->head_out = begun->framed = begun->all_out = false;
}

/* ---- Answers of requests ---- */

enum { FRAME_BYTES = 8 }; /* "00a0b0\r\n" */

/* Puts out what there is, as much as has room. With a request. */
static void put_pieces(network *n, connection *c, text_out *out)
{
    shared *s = n->shared;
    answer_state state = ANSWER_PIECE;
    pthread_mutex_lock(&s->lock);
    while (state == ANSWER_PIECE && out->capacity - out->n > ANSWER_PIECE_BYTES)
        state = answer_next(&c->answer, out);
    pthread_mutex_unlock(&s->lock);
    if (state == ANSWER_ENDS)
        c->all_out = true;
}

static bool has_begun(network *n, const connection *c)
{
    if (c->stream.of)
        return c->stream.of->begun;
    pthread_mutex_lock(&n->shared->lock);
    bool begun = answer_has_begun(&c->answer);
    pthread_mutex_unlock(&n->shared->lock);
    return begun;
}

/* Answers with the failure as a whole if one comes before the head is out. */
static bool fails_first(network *n, connection *c)
{
    refusal r;
    const answer *a = c->stream.of ? &c->stream.of->answer : &c->answer;
    if (c->stream.of && c->stream.of->begun)
        return false;
    pthread_mutex_lock(&n->shared->lock);
    bool good = answer_check(a, &r);
    pthread_mutex_unlock(&n->shared->lock);
    if (good)
        return false;
    if (c->stream.of)
        stream_drop(n, c->stream.of, c);
    network_drop_request(n, &c->answer);
    respond_refusal(n, c, &r);
    return true;
}

static void put_head(network *n, connection *c)
{
    http_client *h = &c->http;
    const answer *a = c->stream.of ? &c->stream.of->answer : &c->answer;
    bool stream = c->stream.of || a->request->stream;
    text_out out = {.text = h->out, .n = h->n_out, .capacity = HTTP_OUT_BYTES};
    c->framed = !h->head.http_1_0;
    h->keeps = h->keeps && c->framed;
    c->report.status = 200;
    c->report.open = true;
    http_put_head(&n->http.rules, &h->head, 200,
                  stream ? answer_stream_type(a) : "application/json; charset=utf-8", h->keeps,
                  &out);
    out_text(&out, stream ? "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n" : "");
    out_format(&out, "X-Request-Id: %s\r\n",
               c->stream.of ? c->stream.of->request_name : a->request->id.text);
    if (a->request && a->request->grammar.not_held[0])
        out_format(&out, "X-Drey-Not-Held: %s\r\n", a->request->grammar.not_held);
    out_text(&out, c->framed ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    h->n_out = out.n;
    c->head_out = true;
}

/* The head of a request's answer is out; false: it is not, or another answer is there. */
static bool has_head(network *n, connection *c, bool ping)
{
    if (c->head_out)
        return true;
    if (c->stream.of ? fails_first(n, c) || !has_begun(n, c)
                     : (!ping && !has_begun(n, c)) || fails_first(n, c))
        return false;
    put_head(n, c);
    return true;
}

static void put_ping(network *n, connection *c, text_out *out)
{
    pthread_mutex_lock(&n->shared->lock);
    answer_ping(&c->answer, out);
    pthread_mutex_unlock(&n->shared->lock);
}

/* Fills `out` with the next part of the request's answer, in its own chunk. */
static void fill(network *n, connection *c, bool ping)
{
    if (!has_head(n, c, ping))
        return;
    size_t frame = c->framed ? FRAME_BYTES : 0, from = c->http.n_out;
    text_out out = {.text = c->http.out, .n = from + frame, .capacity = HTTP_OUT_BYTES - 16};
    if (c->stream.of) {
        stream_pump(n, c->stream.of, false);
        stream_read(n, c, &out);
    } else {
        if (ping)
            put_ping(n, c, &out);
        put_pieces(n, c, &out);
    }
    size_t n_put = out.n - from - frame;
    if (n_put == 0)
        out.n = from;
    else
        c->spoke_s = serve_clock_s();
    if (frame && n_put > 0) {
        char size[FRAME_BYTES + 1];
        snprintf(size, sizeof size, "%06x\r\n", (unsigned)n_put & 0xFFFFFF);
        memcpy(c->http.out + from, size, frame);
        out.capacity = HTTP_OUT_BYTES;
        out_text(&out, "\r\n");
    }
    out.capacity = HTTP_OUT_BYTES;
    if (c->all_out && c->framed)
        out_text(&out, "0\r\n\r\n");
    c->http.n_out = out.n;
    if (c->all_out)
        network_drop_request(n, &c->answer);
}

/* Sends what there is to send, and says what is waited for. */
static void send_answer(network *n, connection *c, bool ping)
{
    http_client *h = &c->http;
    for (; http_flush(&n->http, h); ping = false) {
        if (c->all_out) {
            report_request(n, c, false);
            http_end(&n->http, h);
            return;
        }
        fill(n, c, ping);
        if (h->n_out == 0 && h->n_more == 0 && !c->all_out) {
            http_wait(&n->http, h, 0);
            return;
        }
    }
}

/* ---- Requests ---- */

static void answered(void *user, http_client *c, int status, const char *why)
{
    connection *asks = (connection *)c;
    (void)user;
    asks->report.status = status;
    asks->report.open = true;
    snprintf(asks->report.why, sizeof asks->report.why, "%s", why);
    asks->all_out = true;
}

static bool answer_head(void *user, http_client *c)
{
    ((connection *)c)->report.open = true;
    if (!route_head(user, (connection *)c))
        return false;
    send_answer(user, (connection *)c, false);
    return true;
}

static void answer_request(void *user, http_client *c)
{
    network *n = user;
    connection *asks = (connection *)c;
    asks->spoke_s = c->clock.since_s;
    route_request(n, asks);
    if (c->large && c->n_more == 0) /* what was asked for is known */
        http_give_large(&n->http, c);
    send_answer(n, asks, false);
}

static void proceed(void *user, http_client *c)
{
    send_answer(user, (connection *)c, false);
}

/* A stream has events that say nothing; before any other answer there is the head that changes
 * nothing. */
static void falls_silent(void *user, http_client *c)
{
    network *n = user;
    connection *silent = (connection *)c;
    const answer *a = &silent->answer;
    bool stream = a->request && a->request->stream && !silent->stream.of;
    bool begun = silent->head_out || c->n_out > 0;
    if (!stream && !begun && c->head.http_1_0)
        http_close(&n->http, c);
    else if (stream || begun || http_continue(&n->http, c))
        send_answer(n, silent, stream);
}

/* ---- Time ---- */

static void tick_answer(void *user, http_client *c, double now)
{
    connection *asks = (connection *)c;
    bool stream = asks->answer.request && asks->answer.request->stream;
    bool ping = stream && c->n_out == 0 && now - asks->spoke_s > ping_s;
    if (ping || asks->stream.of || asks->all_out) /* it may have been cut off */
        send_answer(user, asks, ping);
}

/* Tasks whose clients have gone, and whose sequences have ended since. */
static void release_requests(network *n)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->n_requests; i++)
        if (s->requests[i].used && s->requests[i].abandoned)
            request_release(s, &s->requests[i]);
    pthread_mutex_unlock(&s->lock);
}

/* ---- The end ---- */

static int32_t count_writing(const shared *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_requests; i++) {
        const request *t = &s->requests[i];
        bool runs = false;
        for (int32_t k = 0; t->used && k < t->n_choices && !runs; k++)
            runs = t->sequences[k]->state == SEQUENCE_RUNNING;
        n += runs;
    }
    return n;
}

/* New clients are refused by the system; what waits is refused; the rest has its grace. */
static void begin_to_stop(network *n)
{
    shared *s = n->shared;
    double grace_s = n->options->grace_s;
    n->stop_s = serve_clock_s() + (grace_s > ending_s ? grace_s : ending_s);
    http_stop(&n->http);
    pthread_mutex_lock(&s->lock);
    serve_event e = {.kind = SERVE_STOPPING, .of.n_writing = count_writing(s)};
    while (s->n_queued > 0)
        sequence_unqueue(s, s->queue[0], DREY_ERR_CANCELLED,
                         "The server is being stopped: ask again in a moment.");
    if (!s->ready && s->slots[0].session)
        drey_session_cancel(s->slots[0].session);
    s->stopping = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    event_loop_wake(s->wake);
    report(n, &e);
}

static void cancel_running(network *n)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->n_sequences; i++)
        if (s->sequences[i].state == SEQUENCE_RUNNING) {
            s->sequences[i].cancelled = true;
            drey_session_cancel(s->slots[s->sequences[i].slot].session);
        }
    pthread_mutex_unlock(&s->lock);
}

/* True: it is over. */
static bool stop_further(network *n, double now)
{
    int32_t n_open = 0;
    for (int32_t i = 0; i < n->http.n_clients; i++)
        n_open += http_client_at(&n->http, i)->phase != CLIENT_FREE;
    if (now > n->stop_s - ending_s)
        cancel_running(n);
    pthread_mutex_lock(&n->shared->lock);
    bool over = n->shared->over;
    pthread_mutex_unlock(&n->shared->lock);
    return over && (n_open == 0 || now > n->stop_s);
}

/* Reports what the server's owner has to know without having asked. */
static void report_news(network *n)
{
    pthread_mutex_lock(&n->shared->lock);
    bool disk_failed = n->shared->totals.prefixes.disk_failed;
    bool damaged = n->shared->totals.prefixes.damaged_files > 0;
    bool ready = n->shared->ready;
    pthread_mutex_unlock(&n->shared->lock);
    if (ready && !n->reported_ready && !n->http.stopping)
        report(n, &(serve_event){.kind = SERVE_READY});
    n->reported_ready = ready;
    if (disk_failed && !n->reported_disk)
        warn(n, "beginnings of texts cannot be written to their folder any more: the disk "
                "is full, or fails. They are kept in memory alone; make room, and start "
                "the server again");
    n->reported_disk = disk_failed;
    if (damaged && !n->reported_damage)
        warn(n, "files in the folder of beginnings were damaged; they are deleted and "
                "computed again. Check the disk if this appears again");
    n->reported_damage = damaged;
}

static bool tick(void *user, double now)
{
    network *n = user;
    shared *s = n->shared;
    streams_tick(n, now);
    release_requests(n);
    report_news(n);
    pthread_mutex_lock(&s->lock);
    s->totals.too_slow = n->http.n_slow;
    bool failed = s->over && !n->http.stopping;
    pthread_mutex_unlock(&s->lock);
    if (!n->http.stopping && (failed || !n->options->keeps_running(n->options->user)))
        begin_to_stop(n);
    return n->http.stopping && stop_further(n, now);
}

/* The worker has published something. */
static void take_published(void *user)
{
    network *n = user;
    report_news(n);
    streams_pump(n);
    for (int32_t i = 0; i < n->http.n_clients; i++) {
        connection *c = network_connection(n, i);
        if (c->http.phase == CLIENT_ANSWER && (c->answer.request || c->stream.of) &&
            c->http.n_out == 0)
            send_answer(n, c, false);
    }
    release_requests(n);
}

static const http_handler handler = {.begin = begin_request,
                                     .head = answer_head,
                                     .is_open = route_is_health,
                                     .request = answer_request,
                                     .answered = answered,
                                     .proceed = proceed,
                                     .silent = falls_silent,
                                     .tick_answer = tick_answer,
                                     .turned_out = turned_out,
                                     .close = close_connection,
                                     .tick = tick,
                                     .woken = take_published};

void network_run(network *n, const lobby_guests *guests)
{
    n->http.handler = &handler;
    n->http.user = n;
    for (int32_t i = 0; i < guests->n_events; i++)
        report(n, &guests->events[i]);
    for (int32_t i = 0; i < guests->n_clients; i++)
        http_take_over(&n->http, guests->clients[i]);
    http_run(&n->http);
    http_close_all(&n->http);
}
