/* State that the front's files share:
 *
 *   front.c            the loop, time, opening and closing
 *   front_answers.c    what it answers itself
 *   front_models.c     which model a request gets, and who is loaded
 */
#pragma once

#include "serve/front/front.h"
#include "serve/front/relay.h"
#include "serve/net/http_answer.h"

enum { LARGE_BODIES = 8, FRONT_SCRATCH_BYTES = HTTP_OUT_BYTES - HTTP_HEAD_BYTES };

struct front {
    front_options options;
    http_server http; /* its clients are relays */
    child *models;    /* [n_models] */
    char *memory;     /* of relays: in, out; and: */
    char *scratch;    /* [FRONT_SCRATCH_BYTES]: an answer's body */
    size_t n_memory;
    uint64_t budget_bytes; /* for models; known once one has been measured; 0: not yet */
    int64_t n_requests;    /* so far */
    int64_t began;         /* seconds since 1970 */
    double stop_s;         /* when processes that still live are killed */
};

/* ---- Answers (front_answers.c) ---- */

/* Reports a request that no model's process answers. status 0: its client has gone. */
void front_tell_request(const front *r, const relay *c, int status, const char *why);

void front_refuse(front *r, relay *c, const refusal *why);
void front_refuse_now(front *r, relay *c, int status, const char *sentence);
/* Answers with a model's state; done: it was asked to be loaded, or not to be. */
void front_answer_model(front *r, relay *c, const child *m, bool done);
/* Answers what the head alone decides; false: it is for a model. */
bool front_answer_head(front *r, relay *c);

/* ---- Requests (front.c) ---- */

/* Sends it to its model's process. False: not now, try again. */
bool front_forward(front *r, relay *c);
/* The relay of client i. */
static inline relay *front_relay(const front *r, int32_t i)
{
    return (relay *)http_client_at(&r->http, i);
}
static inline bool front_waits(const relay *c)
{
    return c->http.phase == CLIENT_ANSWER && c->state == RELAY_WAITS;
}

/* ---- Models (front_models.c) ---- */

/* Model i is not loaded so far. False: its socket's path is too long. */
bool front_name_model(front *r, int32_t i);
/* Models that have come to the folder take their places. */
void front_look(front *r);
/* By its name, or what means it and no other model; NULL: there is none, also after a look, or
 * several, as *why says. */
child *front_find_model(front *r, const char *name, refusal *why);
/* The same of a part of a path or query. */
child *front_find_part(front *r, http_part name, refusal *why);
/* The model that was used last, of those that are loaded; NULL: none is. */
child *front_loaded_model(const front *r);
/* The request is whole: it waits for its model, or is refused. */
void front_queue(front *r, relay *c);
/* Requests proceed in the order in which they came, as far as they can now. */
void front_advance(front *r);
/* For the server's owner: an event, of a model or (NULL) of none; and what happens to a model. */
void front_tell(const front *r, const child *m, serve_event *event);
void front_note(const front *r, const child *m, const char *what);
void front_warn(const front *r, const child *m, const char *what);
