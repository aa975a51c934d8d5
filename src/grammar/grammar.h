/* Grammars, for other folders: which tokens may come at a state of a text.
 *
 *   gbnf.c, regex.c, json_schema.c    readers: a text becomes rules (grammar_rules.h)
 *   automaton.h                       rules become an automaton over bytes
 *   states.h                          states of texts: sets of stacks, found once each
 *   vocab_trie.h                      the vocabulary by its bytes
 *
 * A grammar belongs to one text at a time. Its *states* have ids; 0 is the state that no
 * text of the grammar reaches. They are kept in memory that the grammar knows (grammar_hold):
 * when its tables are full, it forgets all other states, and gives those other numbers.
 *
 * What a state allows is a function of the text's bytes before it: no table's size and no earlier
 * question changes it. A grammar's memory is of fixed size, taken when it is opened; the rest
 * allocates nothing. Deeper nesting than GRAMMAR_MOST_DEPTH rules is not allowed, nor are more
 * than GRAMMAR_MOST_STACKS readings of one text: what is written is one of the grammar anyway. */
#pragma once

#include "drey/drey_grammar.h"
#include "grammar/vocab_trie.h"

typedef struct tokenizer tokenizer;
typedef struct vocab_trie vocab_trie;

enum { GRAMMAR_MOST_DEPTH = 200, GRAMMAR_MOST_STACKS = 256, GRAMMAR_NOWHERE = 0 };
enum { GRAMMAR_MOST_BYTES = 64 << 10 }; /* the most bytes of a grammar's text */
enum { GRAMMAR_MOST_EACH = 64 };        /* parts of an "%each" (gbnf.c) */

/* DREY_ERR_USAGE: what is wrong with the text, in one sentence. The trie is borrowed. */
drey_status grammar_open(drey_grammar **out, const vocab_trie *trie, drey_grammar_kind kind,
                         const char *text, size_t n_bytes, drey_error *err);
void grammar_close(drey_grammar **g);
/* Bytes of each object, at most, for a vocabulary of that size. */
size_t grammar_bytes(int32_t n_vocab);
const tokenizer *grammar_tokenizer(const drey_grammar *g);
/* Places in its schemas of what it does not hold, with ", " between them; "": it holds all. The
 * grammar's. */
const char *grammar_not_held(const drey_grammar *g);
/* The same of a schema that is not opened, in places[size]. DREY_ERR_USAGE, DREY_ERR_MEMORY. */
enum { GRAMMAR_NOT_HELD_BYTES = 1024 };
drey_status grammar_schema_not_held(const char *schema, size_t n, char *places, size_t size,
                                    drey_error *err);

/* Memory in which states are kept: states[0 .. n), all valid ids, borrowed until the next call.
 * NULL: there is none any more. */
void grammar_hold(drey_grammar *g, int32_t *states, int32_t n);
/* Flag that says whether a text uses the grammar; it is set and reset by the text. */
bool *grammar_in_use(drey_grammar *g);
/* [n_vocab] floats for a caller that needs them for a moment. */
float *grammar_scratch(drey_grammar *g);

/* The state of the text so far: at its beginning, and after one more token. */
void grammar_restart(drey_grammar *g);
void grammar_advance(drey_grammar *g, int32_t token);
int32_t grammar_now(const drey_grammar *g);
bool grammar_now_may_end(const drey_grammar *g);
bool grammar_now_over(const drey_grammar *g);

/* A state of a text, for those who choose its next token. grammar NULL: any token may come. */
typedef struct grammar_cursor {
    drey_grammar *grammar;
    const int32_t *state;
} grammar_cursor;

/* Returns the state after the token; GRAMMAR_NOWHERE: it is not allowed, or ends the text. Here and
 * in the following, `state` points into memory that is held. */
int32_t grammar_follow(drey_grammar *g, const int32_t *state, int32_t token);
/* Returns whether the token may come: a text of the grammar continues with its bytes. Tokens that
 * end a text may where the grammar may end, and where no other token may come. */
bool grammar_allows(drey_grammar *g, const int32_t *state, int32_t token);
/* The same of all tokens: bit id % 64 of word id / 64. Borrowed until the next call. */
const uint64_t *grammar_mask(drey_grammar *g, const int32_t *state);
/* Makes the mask of a state that will be asked for, while there is time. False: it was there, or
 * there is room for no more: some that were made ahead were not asked for yet. */
bool grammar_prepare(drey_grammar *g, const int32_t *state);
/* Number of masks that were made ahead. */
int64_t grammar_n_prepared(const drey_grammar *g);
/* Return whether the text may end here, and whether it must. */
bool grammar_may_end(const drey_grammar *g, const int32_t *state);
bool grammar_is_over(const drey_grammar *g, const int32_t *state);
/* Returns the token that the tokenizer would begin with in the bytes that must come next, as far as
 * they are known; -1: the next byte is not certain. */
int32_t grammar_forced(drey_grammar *g, const int32_t *state);
