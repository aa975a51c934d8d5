/* The network thread: connections, and what its parts share. */
#pragma once

#include "serve/net/access.h"
#include "serve/dialects/past.h"
#include "serve/net/connection.h"
#include "serve/net/listen.h"
#include "serve/net/lobby.h"
#include "serve/text_out.h"

enum { NETWORK_LARGE = 4, NETWORK_PAGE_BYTES = 256 << 10 };

typedef struct network {
    shared *shared;
    const serve_options *options;
    int epoll;
    listen_place place;
    connection *connections; /* [n_connections]: PLACES_TURNED_AWAY more than are let in */
    int32_t n_connections;
    char *large[NETWORK_LARGE]; /* [n_large + 1] bytes each */
    bool large_taken[NETWORK_LARGE];
    size_t n_large;
    json_value *values; /* [n_values] */
    size_t n_values;
    text_out scratch;   /* where answers are put together that need no task */
    text_out rewritten; /* a request of another interface, as a chat */
    past past;          /* responses that can be continued */
    streams streams;    /* answers that can be read on */
    int32_t *ids;       /* [n_ids]: of /tokenize and /detokenize */
    size_t n_ids;
    bool listening, stopping;
    bool told_ready;  /* that the weights are there */
    bool told_disk;   /* that beginnings cannot be kept in their folder any more */
    bool told_damage; /* that files in it were damaged */
    double stop_s;    /* when the last connections are closed */
} network;

/* ---- Answers (respond.c) ---- */

/* An answer that is known: body[0..n) is copied, or left where it is if it is `constant`. */
void respond(network *n, connection *c, int status, const char *content_type, const char *headers,
             const char *body, size_t n_body, bool constant);
/* What is in n->scratch, as JSON. */
void respond_json(network *n, connection *c);
void respond_refusal(network *n, connection *c, const refusal *r);
/* The head of the answer of a task, or of a stream. */
void respond_task(network *n, connection *c);
/* May the client ask at all, by its key, its page, and the name it has for this host? */
bool respond_allows(network *n, const connection *c, bool needs_key, refusal *r);

/* ---- Requests (routes.c) ---- */

/* Does the head alone decide? Then the answer is there. */
bool route_head(network *n, connection *c);
/* Answers the request, or begins a task for it. */
void route_request(network *n, connection *c);
/* Has the client shown a key, or is none needed? */
bool respond_shows_key(const network *n, const connection *c);
/* Does the head ask whether the server is well? */
bool route_is_health(const connection *c);

/* ---- What the server reports of itself (reports.c) ---- */

void report_metrics(network *n, text_out *out);
void report_slots(network *n, text_out *out);
void report_props(network *n, text_out *out);
/* The model by one of its names. */
void report_model(network *n, const char *name, text_out *out);

/* ---- The loop (network.c) ---- */

/* guests: those of the lobby. */
void network_run(network *n, const lobby_guests *guests);
/* Closes the listener, and removes a socket's file. A second time it does nothing. */
void network_stop_listening(network *n);
/* Nobody wants the answer any more: its task is given back, or will be when its jobs are done. */
void network_drop_task(network *n, answer *a);
/* One of the large buffers, also if a client has it that keeps it for nothing; NULL: all are in
 * use. */
char *network_take_large(network *n);
