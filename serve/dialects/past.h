/* Responses of /v1/responses that are kept, so that a request can continue one by its id: the
 * conversation as messages of a chat, and the response as it was given. In memory of fixed size:
 * the oldest are forgotten. Of the network thread. */
#pragma once

#include "serve/text_out.h"

enum { PAST_MOST = 256, PAST_ID_BYTES = 40 };

typedef struct past_entry {
    char id[PAST_ID_BYTES];
    size_t at, n_messages, n_response; /* in memory, one after the other; n_response 0: not yet */
} past_entry;

typedef struct past {
    char *memory; /* [capacity], of which n are used */
    size_t capacity, n;
    past_entry entries[PAST_MOST]; /* [n_entries], the oldest first */
    int32_t n_entries;
} past;

/* One whose answer will be written: the messages front and text[0..n), without brackets. It is the
 * newest, without an id. False: it is larger than half the memory, and not kept. */
bool past_begin(past *p, const char *front, const char *text, size_t n);
/* The newest has this id. */
void past_name(past *p, const char *id);
/* It has been written: room for the answer's messages and for the response, after its messages.
 * False: it is not kept. */
bool past_open(past *p, const char *id, text_out *room);
/* They were put out: messages are those before n_messages of the room. */
void past_close(past *p, const text_out *room, size_t n_messages);
/* NULL: it is not here, or its answer is not whole. */
const past_entry *past_find(const past *p, const char *id, size_t n_id);
void past_forget(past *p, const past_entry *e);
