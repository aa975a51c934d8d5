/* Conversations: several messages and tools, written by the model's own chat template.
 *
 * The template is a Jinja program in the model's file. Its steps, depth and memory are bounded, and
 * it sees nothing but the conversation. Rendering takes up to 1 MiB of the calling thread's stack,
 * and several times the conversation's size in memory, which is freed before the call returns. */
#ifndef DREY_CHAT_H
#define DREY_CHAT_H

#include "drey/drey_model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drey_chat_message {
    const char *role;    /* "system", "user", "assistant", or another role that the template
                            knows */
    const char *content; /* [n_content], any bytes */
    size_t n_content;
} drey_chat_message;

/* A conversation: messages, or messages_json. All strings are borrowed for the call, and
 * NUL-terminated. */
typedef struct drey_chat_request {
    const drey_chat_message *messages; /* [n_messages] */
    size_t n_messages;
    /* NULL, or a JSON array of messages as chat APIs have them: objects with "role", "content" and
     * the other members that the template reads ("tool_calls", "reasoning_content", ...). */
    const char *messages_json;
    const char *tools_json;     /* NULL, or a JSON array of tools */
    const char *variables_json; /* NULL, or a JSON object: more variables for the template */
    const char *chat_template;  /* NULL: the model's own; with tools, its own for tools */
    bool no_generation_prompt;  /* without the words that begin the assistant's answer */
    /* The time that the template sees, in seconds since 1970 (UTC). 0: none, so that the same
     * conversation gives the same text every day: a template that asks for the date uses its own
     * default, or 1 January 2026. */
    int64_t now_s;
    /* The last message is the assistant's, and the beginning of the answer: the text ends with it,
     * and the answer continues there. Its "reasoning_content" goes into the reasoning, which ends
     * before the content; without content the reasoning itself is continued. Content without
     * reasoning does not begin within reasoning that the template opens. */
    bool continues;
    uint64_t reserved[7]; /* zero */
} drey_chat_request;
DREY_API void drey_chat_request_init(drey_chat_request *request);

/* The conversation as text, up to where the assistant's answer begins. *text is NUL-terminated, and
 * the caller frees it with drey_free. If the template refuses a system message, its text is put
 * before the first user's text. A BOS that drey_tokenize would put first is not written.
 * DREY_ERR_USAGE: the template refuses these messages, or JSON is broken; DREY_ERR_FORMAT: the
 * template is broken; DREY_ERR_UNSUPPORTED: there is none, or it uses something that is not
 * supported (the message names it and its line). Tokenizing the text with DREY_TOKENIZE_SPECIAL
 * also accepts special tokens that are written in the messages; drey_chat_encode does not. */
DREY_API drey_status drey_chat_render(const drey_model *model, const drey_chat_request *request,
                                      char **text, size_t *n_bytes, drey_error *err);

/* The same as ids. The template's special tokens are tokens; what looks like one in messages and
 * tools is text, unless flags has DREY_TOKENIZE_SPECIAL. capacity and *n_ids as for
 * drey_tokenize. */
DREY_API drey_status drey_chat_encode(const drey_model *model, const drey_chat_request *request,
                                      int flags, int32_t *ids, size_t capacity, size_t *n_ids,
                                      drey_error *err);

#ifdef __cplusplus
}
#endif
#endif
