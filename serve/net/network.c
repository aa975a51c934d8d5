/* The loop over sockets: see connection.h for a connection's states. One thread, level-triggered
 * epoll; nothing here blocks, and what takes long is the worker's. */
#include "serve/net/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/net/places.h"

static const double tick_s = 0.2, ping_s = 0.7, idle_s = 75, drain_s = 2;
/* Of the grace: texts are cancelled so long before its end, so that their last events are sent. */
static const double ending_s = 1;
enum { MOST_DRAINED = 256 << 20 };
/* What epoll's data says; connections are their numbers. */
enum { OF_LISTENER = -1, OF_WORKER = -2 };

/* ---- Large buffers ---- */

static char *free_large(network *n)
{
    for (int i = 0; i < NETWORK_LARGE; i++)
        if (!n->large_taken[i]) {
            n->large_taken[i] = true;
            return n->large[i];
        }
    return NULL;
}

static void network_give_large(network *n, char *large)
{
    for (int i = 0; i < NETWORK_LARGE; i++)
        if (n->large[i] == large)
            n->large_taken[i] = false;
}

/* ---- Connections ---- */

static void watch(network *n, connection *c, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = (int)(c - n->connections)};
    if (c->watched.events == events)
        return;
    epoll_ctl(n->epoll, c->watched.events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event);
    c->watched.events = events;
}

/* Events of a client that leaves. One that sends no more, which was said once, may still go: no bit
 * at all would mean that nobody watches. */
static uint32_t hang_ups(const connection *c)
{
    return c->watched.silent ? EPOLLET : EPOLLRDHUP;
}

static void enter(connection *c, connection_state state)
{
    c->state = state;
    c->clock.since_s = c->clock.moved_s = serve_clock_s();
}

static void give_back(network *n, connection *c)
{
    if (c->large)
        network_give_large(n, c->large);
    c->large = NULL;
}

/* The task may still run: its jobs are cancelled, and given back where they are done. */
void network_drop_task(network *n, answer *a)
{
    shared *s = n->shared;
    task *t = a->task;
    if (!t)
        return;
    pthread_mutex_lock(&s->lock);
    a->usage = answer_usage(a);
    if (!task_release(s, t)) {
        task_abandon(s, t);
        if (!task_release(s, t))
            t->abandoned = true;
    }
    pthread_mutex_unlock(&s->lock);
    a->task = NULL;
}

/* ---- Events for the owner ---- */

static void tell(const network *n, const serve_event *e)
{
    if (n->options->tell)
        n->options->tell(n->options->user, e);
}

static void warn(const network *n, const char *text)
{
    serve_event e = {.kind = SERVE_WARNING};
    snprintf(e.of.note, sizeof e.of.note, "%s", text);
    tell(n, &e);
}

/* left: its client has gone before the end. */
static void tell_request(network *n, connection *c, bool left)
{
    if (!c->told.open)
        return;
    c->told.open = false;
    serve_event e = event_of_request(&c->head, c->told.status, serve_clock_s() - c->told.began_s);
    const answer *a = c->stream.of ? &c->stream.of->answer : &c->answer;
    serve_request *r = &e.of.request;
    r->left = left;
    r->usage = a->usage;
    if (a->task) {
        pthread_mutex_lock(&n->shared->lock);
        r->usage = answer_usage(a);
        pthread_mutex_unlock(&n->shared->lock);
    }
    r->usage.cut = r->usage.cut && n->stopping && !left;
    double first_s = r->usage.first_s - c->told.began_s;
    r->usage.first_s = first_s > 0 ? first_s : 0;
    if (r->status >= 400) {
        snprintf(r->why, sizeof r->why, "%s", c->told.why);
        listen_peer(&n->place, c->fd, r->peer, sizeof r->peer);
    }
    tell(n, &e);
}

static void close_connection(network *n, connection *c)
{
    tell_request(n, c, true);
    network_drop_task(n, &c->answer);
    stream_leave(c);
    give_back(n, c);
    close(c->fd); /* and so out of epoll */
    c->state = CONNECTION_FREE;
    c->fd = -1;
    c->watched.events = 0;
}

/* A request may begin; bytes of it may be there. */
static void begin_request(network *n, connection *c)
{
    c->place.shown = c->place.shown && n->options->api_keys; /* a key is known from now on */
    c->n_head = c->n_body = c->n_out = c->n_sent = c->n_more = c->watched.n_drained = 0;
    c->more = NULL;
    c->body = NULL;
    c->head = (http_head){.method = HTTP_OTHER};
    c->chunks = (http_chunks){0};
    c->answer = (answer){.task = NULL};
    c->told.status = 0;
    c->told.why[0] = '\0';
    c->told.open = false;
    c->told.began_s = serve_clock_s();
    stream_leave(c);
    c->head_out = c->framed = c->all_out = false;
    c->keeps = true;
    enter(c, CONNECTION_HEAD);
}

/* ---- Sending ---- */

/* False: the connection is gone. */
static bool send_some(network *n, connection *c, const char *bytes, size_t n_bytes, size_t *n_sent)
{
    ssize_t sent = send(c->fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    *n_sent = sent > 0 ? (size_t)sent : 0;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        close_connection(n, c);
        return false;
    }
    if (sent > 0)
        c->clock.moved_s = serve_clock_s();
    return true;
}

/* False: the connection is gone, or its socket takes no more now. */
static bool flush(network *n, connection *c)
{
    size_t sent = 0;
    while (c->n_sent < c->n_out) {
        if (!send_some(n, c, c->out + c->n_sent, c->n_out - c->n_sent, &sent) || sent == 0)
            return false;
        c->n_sent += sent;
    }
    c->n_out = c->n_sent = 0;
    while (c->n_more > 0) {
        if (!send_some(n, c, c->more, c->n_more, &sent) || sent == 0)
            return false;
        c->more += sent;
        c->n_more -= sent;
    }
    return true;
}

/* ---- Answers of tasks ---- */

enum { FRAME_BYTES = 8 }; /* "00a0b0\r\n" */

/* Puts out what there is, as much as has room. With a task. */
static void put_pieces(network *n, connection *c, text_out *out)
{
    shared *s = n->shared;
    answer_state state = ANSWER_PIECE;
    pthread_mutex_lock(&s->lock);
    while (state == ANSWER_PIECE && out->capacity - out->n > ANSWER_PIECE_BYTES)
        state = answer_next(&c->answer, s, out);
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

/* What fails before its head is out is a whole answer. */
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
    network_drop_task(n, &c->answer);
    respond_refusal(n, c, &r);
    return true;
}

/* The head of a task's answer is out; false: it is not, or another answer is there. */
static bool has_head(network *n, connection *c, bool ping)
{
    if (c->head_out)
        return true;
    if (c->stream.of ? fails_first(n, c) || !has_begun(n, c)
                     : (!ping && !has_begun(n, c)) || fails_first(n, c))
        return false;
    respond_task(n, c);
    return true;
}

static void put_ping(network *n, connection *c, text_out *out)
{
    pthread_mutex_lock(&n->shared->lock);
    answer_ping(&c->answer, n->shared, out);
    pthread_mutex_unlock(&n->shared->lock);
}

/* Fills `out` with the next part of the task's answer, in its own chunk. */
static void fill(network *n, connection *c, bool ping)
{
    if (!has_head(n, c, ping))
        return;
    size_t frame = c->framed ? FRAME_BYTES : 0, from = c->n_out;
    text_out out = {.text = c->out, .n = from + frame, .capacity = CONNECTION_OUT_BYTES - 16};
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
        c->clock.spoke_s = serve_clock_s();
    if (frame && n_put > 0) {
        char size[FRAME_BYTES + 1];
        snprintf(size, sizeof size, "%06x\r\n", (unsigned)n_put & 0xFFFFFF);
        memcpy(c->out + from, size, frame);
        out.capacity = CONNECTION_OUT_BYTES;
        out_text(&out, "\r\n");
    }
    out.capacity = CONNECTION_OUT_BYTES;
    if (c->all_out && c->framed)
        out_text(&out, "0\r\n\r\n");
    c->n_out = out.n;
    if (c->all_out)
        network_drop_task(n, &c->answer);
}

/* ---- The end of an answer ---- */

static void end_answer(network *n, connection *c)
{
    tell_request(n, c, false);
    give_back(n, c);
    if (c->keeps && !n->stopping) {
        size_t used = c->n_head; /* and a body that was in `in` */
        memmove(c->in, c->in + used, c->n_in - used);
        c->n_in -= used;
        begin_request(n, c);
        watch(n, c, hang_ups(c) | EPOLLIN);
        c->place.waits = c->n_in > 0;
        return;
    }
    shutdown(c->fd, SHUT_WR);
    enter(c, CONNECTION_DRAIN);
    watch(n, c, EPOLLIN);
}

/* Sends what there is to send, and says what is waited for. */
static void go_on(network *n, connection *c, bool ping)
{
    for (;;) {
        if (!flush(n, c)) {
            if (c->state != CONNECTION_FREE)
                watch(n, c, hang_ups(c) | EPOLLOUT);
            return;
        }
        if (c->all_out) {
            end_answer(n, c);
            return;
        }
        fill(n, c, ping);
        ping = false;
        if (c->n_out == 0 && c->n_more == 0 && !c->all_out) {
            watch(n, c, hang_ups(c));
            return;
        }
    }
}

/* ---- Reading ---- */

static void refuse_request(network *n, connection *c, int status, const char *why, bool keeps)
{
    refusal r;
    refuse_fixed(&r, status, why);
    c->keeps = c->keeps && keeps;
    respond_refusal(n, c, &r);
    go_on(n, c, false);
}

static void body_is_whole(network *n, connection *c)
{
    enter(c, CONNECTION_ANSWER);
    c->clock.spoke_s = c->clock.since_s;
    route_request(n, c);
    if (c->large && c->n_more == 0) /* what was asked for is known */
        give_back(n, c);
    go_on(n, c, false);
}

/* Of a body in chunks: what is in `in` after the head is taken into `large`. */
static void read_chunks(network *n, connection *c)
{
    size_t used = 0, got = 0;
    int status = 0;
    http_result result =
        http_read_chunks(&c->chunks, c->in + c->n_head, c->n_in - c->n_head, &used,
                         c->large + c->n_body, n->n_large - c->n_body, &got, &status);
    if (result == HTTP_BAD) {
        refuse_request(n, c, status,
                       status == 413 ? "The request's body is larger than this server takes."
                                     : "The chunks of the request's body are broken.",
                       false);
        return;
    }
    c->n_body += got;
    memmove(c->in + c->n_head, c->in + c->n_head + used, c->n_in - c->n_head - used);
    c->n_in -= used;
    if (result == HTTP_DONE)
        body_is_whole(n, c);
}

/* What has come of a body of known length is in `in`, or is moved to `large`. */
static void read_body(network *n, connection *c)
{
    size_t have = c->n_in - c->n_head;
    if (c->head.chunked) {
        read_chunks(n, c);
        return;
    }
    if (c->large) {
        size_t left = (size_t)c->head.n_body - c->n_body;
        size_t taken = have < left ? have : left;
        memcpy(c->large + c->n_body, c->in + c->n_head, taken);
        c->n_body += taken;
        memmove(c->in + c->n_head, c->in + c->n_head + taken, have - taken);
        c->n_in -= taken;
        if (c->n_body == c->head.n_body)
            body_is_whole(n, c);
    } else if (have >= c->head.n_body) {
        c->n_body = (size_t)c->head.n_body;
        c->n_head += c->n_body; /* what follows is the next request's */
        body_is_whole(n, c);
    }
}

/* ---- Places ---- */

static client_look look_at(void *user, int32_t i)
{
    static const client_phase phases[] = {[CONNECTION_FREE] = CLIENT_NONE,
                                          [CONNECTION_HEAD] = CLIENT_HEAD,
                                          [CONNECTION_BODY] = CLIENT_BODY,
                                          [CONNECTION_ANSWER] = CLIENT_ANSWER,
                                          [CONNECTION_DRAIN] = CLIENT_DRAIN};
    connection *c = &((network *)user)->connections[i];
    return (client_look){.place = &c->place,
                         .phase = phases[c->state],
                         .fd = c->fd,
                         .n_in = c->n_in,
                         .n_body = c->n_body,
                         .unread = c->n_out > 0 || c->n_more > 0,
                         .large = c->large,
                         .since_s = c->clock.since_s,
                         .moved_s = c->clock.moved_s};
}

static void close_at(void *user, int32_t i)
{
    network *n = user;
    connection *c = &n->connections[i];
    if (c->told.status == 0) { /* it was refused just now */
        c->told.status = 503;
        tell_request(n, c, false);
    }
    close_connection(n, c);
}

static void read_request(network *n, connection *c);

static void read_at(void *user, int32_t i)
{
    network *n = user;
    read_request(n, &n->connections[i]);
}

static places places_in(network *n)
{
    const serve_options *o = n->options;
    return (places){.look = look_at,
                    .close = close_at,
                    .read = read_at,
                    .user = n,
                    .n_admitted = o->n_connections,
                    .n = n->n_connections,
                    .keyed = o->api_keys,
                    .timeout_s = o->timeout_s};
}

char *network_take_large(network *n)
{
    const places p = places_in(n);
    char *large = free_large(n);
    return large || !places_free_large(&p) ? large : free_large(n);
}

static void refuse_full(network *n, connection *c)
{
    refusal r;
    refuse_with(&r, 503, "%d connections are open already, as many as this server has memory for.",
                n->options->n_connections);
    r.retry_s = 1;
    c->keeps = false;
    respond_refusal(n, c, &r);
    go_on(n, c, false);
}

/* The head is there: what it says decides where the body goes. */
static void head_is_whole(network *n, connection *c)
{
    const places p = places_in(n);
    c->told.open = true;
    c->place.shown = c->place.shown || respond_shows_key(n, c);
    if (!c->place.admitted && c->place.shown && !route_is_health(c))
        places_let_in(&p, (int32_t)(c - n->connections));
    if (c->place.waits)
        return;
    if (!c->place.admitted && !route_is_health(c)) {
        refuse_full(n, c);
        return;
    }
    c->keeps = c->head.keep_alive && !n->stopping && c->place.admitted;
    if (c->head.n_body > n->n_large) {
        refuse_request(n, c, 413, "The request's body is larger than this server takes.", false);
        return;
    }
    bool keeps = c->keeps;
    /* An answer without the body ends the connection, and says so. */
    c->keeps = keeps && !c->head.n_body && !c->head.chunked;
    if (route_head(n, c)) {
        go_on(n, c, false);
        return;
    }
    c->keeps = keeps;
    bool fits = c->head.n_body <= CONNECTION_IN_BYTES - c->n_head;
    if (c->head.chunked || !fits) {
        c->large = network_take_large(n);
        if (!c->large) {
            refusal r;
            refuse_with(&r, 503,
                        "%d large requests are being read already, each with up to %zu bytes.",
                        NETWORK_LARGE, n->n_large);
            r.retry_s = 1;
            c->keeps = false;
            respond_refusal(n, c, &r);
            go_on(n, c, false);
            return;
        }
    }
    c->body = c->large ? c->large : c->in + c->n_head;
    enter(c, CONNECTION_BODY);
    size_t ignored;
    static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
    bool empty = c->n_in == c->n_head && (c->head.n_body || c->head.chunked);
    if (c->head.expects && empty && !send_some(n, c, proceed, sizeof proceed - 1, &ignored))
        return;
    read_body(n, c);
}

/* As far as what has come goes. */
static void read_request(network *n, connection *c)
{
    int status;
    const char *why;
    if (c->state == CONNECTION_BODY) {
        read_body(n, c);
        return;
    }
    http_result result = http_read_head(c->in, c->n_in, &c->head, &c->n_head, &status, &why);
    if (result == HTTP_DONE)
        head_is_whole(n, c);
    else if (result == HTTP_BAD)
        refuse_request(n, c, status, why, false);
    else if (c->n_in == CONNECTION_IN_BYTES)
        refuse_request(n, c, 431, "The request's head is larger than this server takes.", false);
}

static void drain(network *n, connection *c)
{
    char nothing[16 << 10];
    ssize_t got = recv(c->fd, nothing, sizeof nothing, MSG_DONTWAIT);
    if (got > 0)
        c->watched.n_drained += (size_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
        c->watched.n_drained > MOST_DRAINED)
        close_connection(n, c);
}

static void readable(network *n, connection *c)
{
    if (c->state == CONNECTION_DRAIN) {
        drain(n, c);
        return;
    }
    ssize_t got = recv(c->fd, c->in + c->n_in, CONNECTION_IN_BYTES - c->n_in, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        close_connection(n, c);
        return;
    }
    if (got > 0) {
        if (c->n_in == 0 && c->state == CONNECTION_HEAD)
            c->told.began_s = c->clock.since_s = serve_clock_s(); /* the request begins here */
        c->n_in += (size_t)got;
        read_request(n, c);
    }
}

/* ---- New connections ---- */

static void listen_on(network *n, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = OF_LISTENER};
    if (n->listening != wanted)
        epoll_ctl(n->epoll, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, n->place.fd, &event);
    n->listening = wanted;
}

static void let_in(network *n, int fd)
{
    const places p = places_in(n);
    bool admitted;
    uint64_t address = places_address(fd);
    connection *c = &n->connections[places_choose(&p, address, &admitted)];
    c->fd = fd;
    c->n_in = 0;
    c->watched.silent = false;
    c->place = (client_place){.admitted = admitted, .address = address};
    begin_request(n, c);
    watch(n, c, hang_ups(c) | EPOLLIN);
}

static void accept_all(network *n)
{
    for (int i = 0; i < 64; i++) {
        bool exhausted;
        int fd = listen_accept(&n->place, &exhausted);
        if (exhausted)
            listen_on(n, false); /* until the next tick */
        if (fd < 0)
            return;
        let_in(n, fd);
    }
}

static void take_over(network *n, const lobby_guests *guests)
{
    for (int32_t i = 0; i < guests->n_events; i++)
        tell(n, &guests->events[i]);
    for (int32_t i = 0; i < guests->n_clients; i++)
        let_in(n, guests->clients[i]);
}

/* ---- Time ---- */

static void tick_connection(network *n, connection *c, double now)
{
    double timeout = n->options->timeout_s, age = now - c->clock.since_s;
    switch (c->state) {
    case CONNECTION_HEAD:
        if (!c->place.admitted && age > drain_s)
            refuse_full(n, c);
        else if (c->n_in == 0 ? age > idle_s || n->stopping : false)
            close_connection(n, c);
        else if (c->n_in > 0 && age > timeout)
            refuse_request(n, c, 408, "The request's head took too long to arrive.", false);
        break;
    case CONNECTION_BODY:
        /* What is large may take longer, at 16 KiB a second. */
        if (age > timeout + (double)c->n_body / 16384)
            refuse_request(n, c, 408, "The request's body took too long to arrive.", false);
        break;
    case CONNECTION_ANSWER:
        if ((c->n_out > 0 || c->n_more > 0) && now - c->clock.moved_s > timeout) {
            if (c->answer.task)
                n->shared->totals.too_slow++;
            close_connection(n, c);
        } else if (c->answer.task && c->answer.task->stream && c->n_out == 0 &&
                   now - c->clock.spoke_s > ping_s) {
            go_on(n, c, true);
        } else if (c->stream.of || c->all_out) { /* it may have been cut off */
            go_on(n, c, false);
        }
        break;
    case CONNECTION_DRAIN:
        if (age > drain_s)
            close_connection(n, c);
        break;
    default:
        break;
    }
}

/* Tasks whose clients have gone, and whose jobs have ended since. */
static void release_tasks(network *n)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->n_tasks; i++)
        if (s->tasks[i].used && s->tasks[i].abandoned)
            task_release(s, &s->tasks[i]);
    pthread_mutex_unlock(&s->lock);
}

/* ---- The end ---- */

void network_stop_listening(network *n)
{
    if (n->place.fd >= 0 && n->listening)
        listen_on(n, false);
    listen_close(&n->place, n->options->at.host);
}

static int32_t count_writing(const shared *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_tasks; i++) {
        const task *t = &s->tasks[i];
        bool runs = false;
        for (int32_t k = 0; t->used && k < t->n_choices && !runs; k++)
            runs = t->jobs[k]->state == JOB_RUNNING;
        n += runs;
    }
    return n;
}

/* New clients are refused by the system; what waits is refused; the rest has its grace. */
static void begin_to_stop(network *n)
{
    shared *s = n->shared;
    double grace_s = n->options->grace_s;
    n->stopping = true;
    n->stop_s = serve_clock_s() + (grace_s > ending_s ? grace_s : ending_s);
    network_stop_listening(n);
    pthread_mutex_lock(&s->lock);
    serve_event e = {.kind = SERVE_STOPPING, .of.n_writing = count_writing(s)};
    while (s->n_queued > 0)
        job_unqueue(s, s->queue[0], DREY_ERR_CANCELLED,
                    "The server is being stopped: ask again in a moment.");
    if (!s->ready && s->seats[0].session)
        drey_session_cancel(s->seats[0].session);
    s->stopping = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->wake, 1);
    tell(n, &e);
}

static void cancel_running(network *n)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].state == JOB_RUNNING) {
            s->jobs[i].cancelled = true;
            drey_session_cancel(s->seats[s->jobs[i].seat].session);
        }
    pthread_mutex_unlock(&s->lock);
}

/* True: it is over. */
static bool stop_further(network *n, double now)
{
    int32_t n_open = 0;
    for (int32_t i = 0; i < n->n_connections; i++)
        n_open += n->connections[i].state != CONNECTION_FREE;
    if (now > n->stop_s - ending_s)
        cancel_running(n);
    pthread_mutex_lock(&n->shared->lock);
    bool over = n->shared->over;
    pthread_mutex_unlock(&n->shared->lock);
    return over && (n_open == 0 || now > n->stop_s);
}

/* What nobody asked for, but the server's owner has to know. */
static void tell_news(network *n)
{
    pthread_mutex_lock(&n->shared->lock);
    bool disk_failed = n->shared->totals.prefixes.disk_failed;
    bool damaged = n->shared->totals.prefixes.damaged_files > 0;
    bool ready = n->shared->ready;
    pthread_mutex_unlock(&n->shared->lock);
    if (ready && !n->told_ready && !n->stopping)
        tell(n, &(serve_event){.kind = SERVE_READY});
    n->told_ready = ready;
    if (disk_failed && !n->told_disk)
        warn(n, "beginnings of texts cannot be written to their folder any more: the disk "
                "is full, or fails. They are kept in memory alone; make room, and start "
                "the server again");
    n->told_disk = disk_failed;
    if (damaged && !n->told_damage)
        warn(n, "files in the folder of beginnings were damaged; they are deleted and "
                "computed again. Check the disk if this appears again");
    n->told_damage = damaged;
}

static bool tick(network *n)
{
    double now = serve_clock_s();
    streams_tick(n, now);
    for (int32_t i = 0; i < n->n_connections; i++)
        tick_connection(n, &n->connections[i], now);
    release_tasks(n);
    tell_news(n);
    pthread_mutex_lock(&n->shared->lock);
    bool failed = n->shared->over && !n->stopping;
    pthread_mutex_unlock(&n->shared->lock);
    if (!n->stopping && (failed || !n->options->go_on(n->options->user)))
        begin_to_stop(n);
    if (!n->stopping)
        listen_on(n, true);
    return n->stopping && stop_further(n, now);
}

/* ---- Events ---- */

static void news_from_worker(network *n)
{
    eventfd_t count;
    eventfd_read(n->shared->wake, &count);
    tell_news(n);
    streams_pump(n);
    for (int32_t i = 0; i < n->n_connections; i++) {
        connection *c = &n->connections[i];
        if (c->state == CONNECTION_ANSWER && (c->answer.task || c->stream.of) && c->n_out == 0)
            go_on(n, c, false);
    }
    release_tasks(n);
}

/* The client sends no more. Only sending says whether it still reads: one that has gone answers
 * that with a reset. A stream has events that say nothing; before any other answer HTTP/1.1 has a
 * head that changes nothing. */
static void falls_silent(network *n, connection *c)
{
    static const char nothing[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t ignored;
    bool stream = c->answer.task && c->answer.task->stream && !c->stream.of;
    bool begun = c->head_out || c->n_out > 0;
    c->watched.silent = true;
    c->keeps = false;
    if (!stream && !begun && c->head.http_1_0)
        close_connection(n, c);
    else if (stream || begun || send_some(n, c, nothing, sizeof nothing - 1, &ignored))
        go_on(n, c, stream);
}

static void connection_event(network *n, connection *c, uint32_t events)
{
    if (c->state == CONNECTION_FREE)
        return;
    bool answers = c->state == CONNECTION_ANSWER;
    if (events & (EPOLLERR | EPOLLHUP))
        close_connection(n, c);
    else if (answers && events & EPOLLRDHUP)
        falls_silent(n, c);
    else if (events & EPOLLOUT && answers)
        go_on(n, c, false);
    else if (events & (EPOLLIN | EPOLLRDHUP) && !answers)
        readable(n, c);
}

void network_run(network *n, const lobby_guests *guests)
{
    const places p = places_in(n);
    struct epoll_event events[64], wake = {.events = EPOLLIN, .data.fd = OF_WORKER};
    epoll_ctl(n->epoll, EPOLL_CTL_ADD, n->shared->wake, &wake);
    listen_on(n, true);
    take_over(n, guests);
    double next_tick = 0;
    for (bool over = false, waiting = false; !over;) {
        int n_events = epoll_wait(n->epoll, events, 64, waiting ? 0 : (int)(1000 * tick_s));
        bool accepts = false; /* last: an event of one that has gone is not its successor's */
        for (int i = 0; i < n_events; i++) {
            int of = events[i].data.fd;
            if (of == OF_LISTENER)
                accepts = true;
            else if (of == OF_WORKER)
                news_from_worker(n);
            else
                connection_event(n, &n->connections[of], events[i].events);
        }
        if (accepts)
            accept_all(n);
        waiting = places_read_waiting(&p);
        double now = serve_clock_s();
        if (now >= next_tick || n_events < 0) {
            next_tick = now + tick_s / 2;
            over = tick(n);
        }
    }
    for (int32_t i = 0; i < n->n_connections; i++)
        if (n->connections[i].state != CONNECTION_FREE)
            close_connection(n, &n->connections[i]);
}
