/* The tokenizer of a folder, as keys of a GGUF file.
 *
 *   tokenizer.model            SentencePiece ("llama")
 *   tokenizer.json, else       byte-level BPE ("gpt2"), or SentencePiece's written as merges
 *
 * Names of pre-tokenizers are those of llama.cpp. They are found by the expressions that
 * tokenizer.json has. */
#pragma once

#include "convert/family.h"

/* Writes the keys under "tokenizer.". DREY_ERR_UNSUPPORTED: a tokenizer that drey does not know,
 * said by what is unknown; DREY_ERR_FORMAT, DREY_ERR_MEMORY. */
drey_status vocabulary_keys(const family *a, const hub_folder *f, new_gguf *g, drey_error *err);

/* ---- Internal to this folder ---- */

/* Tokens by id, as they are collected. */
typedef struct token_list {
    gguf_string *texts; /* [n]; text NULL: none has this id yet */
    float *scores;      /* [n] */
    int32_t *types;     /* [n]; as in GGUF: 1 normal, 2 unknown, 3 control, 4 user-defined, ... */
    int32_t n;
    bool skips_extra; /* added tokens may have ids that the model has not: Gemma 3's of images */
    struct kept_text *kept; /* texts that were made here */
} token_list;

/* A text of n bytes that lives as long as the list. NULL: no memory. */
char *tokens_keep(token_list *t, size_t n);
/* Fails for ids that are none. */
drey_status tokens_set(token_list *t, int64_t id, gguf_string text, int32_t type, float score,
                       drey_error *err);
/* added_tokens of tokenizer.json, added_tokens_decoder of tokenizer_config.json. */
drey_status tokens_add(token_list *t, const hub_folder *f, drey_error *err);

/* The pieces of a SentencePiece vocabulary that tokenizer.json has with byte_fallback, and scores
 * by which they are joined in the same order. *in_front: a text gets a blank in front.
 * DREY_ERR_UNSUPPORTED: it prepares texts otherwise. merged_pieces.c. */
drey_status merged_pieces(token_list *t, const json_value *tokenizer, bool *in_front,
                          drey_error *err);
/* The name of the pre-tokenizer that tokenizer.json describes: pretokenizer_name.c. */
drey_status pretokenizer_name(const json_value *tokenizer, const char **name, drey_error *err);
/* Which tokens begin and end texts, whether they are added; the chat template: special_keys.c. */
drey_status special_keys(const hub_folder *f, new_gguf *g, int32_t n_tokens, drey_error *err);
