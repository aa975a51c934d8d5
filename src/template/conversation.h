/* Conversations as a model's own chat template writes them.
 *
 * The template is a Jinja program in the model's file, as Hugging Face's apply_chat_template runs
 * it. It is run by an interpreter of our own (jinja_tree.h, jinja_run.h), which knows what chat
 * templates use and names what it does not know. A template is a stranger's program: its steps, its
 * depth and its memory are bounded, and it can reach nothing but the conversation.
 *
 * What a message or a tool says is text, whatever it looks like: of each byte of the result it is
 * known whether the template wrote it, and only there special tokens are read. */
#ifndef DREY_TEMPLATE_CONVERSATION_H
#define DREY_TEMPLATE_CONVERSATION_H

#include "drey/chat.h"

#include "common/error.h"
#include "text/tokenizer.h"

enum {
    CHAT_TEMPLATE_BYTES = 1 << 20, /* longest template; the longest in use have 30 KB */
    CHAT_INPUT_BYTES = 64 << 20,   /* messages and tools: ten times the longest contexts */
    /* Of a value looked at, or 64 bytes copied; a long conversation with tools takes some ten
     * thousand. A second's work. */
    CHAT_STEPS = 50 * 1000 * 1000
};

/* The room of a rendering with n_input bytes of template and conversation: strings, each of which
 * takes a mark too, and all other values. Of these only what is used takes memory. */
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
 * bos_token and eos_token stand for. Where a template refuses a system message, its text goes in
 * front of the first user's, with an empty line between. On an error *out is empty:
 * DREY_ERR_USAGE: the template, or JSON's grammar, refuses the messages; DREY_ERR_FORMAT: the
 * template is no Jinja; DREY_ERR_UNSUPPORTED: it uses what is not known here, or more than the
 * bounds above; DREY_ERR_MEMORY. */
drey_status chat_render(const drey_chat_request *request, const char *bos, const char *eos,
                        chat_text *out, drey_error *err);
void chat_text_free(chat_text *t);

/* The same with the tokenizer's bos and eos. A BOS that begins the text is left out where the
 * tokenizer puts one in front of texts itself. */
drey_status chat_render_for(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                            drey_error *err);

#endif
