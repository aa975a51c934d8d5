/* The loop, time, opening and closing: see front.h. */
#include "serve/front/front_state.h"

#include "common/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/jobs.h"
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
static void ask_again(front *r, relay *c)
{
    bool same = c->tries.again && c->tries.ended == c->tries.met && c->tries.n_broken < MOST_BROKEN;
    if ((c->tries.again && !same) || r->http.stopping) {
        front_refuse_now(r, c, 503, "The model's process ended before it answered: ask again.");
        return;
    }
    c->tries.ended = c->tries.met;
    c->tries.n_broken++;
    c->child->life.broken_s = serve_clock_s();
    relay_wait_again(&r->http, c);
}

static void on_process(void *user, void *of, uint32_t events)
{
    front *r = user;
    bool broken;
    relay_process_event(&r->http, of, events, &broken);
    if (broken)
        ask_again(r, of);
}

bool front_forward(front *r, relay *c)
{
    return relay_forward(&r->http, c, on_process, r);
}

static void begin_request(void *user, http_client *c)
{
    relay *begun = (relay *)c;
    (void)user;
    *begun = (relay){.http = *c, .process.fd = -1};
}

static void proceed(void *user, http_client *c)
{
    if (c->phase == CLIENT_ANSWER)
        relay_flush(&((front *)user)->http, (relay *)c);
}

static void falls_silent(void *user, http_client *c)
{
    relay_falls_silent(&((front *)user)->http, (relay *)c);
}

static void turned_out(void *user, http_client *c)
{
    if (c->phase == CLIENT_BODY) /* it was refused just now */
        front_tell_request(user, (relay *)c, 503, "");
}

static void close_relay(void *user, http_client *c)
{
    front *r = user;
    relay *closed = (relay *)c;
    if (front_waits(closed))
        front_tell_request(r, closed, 0, "");
    relay_leave(&r->http, closed);
    closed->child = NULL;
}

/* ---- Requests ---- */

/* The front's own actions. */
static bool is_action(http_part path)
{
    return http_path_is(path, "/models/load") || http_path_is(path, "/models/unload");
}

/* May the client ask this at all? */
static bool allows(const front *r, const http_head *h, refusal *why)
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
        return front_answer_head(user, (relay *)c);
    front_refuse(user, (relay *)c, &why);
    return true;
}

static void answer_request(void *user, http_client *c)
{
    c->keeps = false;
    front_queue(user, (relay *)c);
}

static void answered(void *user, http_client *c, int status, const char *why)
{
    front *r = user;
    front_tell_request(r, (relay *)c, status, why);
    relay_end(&r->http, (relay *)c);
}

/* ---- Time ---- */

static void begin_to_stop(front *r)
{
    serve_event e = {.kind = SERVE_STOPPING};
    for (int32_t i = 0; i < r->options.n_models; i++)
        e.of.n_writing += r->models[i].n_users;
    front_tell(r, NULL, &e);
    http_stop(&r->http);
    r->stop_s = serve_clock_s() + r->options.grace_s + 1;
    for (int32_t i = 0; i < r->options.n_models; i++)
        child_stop(&r->models[i]);
    for (int32_t i = 0; i < r->http.n_clients; i++)
        if (front_waits(front_relay(r, i)))
            front_refuse_now(r, front_relay(r, i), 503,
                             "The server is being stopped: ask again in a moment.");
}

static void kill_model(const front *r, child *m, const char *why)
{
    char line[120];
    if (m->life.killed)
        return;
    snprintf(line, sizeof line, "%s, and is killed", why);
    front_warn(r, m, line);
    child_kill(m);
}

static void tick_answer(void *user, http_client *client, double now)
{
    front *r = user;
    relay *c = (relay *)client;
    double age = now - client->clock.since_s, timeout = r->options.timeout_s;
    bool unsent = c->n_head_sent < c->n_head_out || c->n_body_sent < client->n_body;
    if (c->state == RELAY_SENDS && age > timeout && unsent)
        kill_model(r, c->child, "takes no requests"); /* another process of it may */
    else if (c->state == RELAY_WAITS && age > wait_part * timeout)
        front_refuse_now(r, c, 503,
                         "The model could not be used for too long: others have the memory that it "
                         "needs, or it is still being loaded. Ask again later.");
}

/* Returns whether somebody waits for it, or for its memory. */
static bool holds_up(const front *r, const child *m)
{
    for (int32_t i = 0; i < r->http.n_clients; i++) {
        const relay *c = front_relay(r, i);
        if (front_waits(c) || (c->process.fd >= 0 && c->child == m))
            return true;
    }
    return false;
}

/* A process that does not end, or that a signal has stopped, has memory that others wait for. */
static void tick_model(front *r, child *m, double now)
{
    if (m->pid <= 0)
        return;
    if (m->state == CHILD_STOPPING && now - m->life.stop_s > r->options.grace_s + end_s)
        kill_model(r, m, "does not end");
    if (!child_is_frozen(m))
        m->life.frozen_s = 0;
    else if (m->life.frozen_s == 0)
        m->life.frozen_s = now;
    else if (now - m->life.frozen_s > r->options.timeout_s * frozen_part && holds_up(r, m))
        kill_model(r, m, "was stopped by a signal");
}

static bool tick(void *user, double now)
{
    front *r = user;
    int32_t n_open = 0, n_live = 0;
    for (int32_t i = 0; i < r->http.n_clients; i++)
        n_open += http_client_at(&r->http, i)->phase != CLIENT_FREE;
    for (int32_t i = 0; i < r->options.n_models; i++) {
        child *m = &r->models[i];
        if (child_ended(m) && m->why[0])
            front_warn(r, m, m->why);
        tick_model(r, m, now);
        if (r->http.stopping && now > r->stop_s && m->pid > 0)
            kill(m->pid, SIGKILL);
        n_live += m->pid > 0;
    }
    if (!r->http.stopping && !r->options.go_on(r->options.user))
        begin_to_stop(r);
    front_advance(r);
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

void front_run(front *r)
{
    http_run(&r->http);
}

/* ---- Opening, closing ---- */

static drey_status take_memory(front *r, drey_error *err)
{
    const front_options *o = &r->options;
    http_server *h = &r->http;
    size_t each = HTTP_IN_BYTES + HTTP_OUT_BYTES,
           n = (size_t)o->n_connections + ADMISSION_TURNED_AWAY;
    h->n_clients = (int32_t)n;
    h->client_bytes = sizeof(relay);
    h->n_large = LARGE_BODIES;
    r->n_memory = n * each + FRONT_SCRATCH_BYTES + LARGE_BODIES * (o->body_bytes + 1);
    h->clients = calloc(n, sizeof(relay));
    r->models = calloc(FRONT_MAX_MODELS, sizeof *r->models);
    r->memory = malloc(n * each + FRONT_SCRATCH_BYTES);
    bool good = h->clients && r->models && r->memory;
    for (int i = 0; i < LARGE_BODIES; i++)
        good = (h->large[i] = malloc(o->body_bytes + 1)) && good;
    if (!good)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    for (int32_t i = 0; i < h->n_clients; i++) {
        http_client_at(h, i)->in = r->memory + (size_t)i * each;
        http_client_at(h, i)->out = r->memory + (size_t)i * each + HTTP_IN_BYTES;
        front_relay(r, i)->process.fd = -1;
    }
    r->scratch = r->memory + n * each;
    return DREY_OK;
}

static drey_status name_models(front *r, drey_error *err)
{
    const front_options *o = &r->options;
    for (int32_t i = 0; i < o->n_models; i++)
        if (!front_name_model(r, i))
            FAIL(err, DREY_ERR_USAGE, "the folder \"%.100s\" is too long for a socket's path",
                 o->folder);
    return DREY_OK;
}

drey_status front_open(front **out, const front_options *options, drey_error *err)
{
    front *r = calloc(1, sizeof *r);
    *out = r;
    if (!r) {
        listen_place place = options->place;
        listen_close(&place, options->host);
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    }
    r->options = *options;
    r->http = (http_server){
        .loop = {.epoll = -1, .wake.fd = -1},
        .place = options->place,
        .listener.fd = -1,
        .rules = {options->api_keys, options->origins, options->host, options->place.is_unix},
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
        front_close(out);
    return status;
}

const char *front_address(const front *r)
{
    return r->http.place.address;
}

void front_close(front **closed)
{
    front *r = *closed;
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
