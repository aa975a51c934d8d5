/* Finds the files that a name means: on a hub of models, which answers as Hugging Face does, or at
 * a URL. */
#pragma once

#include "cli/pull/transfer.h"

enum { HUB_MOST_PARTS = 64, HUB_WORD_BYTES = 4096 };

typedef struct hub_file {
    char *url;
    char *name;       /* without folders */
    uint64_t n_bytes; /* 0: not known yet */
    char sha256[65];  /* hexadecimal; "": not known */
} hub_file;

/* The parts of one model, in their order. */
typedef struct hub_files {
    hub_file file[HUB_MOST_PARTS];
    int32_t n;
} hub_files;

/* word: OWNER/NAME, OWNER/NAME:QUANT, OWNER/NAME/PATH.gguf or the URL of a GGUF file, also of a
 * hub's page that shows it. A model that is split is all of its parts. hub: its address.
 * DREY_ERR_USAGE: the word is none of these, or does not say which of several models; the message
 * names them. hub_release frees in any case. */
drey_status hub_find(hub_files *files, const transfer *t, const char *hub, const char *word,
                     drey_error *err);
void hub_release(hub_files *files);
/* The word is a URL: the hub's token is not for it. */
bool hub_is_url(const char *word);
/* Returns what follows Hugging Face's address in "hf.co/OWNER/NAME" or
 * "https://huggingface.co/OWNER/NAME"; the word itself where it begins with no such address. */
const char *hub_after_address(const char *word);
/* Writes a word as hub_find takes it. Addresses of Hugging Face's pages (/tree/main,
 * /blob/main/FILE, /resolve/main/FILE) become OWNER/NAME or OWNER/NAME/FILE, and those of `hub`
 * that show no file; others are copied. DREY_ERR_USAGE: it is too long. */
drey_status hub_name_of(char out[HUB_WORD_BYTES], const char *hub, const char *word,
                        drey_error *err);
/* Returns whether the name has the word, as a whole; large and small letters are the same. */
bool hub_has_word(const char *name, const char *word);
