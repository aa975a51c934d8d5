/* The trees of the latest turns, for pictures: a ring of turns and a ring of their nodes.
 *
 *      turns | number, times, next, first node | ...        one per TURN_LOG_NODES nodes
 *      nodes |  turn 7's  |  turn 8's  |.|  turn 5's  | ...  a turn's nodes are one run
 *
 * A turn is kept as long as its nodes are. Memory is taken once. */
#pragma once

#include "base/arena.h"
#include "drey/drey_session.h"
#include "drey/traces.h"
#include "tree/accept.h"

typedef struct accepted accepted;
typedef struct token_tree token_tree;

enum { TURN_LOG_NODES = 4 }; /* plain decoding has one node per turn, drafting dozens */

typedef struct turn_record {
    drey_trace_turn turn; /* its nodes: NULL */
    int64_t first_node;   /* number among all that were ever added */
} turn_record;

/* Called for each turn that is added, whether it is kept or not. */
typedef struct turn_watch turn_watch;
struct turn_watch {
    void (*turn)(turn_watch *w, const token_tree *tree, const accepted *a);
};

typedef struct turn_log {
    drey_trace_node *nodes;   /* [n_nodes]: number i is at i % n_nodes */
    turn_record *turns;       /* [n_turns], in the same way */
    int32_t n_nodes, n_turns; /* 0: nothing is kept */
    int64_t nodes_added, turns_added;
    int64_t oldest;    /* the oldest turn that is not overwritten */
    int64_t text_turn; /* the text's first */
    int64_t since_ns;  /* the end of the last turn */
    turn_watch *watch; /* NULL: none */
} turn_log;

/* n_nodes: about how many to keep; 0: none. */
size_t turn_log_bytes(int32_t n_nodes);
void turn_log_init(turn_log *log, int32_t n_nodes, arena *a);
/* Adds a turn whose tokens have been chosen, before its tree moves. n_written of its tokens were
 * written; it ends at now_ns. */
void turn_log_add(turn_log *log, const token_tree *tree, const accepted *a, int64_t number,
                  int32_t position, int32_t n_written, int64_t now_ns);
/* A text begins to be decoded. */
void turn_log_begin(turn_log *log, int64_t now_ns);
/* n tokens of the text's timeline are left, the last of which is, or became, this one. Turns that
 * wrote removed tokens are shortened, or dropped if nothing of them is left. */
void turn_log_cut(turn_log *log, int32_t n, int32_t last);
void turn_log_visit(const turn_log *log, const drey_trace_visitor *visitor);
