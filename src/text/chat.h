/* Chat formats, recognised by what the file's chat template contains: ChatML, Llama 2, Llama 3,
 * Gemma, Mistral, Zephyr. */
#ifndef DREY_TEXT_CHAT_H
#define DREY_TEXT_CHAT_H

#include "base/error.h"

typedef enum chat_format {
    CHAT_UNKNOWN,
    CHAT_CHATML,
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_GEMMA,
    CHAT_MISTRAL,
    CHAT_ZEPHYR
} chat_format;

/* chat_template: the file's tokenizer.chat_template, n_bytes of it. */
chat_format chat_recognise(const char *chat_template, size_t n_bytes);

/* One turn, up to where the assistant's text begins; *out is NUL-terminated and freed by the caller
 * with free(). system may be NULL: then what the template itself would put there (ChatML templates
 * with a default system text: that text, read from the template). BOS is not written.
 * DREY_ERR_UNSUPPORTED for CHAT_UNKNOWN. */
drey_status chat_format_turn(const char *chat_template, size_t n_bytes, const char *system,
                             const char *user, char **out, drey_error *err);

#endif
