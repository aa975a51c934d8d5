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

#include "serve/api/answer.h"
#include "serve/net/http.h"

enum { CONNECTION_IN_BYTES = 16 << 10, CONNECTION_OUT_BYTES = 64 << 10 };
/* What its socket is allowed to hold, of which the kernel makes twice as much to keep books. */
enum {
    SOCKET_IN_BYTES = 16 << 10,
    SOCKET_OUT_BYTES = 32 << 10,
    CONNECTION_KERNEL_BYTES = 2 * (SOCKET_IN_BYTES + SOCKET_OUT_BYTES)
};
/* Beyond those that are let in: they are refused when their request has come, but for the question
 * whether the server is well, which supervisors ask. */
enum { CONNECTIONS_TURNED_AWAY = 8 };

typedef enum connection_state {
    CONNECTION_FREE,
    CONNECTION_HEAD,
    CONNECTION_BODY,
    CONNECTION_ANSWER,
    CONNECTION_DRAIN
} connection_state;

typedef struct connection {
    connection_state state;
    int fd;
    uint32_t events; /* that epoll watches */
    char *in;        /* [CONNECTION_IN_BYTES], n_in bytes of which have come */
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
    answer answer; /* without a task: `out` and `more` are all of it */
    bool head_out; /* the answer's head has been put out */
    bool framed;   /* its body comes in chunks */
    bool all_out;  /* all of the answer has been put out */
    bool keeps;    /* another request may follow */
    bool waits;    /* one has come already */
    struct {
        double since_s; /* when the state began */
        double moved_s; /* when bytes last went, or the answer began */
        double spoke_s; /* when something was last put out */
    } clock;
    size_t n_drained;
} connection;
