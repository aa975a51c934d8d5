/* Pre-tokenizers: the regular expressions that cut a text into the words inside which byte-level
 * BPE merges. A file names its own in tokenizer.ggml.pre. */
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/error.h"

typedef struct pretokenizer {
    pcre2_code *code;
    bool ignore_merges; /* a word that is a token as a whole is not merged (Llama 3) */
    bool wants_bos;     /* used if the file does not say */
} pretokenizer;

/* name: not NUL-terminated; NULL is "default". DREY_ERR_UNSUPPORTED lists those that exist. */
drey_status pretokenizer_init(pretokenizer *p, const char *name, size_t n_bytes, drey_error *err);
void pretokenizer_free(pretokenizer *p);

typedef struct splitter { /* scratch of one encoding */
    const pretokenizer *pretokenizer;
    pcre2_match_data *data;
    pcre2_match_context *context;
} splitter;

drey_status splitter_init(splitter *s, const pretokenizer *p, drey_error *err);
void splitter_free(splitter *s);
/* Length of the word at text[at]; text[0..n) is valid UTF-8 and at < n. At least one character. */
size_t splitter_next(splitter *s, const char *text, size_t n, size_t at);
