/* The loop, time, opening and closing: see front.h. */
#include "serve/front/front_state.h"

#include "common/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "serve/jobs.h"
#include "serve/net/places.h"

enum { MOST_EVENTS = 64, MOST_BROKEN = 20 };
static const double tick_s = 0.2, drain_s = 2;
/* end_s: what a process that was asked to end has after the grace. Parts of the time-out: what a
 * process that a signal has stopped has, and a request that waits for its model. */
static const double end_s = 5, frozen_part = 1.0 / 3, wait_part = 20;

/* ---- Events ---- */

static void client_event(front *r, relay *c, uint32_t events)
{
    bool reads = c->state == RELAY_HEAD || c->state == RELAY_BODY || c->state == RELAY_DRAIN;
    bool answers = c->state == RELAY_WAITS || c->state == RELAY_SENDS || c->state == RELAY_ANSWER;
    if (events & (EPOLLERR | EPOLLHUP)) {
        if (c->state == RELAY_WAITS)
            front_tell_request(r, c, 0);
        relay_close(&r->loop, c);
    } else if (answers && events & EPOLLRDHUP)
        relay_falls_silent(&r->loop, c);
    else if (events & EPOLLOUT && !reads)
        relay_flush(&r->loop, c);
    else if (reads)
        front_read_client(r, c);
}

/* Its process ended before it answered, perhaps by another's request, or by a signal; if another
 * one does, it may be this request's fault. A process that ends may take connections for a moment
 * still. */
static void ask_again(front *r, relay *c)
{
    bool same = c->tries.again && c->tries.ended == c->tries.met && c->tries.n_broken < MOST_BROKEN;
    if ((c->tries.again && !same) || r->stopping) {
        front_refuse_now(r, c, 503, "The model's process ended before it answered: ask again.");
        return;
    }
    c->tries.ended = c->tries.met;
    c->tries.n_broken++;
    c->child->life.broken_s = serve_clock_s();
    relay_wait_again(&r->loop, c);
}

static void server_event(front *r, relay *c, uint32_t events)
{
    bool broken;
    relay_server_event(&r->loop, c, events, &broken);
    if (broken)
        ask_again(r, c);
}

static void listen_on(front *r, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = FRONT_LISTENER};
    if (r->listening != wanted)
        epoll_ctl(r->loop.epoll, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, r->place.fd, &event);
    r->listening = wanted;
}

static client_look look_at(void *user, int32_t i)
{
    static const client_phase phases[] = {
        [RELAY_FREE] = CLIENT_NONE,    [RELAY_HEAD] = CLIENT_HEAD,
        [RELAY_BODY] = CLIENT_BODY,    [RELAY_WAITS] = CLIENT_ANSWER,
        [RELAY_SENDS] = CLIENT_ANSWER, [RELAY_ANSWER] = CLIENT_ANSWER,
        [RELAY_ENDS] = CLIENT_ANSWER,  [RELAY_DRAIN] = CLIENT_DRAIN};
    relay *c = &((front *)user)->loop.relays[i];
    return (client_look){.place = &c->place,
                         .phase = phases[c->state],
                         .fd = c->client,
                         .n_in = c->n_in,
                         .n_body = c->n_body,
                         .unread =
                             c->state >= RELAY_ANSWER && (c->n_sent < c->n_out || c->n_more > 0),
                         .large = c->large,
                         .since_s = c->since_s,
                         .moved_s = c->since_s};
}

static void close_at(void *user, int32_t i)
{
    front *r = user;
    if (r->loop.relays[i].state == RELAY_BODY) /* it was refused just now */
        front_tell_request(r, &r->loop.relays[i], 503);
    relay_close(&r->loop, &r->loop.relays[i]);
    front_give_large(r, &r->loop.relays[i]);
}

static void read_at(void *user, int32_t i)
{
    front *r = user;
    front_read_again(r, &r->loop.relays[i]);
}

static places places_in(front *r)
{
    const front_options *o = &r->options;
    return (places){.look = look_at,
                    .close = close_at,
                    .read = read_at,
                    .user = r,
                    .n_admitted = o->n_connections,
                    .n = r->loop.n_relays,
                    .keyed = o->api_keys,
                    .timeout_s = o->timeout_s};
}

void front_let_in(front *r, relay *c)
{
    const places p = places_in(r);
    places_let_in(&p, (int32_t)(c - r->loop.relays));
}

bool front_free_large(front *r)
{
    const places p = places_in(r);
    return places_free_large(&p);
}

static void accept_all(front *r)
{
    const places p = places_in(r);
    for (int i = 0; i < MOST_EVENTS; i++) {
        bool exhausted, admitted;
        int fd = listen_accept(&r->place, &exhausted);
        if (exhausted)
            listen_on(r, false); /* until the next tick */
        if (fd < 0)
            return;
        uint64_t address = places_address(fd);
        relay *c = &r->loop.relays[places_choose(&p, address, &admitted)];
        front_give_large(r, c); /* of the one before it */
        relay_begin(&r->loop, c, fd);
        c->place = (client_place){.admitted = admitted, .address = address};
    }
}

/* ---- Time ---- */

static void begin_to_stop(front *r)
{
    serve_event e = {.kind = SERVE_STOPPING};
    for (int32_t i = 0; i < r->options.n_models; i++)
        e.of.n_writing += r->models[i].n_users;
    front_tell(r, NULL, &e);
    r->stopping = true;
    r->stop_s = serve_clock_s() + r->options.grace_s + 1;
    listen_on(r, false);
    listen_close(&r->place, r->options.host);
    for (int32_t i = 0; i < r->options.n_models; i++)
        child_stop(&r->models[i]);
    for (int32_t i = 0; i < r->loop.n_relays; i++)
        if (r->loop.relays[i].state == RELAY_WAITS)
            front_refuse_now(r, &r->loop.relays[i], 503,
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

static void tick_relay(front *r, relay *c, double now)
{
    double age = now - c->since_s, timeout = r->options.timeout_s;
    /* A large body may take longer, as in network.c. */
    bool late = (c->state == RELAY_HEAD || c->state == RELAY_BODY) &&
                age > timeout + (double)c->n_body / 16384;
    bool stuck = (c->n_sent < c->n_out || c->n_more > 0) && age > timeout;
    bool untaken = c->state == RELAY_SENDS && age > timeout &&
                   (c->n_sent < c->n_out || c->n_body_sent < c->n_body);
    if (untaken) { /* its process does nothing: another one may */
        kill_model(r, c->child, "takes no requests");
        return;
    }
    if (c->state == RELAY_WAITS && age > wait_part * timeout) {
        front_refuse_now(r, c, 503,
                         "The model could not be used for too long: others have the memory that it "
                         "needs, or it is still being loaded. Ask again later.");
        return;
    }
    if (late && c->n_in > 0)
        front_refuse_now(r, c, 408, "The request took too long to arrive.");
    else if (c->state == RELAY_HEAD && !c->place.admitted && age > drain_s)
        front_refuse_full(r, c);
    else if (late || (stuck && c->state != RELAY_SENDS) ||
             (c->state == RELAY_DRAIN && age > drain_s) ||
             (c->state == RELAY_HEAD && c->n_in == 0 && r->stopping))
        relay_close(&r->loop, c);
}

/* Returns whether somebody waits for it, or for its memory. */
static bool holds_up(const front *r, const child *m)
{
    for (int32_t i = 0; i < r->loop.n_relays; i++) {
        const relay *c = &r->loop.relays[i];
        bool asks = c->state == RELAY_SENDS || c->state == RELAY_ANSWER;
        if (c->state == RELAY_WAITS || (asks && c->child == m))
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

/* True: it is over. */
static bool tick(front *r)
{
    double now = serve_clock_s();
    int32_t n_open = 0, n_live = 0;
    for (int32_t i = 0; i < r->loop.n_relays; i++) {
        relay *c = &r->loop.relays[i];
        if (c->state != RELAY_FREE)
            tick_relay(r, c, now);
        if (c->large && (c->state == RELAY_FREE || c->state >= RELAY_ANSWER))
            front_give_large(r, c);
        n_open += c->state != RELAY_FREE;
    }
    for (int32_t i = 0; i < r->options.n_models; i++) {
        child *m = &r->models[i];
        if (child_ended(m) && m->why[0])
            front_warn(r, m, m->why);
        tick_model(r, m, now);
        if (r->stopping && now > r->stop_s && m->pid > 0)
            kill(m->pid, SIGKILL);
        n_live += m->pid > 0;
    }
    if (!r->stopping && !r->options.go_on(r->options.user))
        begin_to_stop(r);
    if (!r->stopping)
        listen_on(r, true);
    front_advance(r);
    return r->stopping && n_live == 0 && (n_open == 0 || now > r->stop_s);
}

void front_run(front *r)
{
    const places p = places_in(r);
    struct epoll_event events[MOST_EVENTS];
    double next_tick = 0;
    for (bool over = false, waiting = false; !over;) {
        int n = epoll_wait(r->loop.epoll, events, MOST_EVENTS, waiting ? 0 : (int)(1000 * tick_s));
        bool accepts = false;
        for (int i = 0; i < n; i++) {
            uint64_t of = events[i].data.u64;
            if (of == FRONT_LISTENER) {
                accepts = true;
            } else if (of >= FRONT_MODELS) {
                front_hear(r, &r->models[of - FRONT_MODELS]);
            } else {
                relay *c = &r->loop.relays[of / 2];
                if (of % 2 && c->server >= 0)
                    server_event(r, c, events[i].events);
                else if (of % 2 == 0 && c->state != RELAY_FREE)
                    client_event(r, c, events[i].events);
            }
        }
        if (accepts)
            accept_all(r); /* last: an event of one that has gone is not its successor's */
        waiting = places_read_waiting(&p);
        double now = serve_clock_s();
        if (n < 0 || now >= next_tick) {
            next_tick = now + tick_s / 2;
            over = tick(r);
        }
    }
}

/* ---- Opening, closing ---- */

static drey_status take_memory(front *r, drey_error *err)
{
    const front_options *o = &r->options;
    size_t each = RELAY_IN_BYTES + RELAY_OUT_BYTES,
           n = (size_t)o->n_connections + PLACES_TURNED_AWAY;
    r->loop.n_relays = (int32_t)n;
    r->n_memory = n * each + FRONT_SCRATCH_BYTES + LARGE_BODIES * (o->body_bytes + 1);
    r->loop.relays = calloc(n, sizeof *r->loop.relays);
    r->models = calloc(FRONT_MAX_MODELS, sizeof *r->models);
    r->memory = malloc(n * each + FRONT_SCRATCH_BYTES);
    bool good = r->loop.relays && r->models && r->memory;
    for (int i = 0; i < LARGE_BODIES; i++)
        good = (r->large[i].bytes = malloc(o->body_bytes + 1)) && good;
    if (!good)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    for (size_t i = 0; i < n; i++) {
        r->loop.relays[i].in = r->memory + i * each;
        r->loop.relays[i].out = r->memory + i * each + RELAY_IN_BYTES;
        r->loop.relays[i].client = r->loop.relays[i].server = -1;
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
    r->place = options->place;
    r->loop.epoll = -1;
    r->began = (int64_t)time(NULL);
    drey_status status = take_memory(r, err);
    if (status == DREY_OK)
        status = name_models(r, err);
    r->loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (status == DREY_OK && r->loop.epoll < 0)
        status = error_set(err, DREY_ERR_IO, "the system has no more files: %s", strerror(errno));
    if (status != DREY_OK)
        front_close(out);
    return status;
}

const char *front_address(const front *r)
{
    return r->place.address;
}

void front_close(front **closed)
{
    front *r = *closed;
    if (!r)
        return;
    listen_close(&r->place, r->options.host);
    if (r->loop.epoll >= 0)
        close(r->loop.epoll);
    for (int32_t i = 0; r->loop.relays && i < r->loop.n_relays; i++)
        if (r->loop.relays[i].state != RELAY_FREE)
            relay_close(&r->loop, &r->loop.relays[i]);
    for (int i = 0; i < LARGE_BODIES; i++)
        free(r->large[i].bytes);
    free(r->loop.relays);
    free(r->models);
    free(r->memory);
    free(r);
    *closed = NULL;
}
