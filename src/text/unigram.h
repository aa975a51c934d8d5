/* Unigram SentencePiece, the "t5" tokenizer model: of all ways to cut a text into tokens the one
 * whose scores have the largest sum (Kudo 2018). Text is normalized before that, by the file's
 * character map and by what it says about blanks, which are written U+2581. */
#pragma once

#include "text/charmap.h"
#include "text/sentencepiece.h"

typedef struct unigram {
    const sentencepiece *pieces; /* borrowed: its tokens, scores and flags */
    charmap map;
    bool merges_blanks;   /* a run of blanks counts as one, and none at the ends */
    double unknown_score; /* score of a character that is no token */
    size_t longest;       /* bytes of a token that text can become */
} unigram;

/* DREY_ERR_FORMAT: the file has no character map. */
drey_status unigram_init(unigram *u, const sentencepiece *pieces, const gguf *g, drey_error *err);

/* Tokens of a text without special tokens. DREY_ERR_MEMORY. */
drey_status unigram_encode(const unigram *u, const char *text, size_t n, id_sink *sink,
                           drey_error *err);
