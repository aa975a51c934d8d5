/* A client's request on its way to a model's process, and the answer on its way back.
 *
 *   accept          head, body are whole       the model listens       all of it was sent
 *   ------> HEAD, BODY -----------------> WAITS ----------------> SENDS -----------------> ANSWER
 *              |  the front answers itself |                       |                         |
 *              +----------------------------+--- ENDS <-------------+----- the process closed -+
 *                                                  |
 *                                            all is out: DRAIN --> FREE
 *
 * The process gets a new head that asks it to close the connection after its answer, so that
 * nothing of an answer has to be understood here. One connection carries one request. If the
 * process ends before it answers, the request waits once more. */
#pragma once

#include "serve/net/http.h"
#include "serve/net/places.h"
#include "serve/front/children.h"

enum { RELAY_IN_BYTES = 16 << 10, RELAY_OUT_BYTES = 64 << 10 };

typedef enum relay_state {
    RELAY_FREE,
    RELAY_HEAD,
    RELAY_BODY,
    RELAY_WAITS,
    RELAY_SENDS,
    RELAY_ANSWER,
    RELAY_ENDS,
    RELAY_DRAIN
} relay_state;

typedef struct relay {
    relay_state state;
    client_place place;
    int client, server; /* sockets; -1: closed */
    struct {
        uint32_t client, server; /* that epoll watches */
    } events;
    char *in; /* [RELAY_IN_BYTES], n_in of which have come */
    size_t n_in, n_head;
    http_head head; /* parts of `in` */
    http_chunks chunks;
    char *large; /* a large buffer for the body; NULL: it is in `in` */
    char *body;  /* [n_body] */
    size_t n_body;
    char *out; /* [RELAY_OUT_BYTES]: while it sends, the head for the process; then the answer */
    size_t n_out, n_sent;
    const char *more; /* [n_more], constant, after `out` */
    size_t n_more, n_body_sent;
    child *child;   /* that it waits for, or that answers; NULL: none yet */
    int64_t number; /* requests are served in this order */
    bool silent;    /* the client sends no more */
    struct {
        int32_t n_failures; /* of the child when it began to wait */
        bool again;         /* its process has ended once before it answered: */
        pid_t met, ended;   /* the one that it was sent to last; that one */
        int32_t n_broken;   /* connections that ended without an answer */
    } tries;
    double since_s; /* when the state began, or bytes last went */
    double began_s; /* when it was accepted, or its first byte came */
} relay;

typedef struct relay_loop {
    int epoll;
    relay *relays; /* [n_relays] */
    int32_t n_relays;
} relay_loop;

/* What epoll's data is for a relay's sockets. */
uint64_t relay_key(const relay_loop *l, const relay *r, bool to_server);
void relay_enter(relay *r, relay_state state);
/* Begins with an accepted client. */
void relay_begin(relay_loop *l, relay *r, int client);
/* Closes both sockets. The child has one user fewer. */
void relay_close(relay_loop *l, relay *r);
/* An answer of the front itself is in `out`: it is sent, and the connection ends. */
void relay_end(relay_loop *l, relay *r);
/* Connects to its child and sends. False: not now, try again. */
bool relay_forward(relay_loop *l, relay *r);
/* The process can take bytes, or has sent some. `broken`: it ended before it answered. */
void relay_server_event(relay_loop *l, relay *r, uint32_t events, bool *broken);
/* The request waits for its model once more. */
void relay_wait_again(relay_loop *l, relay *r);
/* The client can take bytes. */
void relay_flush(relay_loop *l, relay *r);
/* The client sends no more: it may have gone, or still read. The process hears it as well. */
void relay_falls_silent(relay_loop *l, relay *r);
