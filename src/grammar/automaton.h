/* A grammar as an automaton over bytes: each rule is a graph from its start to its end, whose edges
 * take a byte of a range, nothing, or a whole rule. A rule that is called returns to where the edge
 * leads, so that a place in a text is a node and a stack of nodes to return to (states.h).
 *
 *     a list:   start =="["==> . ==item==> . =="]"==> end
 *                              ^           |
 *                              +===","=====+
 *
 * A rule may keep a note of what has come in it (automaton_note).
 *
 * A call whose edge leads to its own rule's end needs no return: repetition by recursion at a
 * rule's end does not deepen the stack. Characters are their UTF-8 bytes. Nodes from which no end
 * can be reached have no edges that lead to them: each prefix that the automaton accepts is the
 * beginning of a text of the grammar. */
#pragma once

#include "grammar/grammar_rules.h"

enum { AUTOMATON_MOST_NODES = 32 << 10, AUTOMATON_MOST_EDGES = 56 << 10 };
enum { AUTOMATON_MOST_RULES = RULES_MOST_RULES + 4096 }; /* the grammar's, and character classes */

typedef enum edge_kind {
    EDGE_BYTES,
    EDGE_NOTHING,
    EDGE_RULE,
    /* In rules with a note: */
    EDGE_MEMBER, /* a whole rule: member `low` of a set, which has not come; EACH_MOST: others */
    EDGE_MORE,   /* nothing, if there are members that have not come */
    EDGE_LEAVE,  /* nothing, to the rule's end */
    EDGE_SHADOW, /* what has to come at least: says that the rule can end, and is never taken */
    EDGE_TICK    /* nothing; the note counts one more */
} edge_kind;

typedef struct automaton_edge {
    int32_t next; /* of the same node; -1: none */
    int32_t to;
    int32_t rule; /* EDGE_RULE */
    uint8_t kind, low, high;
} automaton_edge;

/* What is noted while a rule is read, and has to be right at its end: which members of a set have
 * come, or how many ticks. It is kept in the stack where the rule returns to, so that what follows
 * is not laid out for each order or number. */
typedef struct automaton_note {
    bool counts;
    int32_t least, most;    /* ticks */
    uint64_t required, all; /* members */
    bool others;
    int32_t hub; /* where members return to */
} automaton_note;
enum { AUTOMATON_MOST_NOTES = 4 << 10 };

typedef struct automaton_rule {
    int32_t start, end;
    int32_t note; /* -1: none */
} automaton_rule;

typedef struct automaton {
    automaton_edge edges[AUTOMATON_MOST_EDGES];
    int32_t first[AUTOMATON_MOST_NODES]; /* edge of each node; -1: none */
    bool is_end[AUTOMATON_MOST_NODES];   /* of a rule; it has no edges */
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
