/* Finds tokens that are matched as text before anything else: control and user-defined ones. The
 * leftmost match counts, and of those that begin there the longest. */
#pragma once

#include "text/vocab.h"

enum {
    /* Longer ones are not looked for: this bounds the work per byte of text. */
    SPECIAL_TOKEN_BYTES = 256
};

typedef struct special_tokens {
    struct special_token {
        gguf_string text;
        int32_t id;
        bool user_defined;
    } * tokens; /* [n], sorted by text */
    size_t n;
    bool first[256];              /* some token begins with this byte */
    bool first_user_defined[256]; /* some user-defined token does */
} special_tokens;

drey_status special_init(special_tokens *s, const vocab *v, drey_error *err);
void special_free(special_tokens *s);

/* The longest token at the beginning of text[0..n), NULL: none. all: control tokens count as well
 * as user-defined ones. */
const struct special_token *special_match(const special_tokens *s, const char *text, size_t n,
                                          bool all);
