/* A chat on its way from the request to the library. */
#pragma once

#include "drey/reply.h"
#include "serve/parse/parse_fields.h"

/* Texts are in scratch memory, each with a NUL after it, or in the request's. */
typedef struct conversation {
    drey_chat_request request;
    const char *tools_json;   /* NULL: there are none */
    drey_reply_options reply; /* options of the answer */
    drey_reply_form form;     /* form in which it is written */
} conversation;

/* The text that was put out since `from`, with a NUL. */
const char *parse_text_end(text_out *out, size_t from);

/* parse_tools.c. The tools, which of them may be called, and how the model writes that. */
bool parse_tools(const parsing *a, conversation *c, text_out *out);
/* The prompt's ids are in the request: fills its grammar and its form. */
bool parse_answer(const parsing *a, request *t, conversation *c);

/* parse_messages.c. A message's text. */
bool parse_message_text(const parsing *a, json_value *message, const char **text);
/* The messages as the template takes them. */
bool parse_messages(const parsing *a, conversation *c, json_value *first, text_out *out);
