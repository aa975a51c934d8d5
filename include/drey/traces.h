/* The entries of a trace: see drey_session_trace. */
#ifndef DREY_TRACES_H
#define DREY_TRACES_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times are from a monotonic clock. */
typedef struct drey_trace_span {
    int64_t t0_ns, t1_ns;
    /* "load" (the pass that reads the weights), "prompt", "draft", "verify", "provisional", and,
     * within those, "stall" (waiting for reads), "ranks" (waiting for other ranks) and "experts"
     * (those of one layer that a mixture's pass multiplies with at a time, unless all of them have
     * room in memory); "read" and "read draft", of which several run at a time. A constant. */
    const char *what;
    int64_t amount; /* rows of a pass, nodes drafted, bytes read, experts */
    int32_t layer;  /* layer of the experts; -1: it has none */
    int32_t expert; /* expert that is read; -1: it is none */
    int32_t n_read; /* experts of "experts" that were not in memory */
} drey_trace_span;

typedef struct drey_trace_node {
    int32_t token;
    int32_t parent; /* index of a node before this one; -1 for the root, a token written before */
    float confidence;
    uint8_t rank; /* among the draft's guesses, the first being 1; 0: none of them, or the root */
    bool submitted, accepted;
    bool reserved; /* false */
} drey_trace_node;

typedef struct drey_trace_turn {
    int64_t number;       /* index among the text's turns, the first being 0 */
    int64_t t0_ns, t1_ns; /* from the end of the previous turn to its own */
    int32_t position;     /* position of the root in the timeline */
    int32_t next;         /* the target's own token after the accepted ones */
    int32_t n_written;    /* accepted tokens and `next`, as far as the text took them */
    int32_t n_nodes;
    const drey_trace_node *nodes; /* [n_nodes], borrowed for the call; the root is the first */
} drey_trace_turn;

typedef struct drey_trace_visitor { /* a NULL function is not called */
    void (*span)(void *user, const drey_trace_span *span);
    void (*turn)(void *user, const drey_trace_turn *turn);
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_trace_visitor;

#ifdef __cplusplus
}
#endif
#endif
