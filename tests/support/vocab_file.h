/* Tokenizers for tests: from files, and from lists of tokens written in the test. */
#pragma once

#include "text/tokenizer.h"

typedef struct test_vocab {
    gguf *file;
    tokenizer *tokenizer;
} test_vocab;

/* tests/data/vocab/NAME.gguf, or a path when it begins with a slash. Fails the test on errors. */
test_vocab vocab_open(const char *name);
void vocab_close(test_vocab *v);

/* Keys of a handmade file; NULL and 0 leave a key out. */
typedef struct vocab_keys {
    const char *model, *pre, *architecture; /* the last is llama where it is left out */
    const char *const *tokens;              /* up to NULL */
    const int32_t *types;                   /* one for each token */
    const float *scores;                    /* one for each token */
    const char *const *merges;              /* up to NULL */
    int64_t eos_plus_1, bos_plus_1;
    const char *id_key; /* a further key, and its value */
    uint32_t id;
    const int32_t *eos_list; /* [n_eos]: the key of EOS as a list */
    uint64_t n_eos;
    const int32_t *suppressed; /* [n_suppressed] */
    uint64_t n_suppressed;
    int n_types_wrong_by, n_scores_wrong_by; /* for broken files */
} vocab_keys;

/* Opens it; *v holds both parts only on DREY_OK. */
drey_status vocab_make(test_vocab *v, const vocab_keys *keys, drey_error *err);

/* Fails the test where a text, of few tokens, has other ids. */
void vocab_ids_are(const tokenizer *t, const char *text, int flags, const int32_t *want, size_t n);
