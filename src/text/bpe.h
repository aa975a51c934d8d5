/* BPE: what a text is made of become tokens, which are merged by rank.
 *
 * Over bytes (the "gpt2" tokenizer model) it merges within the words of a pre-tokenizer. Token
 * texts spell bytes in GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes
 * for U+0100 onward. Over characters ("gemma4") blanks are written U+2581, a text is divided at
 * line breaks alone, and a character that is no token is encoded as bytes (see token_pieces.h). */
#pragma once

#include "text/ids.h"
#include "text/merge.h"
#include "text/pretokenizer.h"
#include "text/vocab.h"

/* Texts of merges that are no tokens, as in vocabularies that were cut down: they are merged like
 * others, and what is left of them is bytes. Their ids follow those of the tokens. */
typedef struct absent_texts {
    struct absent_text {
        gguf_string head, tail; /* one after the other; borrowed */
    } * texts;                  /* [n] */
    uint32_t *slots;            /* [slot_mask + 1], index + 1; NULL: there is no such text */
    uint32_t slot_mask, n;
} absent_texts;

typedef struct bpe {
    const vocab *vocab;        /* borrowed */
    bool characters;           /* texts are made of them; else of bytes */
    pretokenizer pretokenizer; /* none over characters */
    int32_t byte_id[256]; /* -1: neither the vocabulary nor a merge has that byte; texts are encoded
                             without it */
    absent_texts absent;
    struct bpe_merge {
        int32_t left, right, merged;
    } * merges;      /* [n_merges], the index is the rank */
    uint32_t *slots; /* [slot_mask + 1], rank + 1; open addressing by (left, right) */
    uint32_t slot_mask, n_merges;
    uint64_t n_probes; /* slots probed while filling */
} bpe;

/* DREY_ERR_FORMAT also if pairs collide more than any real tokenizer's. */
drey_status bpe_init(bpe *b, const vocab *v, bool characters, const gguf *g, drey_error *err);
void bpe_free(bpe *b);
size_t bpe_bytes(const bpe *b); /* its memory */

/* Appends the tokens of a text without special tokens. */
drey_status bpe_encode(const bpe *b, const char *text, size_t n, id_sink *sink, drey_error *err);

/* The bytes that a token's text spells over bytes; a text outside the alphabet is its own bytes.
 * Returns how many and writes at most capacity. */
size_t bpe_decode(gguf_string text, char *out, size_t capacity);
