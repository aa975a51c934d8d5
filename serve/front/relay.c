/* Bytes both ways: see relay.h. */
#include "serve/front/relay.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/front/forwarded.h"
#include "serve/jobs.h"

uint64_t relay_key(const relay_loop *l, const relay *r, bool to_server)
{
    return (uint64_t)(r - l->relays) * 2 + to_server;
}

static void watch(relay_loop *l, relay *r, bool to_server, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = relay_key(l, r, to_server)};
    uint32_t *now = to_server ? &r->events.server : &r->events.client;
    int fd = to_server ? r->server : r->client;
    if (fd < 0 || *now == events)
        return;
    /* A socket that nothing is wanted of leaves: its end would be reported again and again. */
    int what = !events ? EPOLL_CTL_DEL : *now ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    epoll_ctl(l->epoll, what, fd, &event);
    *now = events;
}

/* Events of a client that leaves; one that sends no more may still go. */
static uint32_t hang_ups(const relay *r)
{
    return r->silent ? EPOLLET : EPOLLRDHUP;
}

void relay_enter(relay *r, relay_state state)
{
    r->state = state;
    r->since_s = serve_clock_s();
}

void relay_begin(relay_loop *l, relay *r, int client)
{
    *r = (relay){
        .client = client, .server = -1, .in = r->in, .out = r->out, .head.method = HTTP_OTHER};
    relay_enter(r, RELAY_HEAD);
    r->began_s = r->since_s;
    watch(l, r, false, EPOLLIN | EPOLLRDHUP);
}

/* Before a socket is closed, its events are given up: a model's process that has just been forked
 * still holds it, and would keep it in epoll for a moment. */
static void close_server(relay_loop *l, relay *r)
{
    if (r->server < 0)
        return;
    watch(l, r, true, 0);
    close(r->server);
    r->server = -1;
    r->child->n_users--;
}

void relay_close(relay_loop *l, relay *r)
{
    close_server(l, r);
    watch(l, r, false, 0);
    close(r->client);
    r->client = -1;
    r->child = NULL;
    r->state = RELAY_FREE;
}

/* ---- To the client ---- */

/* False: the relay is closed, or the socket takes no more now. */
static bool send_to(relay_loop *l, relay *r, const char *bytes, size_t n, size_t *n_sent)
{
    ssize_t sent = send(r->client, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    *n_sent = sent > 0 ? (size_t)sent : 0;
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        relay_close(l, r);
        return false;
    }
    if (sent > 0)
        r->since_s = serve_clock_s();
    return sent > 0;
}

static bool send_all(relay_loop *l, relay *r)
{
    size_t n;
    while (r->n_sent < r->n_out) {
        if (!send_to(l, r, r->out + r->n_sent, r->n_out - r->n_sent, &n))
            return false;
        r->n_sent += n;
    }
    while (r->n_more > 0) {
        if (!send_to(l, r, r->more, r->n_more, &n))
            return false;
        r->more += n;
        r->n_more -= n;
    }
    r->n_out = r->n_sent = 0;
    return true;
}

void relay_flush(relay_loop *l, relay *r)
{
    if (!send_all(l, r)) {
        if (r->state != RELAY_FREE) {
            watch(l, r, false, hang_ups(r) | EPOLLOUT);
            watch(l, r, true, 0); /* no more until the client has taken this */
        }
        return;
    }
    if (r->state == RELAY_ENDS) {
        shutdown(r->client, SHUT_WR);
        relay_enter(r, RELAY_DRAIN);
        watch(l, r, false, EPOLLIN);
        return;
    }
    watch(l, r, false, hang_ups(r));
    watch(l, r, true, EPOLLIN);
}

void relay_end(relay_loop *l, relay *r)
{
    close_server(l, r);
    relay_enter(r, RELAY_ENDS);
    relay_flush(l, r);
}

/* Before the process answers, HTTP/1.1 has a head that changes nothing: a client that has gone
 * answers it with a reset. Later the process asks in this way (network.c). */
void relay_falls_silent(relay_loop *l, relay *r)
{
    static const char nothing[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t n;
    if (r->head.http_1_0 && r->state < RELAY_ANSWER) {
        relay_close(l, r);
        return;
    }
    r->silent = true;
    watch(l, r, false, (r->events.client & EPOLLOUT) | hang_ups(r));
    if (r->state == RELAY_WAITS)
        send_to(l, r, nothing, sizeof nothing - 1, &n);
    else if (r->state == RELAY_ANSWER ||
             (r->state == RELAY_SENDS && r->n_sent == r->n_out && r->n_body_sent == r->n_body))
        shutdown(r->server, SHUT_WR);
}

/* ---- To the process ---- */

static void put_head(relay *r)
{
    text_out out = {.text = r->out, .capacity = RELAY_OUT_BYTES};
    forwarded_head(&r->head, r->in, r->n_body, &out);
    r->n_out = out.n;
    r->n_sent = r->n_body_sent = 0;
}

bool relay_forward(relay_loop *l, relay *r)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    memcpy(name.sun_path, r->child->socket, sizeof name.sun_path);
    if (connect(fd, (const struct sockaddr *)&name, sizeof name) != 0) {
        close(fd);
        return false;
    }
    r->server = fd;
    r->tries.met = r->child->pid;
    r->child->n_users++;
    put_head(r);
    relay_enter(r, RELAY_SENDS);
    watch(l, r, true, EPOLLIN | EPOLLOUT);
    watch(l, r, false, hang_ups(r));
    return true;
}

/* The next bytes of the request. False: there are none, or the process takes no more. */
static bool send_part(relay *r)
{
    bool head = r->n_sent < r->n_out;
    const char *from = head ? r->out + r->n_sent : r->body + r->n_body_sent;
    size_t n = head ? r->n_out - r->n_sent : r->n_body - r->n_body_sent;
    ssize_t sent = n ? send(r->server, from, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (sent <= 0)
        return false;
    if (head)
        r->n_sent += (size_t)sent;
    else
        r->n_body_sent += (size_t)sent;
    return true;
}

/* What it answers is for the client. */
static void receive(relay_loop *l, relay *r, bool *broken)
{
    ssize_t got = recv(r->server, r->out + r->n_out, RELAY_OUT_BYTES - r->n_out, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        *broken = r->state == RELAY_SENDS;
        if (!*broken)
            relay_end(l, r);
        return;
    }
    if (r->state == RELAY_SENDS) { /* it may answer before it has read everything */
        memmove(r->out, r->out + r->n_out, (size_t)got);
        r->n_out = r->n_sent = 0;
        relay_enter(r, RELAY_ANSWER);
    }
    r->n_out += (size_t)got;
    relay_flush(l, r);
}

void relay_server_event(relay_loop *l, relay *r, uint32_t events, bool *broken)
{
    *broken = false;
    if (r->state == RELAY_SENDS && events & EPOLLOUT) {
        while (send_part(r))
            ;
        if (r->n_sent == r->n_out && r->n_body_sent == r->n_body) {
            watch(l, r, true, EPOLLIN);
            if (r->silent)
                shutdown(r->server, SHUT_WR);
        }
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(l, r, broken);
}

void relay_wait_again(relay_loop *l, relay *r)
{
    close_server(l, r);
    r->tries.again = true;
    r->n_out = r->n_sent = 0;
    relay_enter(r, RELAY_WAITS);
}
