/* The token table of a GGUF file: id to text and type, text to id.
 *
 * Texts stay in the GGUF header; the table keeps 9 bytes per token and a hash table of 4 to 8. */
#pragma once

#include "common/error.h"
#include "gguf/gguf.h"
#include "text/keyed_hash.h"

/* Types by their numbers in tokenizer.ggml.token_type. */
typedef enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4, /* text that is always one token */
    TOKEN_UNUSED = 5,       /* padding */
    TOKEN_BYTE = 6
} token_type;

/* More tokens or merges are treated as an attack on memory; the largest vocabularies have a quarter
 * of a million. */
enum { VOCAB_MOST_TOKENS = 1 << 21 };

typedef struct vocab {
    int32_t n_tokens;
    const char *base; /* the first token's text in the header; borrowed */
    struct vocab_text {
        uint32_t offset, n_bytes; /* from base */
    } * texts;                    /* [n_tokens] */
    uint8_t *types;               /* [n_tokens], of token_type; see token_marks.h */
    bool has_types;               /* the file says them; otherwise all are normal at first */
    uint32_t *slots;              /* [slot_mask + 1], id + 1; open addressing */
    uint32_t slot_mask;
    hash_key key;      /* key of this table and of those that are built on it */
    uint64_t n_probes; /* slots probed while filling */
} vocab;

/* DREY_ERR_FORMAT if texts collide more than those of any real vocabulary. */
drey_status vocab_init(vocab *v, const gguf *g, const hash_key *key, drey_error *err);
void vocab_free(vocab *v);
size_t vocab_bytes(const vocab *v); /* memory it took */

static inline gguf_string vocab_text(const vocab *v, int32_t id)
{
    return (gguf_string){v->base + v->texts[id].offset, v->texts[id].n_bytes};
}
static inline token_type vocab_type(const vocab *v, int32_t id)
{
    return (token_type)v->types[id];
}

/* The id of a text (the lowest, if the file has it twice); -1: none. */
int32_t vocab_find(const vocab *v, const char *text, size_t n_bytes);
/* The same for the concatenation of two strings. */
int32_t vocab_find_joined(const vocab *v, gguf_string head, gguf_string tail);
