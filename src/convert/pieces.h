/* A SentencePiece vocabulary, tokenizer.model: the pieces of its protocol buffer, and how it was
 * trained. Format: google/sentencepiece, src/sentencepiece_model.proto. */
#pragma once

#include "common/error.h"
#include "gguf/gguf.h"

typedef struct piece_reader {
    const uint8_t *at, *end; /* borrowed */
} piece_reader;

typedef struct text_piece {
    gguf_string text; /* borrowed from the file's bytes */
    float score;
    int32_t
        type; /* as token_type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte */
} text_piece;

/* How the vocabulary cuts texts. */
typedef enum piece_method { PIECES_UNIGRAM = 1, PIECES_BPE = 2 } piece_method;

void pieces_begin(piece_reader *r, const uint8_t *bytes, size_t n);
/* The next piece, in the order of ids; *more is false where there is none, and then *method (may be
 * NULL) is what the file says. DREY_ERR_FORMAT: it is no such file. */
drey_status pieces_next(piece_reader *r, text_piece *out, bool *more, int32_t *method,
                        drey_error *err);
