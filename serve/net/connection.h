/* A client's connection, as the network thread has it.
 *
 *      accept                head is whole          body is whole       answer is out, keep-alive
 *   -----------> HEAD ----------------------> BODY --------------> ANSWER --------------+
 *                 ^  \                                               |  |               |
 *                 |   \ no request, slow, or too much                |  | hung up       |
 *                 |    +---------------------------------> ANSWER    |  +--> FREE       |
 *                 |                                  (an error)      v                  |
 *                 +---------------------- - - - - - - - - - -  DRAIN --> FREE           |
 *                 +---------------------------------------------------------------------+
 *
 * DRAIN: the answer is out and no more will come; what the client still sends is thrown away for a
 * moment, so that it gets to read the answer rather than a reset. */
#pragma once

#include "serve/answer/answer.h"
#include "serve/net/events.h"
#include "serve/net/http.h"
#include "serve/net/places.h"
#include "serve/net/streams.h"

enum { CONNECTION_IN_BYTES = 16 << 10, CONNECTION_OUT_BYTES = 64 << 10 };
typedef enum connection_state {
    CONNECTION_FREE,
    CONNECTION_HEAD,
    CONNECTION_BODY,
    CONNECTION_ANSWER,
    CONNECTION_DRAIN
} connection_state;

typedef struct connection {
    connection_state state;
    client_place place;
    int fd;
    struct {
        uint32_t events;  /* that epoll looks for */
        bool silent;      /* the client sends no more */
        size_t n_drained; /* bytes of it that were thrown away */
    } watched;
    char *in; /* [CONNECTION_IN_BYTES], n_in bytes of which have come */
    size_t n_in, n_head;
    http_head head; /* parts of `in` */
    char *large;    /* one of the large buffers: of a body or of an answer; NULL: none is taken */
    char *body;     /* [n_body]: in `in`, or `large` */
    size_t n_body;
    http_chunks chunks;
    char *out; /* [CONNECTION_OUT_BYTES]: [n_sent, n_out) have to be sent */
    size_t n_out, n_sent;
    const char *more; /* [n_more], after `out`: of `large`, or constant */
    size_t n_more;
    answer answer; /* without a task or a stream: `out` and `more` are all of it */
    struct {
        kept_stream *of; /* NULL: none */
        uint64_t at;     /* the next byte */
    } stream;            /* that it reads */
    bool head_out;       /* the answer's head has been put out */
    bool framed;         /* its body comes in chunks */
    bool all_out;        /* all of the answer has been put out */
    bool keeps;          /* another request may follow */
    struct {
        double since_s; /* when the state began */
        double moved_s; /* when bytes last went, or the answer began */
        double spoke_s; /* when something was last put out */
    } clock;
    struct {
        double began_s; /* when the request's first byte came, or its connection was free for it */
        int status;     /* of the answer; 0: none so far */
        char why[SERVE_WHY_BYTES]; /* of a refusal */
        bool open;                 /* the owner has not heard of the request yet */
    } told;
} connection;
