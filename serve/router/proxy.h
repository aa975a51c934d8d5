/* A client's request on its way to a model's process, and the answer on its way back.
 *
 *   the request is whole       the model listens       it answers
 *   ---------------------> WAITS ----------> SENDS ----------------> ANSWER
 *      |  the router answers |                 |                       |
 *      +---------------------+---> ENDS <------+---- the process closed
 *
 * The process gets a new head that asks it to close the connection after its answer, so that
 * nothing of an answer has to be understood here. One connection carries one request. If the
 * process ends before it answers, the request waits once more. */
#pragma once

#include "serve/router/model_process.h"
#include "serve/net/http_server.h"

/* State of a client whose phase is CLIENT_ANSWER. */
typedef enum proxy_state { PROXY_WAITS, PROXY_SENDS, PROXY_ANSWER, PROXY_ENDS } proxy_state;

typedef struct proxied {
    http_client http; /* `out`: while it sends, the head for the process */
    proxy_state state;
    watched upstream; /* its socket */
    size_t n_head_out, n_head_sent, n_body_sent;
    model_process *process; /* process that it waits for, or that answers; NULL: none yet */
    int64_t number;         /* requests are served in this order */
    struct {
        int32_t n_failures; /* failures of the process when it began to wait */
        bool again;         /* its process has ended once before it answered: */
        pid_t met, ended;   /* the one that it was sent to last; that one */
        int32_t n_broken;   /* connections that ended without an answer */
    } tries;
} proxied;

void proxy_enter(proxied *r, proxy_state state);
/* Closes the process' socket. Its model has one user fewer. */
void proxy_leave(http_server *h, proxied *r);
/* An answer of the router itself is in `out`: it is sent, and the connection ends. */
void proxy_end(http_server *h, proxied *r);
/* Connects to its process and sends. False: not now, try again. */
bool proxy_forward(http_server *h, proxied *r, event_fn *on_upstream, void *user);
/* The process can take bytes, or has sent some. `broken`: it ended before it answered. */
void proxy_upstream_event(http_server *h, proxied *r, uint32_t events, bool *broken);
/* The request waits for its model once more. */
void proxy_wait_again(http_server *h, proxied *r);
/* The client can take bytes. */
void proxy_flush(http_server *h, proxied *r);
/* The client sends no more: it may have gone, or still read. The process is informed. */
void proxy_falls_silent(http_server *h, proxied *r);
