/* A client's connection, as the network thread has it: a client of http_server.h, and its
 * answer. */
#pragma once

#include "serve/answer/answer.h"
#include "serve/net/events.h"
#include "serve/net/http_server.h"
#include "serve/net/streams.h"

typedef struct connection {
    http_client http;
    answer answer; /* without a request or a stream: `out` and `more` are all of it */
    struct {
        kept_stream *of; /* NULL: none */
        uint64_t at;     /* the next byte */
    } stream;            /* stream that it reads */
    bool head_out;       /* the answer's head has been put out */
    bool framed;         /* its body comes in chunks */
    bool all_out;        /* all of the answer has been put out */
    double spoke_s;      /* when something was last put out */
    struct {
        int status;                /* status of the answer; 0: none so far */
        char why[SERVE_WHY_BYTES]; /* reason of a refusal */
        bool open;                 /* the owner has not heard of the request yet */
    } report;
} connection;
