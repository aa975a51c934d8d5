/* Clients of a listening socket, up to their whole requests, and from their answers' bytes on: what
 * the server of one model (network.h) and the router (model_router.h) share.
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

#include "serve/parse/parse_request.h"
#include "serve/net/access.h"
#include "serve/net/event_loop.h"
#include "serve/net/http.h"
#include "serve/net/listen.h"

enum { HTTP_IN_BYTES = 16 << 10, HTTP_OUT_BYTES = 64 << 10, HTTP_MOST_LARGE = 8 };

typedef enum client_phase {
    CLIENT_FREE,
    CLIENT_HEAD, /* it sends a request's head, or none so far */
    CLIENT_BODY,
    CLIENT_ANSWER,
    CLIENT_DRAIN
} client_phase;

/* Right of a client to keep its connection (admission.h). */
typedef struct client_standing {
    bool admitted;    /* it is let in; else it is there to hear why not */
    bool shown;       /* its key; where none is needed, that it sends a whole request */
    bool waits;       /* bytes that have come of it are read in the next round */
    uint64_t address; /* address that it comes from; 0: this machine, by a socket's path */
} client_standing;

typedef struct client_clock {
    double began_s; /* when the request's first byte came, or its connection was free for it */
    double since_s; /* when the phase began */
    double moved_s; /* when bytes of its answer last went, or the phase began */
} client_clock;

/* The first member of what an owner has for each client. */
typedef struct http_client {
    client_phase phase;
    watched socket;
    client_standing standing;
    client_clock clock;
    char *in; /* [HTTP_IN_BYTES], n_in bytes of which have come */
    size_t n_in, n_head;
    http_head head; /* parts of `in` */
    char *large;    /* one of the large buffers: of a body or of an answer; NULL: none is taken */
    char *body;     /* [n_body]: in `in`, or `large` */
    size_t n_body;
    http_chunks chunks;
    char *out; /* [HTTP_OUT_BYTES]: [n_sent, n_out) have to be sent */
    size_t n_out, n_sent;
    const char *more; /* [n_more], after `out`: of `large`, or constant */
    size_t n_more;
    bool keeps;       /* another request may follow */
    bool silent;      /* the client sends no more */
    size_t n_drained; /* bytes of it that were thrown away */
} http_client;

typedef struct http_server http_server;

/* Functions of an owner; `user` is the server's. NULL, where one may be: nothing is done. */
typedef struct http_handler {
    /* A request may begin, or a client has come. Or NULL. */
    void (*begin)(void *user, http_client *c);
    /* The head is whole. Returns whether it was answered without the body. */
    bool (*head)(void *user, http_client *c);
    /* Returns whether this endpoint answers clients that are not let in. */
    bool (*is_open)(http_span path);
    /* The request is whole: answers it. */
    void (*request)(void *user, http_client *c);
    /* A whole answer has been put out (http_answer.h); why: of a refusal, else "". */
    void (*answered)(void *user, http_client *c, int status, const char *why);
    /* The client takes bytes of its answer again. */
    void (*proceed)(void *user, http_client *c);
    /* The client sends no more: it may have gone, or still read its answer. Only sending says. */
    void (*silent)(void *user, http_client *c);
    /* Time passes for an answer. Or NULL. */
    void (*tick_answer)(void *user, http_client *c, double now);
    /* The client made room for another one, and was answered with 503. Or NULL. */
    void (*turned_out)(void *user, http_client *c);
    /* Its socket is about to be closed. Or NULL. */
    void (*close)(void *user, http_client *c);
    /* Time passes; returns whether all is over. */
    bool (*tick)(void *user, double now);
    /* Another thread has something to say (http_server.loop.wake); NULL: there is none. */
    void (*woken)(void *user);
} http_handler;

struct http_server {
    event_loop loop;
    listen_socket listening;
    watched listener;
    access_rules rules;
    char *clients; /* [n_clients][client_bytes]: some more than are let in; each begins with a
                      http_client */
    size_t client_bytes;
    int32_t n_clients, n_admitted;
    char *large[HTTP_MOST_LARGE]; /* [n_large][large_bytes + 1] */
    bool large_taken[HTTP_MOST_LARGE];
    int32_t n_large;
    size_t large_bytes;
    double timeout_s; /* time that a client may take */
    int64_t n_slow;   /* clients that did not read, so far */
    const http_handler *handler;
    void *user;
    bool stopping;
};

static inline http_client *http_client_at(const http_server *h, int32_t i)
{
    return (http_client *)(void *)(h->clients + (size_t)i * h->client_bytes);
}

/* Takes requests until the handler's tick says that all is over. */
void http_run(http_server *h);
/* Takes over a client of another server, with what it has sent of a request. */
void http_take_over(http_server *h, const http_client *c);
/* Closes all clients. */
void http_close_all(http_server *h);
/* No more clients come, and idle ones go. */
void http_stop(http_server *h);
/* Closes the listener, and removes a socket's file. A second time it does nothing. */
void http_stop_listening(http_server *h);

/* Sends bytes at once. False: the client has gone; *n_sent: how many its socket took. */
bool http_send(http_server *h, http_client *c, const char *bytes, size_t n, size_t *n_sent);
/* Sends the head of HTTP/1.1 that comes before a final answer and changes nothing; a client that
 * has gone answers it with a reset. False: it has gone. */
bool http_continue(http_server *h, http_client *c);
/* Sends `out`, then `more`. False: its socket takes no more now, or the client has gone. */
bool http_flush(http_server *h, http_client *c);
/* Waits for events of the client besides that it leaves. */
void http_wait(http_server *h, http_client *c, uint32_t events);
/* The answer is out: another request may come, or the connection ends. */
void http_end(http_server *h, http_client *c);
void http_enter(http_client *c, client_phase phase);
void http_close(http_server *h, http_client *c);
/* Reads what has come of it so far once more. */
void http_read_again(http_server *h, http_client *c);

/* One of the large buffers, also if a client has it that keeps it for nothing; NULL: all are in
 * use. */
char *http_take_large(http_server *h);
void http_give_large(http_server *h, http_client *c);
