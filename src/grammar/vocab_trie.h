/* All tokens of a vocabulary by their bytes, for grammars: one walk finds every token that a place
 * in a text allows, and leaves out whole branches.
 *
 * Most tokens are *plain*: a few whole characters that JSON writes as they are. Inside of a string
 * all of them may come, and a walk would visit each for nothing. They have a trie for themselves,
 * which says below which node how many characters come at most, and masks of all that are short
 * enough, so that a place where any plain character may come needs no walk. The other tokens, with
 * quotes, line breaks or parts of characters, are a tenth.
 *
 * Nodes are in depth-first order: a node's subtree is node .. end - 1. Special tokens, which are no
 * part of texts, are there by VOCAB_TRIE_TOKEN, a byte that no UTF-8 has, and their name. Tokens
 * that end a text, and those of no bytes or of more than VOCAB_TRIE_LONGEST, are in no node. */
#pragma once

#include "drey/drey_model.h"

typedef struct tokenizer tokenizer;

enum {
    VOCAB_TRIE_LONGEST = 255,
    VOCAB_TRIE_TOKEN = 0xFF,
    VOCAB_PLAIN_MOST = 24, /* characters of a plain token */
    VOCAB_NOT_PLAIN = 255
};

typedef enum vocab_part_kind { VOCAB_PLAIN, VOCAB_OTHERS, VOCAB_PARTS } vocab_part_kind;

typedef struct vocab_trie_node {
    int32_t end;         /* the next node that is not below this one */
    int32_t first;       /* its tokens: ids[first .. the next node's first) */
    uint8_t byte, depth; /* depth: 1 below the root */
    /* At most so many characters follow in the tokens below. VOCAB_NOT_PLAIN: inside of a
     * character, or not among plain tokens. */
    uint8_t n_plain;
} vocab_trie_node;

typedef struct vocab_part {
    vocab_trie_node *nodes; /* [n_nodes + 1]; the first is the root, the last ends the lists */
    int32_t n_nodes;
} vocab_part;

typedef struct vocab_trie {
    const tokenizer *tokenizer;
    vocab_part parts[VOCAB_PARTS];
    int32_t *ids;    /* ids of tokens with bytes, in the order of these, part after part */
    int32_t *ends;   /* [n_ends]: tokens that end a text */
    uint64_t *plain; /* [VOCAB_PLAIN_MOST][n_words]: masks of plain tokens of 1, up to 2, ... */
    int32_t n_ids, n_ends, n_vocab, n_words;
    size_t size_bytes;
} vocab_trie;

/* The tokenizer is borrowed. DREY_ERR_MEMORY. */
drey_status vocab_trie_open(vocab_trie **out, const tokenizer *t, drey_error *err);
void vocab_trie_close(vocab_trie **t);
/* The bytes by which a token is there; 0: it is not. */
int32_t vocab_trie_piece(const tokenizer *t, int32_t id, uint8_t out[VOCAB_TRIE_LONGEST]);
/* An upper bound of the memory that it takes, also while it is opened. */
size_t vocab_trie_most_bytes(const tokenizer *t);
