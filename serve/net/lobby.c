/* The lobby's thread: see lobby.h. */
#include "serve/net/lobby.h"

#include "common/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/net/admission.h"
#include "serve/net/http_answer.h"
#include "serve/net/routes.h"
#include "serve/requests.h"

enum {
    STACK_BYTES = 256 << 10,
    N_CLIENTS = LOBBY_CLIENTS + ADMISSION_TURNED_AWAY,
    CLIENT_BYTES = HTTP_IN_BYTES + HTTP_OUT_BYTES
};

struct lobby {
    lobby_options options;
    http_server http;
    http_client clients[N_CLIENTS];
    pthread_t thread;
    bool runs;
    lobby_guests left; /* its events, as they come */
    char memory[N_CLIENTS * CLIENT_BYTES];
};

static const char page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
    "content=\"1\"><title>drey</title><p>The model is being loaded: this page will be here in a "
    "moment.</html>\n";

/* ---- Answers ---- */

static bool answer_head(void *user, http_client *c)
{
    lobby *l = user;
    const http_head *h = &c->head;
    bool preflight = h->method == HTTP_OPTIONS;
    refusal r;
    c->keeps = false;
    if (!access_allows(&l->http.rules, h, !preflight && !route_is_open(h->path), &r) ||
        (!preflight && !route_exists(h, l->options.closed, &r))) {
        http_refuse(&l->http, c, &r);
    } else if (preflight) {
        http_respond(&l->http, c, &(http_answer){.status = 204});
    } else if (http_path_is(h->path, "/") || http_path_is(h->path, "/index.html")) {
        http_respond(&l->http, c,
                     &(http_answer){.status = 503,
                                    .type = "text/html; charset=utf-8",
                                    .headers = "Retry-After: 1\r\nCache-Control: no-store\r\n",
                                    .body = page,
                                    .n = sizeof page - 1});
    } else {
        refuse_fixed(&r, 503, "Loading model");
        r.retry_s = 1;
        http_refuse(&l->http, c, &r);
    }
    return true;
}

/* Keeps the event for the owner, until the server begins, and sends. */
static void answered(void *user, http_client *c, int status, const char *why)
{
    lobby *l = user;
    lobby_guests *left = &l->left;
    serve_event e = event_of_request(&c->head, status, serve_clock_s() - c->clock.began_s);
    if (left->n_events < LOBBY_EVENTS && !e.of.request.repeats) {
        snprintf(e.of.request.why, sizeof e.of.request.why, "%s", why);
        if (status >= 400)
            listen_peer(&l->http.listening, c->socket.fd, e.of.request.peer,
                        sizeof e.of.request.peer);
        left->events[left->n_events++] = e;
    }
    if (http_flush(&l->http, c))
        http_end(&l->http, c);
}

static bool is_open(http_span path)
{
    (void)path;
    return true;
}

static void proceed(void *user, http_client *c)
{
    lobby *l = user;
    if (c->phase == CLIENT_ANSWER && http_flush(&l->http, c))
        http_end(&l->http, c);
}

static bool tick(void *user, double now)
{
    (void)user, (void)now;
    return false;
}

static void end_loop(void *user)
{
    ((lobby *)user)->http.loop.over = true;
}

static const http_handler handler = {.head = answer_head,
                                     .is_open = is_open,
                                     .answered = answered,
                                     .proceed = proceed,
                                     .silent = proceed,
                                     .tick = tick,
                                     .woken = end_loop};

static void *run(void *user)
{
    http_run(&((lobby *)user)->http);
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
    l->http = (http_server){.loop = {.epoll = -1, .wake.fd = -1},
                            .listener.fd = -1,
                            .clients = (char *)l->clients,
                            .client_bytes = sizeof *l->clients,
                            .n_clients = N_CLIENTS,
                            .n_admitted = LOBBY_CLIENTS,
                            .large_bytes = SIZE_MAX, /* bodies are not read */
                            .timeout_s = 10,
                            .handler = &handler,
                            .user = l};
    for (int i = 0; i < N_CLIENTS; i++) {
        l->clients[i].in = l->memory + i * CLIENT_BYTES;
        l->clients[i].out = l->clients[i].in + HTTP_IN_BYTES;
    }
    drey_status status = listen_open(&l->http.listening, &options->at, err);
    l->http.rules = (access_rules){options->api_keys, options->origins, options->at.host,
                                   l->http.listening.is_unix};
    if (status == DREY_OK && (!event_loop_open(&l->http.loop) || !start(l)))
        status = error_set(err, DREY_ERR_IO, "the system has no more files or threads: %s",
                           strerror(errno));
    if (status != DREY_OK)
        lobby_close(out);
    return status;
}

const listen_socket *lobby_socket(const lobby *l)
{
    return &l->http.listening;
}

static void stop(lobby *l)
{
    if (!l->runs)
        return;
    event_loop_wake(l->http.loop.wake.fd);
    pthread_join(l->thread, NULL);
    l->runs = false;
}

void lobby_leave(lobby *l, listen_socket *listening, lobby_guests *guests)
{
    stop(l);
    event_loop_watch(&l->http.loop, &l->http.listener, 0);
    *listening = l->http.listening;
    l->http.listening.fd = l->http.listener.fd = -1;
    for (int i = 0; i < N_CLIENTS; i++) {
        http_client *c = &l->clients[i];
        if (c->phase != CLIENT_HEAD || !c->standing.admitted)
            continue;
        event_loop_watch(&l->http.loop, &c->socket, 0);
        l->left.clients[l->left.n_clients++] = c;
        c->phase = CLIENT_FREE;
    }
    *guests = l->left;
}

void lobby_close(lobby **closed)
{
    lobby *l = *closed;
    if (!l)
        return;
    stop(l);
    http_close_all(&l->http);
    http_stop_listening(&l->http);
    event_loop_close(&l->http.loop);
    free(l);
    *closed = NULL;
}
