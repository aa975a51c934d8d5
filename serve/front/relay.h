/* A client's request on its way to a model's process, and the answer on its way back.
 *
 *   the request is whole       the model listens       it answers
 *   ---------------------> WAITS ----------> SENDS ----------------> ANSWER
 *      |  the front answers  |                 |                       |
 *      +---------------------+---> ENDS <------+---- the process closed
 *
 * The process gets a new head that asks it to close the connection after its answer, so that
 * nothing of an answer has to be understood here. One connection carries one request. If the
 * process ends before it answers, the request waits once more. */
#pragma once

#include "serve/front/children.h"
#include "serve/net/http_server.h"

/* State of a client whose phase is CLIENT_ANSWER. */
typedef enum relay_state { RELAY_WAITS, RELAY_SENDS, RELAY_ANSWER, RELAY_ENDS } relay_state;

typedef struct relay {
    http_client http; /* `out`: while it sends, the head for the process */
    relay_state state;
    watched process; /* its socket */
    size_t n_head_out, n_head_sent, n_body_sent;
    child *child;   /* that it waits for, or that answers; NULL: none yet */
    int64_t number; /* requests are served in this order */
    struct {
        int32_t n_failures; /* of the child when it began to wait */
        bool again;         /* its process has ended once before it answered: */
        pid_t met, ended;   /* the one that it was sent to last; that one */
        int32_t n_broken;   /* connections that ended without an answer */
    } tries;
} relay;

void relay_enter(relay *r, relay_state state);
/* Closes the process' socket. The child has one user fewer. */
void relay_leave(http_server *h, relay *r);
/* An answer of the front itself is in `out`: it is sent, and the connection ends. */
void relay_end(http_server *h, relay *r);
/* Connects to its child and sends. False: not now, try again. */
bool relay_forward(http_server *h, relay *r, event_fn *on_process, void *user);
/* The process can take bytes, or has sent some. `broken`: it ended before it answered. */
void relay_process_event(http_server *h, relay *r, uint32_t events, bool *broken);
/* The request waits for its model once more. */
void relay_wait_again(http_server *h, relay *r);
/* The client can take bytes. */
void relay_flush(http_server *h, relay *r);
/* The client sends no more: it may have gone, or still read. The process hears it as well. */
void relay_falls_silent(http_server *h, relay *r);
