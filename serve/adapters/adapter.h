/* Other interfaces to the same chats: Anthropic's, OpenAI's newer one and ollama's. A request of
 * theirs is rewritten as one of /v1/chat/completions, so that chats are read in one place; the
 * answer has their own form. */
#pragma once

#include <time.h>

#include "drey/reply.h"
#include "serve/answer/serializer.h"
#include "serve/adapters/response_store.h"

/* Writes the chat that a body asks for. False: it is refused. What does not fit is left out, and
 * out->full. */
typedef bool adapter_fn(const json_value *body, text_out *out, refusal *r);
bool anthropic_request(const json_value *body, text_out *out, refusal *r);
bool ollama_chat_request(const json_value *body, text_out *out, refusal *r);
/* A request of /api/generate; `raw` or a suffix makes it one of /v1/completions. */
bool ollama_generate_request(const json_value *body, text_out *out, refusal *r);
bool ollama_is_text(const json_value *body);
/* A request of /api/embeddings becomes one of /v1/embeddings. */
bool ollama_vectors_request(const json_value *body, text_out *out, refusal *r);

/* A conversation that a response continues, and where its own begins and ends in what is written:
 * without its instructions. */
typedef struct previous_conversation {
    const char *messages; /* [n]; n 0: there is none */
    size_t n;
    size_t from, to;
    bool in_system; /* it begins within the message of the instructions */
} previous_conversation;
bool responses_request(const json_value *body, previous_conversation *before, text_out *out,
                       refusal *r);
/* Keeps the conversation of what was written; see response_store_begin. */
bool adapter_keep(response_store *kept, const previous_conversation *p, const text_out *written);

extern const serializer answer_responses, answer_anthropic, answer_ollama_chat,
    answer_ollama_generate, answer_ollama_vectors, answer_ollama_vector;
void ollama_refuse(const refusal *r, text_out *out);

/* "2026-11-28T19:30:00Z" */
enum { DATE_BYTES = 40 };
const char *ollama_date(time_t at, char out[DATE_BYTES]);
/* A model of a list, which stays open; changed: when its file was, 0: of the list of those that
 * are loaded. Then its details: "" where nothing is known. */
void ollama_put_model(const char *name, size_t n, uint64_t bytes, time_t changed, text_out *out);
void ollama_put_details(const char *family, const char *size, text_out *out);

/* Answers to what ollama's programs ask of a server. */
void ollama_tags(const shared *s, bool running, text_out *out);
void ollama_show(const shared *s, text_out *out);
/* The answer to a request without a prompt, which has the model loaded. */
void ollama_loaded(const shared *s, bool chat, text_out *out);

/* ---- Writing requests ---- */

/* "key": value, if there is one. */
void rewrite_member(text_out *out, const char *key, const json_value *value);
/* The members of a body but for those in `known`, names with a space before and after each. */
void rewrite_rest(const json_value *body, const char *known, text_out *out);
/* Returns whether the value is there and asks for something: no empty text or list, not false. */
bool rewrite_asks(const json_value *value);
/* A part of a content. */
void rewrite_text(text_out *out, const json_value *text);
/* Writes that the answer is JSON of a schema; which tool has to be called. */
void rewrite_schema(text_out *out, const json_value *schema, const json_value *strict);
void rewrite_choice(text_out *out, const json_value *name);
/* Returns whether none of the members that `names` lists, up to NULL, asks for something; else the
 * first is refused. */
bool rewrite_has_none(const json_value *body, const char *const *names, refusal *r);
/* A value's JSON as a JSON string. */
void rewrite_quoted(text_out *out, const json_value *value);
/* Returns whether the value is a text or missing; else it is refused by its name. */
bool rewrite_is_text(const json_value *value, const char *name, refusal *r);

/* ---- Parts of an answer ---- */

enum { BLOCK_NONE, BLOCK_TEXT, BLOCK_REASONING, BLOCK_CALL };

/* State of these forms, in answer.own. */
typedef struct adapter_state {
    int32_t kind, n;                 /* the block that is open, and how many there were */
    int32_t n_calls, n_whole;        /* calls of tools, and those that were not broken off */
    int32_t n_items, n_events, step; /* numbers of /v1/responses */
} adapter_state;
_Static_assert(sizeof(adapter_state) <= sizeof(int32_t) * ANSWER_OWN_NUMBERS, "it has room");

static inline adapter_state *adapter_own(answer *a)
{
    return (adapter_state *)a->own;
}

/* The one that a part belongs to. */
int32_t adapter_block(const drey_reply_part *part);
/* The text is read from its beginning. */
void adapter_begin(answer *a);
/* Takes a record's text apart; what was held back at its end. */
void adapter_read(answer *a, const record *r, drey_reply_fn *on_part, void *user);
void adapter_end(answer *a, drey_reply_fn *on_part, void *user);
/* Counts the calls, and those that are whole: one that was broken off is no JSON. */
void adapter_count(answer *a, const drey_reply_part *part);
