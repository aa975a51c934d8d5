/* The drafter that needs no model: see lookup_drafter.c. */
#pragma once

#include "draft/drafter.h"
#include "draft/recycling.h"
#include "draft/suffix_automaton.h"

enum {
    LOOKUP_LENGTHS = 8,
    LOOKUP_SHARES = 4,
    LOOKUP_MATCH_KINDS = LOOKUP_LENGTHS * LOOKUP_SHARES * 2,
    LOOKUP_KINDS = LOOKUP_MATCH_KINDS + 2 * RECYCLED
};

typedef struct lookup_kind { /* counts of how often such a candidate was right, and was tried */
    float hits, trials;
} lookup_kind;

typedef struct lookup_drafter {
    drafter base;
    int32_t capacity, n_tokens, n_input;
    int32_t *tokens;       /* [capacity]: an encoder's input, then the timeline, the root last */
    suffix_automaton text; /* automaton of these tokens */
    recycling rows;
    lookup_kind kind[LOOKUP_KINDS];
    uint8_t kind_of[TREE_MAX_NODES][TREE_MAX_GUESSES]; /* kinds of the nodes' guesses */
} lookup_drafter;

size_t drafter_lookup_bytes(int32_t capacity);
/* capacity: of an input and a timeline. memory: drafter_lookup_bytes(capacity) bytes, zeroed,
 * aligned for any type. begin fails with DREY_ERR_CONTEXT beyond the capacity; reroot must not
 * exceed it. */
drafter *drafter_lookup_init(void *memory, int32_t capacity);

/* For drafters that combine lookup with what they compute (blend.h). */

typedef struct lookup_guess {
    int32_t token;
    float confidence;
    uint8_t kind;
} lookup_guess;

/* Finds what may follow a node, best first; returns how many. Only one token can come: if the
 * confidences add up to more than 1, all are reduced. */
int32_t lookup_find(const lookup_drafter *d, const token_tree *tree, int32_t node,
                    lookup_guess guess[TREE_MAX_GUESSES]);
/* Notes whether a guess of this kind was right. */
void lookup_judge(lookup_drafter *d, int32_t kind, bool hit);
/* The timeline continues along the path and then with `next`. */
void lookup_follow(lookup_drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next);
