/* The network thread: connections, and what its parts share. */
#pragma once

#include "serve/adapters/response_store.h"
#include "serve/net/connection.h"
#include "serve/net/http_answer.h"
#include "serve/net/listen.h"
#include "serve/net/lobby.h"
#include "serve/text_out.h"

enum { NETWORK_LARGE = 4, NETWORK_PAGE_BYTES = 256 << 10 };

typedef struct network {
    shared *shared;
    const serve_options *options;
    http_server http;   /* its clients are connections */
    json_value *values; /* [n_values] */
    size_t n_values;
    text_out scratch;     /* place to put together answers that need no request */
    text_out rewritten;   /* a request of another interface, as a chat */
    response_store store; /* responses that can be continued */
    streams streams;      /* answers that can be read on */
    int32_t *ids;         /* [n_ids]: of /tokenize and /detokenize */
    size_t n_ids;
    bool reported_ready;  /* the weights are there */
    bool reported_disk;   /* beginnings of texts can no longer be written to their folder */
    bool reported_damage; /* files in it were damaged */
    double stop_s;        /* when the last connections are closed */
} network;

static inline connection *network_connection(const network *n, int32_t i)
{
    return (connection *)http_client_at(&n->http, i);
}

/* ---- Answers ---- */

/* Answers with the JSON in n->scratch. */
static inline void respond_json(network *n, connection *c)
{
    http_respond_json(&n->http, &c->http, &n->scratch);
}
static inline void respond_refusal(network *n, connection *c, const refusal *r)
{
    http_refuse(&n->http, &c->http, r);
}

/* ---- Requests (routes.c) ---- */

/* Does the head alone decide? Then the answer is there. */
bool route_head(network *n, connection *c);
/* Answers the request at once, or queues it for the worker. */
void route_request(network *n, connection *c);

/* ---- What the server reports of itself (reports.c) ---- */

void report_metrics(network *n, text_out *out);
void report_slots(network *n, text_out *out);
void report_props(network *n, text_out *out);
/* The model by one of its names. */
void report_model(network *n, const char *name, text_out *out);

/* ---- The loop (network.c) ---- */

/* guests: those of the lobby. */
void network_run(network *n, const lobby_guests *guests);
/* Nobody wants the answer any more: its request is given back, or will be when its sequences are
 * done. */
void network_drop_request(network *n, answer *a);
