/* Events of a server while it works, for its owner's screen: that it is ready, one for each
 * request, that it stops. Never a text, a key or a query. Plain data, so that a model's process can
 * send it through a pipe in one piece (PIPE_BUF). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "serve/net/http.h"

/* Tokens and times of a request's texts. */
typedef struct serve_usage {
    int64_t n_prompt, n_cached, n_written; /* tokens; n_cached: of the prompt, not computed */
    /* speed of the text after its first token; 0: not known */
    double tokens_per_s;
    double first_s; /* time of the first token, since the request began; 0: not known */
    bool cut;       /* the server's end cancelled a text */
} serve_usage;

enum { SERVE_WHY_BYTES = 240 };

typedef struct serve_request {
    char method[8];            /* "POST" */
    char path[80];             /* without its query; what is no printable ASCII is "?" */
    int status;                /* 0: none was sent */
    bool repeats;              /* a question that programs ask again and again, as GET /health */
    bool left;                 /* the client had gone before the end */
    char why[SERVE_WHY_BYTES]; /* reason of a refusal, without words of the client; "": not said */
    char peer[64];             /* client's address of a refusal, where others may ask; or "" */
    serve_usage usage;
    double seconds; /* from its first byte to the last one of its answer */
} serve_request;

typedef enum serve_event_kind {
    SERVE_NOTE,     /* something that the owner may want to know */
    SERVE_WARNING,  /* something that he has to know */
    SERVE_READY,    /* the weights are there */
    SERVE_REQUEST,  /* a request was answered */
    SERVE_STOPPING, /* n_writing answers are being written, and may end */
} serve_event_kind;

enum { SERVE_NOTE_BYTES = 1000, SERVE_MODEL_BYTES = 128 };

typedef struct serve_event {
    serve_event_kind kind;
    char model[SERVE_MODEL_BYTES]; /* name of the model, if there are several; "": of none */
    union {
        char note[SERVE_NOTE_BYTES]; /* text of a note or a warning */
        serve_request request;
        int32_t n_writing;
    } of;
} serve_event;

typedef void serve_event_fn(void *user, const serve_event *event);

/* A request that was read up to its head, with its answer's status. */
serve_event event_of_request(const http_head *h, int status, double seconds);
