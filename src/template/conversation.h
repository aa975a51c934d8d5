/* Conversations, written by a model's own chat template.
 *
 * The template is a Jinja program in the model's file, as Hugging Face's apply_chat_template runs
 * it. Our own interpreter runs it (jinja_tree.h, jinja_run.h). It supports what chat templates use,
 * and its errors name what it does not support. A template is an untrusted program: its steps,
 * depth and memory are bounded, and it can read nothing but the conversation.
 *
 * What a message or a tool says is text, whatever it looks like: for each byte of the result it is
 * known whether the template wrote it, and special tokens are recognised only there. */
#pragma once

#include "common/error.h"

typedef struct drey_chat_request drey_chat_request;
typedef struct text_range text_range;
typedef struct tokenizer tokenizer;

enum {
    CHAT_TEMPLATE_BYTES = 1 << 20, /* longest template; the longest in use have 30 KB */
    CHAT_INPUT_BYTES = 64 << 20,   /* messages and tools: ten times the longest contexts */
    /* A step is one value looked at or 64 bytes copied; a long conversation with tools takes some
     * ten thousand. The limit is about one second of work. */
    CHAT_STEPS = 50 * 1000 * 1000
};

/* The room of a rendering with n_input bytes of template and conversation: strings, whose bytes
 * have a mark each, and all other values. Only the used part takes memory. */
static inline size_t chat_room_text(size_t n_input)
{
    return ((size_t)4 << 20) + 16 * n_input; /* a message is copied a few times */
}
static inline size_t chat_room_objects(size_t n_input)
{
    return ((size_t)16 << 20) + 48 * n_input; /* the tree; a JSON value for each two bytes */
}

typedef struct chat_text {
    char *text; /* NUL-terminated */
    size_t n_bytes;
    text_range *plain; /* [n_plain], in their order: what the conversation wrote */
    size_t n_plain;
} chat_text;

/* The conversation as text. request->chat_template has to be set; bos and eos: what the template's
 * bos_token and eos_token stand for. If a template refuses a system message, its text goes before
 * the first user's, with an empty line between. On an error *out is empty: DREY_ERR_USAGE: the
 * template, or JSON's grammar, refuses the messages; DREY_ERR_FORMAT: the template is no Jinja;
 * DREY_ERR_UNSUPPORTED: it uses something that is not supported, or exceeds the limits above;
 * DREY_ERR_MEMORY. */
drey_status chat_render(const drey_chat_request *request, const char *bos, const char *eos,
                        chat_text *out, drey_error *err);
void chat_text_free(chat_text *t);

/* The last message of a request that `continues`, which chat_render leaves out. */
typedef struct chat_begun {
    char *text; /* [n_reasoning + n_content]; NULL: it has neither */
    size_t n_reasoning, n_content;
} chat_begun;
void chat_begun_free(chat_begun *b);

/* The same with the tokenizer's bos and eos. A BOS at the beginning is left out if the tokenizer
 * itself puts one before texts. */
drey_status chat_render_for(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                            drey_error *err);
/* The same of a request that `continues`: up to where the answer begins, and what begins it. */
drey_status chat_render_begun(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                              chat_begun *begun, drey_error *err);
/* The same with an answer in its place that says these two, and nothing after it but what the
 * template writes. reasoning NULL: it has none. */
drey_status chat_render_answer(const tokenizer *t, const drey_chat_request *request,
                               const char *reasoning, const char *content, chat_text *out);
