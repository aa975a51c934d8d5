/* The loop, time, opening and closing: see model_router.h. */
#include "serve/router/router_state.h"

#include "common/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/requests.h"
#include "serve/net/admission.h"
#include "serve/net/routes.h"

enum { MOST_BROKEN = 20 };
/* end_s: what a process that was asked to end has after the grace. Parts of the time-out: what a
 * process that a signal has stopped has, and a request that waits for its model. */
static const double end_s = 5, frozen_part = 1.0 / 3, wait_part = 20;

/* ---- Events ---- */

/* Its process ended before it answered, perhaps by another's request, or by a signal; if another
 * one does, it may be this request's fault. A process that ends may take connections for a moment
 * still. */
static void ask_again(router *r, proxied *c)
{
    bool same = c->tries.again && c->tries.ended == c->tries.met && c->tries.n_broken < MOST_BROKEN;
    if ((c->tries.again && !same) || r->http.stopping) {
        router_refuse_now(r, c, 503, "The model's process ended before it answered: ask again.");
        return;
    }
    c->tries.ended = c->tries.met;
    c->tries.n_broken++;
    c->process->life.broken_s = serve_clock_s();
    proxy_wait_again(&r->http, c);
}

static void on_upstream(void *user, void *of, uint32_t events)
{
    router *r = user;
    bool broken;
    proxy_upstream_event(&r->http, of, events, &broken);
    if (broken)
        ask_again(r, of);
}

bool router_forward(router *r, proxied *c)
{
    return proxy_forward(&r->http, c, on_upstream, r);
}

static void begin_request(void *user, http_client *c)
{
    proxied *begun = (proxied *)c;
    (void)user;
    *begun = (proxied){.http = *c, .upstream.fd = -1};
}

static void proceed(void *user, http_client *c)
{
    if (c->phase == CLIENT_ANSWER)
        proxy_flush(&((router *)user)->http, (proxied *)c);
}

static void falls_silent(void *user, http_client *c)
{
    proxy_falls_silent(&((router *)user)->http, (proxied *)c);
}

static void turned_out(void *user, http_client *c)
{
    if (c->phase == CLIENT_BODY) /* it was refused just now */
        router_report_request(user, (proxied *)c, 503, "");
}

static void close_relay(void *user, http_client *c)
{
    router *r = user;
    proxied *closed = (proxied *)c;
    if (router_waits(closed))
        router_report_request(r, closed, 0, "");
    proxy_leave(&r->http, closed);
    closed->process = NULL;
}

/* ---- Requests ---- */

/* The router's own actions. */
static bool is_action(http_span path)
{
    return http_path_is(path, "/models/load") || http_path_is(path, "/models/unload");
}

/* May the client ask this at all? */
static bool allows(const router *r, const http_head *h, refusal *why)
{
    bool action = is_action(h->path), preflight = h->method == HTTP_OPTIONS;
    if (!access_allows(&r->http.rules, h, !preflight && !route_is_open(h->path), why))
        return false;
    if (action && h->method != HTTP_POST && !preflight)
        return refuse_with(why, 405, "This endpoint takes POST.");
    return action || preflight || route_exists(h, r->options.closed, why);
}

static bool answer_head(void *user, http_client *c)
{
    refusal why;
    c->keeps = false; /* one connection carries one request */
    if (allows(user, &c->head, &why))
        return router_answer_head(user, (proxied *)c);
    router_refuse(user, (proxied *)c, &why);
    return true;
}

static void answer_request(void *user, http_client *c)
{
    c->keeps = false;
    router_queue(user, (proxied *)c);
}

static void answered(void *user, http_client *c, int status, const char *why)
{
    router *r = user;
    router_report_request(r, (proxied *)c, status, why);
    proxy_end(&r->http, (proxied *)c);
}

/* ---- Time ---- */

static void begin_to_stop(router *r)
{
    serve_event e = {.kind = SERVE_STOPPING};
    for (int32_t i = 0; i < r->options.n_models; i++)
        e.of.n_writing += r->models[i].n_users;
    router_report(r, NULL, &e);
    http_stop(&r->http);
    r->stop_s = serve_clock_s() + r->options.grace_s + 1;
    for (int32_t i = 0; i < r->options.n_models; i++)
        process_stop(&r->models[i]);
    for (int32_t i = 0; i < r->http.n_clients; i++)
        if (router_waits(router_proxied(r, i)))
            router_refuse_now(r, router_proxied(r, i), 503,
                              "The server is being stopped: ask again in a moment.");
}

static void kill_model(const router *r, model_process *m, const char *why)
{
    char line[120];
    if (m->life.killed)
        return;
    snprintf(line, sizeof line, "%s, and is killed", why);
    router_warn(r, m, line);
    process_kill(m);
}

static void tick_answer(void *user, http_client *client, double now)
{
    router *r = user;
    proxied *c = (proxied *)client;
    double age = now - client->clock.since_s, timeout = r->options.timeout_s;
    bool unsent = c->n_head_sent < c->n_head_out || c->n_body_sent < client->n_body;
    if (c->state == PROXY_SENDS && age > timeout && unsent)
        kill_model(r, c->process, "takes no requests"); /* another process of it may */
    else if (c->state == PROXY_WAITS && age > wait_part * timeout)
        router_refuse_now(
            r, c, 503,
            "The model could not be used for too long: others have the memory that it "
            "needs, or it is still being loaded. Ask again later.");
}

/* Returns whether somebody waits for it, or for its memory. */
static bool holds_up(const router *r, const model_process *m)
{
    for (int32_t i = 0; i < r->http.n_clients; i++) {
        const proxied *c = router_proxied(r, i);
        if (router_waits(c) || (c->upstream.fd >= 0 && c->process == m))
            return true;
    }
    return false;
}

/* A process that does not end, or that a signal has stopped, has memory that others wait for. */
static void tick_model(router *r, model_process *m, double now)
{
    if (m->pid <= 0)
        return;
    if (m->state == PROCESS_STOPPING && now - m->life.stop_s > r->options.grace_s + end_s)
        kill_model(r, m, "does not end");
    if (!process_is_frozen(m))
        m->life.frozen_s = 0;
    else if (m->life.frozen_s == 0)
        m->life.frozen_s = now;
    else if (now - m->life.frozen_s > r->options.timeout_s * frozen_part && holds_up(r, m))
        kill_model(r, m, "was stopped by a signal");
}

static bool tick(void *user, double now)
{
    router *r = user;
    int32_t n_open = 0, n_live = 0;
    for (int32_t i = 0; i < r->http.n_clients; i++)
        n_open += http_client_at(&r->http, i)->phase != CLIENT_FREE;
    for (int32_t i = 0; i < r->options.n_models; i++) {
        model_process *m = &r->models[i];
        if (process_ended(m) && m->why[0])
            router_warn(r, m, m->why);
        tick_model(r, m, now);
        if (r->http.stopping && now > r->stop_s && m->pid > 0)
            kill(m->pid, SIGKILL);
        n_live += m->pid > 0;
    }
    if (!r->http.stopping && !r->options.keeps_running(r->options.user))
        begin_to_stop(r);
    router_advance(r);
    return r->http.stopping && n_live == 0 && (n_open == 0 || now > r->stop_s);
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
                                     .close = close_relay,
                                     .tick = tick};

void router_run(router *r)
{
    http_run(&r->http);
    http_close_all(&r->http);
}

/* ---- Opening, closing ---- */

static drey_status take_memory(router *r, drey_error *err)
{
    const router_options *o = &r->options;
    http_server *h = &r->http;
    size_t each = HTTP_IN_BYTES + HTTP_OUT_BYTES,
           n = (size_t)o->n_connections + ADMISSION_TURNED_AWAY;
    h->n_clients = (int32_t)n;
    h->client_bytes = sizeof(proxied);
    h->n_large = LARGE_BODIES;
    r->n_memory = n * each + ROUTER_SCRATCH_BYTES + LARGE_BODIES * (o->body_bytes + 1);
    h->clients = calloc(n, sizeof(proxied));
    r->models = calloc(ROUTER_MAX_MODELS, sizeof *r->models);
    r->memory = malloc(n * each + ROUTER_SCRATCH_BYTES);
    bool good = h->clients && r->models && r->memory;
    for (int i = 0; i < LARGE_BODIES; i++)
        good = (h->large[i] = malloc(o->body_bytes + 1)) && good;
    if (!good)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    for (int32_t i = 0; i < h->n_clients; i++) {
        http_client_at(h, i)->in = r->memory + (size_t)i * each;
        http_client_at(h, i)->out = r->memory + (size_t)i * each + HTTP_IN_BYTES;
        router_proxied(r, i)->upstream.fd = -1;
    }
    r->scratch = r->memory + n * each;
    return DREY_OK;
}

static drey_status name_models(router *r, drey_error *err)
{
    const router_options *o = &r->options;
    for (int32_t i = 0; i < o->n_models; i++)
        if (!router_name_model(r, i))
            FAIL(err, DREY_ERR_USAGE, "the folder \"%.100s\" is too long for a socket's path",
                 o->folder);
    return DREY_OK;
}

drey_status router_open(router **out, const router_options *options, drey_error *err)
{
    router *r = calloc(1, sizeof *r);
    *out = r;
    if (!r) {
        listen_socket place = options->listening;
        listen_close(&place, options->host);
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    }
    r->options = *options;
    r->http = (http_server){
        .loop = {.epoll = -1, .wake.fd = -1},
        .listening = options->listening,
        .listener.fd = -1,
        .rules = {options->api_keys, options->origins, options->host, options->listening.is_unix},
        .n_admitted = options->n_connections,
        .large_bytes = options->body_bytes,
        .timeout_s = options->timeout_s,
        .handler = &handler,
        .user = r};
    r->began = (int64_t)time(NULL);
    drey_status status = take_memory(r, err);
    if (status == DREY_OK)
        status = name_models(r, err);
    if (status == DREY_OK && !event_loop_open(&r->http.loop))
        status = error_set(err, DREY_ERR_IO, "the system has no more files: %s", strerror(errno));
    if (status != DREY_OK)
        router_close(out);
    return status;
}

const char *router_address(const router *r)
{
    return r->http.listening.address;
}

void router_close(router **closed)
{
    router *r = *closed;
    if (!r)
        return;
    http_stop_listening(&r->http);
    event_loop_close(&r->http.loop);
    for (int i = 0; i < LARGE_BODIES; i++)
        free(r->http.large[i]);
    free(r->http.clients);
    free(r->models);
    free(r->memory);
    free(r);
    *closed = NULL;
}
