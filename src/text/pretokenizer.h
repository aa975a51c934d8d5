/* Pre-tokenizers: the regular expressions that cut a text into the words inside which byte-level
 * BPE merges. A file names its own in tokenizer.ggml.pre; pretokenizer_rules.h has the table. */
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/error.h"
#include "text/pretokenizer_rules.h"

typedef struct pretokenizer {
    const pretokenizer_family *family;
    pcre2_code *codes[PRETOKENIZER_STEPS]; /* [n_steps] */
    int n_steps;
} pretokenizer;

/* name: not NUL-terminated; NULL is "default". DREY_ERR_UNSUPPORTED says what is nearest. */
drey_status pretokenizer_init(pretokenizer *p, const char *name, size_t n_bytes, drey_error *err);
void pretokenizer_free(pretokenizer *p);

/* A text on its way through the steps: piece[0] is the whole text, piece[k] the part of piece[k-1]
 * that step k-1 made and the next word is in, piece[n_steps] that word. */
typedef struct splitter {
    const pretokenizer *pretokenizer;
    pcre2_match_data *data;
    pcre2_match_context *context;
    const char *text;
    size_t at; /* beginning of the next word */
    struct piece_of_text {
        size_t begin, end;
        size_t found, found_end; /* the next match of step k inside it, if it ends after `at` */
    } piece[PRETOKENIZER_STEPS + 1];
} splitter;

drey_status splitter_init(splitter *s, const pretokenizer *p, drey_error *err);
void splitter_free(splitter *s);
/* text[0..n) is valid UTF-8, n > 0; borrowed until all words are taken. */
void splitter_begin(splitter *s, const char *text, size_t n);
/* The length of the next word, at least one character; 0: the text is over. */
size_t splitter_next(splitter *s);
