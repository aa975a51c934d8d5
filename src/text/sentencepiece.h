/* SentencePiece BPE, the "llama" tokenizer model: characters are merged by the score of the token
 * that they make; what is no token is encoded as bytes.
 *
 * Blanks are written U+2581 in token texts, and a text gets one in front where the file says so
 * (tokenizer.ggml.add_space_prefix). */
#pragma once

#include "text/ids.h"
#include "text/merge.h"
#include "text/vocab.h"

typedef struct sentencepiece {
    const vocab *vocab;     /* borrowed */
    const gguf_key *scores; /* borrowed, [n_tokens] */
    int32_t byte_id[256];   /* -1: no such token */
    int32_t unknown_id;     /* -1: none */
    bool space_prefix;
    /* No token has U+2581 after another character, so that texts may be cut before blanks. */
    bool words;
} sentencepiece;

drey_status sentencepiece_init(sentencepiece *s, const vocab *v, const gguf *g, drey_error *err);

/* Tokens of a text without special tokens. prefix: put a blank before the text if the model wants
 * it. */
drey_status sentencepiece_encode(const sentencepiece *s, const char *text, size_t n, bool prefix,
                                 id_sink *sink, drey_error *err);
