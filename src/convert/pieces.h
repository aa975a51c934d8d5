/* A SentencePiece vocabulary, tokenizer.model: the pieces of its protocol buffer, how it was
 * trained, and how it changes texts. Format: google/sentencepiece,
 * src/sentencepiece_model.proto. */
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

/* Methods by which a vocabulary cuts texts. */
typedef enum piece_method { PIECES_UNIGRAM = 1, PIECES_BPE = 2 } piece_method;

typedef struct piece_settings {
    int32_t method; /* a piece_method, or another up to 7 */
    /* replacements of characters, borrowed; text NULL: there is no such map */
    gguf_string charsmap;
    bool dummy_prefix;     /* a blank is put before a text */
    bool merges_blanks;    /* a run of blanks counts as one, and none at the ends */
    bool escapes_blanks;   /* they are U+2581 in pieces */
    bool blanks_end_words; /* else they begin words */
} piece_settings;

/* settings: become what holds where the file says nothing. */
void pieces_begin(piece_reader *r, const uint8_t *bytes, size_t n, piece_settings *settings);
/* The next piece, in the order of ids; *more is false where there is none, and then *settings is
 * what the file says. DREY_ERR_FORMAT: it is no such file. */
drey_status pieces_next(piece_reader *r, text_piece *out, bool *more, piece_settings *settings,
                        drey_error *err);
