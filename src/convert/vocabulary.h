/* The tokenizer of a folder, as keys of a GGUF file.
 *
 *   tokenizer.model            SentencePiece's BPE ("llama"), of T5 its unigram pieces ("t5")
 *   tokenizer.json, else       byte-level BPE ("gpt2"), or SentencePiece's BPE written as merges
 *   vocab.json and merges.txt  byte-level BPE without what tokenizer.json says besides
 *
 * Names of pre-tokenizers are those of llama.cpp. They are found by the expressions that
 * tokenizer.json has. */
#pragma once

#include "convert/family.h"
#include "convert/json_types.h"
#include "convert/pieces.h"

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

/* Fails for ids that are none. */
drey_status tokens_set(token_list *t, int64_t id, gguf_string text, int32_t type, float score,
                       drey_error *err);
/* added_tokens of tokenizer.json, added_tokens_decoder of tokenizer_config.json. */
drey_status tokens_add(token_list *t, const hub_folder *f, drey_error *err);

/* Tokens of a vocabulary by its JSON: texts with ids. */
drey_status tokens_set_all(token_list *t, const json_value *vocab, drey_error *err);
/* added_tokens.json, which says no more of them than ids. */
drey_status tokens_add_listed(token_list *t, const hub_folder *f, drey_error *err);
/* Ids that nothing has: the embedding has rows for them. */
drey_status tokens_pad(token_list *t, drey_error *err);

/* Keys of the list, but its scores. */
void tokens_put(const token_list *t, new_gguf *g, const char *model, const char *pre);

/* All keys of vocab.json with merges.txt: pair_vocabulary.c. */
drey_status pair_keys(const family *a, token_list *t, const hub_folder *f, new_gguf *g,
                      drey_error *err);
/* The pieces of a SentencePiece vocabulary that tokenizer.json has with byte_fallback, and scores
 * by which they are joined in the same order. *in_front: a text gets a blank in front.
 * DREY_ERR_UNSUPPORTED: it prepares texts otherwise. merged_pieces.c. */
drey_status merged_pieces(token_list *t, const json_value *tokenizer, bool *in_front,
                          drey_error *err);
/* The name of the pre-tokenizer that tokenizer.json describes: pretokenizer_name.c. */
drey_status pretokenizer_name(const json_value *tokenizer, const char **name, drey_error *err);
/* Writes the tokens that begin and end texts, and whether they are added; the chat template:
 * special_keys.c. */
drey_status special_keys(const family *a, const hub_folder *f, new_gguf *g, const token_list *t,
                         drey_error *err);
