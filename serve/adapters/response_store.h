/* Responses of /v1/responses that are kept, so that a request can continue one by its id: the
 * conversation as messages of a chat, and the response as it was given. In memory of fixed size:
 * the oldest are forgotten. Of the network thread. */
#pragma once

#include "serve/text_out.h"

enum { RESPONSE_STORE_MOST = 256, RESPONSE_STORE_ID_BYTES = 40 };

typedef struct stored_response {
    char id[RESPONSE_STORE_ID_BYTES];
    size_t at, n_messages, n_response; /* in memory, one after the other; n_response 0: not yet */
} stored_response;

typedef struct response_store {
    char *memory; /* [capacity], of which n are used */
    size_t capacity, n;
    stored_response entries[RESPONSE_STORE_MOST]; /* [n_entries], the oldest first */
    int32_t n_entries;
} response_store;

/* One whose answer will be written: the messages front and text[0..n), without brackets. It is the
 * newest, without an id. False: it is larger than half the memory, and not kept. */
bool response_store_begin(response_store *p, const char *front, const char *text, size_t n);
/* The newest has this id. */
void response_store_name(response_store *p, const char *id);
/* Gives an answer that has been written room for its messages and, after them, for the response.
 * False: it is not kept. */
bool response_store_open(response_store *p, const char *id, text_out *room);
/* Keeps what was put out: messages are those before n_messages of the room. */
void response_store_close(response_store *p, const text_out *room, size_t n_messages);
/* NULL: it is not here, or its answer is not whole. */
const stored_response *response_store_find(const response_store *p, const char *id, size_t n_id);
void response_store_forget(response_store *p, const stored_response *e);
