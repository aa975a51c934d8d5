/* States of a text in a grammar: states of the automaton with its stacks.
 *
 * A *cell* is a node to return to, what is noted of the rule that returns there, and the cell below
 * it: the same cells are the same stack. States in a long repetition differ by what is noted alone.
 * What follows them in the next bytes does not, but near the repetition's bounds: states_coarse is
 * the state that stands for all of those. A state is a list of (node, stack), in the order in which
 * they were found, which depends on the text's bytes alone. States and cells are found once and
 * kept with what follows them by class of byte, so that most bytes cost a look-up. If a table is
 * full, all that is not held is forgotten.
 *
 *     state 7:  (node 12, cell 3) (node 40, cell 3)        row 7: class 0 -> 0, class 1 -> 9, ...
 *     cell 3:   returns to node 5, then cell 1 */
#pragma once

#include "base/arena.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"

enum {
    STATES_MOST_CELLS = 32 << 10,
    STATES_MOST_CONFIGS = 96 << 10,
    STATES_MOST = 8 << 10,
    STATES_ROW_BYTES = 1536 << 10, /* bytes of all rows */
    STATES_BUCKETS = 16 << 10,
    STATES_MOST_VISITS = 2048, /* while one byte is taken */
    STATES_VISIT_BUCKETS = 2 * STATES_MOST_VISITS,
    STATES_HELD = 2
};

/* Instead of the state after any plain character. */
typedef enum state_plain { STATE_PLAIN_UNKNOWN = -1, STATE_PLAIN_DIFFERS = -2 } state_plain;

typedef struct state_cell {
    int32_t node, below, depth, next;
    int32_t note; /* note of the rule that returns there (automaton_note); -1: none */
    uint64_t noted;
} state_cell;

typedef struct state_config {
    int32_t node, cell;
} state_config;

typedef struct grammar_state {
    int32_t first, n; /* configs */
    int32_t next;     /* in its bucket */
    int32_t mask;     /* its own mask; -1: none */
    int32_t plain;    /* the state after any plain character, or a state_plain */
    int32_t coarse;   /* see states_coarse; -1: not known yet */
    bool ends;        /* the text may end here */
} grammar_state;

typedef struct held_states {
    int32_t *ids;
    int32_t n;
} held_states;

/* Range of a note's counts in all stacks of a state, and how much of it is left out. */
typedef struct count_range {
    int32_t low, high, less;
} count_range;

typedef struct states {
    const automaton *a;
    state_cell cells[STATES_MOST_CELLS]; /* 0: nothing to return to */
    state_config configs[STATES_MOST_CONFIGS];
    grammar_state all[STATES_MOST];
    int32_t cell_buckets[STATES_BUCKETS], state_buckets[STATES_BUCKETS];
    int32_t *rows; /* [most][n_classes]: what follows; -1: not known yet */
    int32_t n_cells, n_configs, n, most;
    int64_t n_compacted; /* number of times that states were forgotten */
    held_states held[STATES_HELD];
    /* State while a byte is taken. */
    state_config todo[STATES_MOST_VISITS], visits[STATES_VISIT_BUCKETS];
    uint32_t stamps[STATES_VISIT_BUCKETS], stamp;
    int32_t n_todo, n_visits;
    state_config found[GRAMMAR_MOST_STACKS];
    int32_t n_found;
    bool found_end;
    bool narrowed;                    /* a limit has left something out since it was reset */
    int32_t moved[STATES_MOST_CELLS]; /* new places of cells while states are forgotten */
    count_range counted[AUTOMATON_MOST_NOTES]; /* ranges of notes while a coarse state is found */
} states;

/* rows: STATES_ROW_BYTES. */
void states_init(states *s, const automaton *a, int32_t *rows);
/* The state at the beginning of a text. */
int32_t states_first(states *s);
/* The state after one more byte, from the state in a held state. */
int32_t states_step(states *s, const int32_t *state, uint8_t byte);
static inline int32_t states_known(const states *s, int32_t id, uint8_t byte)
{
    return s->rows[(int64_t)id * s->a->n_classes + s->a->class_of[byte]];
}
/* The state of which the same is true for the next VOCAB_TRIE_LONGEST bytes, and which many states
 * in long repetitions share: often the one in the held state itself. It is not held. */
int32_t states_coarse(states *s, const int32_t *state);
/* Returns whether a token usually ends before the next character, inside of a text that is
 * certain. */
bool states_is_cut(const states *s, int32_t id);
/* The only byte that can come; -1: there are several, or the text may end. */
int states_only_byte(const states *s, int32_t id);

/* Number of characters that may come, each of which may be any plain one (vocab_trie.h), all with
 * the same states after them; VOCAB_PLAIN_MOST: so many at least. */
typedef struct plain_run {
    int32_t n;
    bool ends; /* no plain character may follow them */
} plain_run;

/* Returns the run that follows the state in a held state. */
plain_run states_plain_run(states *s, const int32_t *state);
