/* The lobby's thread: see lobby.h. */
#include "serve/net/lobby.h"

#include "common/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/answer/answer.h"
#include "serve/net/access.h"
#include "serve/net/http_answer.h"
#include "serve/net/http.h"
#include "serve/net/routes.h"

enum { STACK_BYTES = 256 << 10 };
static const double drain_s = 2, idle_s = 10;

typedef struct guest {
    watched socket; /* closed: there is none */
    bool answered;
    double since_s; /* when it came, or was answered */
} guest;

struct lobby {
    lobby_options options;
    listen_socket listening;
    event_loop loop;
    watched listener;
    pthread_t thread;
    bool runs;
    guest guests[LOBBY_CLIENTS];
    lobby_guests left; /* its events, as they come */
    char in[HTTP_IN_BYTES];
};

/* ---- Answers ---- */

/* Returns the answer's status: of a refusal, which is *r, or 204 of a preflight. */
static int decide(const lobby *l, const http_head *h, refusal *r)
{
    const lobby_options *o = &l->options;
    const access_rules rules = {o->api_keys, o->origins, o->at.host, l->listening.is_unix};
    bool preflight = h->method == HTTP_OPTIONS;
    if (!access_allows(&rules, h, !preflight && !route_is_open(h->path), r))
        return r->status;
    if (preflight)
        return 204;
    if (route_exists(h, o->closed, r))
        refuse_fixed(r, 503, "Loading model");
    return r->status;
}

static const char page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
    "content=\"1\"><title>drey</title><p>The model is being loaded: this page will be here in a "
    "moment.</html>\n";

static void put_answer(const lobby *l, const http_head *h, int status, const refusal *r,
                       text_out *out)
{
    const access_rules rules = {l->options.api_keys, l->options.origins, l->options.at.host,
                                l->listening.is_unix};
    char text[4096];
    text_out body = {.text = text, .capacity = sizeof text};
    bool asks_page = http_path_is(h->path, "/") || http_path_is(h->path, "/index.html");
    bool is_page = status == 503 && asks_page;
    if (is_page)
        out_text(&body, page);
    else if (status != 204)
        answer_refusal(route_serializer(h->path), r, &body);
    http_put_head(&rules, h, status, NULL, false, out);
    if (status == 503)
        out_text(out, "Retry-After: 1\r\nCache-Control: no-store\r\n");
    if (status != 204)
        out_format(out, "Content-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n",
                   is_page ? "text/html" : "application/json", body.n);
    out_text(out, "\r\n");
    if (h->method != HTTP_HEAD)
        out_bytes(out, body.text, body.n);
}

/* For the owner, when the server begins. */
static void note(lobby *l, const http_head *h, int status, const refusal *r, const guest *g)
{
    lobby_guests *left = &l->left;
    serve_event e = event_of_request(h, status, serve_clock_s() - g->since_s);
    if (left->n_events == LOBBY_EVENTS || e.of.request.repeats)
        return;
    if (status >= 400) {
        snprintf(e.of.request.why, sizeof e.of.request.why, "%s", r->fixed);
        listen_peer(&l->listening, g->socket.fd, e.of.request.peer, sizeof e.of.request.peer);
    }
    left->events[left->n_events++] = e;
}

/* ---- Clients ---- */

/* Throws away what the client still sends, so that it reads the answer rather than a reset. */
static void drain(const lobby *l, guest *g)
{
    char nothing[4096];
    ssize_t got;
    while ((got = recv(g->socket.fd, nothing, sizeof nothing, MSG_DONTWAIT)) > 0)
        ;
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        event_loop_drop(&l->loop, &g->socket);
}

static void refuse_guest(lobby *l, guest *g, const http_head *h, refusal *r)
{
    char bytes[6144];
    text_out out = {.text = bytes, .capacity = sizeof bytes};
    int status = r->status ? r->status : decide(l, h, r);
    put_answer(l, h, status, r, &out);
    note(l, h, status, r, g);
    bool sent = send(g->socket.fd, out.text, out.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.n;
    shutdown(g->socket.fd, SHUT_WR);
    g->answered = true;
    g->since_s = serve_clock_s();
    if (sent)
        drain(l, g);
    else
        event_loop_drop(&l->loop, &g->socket);
}

/* A head that is not whole stays in the socket. */
static void hear(void *user, void *of, uint32_t events)
{
    lobby *l = user;
    guest *g = of;
    (void)events;
    http_head head = {.method = HTTP_OTHER};
    refusal r = {.status = 0};
    size_t n_head;
    const char *why;
    if (g->answered) {
        drain(l, g);
        return;
    }
    ssize_t n = recv(g->socket.fd, l->in, sizeof l->in, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        event_loop_drop(&l->loop, &g->socket);
        return;
    }
    int status;
    http_result result =
        n < 0 ? HTTP_UNFINISHED : http_read_head(l->in, (size_t)n, &head, &n_head, &status, &why);
    if (result == HTTP_BAD) {
        head = (http_head){.method = HTTP_OTHER};
        refuse_fixed(&r, status, why);
    }
    if (result != HTTP_UNFINISHED)
        refuse_guest(l, g, &head, &r);
}

static guest *free_place(lobby *l)
{
    for (int i = 0; i < LOBBY_CLIENTS; i++)
        if (l->guests[i].socket.fd < 0)
            return &l->guests[i];
    return NULL;
}

static void listen_on(lobby *l, bool wanted)
{
    event_loop_watch(&l->loop, &l->listener, wanted ? EPOLLIN : 0);
}

/* Clients that find no room wait in the system's queue until a place is free or the server begins. */
static void accept_all(void *user, void *of, uint32_t events)
{
    lobby *l = user;
    (void)of, (void)events;
    for (guest *g = free_place(l); g; g = free_place(l)) {
        bool exhausted;
        int fd = listen_accept(&l->listening, &exhausted);
        if (exhausted)
            listen_on(l, false); /* until the next tick */
        if (fd < 0)
            return;
        *g = (guest){.socket = {.fd = fd, .on_event = hear, .user = l, .of = g},
                     .since_s = serve_clock_s()};
        event_loop_watch(&l->loop, &g->socket, EPOLLIN | EPOLLRDHUP | EPOLLET);
    }
    listen_on(l, false);
}

static bool tick(void *user)
{
    lobby *l = user;
    double now = serve_clock_s();
    for (int i = 0; i < LOBBY_CLIENTS; i++) {
        guest *g = &l->guests[i];
        if (g->socket.fd >= 0 && now - g->since_s > (g->answered ? drain_s : idle_s))
            event_loop_drop(&l->loop, &g->socket);
    }
    listen_on(l, free_place(l) != NULL);
    return false;
}

static bool ends(void *user)
{
    (void)user;
    return true;
}

static void *run(void *user)
{
    lobby *l = user;
    event_loop_run(&l->loop);
    return NULL;
}

/* ---- Opening, leaving ---- */

static bool start(lobby *l)
{
    sigset_t all, before; /* signals are the caller's thread's */
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    l->listener = (watched){.fd = l->listening.fd, .on_event = accept_all, .user = l};
    l->loop.last = &l->listener;
    l->loop.woken = ends;
    l->loop.tick = tick;
    l->loop.user = l;
    listen_on(l, true);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->runs = pthread_create(&l->thread, &attributes, run, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return l->runs;
}

drey_status lobby_open(lobby **out, const lobby_options *options, drey_error *err)
{
    lobby *l = calloc(1, sizeof *l);
    *out = l;
    if (!l)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    l->options = *options;
    for (int i = 0; i < LOBBY_CLIENTS; i++)
        l->guests[i].socket.fd = -1;
    l->listener.fd = l->loop.epoll = l->loop.wake.fd = -1;
    drey_status status = listen_open(&l->listening, &options->at, err);
    if (status == DREY_OK && (!event_loop_open(&l->loop) || !start(l)))
        status = error_set(err, DREY_ERR_IO, "the system has no more files or threads: %s",
                           strerror(errno));
    if (status != DREY_OK)
        lobby_close(out);
    return status;
}

const listen_socket *lobby_socket(const lobby *l)
{
    return &l->listening;
}

static void stop(lobby *l)
{
    if (!l->runs)
        return;
    event_loop_wake(l->loop.wake.fd);
    pthread_join(l->thread, NULL);
    l->runs = false;
}

void lobby_leave(lobby *l, listen_socket *place, lobby_guests *guests)
{
    stop(l);
    listen_on(l, false);
    *place = l->listening;
    l->listening.fd = -1;
    for (int i = 0; i < LOBBY_CLIENTS; i++) {
        guest *g = &l->guests[i];
        if (g->socket.fd < 0 || g->answered)
            continue;
        event_loop_watch(&l->loop, &g->socket, 0);
        l->left.clients[l->left.n_clients++] = g->socket.fd;
        g->socket.fd = -1;
    }
    *guests = l->left;
}

void lobby_close(lobby **closed)
{
    lobby *l = *closed;
    if (!l)
        return;
    stop(l);
    listen_close(&l->listening, l->options.at.host);
    for (int i = 0; i < LOBBY_CLIENTS; i++)
        if (l->guests[i].socket.fd >= 0)
            event_loop_drop(&l->loop, &l->guests[i].socket);
    event_loop_close(&l->loop);
    free(l);
    *closed = NULL;
}
