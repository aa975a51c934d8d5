/* Answers that outlive their connections. A client that names its conversation, by the header
 * X-Conversation-Id of its request, may hang up and read on later, from any byte that is still
 * kept: llama.cpp's resumable streams.
 *
 *   FREE -- a named request for events --> LIVE -- the last event --> OVER -- time --> FREE
 *                                           |                           |
 *                                           +-- DELETE, or another request with its name --> FREE
 *                                           +-- nobody reads it for too long --> FREE
 *
 * The network thread alone uses them. While one is LIVE its answer is put together as it comes,
 * whether somebody reads it or not, and the ring keeps its last bytes. */
#pragma once

#include "serve/answer/answer.h"

enum { STREAM_NAME_BYTES = 256, STREAM_MOST_BYTES = 4 << 20 };

typedef struct kept_stream {
    char name[STREAM_NAME_BYTES]; /* "": FREE */
    answer answer;                /* its request is NULL: OVER */
    char request_name[sizeof((request *)0)->id.text];
    char *ring;             /* [n_ring]: byte `at` is ring[at % n_ring] */
    uint64_t n_put;         /* bytes so far; the last n_ring of them are kept */
    bool begun;             /* it has a status line: it did not fail before its first event */
    int64_t created, ended; /* seconds since 1970; ended 0: LIVE */
    double read_s, put_s;   /* when somebody last read it; when something was last put */
} kept_stream;

typedef struct streams {
    kept_stream *of; /* [n] */
    int32_t n;
    size_t n_ring;
} streams;

typedef struct network network;
typedef struct connection connection;

/* Bytes of a ring, for contexts of so many tokens. */
size_t stream_ring_bytes(int32_t n_context);
/* Puts the connection's request, which was queued, into a stream that it reads, if its request
 * names one and there is room for it; otherwise the request stays the connection's. */
void streams_begin(network *n, connection *c);
/* Puts what its sequences have written into the ring, as far as no reader loses anything: for
 * one that does not read, the sequences' own records wait. ping: or something that says nothing. */
void stream_pump(network *n, kept_stream *k, bool ping);
void streams_pump(network *n);
/* Puts the next bytes for this reader into `out`. */
void stream_read(const network *n, connection *c, text_out *out);
/* Ends it, and cancels its request; readers but `stays`, which may be NULL, are cut off. */
void stream_drop(network *n, kept_stream *k, const connection *stays);
/* A connection does not read it any more. */
void stream_leave(connection *c);
/* Gives up those that nobody reads, and forgets those that have been over for long. */
void streams_tick(network *n, double now);

/* GET and DELETE /v1/stream?conv_id=NAME&from=N, POST /v1/streams/lookup. */
void streams_get(network *n, connection *c);
void streams_delete(network *n, connection *c);
void streams_lookup(network *n, connection *c, const json_value *body);
