/* Tokenizers, built from a GGUF file's keys: byte-level BPE ("gpt2"), BPE over characters
 * ("gemma4"), SentencePiece BPE ("llama") and unigram SentencePiece ("t5").
 *
 * Text is any bytes. Byte-level BPE splits it with the pre-tokenizer's regular expression (PCRE2,
 * with match limits), then merges by rank; SentencePiece BPE merges by score and uses bytes for the
 * rest; unigram takes the likeliest of all cuts. Only unigram normalizes text. The tokenizer
 * borrows the gguf for the tokens' text. Immutable after opening: any number of threads. */
#pragma once

#include "common/error.h"
#include "gguf/gguf.h"

typedef struct id_sink id_sink;

typedef struct tokenizer tokenizer;

/* DREY_ERR_FORMAT when the file has no tokenizer or a broken one; DREY_ERR_UNSUPPORTED names the
 * model or pre-tokenizer and lists what is supported. */
drey_status tokenizer_open(tokenizer **out, const gguf *g, drey_error *err);
void tokenizer_close(tokenizer **t);
/* The keys that a tokenizer and chats read are of their kinds; part of tokenizer_open. */
drey_status tokenizer_keys_check(const gguf *g, drey_error *err);
size_t tokenizer_bytes(const tokenizer *t); /* its memory, without the gguf's header */

int32_t tokenizer_n_vocab(const tokenizer *t);
int32_t tokenizer_bos(const tokenizer *t); /* -1: none */
int32_t tokenizer_eos(const tokenizer *t);
bool tokenizer_wants_bos(const tokenizer *t);
/* Returns whether the token ends a text: eos (one or a list), eot, eom and similar tokens by name
 * (<|im_end|>, <|endoftext|>, <|eot_id|>, </s>, <end_of_turn>, ...). A name counts only for a
 * control or user-defined token, which token_marks.h corrects: Qwen has a </s> that is text. */
bool tokenizer_is_end(const tokenizer *t, int32_t id);
/* Returns whether a control token of that name is an end in each vocabulary that has it. */
bool tokenizer_names_end(gguf_string text);
/* Makes it one, after opening and before any text. <|end|>, where it ends only messages, stays
 * none. */
void tokenizer_add_end(tokenizer *t, int32_t id);
bool tokenizer_is_special(const tokenizer *t, int32_t id); /* control and unknown tokens */
/* Ids that are never chosen, ascending, and how many (tokenizer.ggml.suppress_tokens). */
const int32_t *tokenizer_suppressed(const tokenizer *t, size_t *n);
bool tokenizer_is_suppressed(const tokenizer *t, int32_t id);

/* Does what drey_tokenize in drey.h does. User-defined tokens are always tokens, whatever the
 * flags. */
drey_status tokenizer_encode(const tokenizer *t, const char *text, size_t n_bytes, int flags,
                             int32_t *ids, size_t capacity, size_t *n_ids, drey_error *err);

/* A part of a text, in bytes. */
typedef struct text_range {
    size_t begin, end;
} text_range;

typedef struct parted_text {
    const char *text;
    size_t n_bytes;
    const text_range *plain; /* [n_plain], in order: parts that are plain text */
    size_t n_plain;
} parted_text;

/* The same: with DREY_TOKENIZE_SPECIAL special tokens are found only outside of plain text. */
drey_status tokenizer_encode_around(const tokenizer *t, const parted_text *x, int flags,
                                    id_sink *sink, drey_error *err);

/* Does what drey_detokenize in drey.h does; ids out of range are DREY_ERR_USAGE. */
drey_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, int flags,
                             char *text, size_t capacity, size_t *n_bytes, drey_error *err);

/* The bytes that a token stands for (special and unused tokens: none unless `special`); returns how
 * many, and writes at most capacity of them. first: the token begins a text (SentencePiece drops
 * the space that it added). Ids out of range: 0. */
size_t tokenizer_piece(const tokenizer *t, int32_t id, bool special, bool first, char *out,
                       size_t capacity);
size_t tokenizer_longest_piece(const tokenizer *t);

/* Checks that every id below the size of the smaller vocabulary means the same in both, and that
 * every id above is padding (padding tokens are ignored everywhere). DREY_ERR_MISMATCH names the
 * first token that differs, and how. */
drey_status tokenizer_compare(const tokenizer *target, const tokenizer *draft, drey_error *err);
