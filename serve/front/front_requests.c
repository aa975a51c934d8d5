/* Heads and bodies of clients: see front_state.h. */
#include "serve/front/front_state.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "serve/net/routes.h"
#include "serve/net/access.h"
#include "serve/jobs.h"

/* ---- Large bodies ---- */

static bool take_free(front *r, relay *c)
{
    for (int i = 0; i < LARGE_BODIES; i++)
        if (!r->large[i].taken) {
            r->large[i].taken = true;
            c->large = r->large[i].bytes;
            return true;
        }
    return false;
}

static bool take_large(front *r, relay *c)
{
    return take_free(r, c) || (front_free_large(r) && take_free(r, c));
}

void front_give_large(front *r, relay *c)
{
    for (int i = 0; i < LARGE_BODIES; i++)
        if (c->large == r->large[i].bytes)
            r->large[i].taken = false;
    c->large = NULL;
}

/* ---- Bodies ---- */

static void read_body(front *r, relay *c)
{
    size_t have = c->n_in - c->n_head, used = 0, got = 0, capacity = r->options.body_bytes;
    int status = 0;
    if (c->head.chunked) {
        http_result result =
            http_read_chunks(&c->chunks, c->in + c->n_head, have, &used, c->large + c->n_body,
                             capacity - c->n_body, &got, &status);
        c->n_body += got;
        memmove(c->in + c->n_head, c->in + c->n_head + used, have - used);
        c->n_in -= used;
        if (result == HTTP_BAD)
            front_refuse_now(r, c, status,
                             "The request's body is broken, or larger than this server takes.");
        else if (result == HTTP_DONE)
            front_queue(r, c);
        return;
    }
    if (c->large) {
        size_t left = c->head.n_body - c->n_body;
        got = have < left ? have : left;
        memcpy(c->large + c->n_body, c->in + c->n_head, got);
        c->n_body += got;
        c->n_in -= got;
    } else {
        c->n_body = have < c->head.n_body ? have : (size_t)c->head.n_body;
    }
    if (c->n_body == c->head.n_body)
        front_queue(r, c);
}

/* ---- Heads ---- */

void front_refuse_full(front *r, relay *c)
{
    refusal why;
    refuse_with(&why, 503,
                "%d connections are open already, as many as this server has memory for.",
                r->options.n_connections);
    front_refuse(r, c, &why);
}

/* The front's own actions. */
static bool is_action(http_part path)
{
    return http_path_is(path, "/models/load") || http_path_is(path, "/models/unload");
}

static access_rules rules_of(const front *r)
{
    return (access_rules){r->options.api_keys, r->options.origins, r->options.host,
                          r->place.is_unix};
}

/* May the client ask this at all? */
static bool allows(const front *r, const relay *c, refusal *why)
{
    const access_rules rules = rules_of(r);
    const http_head *h = &c->head;
    bool action = is_action(h->path), preflight = h->method == HTTP_OPTIONS;
    if (!access_allows(&rules, h, !preflight && !route_is_open(h->path), why))
        return false;
    if (action && h->method != HTTP_POST && !preflight)
        return refuse_with(why, 405, "This endpoint takes POST.");
    if (!action && !preflight && !route_exists(h, r->options.closed, why))
        return false;
    return h->n_body <= r->options.body_bytes ||
           refuse_with(why, 413, "The request's body is larger than this server takes.");
}

static void head_is_whole(front *r, relay *c)
{
    static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const http_head *h = &c->head;
    refusal why;
    bool asks_health = http_path_is(h->path, "/health") || http_path_is(h->path, "/v1/health");
    const access_rules rules = rules_of(r);
    c->place.shown = access_shows_key(&rules, h);
    if (!c->place.admitted && c->place.shown && !asks_health)
        front_let_in(r, c);
    if (c->place.waits)
        return;
    if (!c->place.admitted && !asks_health) {
        front_refuse_full(r, c);
        return;
    }
    if (!allows(r, c, &why)) {
        front_refuse(r, c, &why);
        return;
    }
    if (front_answer_head(r, c))
        return;
    bool fits = h->n_body <= RELAY_IN_BYTES - c->n_head;
    if ((h->chunked || !fits) && !take_large(r, c)) {
        front_refuse_now(r, c, 503,
                         "Too many large requests are being read: ask again in a moment.");
        return;
    }
    if (h->expects && c->n_in == c->n_head &&
        send(c->client, proceed, sizeof proceed - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
    c->body = c->large ? c->large : c->in + c->n_head;
    relay_enter(c, RELAY_BODY);
    read_body(r, c);
}

void front_read_again(front *r, relay *c)
{
    int status;
    const char *why;
    http_result result = http_read_head(c->in, c->n_in, &c->head, &c->n_head, &status, &why);
    if (result == HTTP_DONE)
        head_is_whole(r, c);
    else if (result == HTTP_BAD)
        front_refuse_now(r, c, status, why);
    else if (c->n_in == RELAY_IN_BYTES)
        front_refuse_now(r, c, 431, "The request's head is larger than this server takes.");
}

void front_read_client(front *r, relay *c)
{
    char nothing[4096];
    bool drains = c->state == RELAY_DRAIN;
    ssize_t got = drains ? recv(c->client, nothing, sizeof nothing, MSG_DONTWAIT)
                         : recv(c->client, c->in + c->n_in, RELAY_IN_BYTES - c->n_in, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        relay_close(&r->loop, c);
        return;
    }
    if (got < 0 || drains)
        return;
    if (c->n_in == 0)
        c->began_s = serve_clock_s();
    c->n_in += (size_t)got;
    if (c->state == RELAY_BODY) {
        read_body(r, c);
        return;
    }
    front_read_again(r, c);
}
