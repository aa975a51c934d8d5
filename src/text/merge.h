/* Merging neighbours, the part that both BPE kinds share: of all adjacent pairs that make a token,
 * the one with the smallest priority number goes first (the leftmost of equals), until none is
 * left. n log n in the length of a word.
 *
 * A symbol stores the token that it would make with its right neighbour. Heap entries are
 * (priority, left symbol) and are not removed when a neighbour changes: an entry is valid only
 * while its symbol still has that priority. */
#pragma once

#include "common/error.h"

enum {
    /* Longer words are merged in parts, so that memory stays bounded: about 44 bytes per
     * byte of text. */
    MERGE_WORD_BYTES = 1 << 18
};

typedef struct symbol {
    int32_t id;           /* token; -1: a text that is none */
    int32_t prev, next;   /* -1: none */
    int32_t merged;       /* the token that this and next would make; -1: none */
    uint32_t priority;    /* priority of that merge */
    uint32_t at, n_bytes; /* the text it covers */
} symbol;

/* Sets left->merged and left->priority for the pair. */
typedef void merge_pair_fn(const void *rules, symbol *left, const symbol *right);

typedef struct merger { /* scratch of one encoding */
    symbol *symbols;
    uint64_t *heap;
    size_t n_symbols, n_heap, capacity;
    merge_pair_fn *pair;
    const void *rules; /* borrowed */
} merger;

/* Makes room for n symbols, and has none yet. DREY_ERR_MEMORY. */
drey_status merge_begin(merger *m, size_t n, drey_error *err);
/* Appends a symbol. */
void merge_push(merger *m, int32_t id, uint32_t at, uint32_t n_bytes);
/* Merges. The remaining symbols form a list from symbols[0] by `next`; m->n_symbols > 0. */
void merge_run(merger *m);
void merge_free(merger *m);
