/* Reading requests, sending answers, and time: see http_server.h. */
#include "serve/net/http_server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "serve/requests.h"
#include "serve/net/admission.h"
#include "serve/net/http_answer.h"

static const double idle_s = 75, drain_s = 2;
static const size_t most_drained = 256 << 20, least_bytes_per_s = 16384;

/* ---- Large buffers ---- */

static char *free_large(http_server *h)
{
    for (int32_t i = 0; i < h->n_large; i++)
        if (!h->large_taken[i]) {
            h->large_taken[i] = true;
            return h->large[i];
        }
    return NULL;
}

char *http_take_large(http_server *h)
{
    char *large = free_large(h);
    return large || !admission_free_large(h) ? large : free_large(h);
}

void http_give_large(http_server *h, http_client *c)
{
    for (int32_t i = 0; i < h->n_large; i++)
        if (c->large && h->large[i] == c->large)
            h->large_taken[i] = false;
    c->large = NULL;
}

/* ---- Clients ---- */

/* Leaving is an event. A client that sends no more, which was said once, may still go: no event at
 * all would mean that nobody watches. */
void http_wait(http_server *h, http_client *c, uint32_t events)
{
    event_loop_watch(&h->loop, &c->socket, events | (c->silent ? EPOLLET : EPOLLRDHUP));
}

void http_enter(http_client *c, client_phase phase)
{
    c->phase = phase;
    c->clock.since_s = c->clock.moved_s = serve_clock_s();
}

void http_close(http_server *h, http_client *c)
{
    if (h->handler->close)
        h->handler->close(h->user, c);
    http_give_large(h, c);
    event_loop_drop(&h->loop, &c->socket);
    c->phase = CLIENT_FREE;
}

/* A request may begin; bytes of it may be there. */
static void begin(http_server *h, http_client *c)
{
    c->standing.shown = c->standing.shown && h->rules.api_keys; /* a key is known from now on */
    c->n_head = c->n_body = c->n_out = c->n_sent = c->n_more = c->n_drained = 0;
    c->more = c->body = NULL;
    c->head = (http_head){.method = HTTP_OTHER};
    c->chunks = (http_chunks){0};
    c->keeps = true;
    http_enter(c, CLIENT_HEAD);
    c->clock.began_s = c->clock.since_s;
    if (h->handler->begin)
        h->handler->begin(h->user, c);
}

/* ---- Sending ---- */

bool http_send(http_server *h, http_client *c, const char *bytes, size_t n, size_t *n_sent)
{
    ssize_t sent = send(c->socket.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    *n_sent = sent > 0 ? (size_t)sent : 0;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        http_close(h, c);
        return false;
    }
    if (sent > 0)
        c->clock.moved_s = serve_clock_s();
    return true;
}

bool http_continue(http_server *h, http_client *c)
{
    static const char head[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t ignored;
    return http_send(h, c, head, sizeof head - 1, &ignored);
}

bool http_flush(http_server *h, http_client *c)
{
    while (c->n_sent < c->n_out || c->n_more > 0) {
        size_t sent, left = c->n_out - c->n_sent;
        const char *from = left ? c->out + c->n_sent : c->more;
        if (!http_send(h, c, from, left ? left : c->n_more, &sent))
            return false;
        if (sent == 0) {
            http_wait(h, c, EPOLLOUT);
            return false;
        }
        if (left) {
            c->n_sent += sent;
        } else {
            c->more += sent;
            c->n_more -= sent;
        }
    }
    c->n_out = c->n_sent = 0;
    return true;
}

void http_end(http_server *h, http_client *c)
{
    http_give_large(h, c);
    if (c->keeps && !h->stopping) {
        size_t used = c->n_head; /* and a body that was in `in` */
        memmove(c->in, c->in + used, c->n_in - used);
        c->n_in -= used;
        begin(h, c);
        http_wait(h, c, EPOLLIN);
        c->standing.waits = c->n_in > 0;
        return;
    }
    shutdown(c->socket.fd, SHUT_WR);
    http_enter(c, CLIENT_DRAIN);
    event_loop_watch(&h->loop, &c->socket, EPOLLIN);
}

/* ---- Reading ---- */

static void refuse(http_server *h, http_client *c, const refusal *why)
{
    c->keeps = false;
    http_refuse(h, c, why);
    h->handler->proceed(h->user, c);
}

static void refuse_now(http_server *h, http_client *c, int status, const char *why)
{
    refusal r;
    refuse_fixed(&r, status, why);
    refuse(h, c, &r);
}

static void body_is_whole(http_server *h, http_client *c)
{
    http_enter(c, CLIENT_ANSWER);
    h->handler->request(h->user, c);
}

/* Takes the bytes of `in` after the head into `large`. */
static void read_chunks(http_server *h, http_client *c)
{
    size_t used = 0, got = 0;
    int status = 0;
    http_result result =
        http_read_chunks(&c->chunks, c->in + c->n_head, c->n_in - c->n_head, &used,
                         c->large + c->n_body, h->large_bytes - c->n_body, &got, &status);
    if (result == HTTP_BAD) {
        refuse_now(h, c, status,
                   status == 413 ? "The request's body is larger than this server takes."
                                 : "The chunks of the request's body are broken.");
        return;
    }
    c->n_body += got;
    memmove(c->in + c->n_head, c->in + c->n_head + used, c->n_in - c->n_head - used);
    c->n_in -= used;
    if (result == HTTP_DONE)
        body_is_whole(h, c);
}

/* Reads a body of known length where it is, in `in`, or moves it to `large`. */
static void read_body(http_server *h, http_client *c)
{
    size_t have = c->n_in - c->n_head;
    if (c->head.chunked) {
        read_chunks(h, c);
    } else if (c->large) {
        size_t left = (size_t)c->head.n_body - c->n_body;
        size_t taken = have < left ? have : left;
        memcpy(c->large + c->n_body, c->in + c->n_head, taken);
        c->n_body += taken;
        memmove(c->in + c->n_head, c->in + c->n_head + taken, have - taken);
        c->n_in -= taken;
        if (c->n_body == c->head.n_body)
            body_is_whole(h, c);
    } else if (have >= c->head.n_body) {
        c->n_body = (size_t)c->head.n_body;
        c->n_head += c->n_body; /* what follows is the next request's */
        body_is_whole(h, c);
    }
}

static void refuse_full(http_server *h, http_client *c)
{
    refusal r;
    refuse_with(&r, 503, "%d connections are open already, as many as this server has memory for.",
                h->n_admitted);
    r.retry_s = 1;
    refuse(h, c, &r);
}

/* False: there is none, and it was refused. */
static bool take_large(http_server *h, http_client *c)
{
    refusal r;
    c->large = http_take_large(h);
    if (c->large)
        return true;
    refuse_with(&r, 503, "%d large requests are being read already, each with up to %zu bytes.",
                h->n_large, h->large_bytes);
    r.retry_s = 1;
    refuse(h, c, &r);
    return false;
}

/* Decides by the head where the body goes. */
static void head_is_whole(http_server *h, http_client *c)
{
    client_standing *s = &c->standing;
    bool open = h->handler->is_open(c->head.path);
    s->shown = s->shown || access_shows_key(&h->rules, &c->head);
    if (!s->admitted && s->shown && !open)
        admission_let_in(h, c);
    if (s->waits)
        return;
    if (!s->admitted && !open) {
        refuse_full(h, c);
        return;
    }
    c->keeps = c->head.keep_alive && !h->stopping && s->admitted;
    if (c->head.n_body > h->large_bytes) {
        refuse_now(h, c, 413, "The request's body is larger than this server takes.");
        return;
    }
    bool keeps = c->keeps, has_body = c->head.n_body || c->head.chunked;
    /* An answer without the body ends the connection, and says so. */
    c->keeps = keeps && !has_body;
    if (h->handler->head(h->user, c))
        return;
    c->keeps = keeps;
    bool fits = c->head.n_body <= HTTP_IN_BYTES - c->n_head;
    if ((c->head.chunked || !fits) && !take_large(h, c))
        return;
    c->body = c->large ? c->large : c->in + c->n_head;
    http_enter(c, CLIENT_BODY);
    if (!(c->head.expects && has_body && c->n_in == c->n_head) || http_continue(h, c))
        read_body(h, c);
}

void http_read_again(http_server *h, http_client *c)
{
    int status;
    const char *why;
    if (c->phase == CLIENT_BODY) {
        read_body(h, c);
        return;
    }
    http_result result = http_read_head(c->in, c->n_in, &c->head, &c->n_head, &status, &why);
    if (result == HTTP_DONE)
        head_is_whole(h, c);
    else if (result == HTTP_BAD)
        refuse_now(h, c, status, why);
    else if (c->n_in == HTTP_IN_BYTES)
        refuse_now(h, c, 431, "The request's head is larger than this server takes.");
}

static void readable(http_server *h, http_client *c)
{
    char nothing[16 << 10];
    bool drains = c->phase == CLIENT_DRAIN;
    ssize_t got = drains
                      ? recv(c->socket.fd, nothing, sizeof nothing, MSG_DONTWAIT)
                      : recv(c->socket.fd, c->in + c->n_in, HTTP_IN_BYTES - c->n_in, MSG_DONTWAIT);
    if (drains && got > 0)
        c->n_drained += (size_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || c->n_drained > most_drained) {
        http_close(h, c);
        return;
    }
    if (got < 0 || drains)
        return;
    if (c->n_in == 0 && c->phase == CLIENT_HEAD) /* the request begins here */
        c->clock.began_s = c->clock.since_s = serve_clock_s();
    c->n_in += (size_t)got;
    http_read_again(h, c);
}

static void on_client(void *user, void *of, uint32_t events)
{
    http_server *h = user;
    http_client *c = of;
    bool answers = c->phase == CLIENT_ANSWER;
    if (events & (EPOLLERR | EPOLLHUP)) {
        http_close(h, c);
    } else if (answers && events & EPOLLRDHUP) {
        c->silent = true;
        c->keeps = false;
        h->handler->silent(h->user, c);
    } else if (answers && events & EPOLLOUT) {
        h->handler->proceed(h->user, c);
    } else if (!answers && events & (EPOLLIN | EPOLLRDHUP)) {
        readable(h, c);
    }
}

/* ---- New clients ---- */

static void listen_on(http_server *h, bool wanted)
{
    event_loop_watch(&h->loop, &h->listener, wanted ? EPOLLIN : 0);
}

static http_client *let_in(http_server *h, int fd)
{
    bool admitted;
    uint64_t address = admission_address(fd);
    http_client *c = admission_choose(h, address, &admitted);
    c->socket = (watched){.fd = fd, .on_event = on_client, .user = h, .of = c};
    c->n_in = 0;
    c->silent = false;
    c->standing = (client_standing){.admitted = admitted, .address = address};
    begin(h, c);
    http_wait(h, c, EPOLLIN);
    return c;
}

void http_take_over(http_server *h, const http_client *from)
{
    http_client *c = let_in(h, from->socket.fd);
    memcpy(c->in, from->in, from->n_in);
    c->n_in = from->n_in;
    c->standing.waits = c->n_in > 0;
    c->clock = from->clock;
}

void http_close_all(http_server *h)
{
    for (int32_t i = 0; i < h->n_clients; i++)
        if (http_client_at(h, i)->phase != CLIENT_FREE)
            http_close(h, http_client_at(h, i));
}

static void accept_all(void *user, void *of, uint32_t events)
{
    http_server *h = user;
    (void)of, (void)events;
    for (int i = 0; i < 64; i++) {
        bool exhausted;
        int fd = listen_accept(&h->listening, &exhausted);
        if (exhausted)
            listen_on(h, false); /* until the next tick */
        if (fd < 0)
            return;
        let_in(h, fd);
    }
}

void http_stop_listening(http_server *h)
{
    listen_on(h, false);
    h->listener.fd = -1;
    listen_close(&h->listening, h->rules.host);
}

void http_stop(http_server *h)
{
    h->stopping = true;
    http_stop_listening(h);
}

/* ---- Time ---- */

static void tick_client(http_server *h, http_client *c, double now)
{
    double age = now - c->clock.since_s;
    bool unread = c->n_out > c->n_sent || c->n_more > 0;
    switch (c->phase) {
    case CLIENT_HEAD:
        if (!c->standing.admitted && age > drain_s)
            refuse_full(h, c);
        else if (c->n_in == 0 && (age > idle_s || h->stopping))
            http_close(h, c);
        else if (c->n_in > 0 && age > h->timeout_s)
            refuse_now(h, c, 408, "The request's head took too long to arrive.");
        break;
    case CLIENT_BODY: /* what is large may take longer */
        if (age > h->timeout_s + (double)c->n_body / (double)least_bytes_per_s)
            refuse_now(h, c, 408, "The request's body took too long to arrive.");
        break;
    case CLIENT_ANSWER:
        if (unread && now - c->clock.moved_s > h->timeout_s) {
            h->n_slow++;
            http_close(h, c);
        } else if (h->handler->tick_answer) {
            h->handler->tick_answer(h->user, c, now);
        }
        break;
    case CLIENT_DRAIN:
        if (age > drain_s)
            http_close(h, c);
        break;
    default:
        break;
    }
}

static bool tick(void *user)
{
    http_server *h = user;
    double now = serve_clock_s();
    for (int32_t i = 0; i < h->n_clients; i++)
        tick_client(h, http_client_at(h, i), now);
    bool over = h->handler->tick(h->user, now);
    if (!h->stopping)
        listen_on(h, true);
    return over;
}

static bool read_waiting(void *user)
{
    return admission_read_waiting(user);
}

static bool woken(void *user)
{
    const http_server *h = user;
    if (h->handler->woken)
        h->handler->woken(h->user);
    return false;
}

void http_run(http_server *h)
{
    h->listener = (watched){.fd = h->listening.fd, .on_event = accept_all, .user = h};
    h->loop.last = &h->listener;
    h->loop.between = read_waiting;
    h->loop.tick = tick;
    h->loop.woken = woken;
    h->loop.user = h;
    listen_on(h, true);
    event_loop_run(&h->loop);
}
