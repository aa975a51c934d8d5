/* HTTP/1.1 as the server reads it: a request's head, and bodies that come in chunks. Pure functions
 * over bytes in memory: no socket, no allocation. What two readers might take for different
 * requests is refused (a length twice, a length with chunks, blanks before a colon, lone line
 * feeds), so that nothing can be smuggled past a proxy in front. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the bytes that were given, borrowed from them. text NULL: it is not there. */
typedef struct http_span {
    const char *text;
    size_t n;
} http_span;

typedef enum http_method {
    HTTP_GET,
    HTTP_POST,
    HTTP_OPTIONS,
    HTTP_HEAD,
    HTTP_DELETE,
    HTTP_OTHER
} http_method;

typedef struct http_head {
    http_method method;
    http_span path, query; /* as written; "*" of OPTIONS alone. query: after the "?" */
    bool keep_alive;       /* the client wants the connection to stay */
    bool http_1_0;         /* it knows no chunks */
    bool chunked;          /* the body is chunked; otherwise it has */
    uint64_t n_body;       /* bytes */
    bool expects;          /* an answer "continue" before it sends the body */
    http_span host; /* the target's, where that names one ("http://host/path"), or the header's */
    http_span origin, authorization, api_key;
    http_span conversation;  /* X-Conversation-Id */
    http_span asked_headers; /* headers of a preflight: Access-Control-Request-Headers */
} http_head;

enum { HTTP_MAX_HEADERS = 64 };

typedef enum http_result {
    HTTP_DONE,
    HTTP_UNFINISHED, /* more bytes are needed */
    HTTP_BAD         /* no request: see the status */
} http_result;

/* Reads a head from bytes[0..n); *n_used is its length, the empty line included. HTTP_BAD: *status
 * is the answer's (400, 501 or 505) and *why a sentence, constant. */
http_result http_read_head(const char *bytes, size_t n, http_head *head, size_t *n_used,
                           int *status, const char **why);

/* Position in a chunked body. All zero at its beginning. */
typedef struct http_chunks {
    int state;
    uint64_t left; /* bytes left of the chunk */
    uint32_t n_line;
} http_chunks;

/* Takes bytes from in[0..n_in), of which *n_used were used, and puts the body's into out, of which
 * *n_out are filled and `capacity` in all. HTTP_BAD: no chunks (400), or more than there is room
 * for (413). HTTP_DONE: the last chunk and its trailers have been read. in and out may be the same
 * memory. */
http_result http_read_chunks(http_chunks *c, const char *in, size_t n_in, size_t *n_used, char *out,
                             size_t capacity, size_t *n_out, int *status);

/* The value of a key in a query, as written; text NULL: it is not there. */
http_span http_query(http_span query, const char *key);
bool http_span_is(http_span part, const char *text);
/* Returns how many bytes of a path spell its beginning `front`, "%2F" as well as "/"; 0: it begins
 * otherwise. */
size_t http_path_front(http_span path, const char *front);
bool http_path_is(http_span path, const char *text);
/* Writes a part of a path or query with a byte for each "%XX", and a NUL. False: it does not fit,
 * or holds a NUL. */
bool http_decode(http_span part, char *out, size_t room);

/* "Not Found" */
const char *http_status_text(int status);
