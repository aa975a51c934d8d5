/* What the front's files share:
 *
 *   front.c            the loop, time, opening and closing
 *   front_requests.c   heads and bodies of clients
 *   front_answers.c    what it answers itself
 *   front_models.c     which model a request gets, and who is loaded
 */
#pragma once

#include "serve/ask/ask.h"
#include "serve/front/front.h"
#include "serve/front/relay.h"
#include "serve/net/listen.h"

enum { LARGE_BODIES = 8, FRONT_SCRATCH_BYTES = RELAY_OUT_BYTES - 4096 };
/* What epoll's data says, above the sockets of relays: the listener, and pipes of models. */
#define FRONT_LISTENER UINT64_MAX
#define FRONT_MODELS   (UINT64_C(1) << 32)

struct front {
    front_options options;
    listen_place place;
    relay_loop loop; /* relays: of clients that are let in, then of those that are turned away */
    child *models;   /* [n_models] */
    char *memory;    /* of relays: in, out; and: */
    char *scratch;   /* [FRONT_SCRATCH_BYTES]: an answer's body */
    struct {
        char *bytes; /* [body_bytes + 1] */
        bool taken;
    } large[LARGE_BODIES];
    size_t n_memory;
    uint64_t budget_bytes; /* for models; known once one has been measured; 0: not yet */
    int64_t n_requests;    /* so far */
    int64_t began;         /* seconds since 1970 */
    const char *why;       /* while a refusal is put out: its fixed words, for the owner; or NULL */
    bool listening, stopping;
    double stop_s; /* when processes that still live are killed */
};

/* ---- Answers (front_answers.c) ---- */

/* Of a request that no model's process answers. status 0: its client has gone. */
void front_tell_request(const front *r, const relay *c, int status);

void front_refuse(front *r, relay *c, const refusal *why);
void front_refuse_now(front *r, relay *c, int status, const char *sentence);
/* What a model is and what it does; loaded: it was asked to be so, or not to be. */
void front_answer_model(front *r, relay *c, const child *m, bool done);
/* Answers what the head alone decides; false: it is for a model. */
bool front_answer_head(front *r, relay *c);

/* ---- Places (front.c) ---- */

/* A client that was turned away has shown that it may ask: another may have to go. */
void front_let_in(front *r, relay *c);
/* Takes a large buffer from a client that keeps it for nothing. False: none does. */
bool front_free_large(front *r);

/* ---- Requests (front_requests.c) ---- */

/* The client has sent something. */
void front_read_client(front *r, relay *c);
/* Looks once more at what has been read of it. */
void front_read_again(front *r, relay *c);
void front_refuse_full(front *r, relay *c);
/* The large buffer of a relay that needs it no more. */
void front_give_large(front *r, relay *c);

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
/* Its process has something to say. */
void front_hear(front *r, child *m);
/* For the server's owner: an event, of a model or (NULL) of none; and what happens to a model. */
void front_tell(const front *r, const child *m, serve_event *event);
void front_note(const front *r, const child *m, const char *what);
void front_warn(const front *r, const child *m, const char *what);
