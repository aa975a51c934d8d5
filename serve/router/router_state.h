/* State that the router's files share:
 *
 *   model_router.c      the loop, time, opening and closing
 *   router_answers.c    what it answers itself
 *   router_models.c     which model a request gets, and who is loaded
 */
#pragma once

#include "serve/router/model_router.h"
#include "serve/router/proxy.h"
#include "serve/net/http_answer.h"

enum { LARGE_BODIES = 8, ROUTER_SCRATCH_BYTES = HTTP_OUT_BYTES - HTTP_HEAD_BYTES };

struct router {
    router_options options;
    http_server http;      /* its clients are proxied requests */
    model_process *models; /* [n_models] */
    char *memory;          /* buffers of clients: in, out; and: */
    char *scratch;         /* [ROUTER_SCRATCH_BYTES]: an answer's body */
    size_t n_memory;
    uint64_t budget_bytes; /* for models; known once one has been measured; 0: not yet */
    int64_t n_requests;    /* so far */
    int64_t began;         /* seconds since 1970 */
    double stop_s;         /* when processes that still live are killed */
};

/* ---- Answers (router_answers.c) ---- */

/* Reports a request that no model's process answers. status 0: its client has gone. */
void router_report_request(const router *r, const proxied *c, int status, const char *why);

void router_refuse(router *r, proxied *c, const refusal *why);
void router_refuse_now(router *r, proxied *c, int status, const char *sentence);
/* Answers with a model's state; done: it was asked to be loaded, or not to be. */
void router_answer_model(router *r, proxied *c, const model_process *m, bool done);
/* Answers what the head alone decides; false: it is for a model. */
bool router_answer_head(router *r, proxied *c);

/* ---- Requests (model_router.c) ---- */

/* Sends it to its model's process. False: not now, try again. */
bool router_forward(router *r, proxied *c);
/* The proxied request of client i. */
static inline proxied *router_proxied(const router *r, int32_t i)
{
    return (proxied *)http_client_at(&r->http, i);
}
static inline bool router_waits(const proxied *c)
{
    return c->http.phase == CLIENT_ANSWER && c->state == PROXY_WAITS;
}

/* ---- Models (router_models.c) ---- */

/* Model i is not loaded so far. False: its socket's path is too long. */
bool router_name_model(router *r, int32_t i);
/* Models that have come to the folder take their places. */
void router_look(router *r);
/* Finds a model by its name, or by what means it and no other; NULL: there is none, also after a
 * look, or several, as *why says. */
model_process *router_find_model(router *r, const char *name, refusal *why);
/* The same of a part of a path or query. */
model_process *router_find_part(router *r, http_span name, refusal *why);
/* The model that was used last, of those that are loaded; NULL: none is. */
model_process *router_loaded_model(const router *r);
/* The request is whole: it waits for its model, or is refused. */
void router_queue(router *r, proxied *c);
/* Requests proceed in the order in which they came, as far as they can now. */
void router_advance(router *r);
/* For the server's owner: an event, of a model or (NULL) of none; and what happens to a model. */
void router_report(const router *r, const model_process *m, serve_event *event);
void router_note(const router *r, const model_process *m, const char *what);
void router_warn(const router *r, const model_process *m, const char *what);
