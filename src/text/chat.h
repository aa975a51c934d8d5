/* Chat formats, recognised by what the file's chat template contains: ChatML, Llama 2, Llama 3,
 * Gemma, Mistral, Zephyr.
 *
 * A template is a Jinja program; it is not run. Within a family, templates differ in a few places,
 * and those are read from it: ChatML's default system text, the blanks around Mistral's marks,
 * Llama 3.1's dates, whether a message is stripped of blanks around it. */
#ifndef DREY_TEXT_CHAT_H
#define DREY_TEXT_CHAT_H

#include "base/error.h"
#include "text/tokenizer.h"

typedef enum chat_format {
    CHAT_UNKNOWN,
    CHAT_CHATML,
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_GEMMA,
    CHAT_MISTRAL,
    CHAT_ZEPHYR
} chat_format;

enum { CHAT_TEMPLATE_BYTES = 1 << 20 }; /* longest template; the longest in use have 30 KB */

/* chat_template: the file's tokenizer.chat_template, n_bytes of it. */
chat_format chat_recognise(const char *chat_template, size_t n_bytes);

typedef struct chat_turn {
    char *text; /* NUL-terminated; the caller frees with free() */
    size_t n_bytes;
    text_range content[2]; /* what system and user wrote; the rest is the template's */
    size_t n_content;
} chat_turn;

/* One turn, up to where the assistant's text begins, as Hugging Face's apply_chat_template writes
 * it with add_generation_prompt. system may be NULL: then what the template itself would put there
 * (ChatML templates with a default system text: that text, read from the template). Where a
 * template refuses system texts, the text goes in front of the user's, with an empty line between.
 * Dates are the template's own default, so that a text can be reproduced. eos: what the template's
 * eos_token stands for, "" where the vocabulary has none. BOS is not written. DREY_ERR_UNSUPPORTED
 * for CHAT_UNKNOWN and a template of more than CHAT_TEMPLATE_BYTES; out->text is NULL then. */
drey_status chat_format_turn(const char *chat_template, size_t n_bytes, const char *eos,
                             const char *system, const char *user, chat_turn *out, drey_error *err);

#endif
