/* All tokens of a vocabulary by their bytes, for grammars: one walk finds every token that a place
 * in a text allows, and leaves out whole branches.
 *
 * Nodes are in depth-first order: a node's subtree is node .. end - 1. Tokens that stand for no
 * bytes (special ones) or for more than VOCAB_TRIE_LONGEST are in no node. */
#pragma once

#include "text/text.h"

enum { VOCAB_TRIE_LONGEST = 255 };

typedef struct vocab_trie_node {
    int32_t end;         /* the next node that is not below this one */
    int32_t first;       /* its tokens: ids[first .. the next node's first) */
    uint8_t byte, depth; /* depth: 1 below the root */
} vocab_trie_node;

typedef struct vocab_trie {
    const tokenizer *tokenizer;
    vocab_trie_node *nodes; /* [n_nodes + 1]; the first is the root, the last ends the lists */
    int32_t *ids;           /* of tokens with bytes, in the order of these */
    int32_t *ends;          /* [n_ends]: tokens that end a text */
    int32_t n_nodes, n_ids, n_ends, n_vocab;
    size_t size_bytes;
} vocab_trie;

/* The tokenizer is borrowed. DREY_ERR_MEMORY. */
drey_status vocab_trie_open(vocab_trie **out, const tokenizer *t, drey_error *err);
void vocab_trie_close(vocab_trie **t);
/* An upper bound of the memory that it takes, also while it is opened. */
size_t vocab_trie_most_bytes(const tokenizer *t);
