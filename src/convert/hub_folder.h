/* A model's folder as hubs hold it: its descriptions as JSON, and its tensors in one file or in
 * parts that an index lists.
 *
 *   config.json              what the model is                        (must be there)
 *   model.safetensors        its tensors, or the files named in
 *   model.safetensors.index.json
 *   tokenizer.json           vocabulary, merges, added tokens         (or tokenizer.model)
 *   tokenizer.model          a SentencePiece vocabulary; T5's may be spiece.model
 *   vocab.json, merges.txt   byte-level BPE, where tokenizer.json is not there
 *   added_tokens.json        tokens that were added to one of these
 *   tokenizer_config.json    which tokens begin and end, the chat template
 *   special_tokens_map.json  the same tokens, where tokenizer_config.json does not name them
 *   generation_config.json   which tokens end a text
 *   chat_template.jinja      the chat template, where tokenizer_config has none
 *
 * All of it is foreign: each file has a size that it may not exceed, and what is there and of
 * another kind than it has to be is an error (json_types.h). */
#pragma once

#include "common/json_value.h"
#include "convert/safetensors.h"
#include "os/file.h"

typedef struct folder_part {
    char *path;
    file file;
    safetensors header;
} folder_part;

typedef struct hub_folder {
    const char *path;                                              /* borrowed */
    json_document config, tokenizer, tokenizer_config, generation; /* root NULL: not there */
    json_document vocab, added, token_map;
    char *merges; /* merges.txt, [n_merges] and a NUL; NULL: not there */
    size_t n_merges;
    char *chat_template; /* chat_template.jinja, a NUL after it and none in it; NULL: not there */
    uint8_t *pieces;     /* tokenizer.model or spiece.model, [n_pieces]; NULL: not there */
    size_t n_pieces;
    folder_part *parts; /* [n_parts] */
    int32_t n_parts;
} hub_folder;

/* Opens everything and validates the headers. path is borrowed. DREY_ERR_IO, DREY_ERR_FORMAT,
 * DREY_ERR_MEMORY. */
drey_status hub_folder_open(hub_folder *f, const char *path, drey_error *err);
/* Kinds of what its JSON files have: folder_types.c. Part of hub_folder_open. */
drey_status folder_check(const hub_folder *f, drey_error *err);
/* Accepts one that is all zero or half-open. */
void hub_folder_close(hub_folder *f);

/* A tensor, named as in a model of texts alone; NULL: there is none of that name. *part: where it
 * is. */
safetensor *folder_find(const hub_folder *f, const char *name, int32_t *part);
/* Bytes of a part. */
drey_status folder_read(const hub_folder *f, int32_t part, uint64_t offset, size_t n, void *out,
                        drey_error *err);

/* ---- config.json ---- */

/* The first of these members that is there, "a|b|c", in text_config before the whole. NULL: none
 * is. */
const json_value *config_find(const hub_folder *f, const char *names);
/* A whole number within [low, high]. *there is false where it is missing. */
drey_status config_int(const hub_folder *f, const char *names, int64_t low, int64_t high,
                       int64_t *out, bool *there, drey_error *err);
/* The same, and it must be there. */
drey_status config_require(const hub_folder *f, const char *names, int64_t low, int64_t high,
                           int64_t *out, drey_error *err);
/* A number; NAN: missing, or none. */
double config_number(const hub_folder *f, const char *names);
/* A text; NULL: missing, or none. */
const char *config_text(const hub_folder *f, const char *names);
/* True or false; fallback: missing, or neither. */
bool config_bool(const hub_folder *f, const char *names, bool fallback);
