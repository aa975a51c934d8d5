/* Bytes both ways: see proxy.h. */
#include "serve/router/proxy.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/router/forwarded.h"

void proxy_enter(proxied *r, proxy_state state)
{
    r->state = state;
    http_enter(&r->http, CLIENT_ANSWER);
}

void proxy_leave(http_server *h, proxied *r)
{
    if (r->upstream.fd < 0)
        return;
    event_loop_drop(&h->loop, &r->upstream);
    r->process->n_users--;
}

/* ---- To the client ---- */

void proxy_flush(http_server *h, proxied *r)
{
    if (!http_flush(h, &r->http)) {
        event_loop_watch(&h->loop, &r->upstream, 0); /* no more until the client has taken this */
    } else if (r->state == PROXY_ENDS) {
        http_end(h, &r->http);
    } else {
        http_wait(h, &r->http, 0);
        event_loop_watch(&h->loop, &r->upstream, EPOLLIN);
    }
}

void proxy_end(http_server *h, proxied *r)
{
    proxy_leave(h, r);
    proxy_enter(r, PROXY_ENDS);
    proxy_flush(h, r);
}

static bool has_sent(const proxied *r)
{
    return r->n_head_sent == r->n_head_out && r->n_body_sent == r->http.n_body;
}

/* Once the process answers, it asks in this way (network.c). */
void proxy_falls_silent(http_server *h, proxied *r)
{
    http_client *c = &r->http;
    if (c->head.http_1_0 && r->state < PROXY_ANSWER) {
        http_close(h, c);
        return;
    }
    http_wait(h, c, c->socket.events & EPOLLOUT);
    if (r->state == PROXY_WAITS)
        http_continue(h, c);
    else if (r->state == PROXY_ANSWER || (r->state == PROXY_SENDS && has_sent(r)))
        shutdown(r->upstream.fd, SHUT_WR);
}

/* ---- To the process ---- */

bool proxy_forward(http_server *h, proxied *r, event_fn *on_upstream, void *user)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    text_out out = {.text = r->http.out, .capacity = HTTP_OUT_BYTES};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    memcpy(name.sun_path, r->process->socket, sizeof name.sun_path);
    if (connect(fd, (const struct sockaddr *)&name, sizeof name) != 0) {
        close(fd);
        return false;
    }
    r->upstream = (watched){.fd = fd, .on_event = on_upstream, .user = user, .of = r};
    r->tries.met = r->process->pid;
    r->process->n_users++;
    forwarded_head(&r->http.head, r->http.in, r->http.n_body, &out);
    r->n_head_out = out.n;
    r->n_head_sent = r->n_body_sent = 0;
    proxy_enter(r, PROXY_SENDS);
    event_loop_watch(&h->loop, &r->upstream, EPOLLIN | EPOLLOUT);
    http_wait(h, &r->http, 0);
    return true;
}

/* The next bytes of the request. False: there are none, or the process takes no more. */
static bool send_part(proxied *r)
{
    bool head = r->n_head_sent < r->n_head_out;
    const char *from = head ? r->http.out + r->n_head_sent : r->http.body + r->n_body_sent;
    size_t n = head ? r->n_head_out - r->n_head_sent : r->http.n_body - r->n_body_sent;
    ssize_t sent = n ? send(r->upstream.fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (sent <= 0)
        return false;
    *(head ? &r->n_head_sent : &r->n_body_sent) += (size_t)sent;
    return true;
}

/* Takes what it answers for the client. */
static void receive(http_server *h, proxied *r, bool *broken)
{
    char *to = r->http.out;
    bool first = r->state == PROXY_SENDS; /* it may answer before it has read everything */
    size_t used = first ? r->n_head_out : r->http.n_out;
    ssize_t got = recv(r->upstream.fd, to + used, HTTP_OUT_BYTES - used, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        *broken = first;
        if (!first)
            proxy_end(h, r);
        return;
    }
    if (first) {
        memmove(to, to + used, (size_t)got);
        http_give_large(h, &r->http);
        proxy_enter(r, PROXY_ANSWER);
    }
    r->http.n_out += (size_t)got;
    proxy_flush(h, r);
}

void proxy_upstream_event(http_server *h, proxied *r, uint32_t events, bool *broken)
{
    *broken = false;
    if (r->state == PROXY_SENDS && events & EPOLLOUT) {
        while (send_part(r))
            ;
        if (has_sent(r)) {
            event_loop_watch(&h->loop, &r->upstream, EPOLLIN);
            if (r->http.silent)
                shutdown(r->upstream.fd, SHUT_WR);
        }
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(h, r, broken);
}

void proxy_wait_again(http_server *h, proxied *r)
{
    proxy_leave(h, r);
    r->tries.again = true;
    proxy_enter(r, PROXY_WAITS);
}
