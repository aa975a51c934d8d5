/* A grammar as an automaton over bytes: each rule is a graph from its start to its end, whose edges
 * take a byte of a range, nothing, or a whole rule. A rule that is called returns to where the edge
 * leads, so that a place in a text is a node and a stack of nodes to return to (states.h).
 *
 *     a list:   start =="["==> . ==item==> . =="]"==> end
 *                              ^           |
 *                              +===","=====+
 *
 * A call whose edge leads to its own rule's end needs no return: repetition by recursion at a
 * rule's end does not deepen the stack. A long repetition with bounds is one edge and a rule for
 * what it repeats: how often that was written is on the stack, so that {0,100000} has no more nodes
 * than {0,2}. Short ones are laid out as copies. A rule may keep other notes as well, of what has
 * come in it (automaton_note). Characters are their UTF-8 bytes. Nodes from which no end can be
 * reached have no edges that lead to them: each prefix that the automaton accepts is the beginning
 * of a text of the grammar. */
#pragma once

#include "grammar/grammar_rules.h"

enum { AUTOMATON_MOST_NODES = 32 << 10, AUTOMATON_MOST_EDGES = 56 << 10 };
enum { AUTOMATON_MOST_RULES = RULES_MOST_RULES + 4096 }; /* the grammar's, and character classes */

typedef enum edge_kind {
    EDGE_BYTES,
    EDGE_NOTHING,
    EDGE_RULE,
    EDGE_COUNT, /* a long repetition, of which a note says more (NOTE_TIMES) */
    /* Edges in rules with a note: */
    EDGE_MEMBER, /* a whole rule: member `low` of a set, which has not come; EACH_MOST: others */
    EDGE_MORE,   /* nothing, if there are members that have not come */
    EDGE_LEAVE,  /* nothing, to the rule's end */
    EDGE_SHADOW, /* the least that must come: says that the rule can end, and is never taken */
    EDGE_TICK    /* nothing; the note counts one more */
} edge_kind;

typedef struct automaton_edge {
    int32_t next; /* next edge of the same node; -1: none */
    int32_t to;
    int32_t rule; /* rule that is called; EDGE_COUNT: which of the notes */
    uint8_t kind, low, high;
} automaton_edge;

/* Kinds of notes, which are taken while a rule is read: how often it was written, how many ticks
 * have come in it, or which members of a set. It is kept in the stack where the rule returns to, so
 * that what follows is not laid out for each number or order. */
typedef enum note_kind {
    NOTE_TIMES,  /* `rule`, which is never empty, from `least` to `most` times; then node `to` */
    NOTE_TICKS,  /* from `least` to `most` of them */
    NOTE_MEMBERS /* members of `required`, each of `all` at most once, any number of others */
} note_kind;

typedef struct automaton_note {
    note_kind kind;
    int32_t least, most; /* most: REPEAT_FOREVER for ticks alone */
    int32_t rule, to;
    uint64_t required, all; /* bits */
    bool others;
    int32_t hub; /* node to which members return */
} automaton_note;
enum { AUTOMATON_MOST_NOTES = 4 << 10 };

typedef struct automaton_rule {
    int32_t start, end;
    int32_t note; /* note of ticks or members; -1: none */
} automaton_rule;

typedef struct automaton {
    automaton_edge edges[AUTOMATON_MOST_EDGES];
    int32_t first[AUTOMATON_MOST_NODES]; /* edge of each node; -1: none */
    bool is_end[AUTOMATON_MOST_NODES];   /* ends of rules; it has no edges */
    bool is_cut[AUTOMATON_MOST_NODES];   /* a token usually ends there, inside of a text */
    automaton_rule rules[AUTOMATON_MOST_RULES];
    automaton_note notes[AUTOMATON_MOST_NOTES];
    int32_t n_edges, n_nodes, n_rules, n_notes;
    int32_t root; /* the rule that a whole text matches */
    /* Bytes that no edge distinguishes have the same class. */
    uint8_t class_of[256];
    int32_t n_classes;
} automaton;

/* scratch[automaton_scratch_bytes()] is used during the call. DREY_ERR_USAGE: a rule is used and
 * not defined, or begins with itself; the grammar is too large, or can never end. */
drey_status automaton_build(automaton *a, const grammar_rules *g, int32_t root, void *scratch,
                            drey_error *err);
size_t automaton_scratch_bytes(void);
/* Returns whether the last automaton had too many of something. */
static inline bool automaton_is_full(const automaton *a)
{
    return a->n_nodes == AUTOMATON_MOST_NODES || a->n_edges == AUTOMATON_MOST_EDGES ||
           a->n_rules == AUTOMATON_MOST_RULES || a->n_notes == AUTOMATON_MOST_NOTES;
}
