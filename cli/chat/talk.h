/* A conversation in memory: messages, their tokens in the model's chat format, and the note in
 * which a saved session keeps them. */
#pragma once

#include "drey/chat.h"

typedef struct talk {
    drey_chat_message *messages; /* [n]; their texts belong to the talk, roles are constants */
    size_t n, capacity;
    int32_t *ids; /* [n_ids], of all messages, up to where the answer begins or continues */
    size_t n_ids, ids_capacity;
} talk;

void talk_free(talk *t);

/* Puts a message at the end, with a copy of its text; role is a constant. */
drey_status talk_add(talk *t, const char *role, const char *text, size_t n, drey_error *err);
/* Puts more text at the end of the last message, which there is. */
drey_status talk_extend(talk *t, const char *text, size_t n, drey_error *err);
/* Takes the last one away, if there is one. */
void talk_drop(talk *t);
/* Takes the last one, which there is, out of the talk. The caller puts it back, while the talk has
 * no more messages than then, or frees it. */
drey_chat_message talk_take(talk *t);
void talk_put_back(talk *t, const drey_chat_message *m);
void talk_message_free(drey_chat_message *m);
/* Takes all away, but for a system message in front. */
void talk_reset(talk *t);
/* The system message's text; an empty one removes it. */
drey_status talk_set_system(talk *t, const char *text, drey_error *err);
/* NULL: there is none. */
const char *talk_system(const talk *t);
/* Returns whether the last message is of this role. */
bool talk_ends_with(const talk *t, const char *role);

/* Fills t->ids. DREY_ERR_USAGE: the template refuses these messages. */
drey_status talk_encode(talk *t, const drey_model *model, drey_error *err);
/* Makes these t->ids. */
drey_status talk_take_ids(talk *t, const int32_t *ids, size_t n, drey_error *err);

/* The messages as JSON; the caller frees with free(). NULL: no memory. */
char *talk_note(const talk *t);
/* Takes what talk_note wrote; DREY_ERR_FORMAT, and t stays as it was: it is none of drey chat's. */
drey_status talk_read_note(talk *t, const char *note, size_t n, drey_error *err);
