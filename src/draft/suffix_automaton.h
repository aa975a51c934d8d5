/* The suffix automaton of a text that grows by one token at a time: for any word it has the longest
 * suffix that occurs in the text, and what followed it there, without searching the text.
 *
 * A state represents all words that end at the same places of the text. Its longest word has length
 * tokens; its link leads to the state of the longest suffix that ends at other places as well. An
 * edge for a token leads to the words extended by that token:
 *
 *   text "a b c a b d":   (a b) --c--> (a b c), --d--> (a b d)     link of (a b): the empty word's
 *
 * A text of n tokens has up to 2 n states and 3 n edges (Blumer et al. 1985); all memory is sized
 * when it is made. State 0 is the empty word's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct suffix_state {
    int32_t length;     /* length of its longest word */
    int32_t link;       /* -1: of the empty word's state */
    int32_t first_edge; /* -1: none */
    int32_t count;      /* places where its words end; too few for words with many longer ones */
    int32_t latest;     /* the last of those places: tokens up to it, its own included */
} suffix_state;

typedef struct suffix_edge {
    int32_t token, from, to;
    int32_t next;       /* next edge of the same state; -1: none */
    int32_t next_alike; /* next edge of the same hash; -1: none */
} suffix_edge;

typedef struct suffix_automaton {
    suffix_state *state; /* [2 * capacity + 2] */
    suffix_edge *edge;   /* [3 * capacity + 2] */
    int32_t *head;       /* [head_mask + 1]: first edge of a hash; -1: none */
    uint32_t head_mask;
    int32_t n_states, n_edges, n_tokens, capacity;
    int32_t whole; /* the state of the whole text */
} suffix_automaton;

/* The longest suffix of a word in the text: its length in tokens, and its state. */
typedef struct suffix_match {
    int32_t state, length;
} suffix_match;

size_t suffix_automaton_bytes(int32_t capacity);
/* The automaton of the empty text. memory: that many bytes, aligned for an int64_t. */
void suffix_automaton_init(suffix_automaton *a, void *memory, int32_t capacity);
/* Forgets the text. */
void suffix_automaton_clear(suffix_automaton *a);
/* Appends a token to the text, which has at most `capacity` tokens. */
void suffix_automaton_add(suffix_automaton *a, int32_t token);

/* The edge of `state` for the token, or -1. */
int32_t suffix_automaton_edge(const suffix_automaton *a, int32_t state, int32_t token);
/* The longest suffix of the text that also occurs earlier in it. */
suffix_match suffix_automaton_end(const suffix_automaton *a);
/* The match of the word extended by the token. */
suffix_match suffix_automaton_step(const suffix_automaton *a, suffix_match m, int32_t token);
