/* Text that comes in, and its tokens. Text is in memory before there is a plan of the memory, so it
 * has its own bound: a text that can never be used is refused while it is read, also from an
 * endless pipe. */
#pragma once

#include "drey/drey_model.h"

/* The longest text that is read, and in a sentence's second half why not more: "..., which is more
 * than -c 100 can hold; raise -c". */
typedef struct input_limit {
    uint64_t n_bytes;
    char reason[160];
} input_limit;

/* A share of the memory: of memory_bytes, of what is free for DREY_MEMORY_AUTO, of the machine's
 * for DREY_MEMORY_UNLIMITED. `share` is what a byte of text may take once it is tokenized, itself
 * included. */
input_limit input_limit_memory(uint64_t memory_bytes, uint32_t share);
enum {
    INPUT_AS_IDS = 8, /* four bytes for each token; buffers that grow; some room for the rest */
    INPUT_AS_PROMPTS =
        16,            /* lines of {"prompt":"a"}, each some 200 bytes as a prompt with its ids */
    INPUT_AS_JSON = 32 /* a parsed number for each "0,": measured 26, and 2 for its id */
};

/* Bounds the input by n_context tokens (-c; 0: as many as the model was made for) can stand for, if
 * that is less. */
void input_limit_context(input_limit *limit, const drey_model *model, int32_t n_context);

/* DREY_ERR_CONTEXT, with the sentence for a text beyond the limit. what names it: "the prompt". */
drey_status input_too_long(const char *what, const input_limit *limit, drey_error *err);

/* The whole of a file, or of standard input where path is NULL, in UTF-8 without a byte order mark
 * (text_to_utf8), else as it is; DREY_ERR_CONTEXT beyond the limit. *out has n bytes and a NUL
 * after them; the caller frees it. what names the text in messages and in the hint that a person at
 * a terminal gets. */
drey_status input_read(const char *path, const char *what, const input_limit *limit, char **out,
                       size_t *n_bytes, drey_error *err);

/* The ids of a text; the caller frees *ids. flags as for drey_tokenize. n_context: -c, in which one
 * token has to be left to write, else DREY_ERR_CONTEXT; 0: any number of ids. */
drey_status input_tokens(const drey_model *model, const char *text, size_t n_bytes, int flags,
                         int32_t n_context, int32_t **ids, size_t *n_ids, drey_error *err);
/* The ids of a text that is only read: of a file or standard input, as input_read has it, as long
 * as memory_bytes allow. */
drey_status input_text_tokens(const drey_model *model, const char *path, uint64_t memory_bytes,
                              int flags, int32_t **ids, size_t *n_ids, drey_error *err);
/* The same as input_tokens for a text as one turn in the model's chat format; system may be
 * NULL. */
drey_status input_chat_tokens(const drey_model *model, const char *system, const char *text,
                              size_t n_bytes, int flags, int32_t n_context, int32_t **ids,
                              size_t *n_ids, drey_error *err);
