/* What the drafts do while the target's pass waits for weights: they continue to grow their
 * sessions' trees, beyond what the pass verifies (EdgeLLM III-D: provisional generation).
 *
 * The tree of a session under verification only gains nodes, whose place in it does not change; the
 * submitted ones stay as they are. A session whose prompt is being read has its draft read
 * it as well. What the draft gets wrong costs nothing but its own time: its errors are forgotten
 * here, and met again by the next turn if they last. */
#ifndef DREY_SESSION_OVERLAP_H
#define DREY_SESSION_OVERLAP_H

#include "session/session.h"
#include "model/pass.h"

typedef struct overlap_work {
    drey_session *session[DREY_MAX_SESSIONS]; /* [n]: those that have something to draft */
    int32_t n;
    int32_t next;            /* whose turn it is: each has a step, then the next one */
    int32_t n_expanded;      /* nodes, in this gap */
    const model_pass *waits; /* the pass, in this gap */
} overlap_work;

/* For one pass of these sessions. */
void overlap_begin(overlap_work *w, drey_session *const *sessions, int32_t n);
/* Drafts until the pass can continue; false: there is nothing to draft, or no time, and the caller
 * waits. A step may be left under way: overlap_settle or session_retry end it. */
bool overlap_fill(overlap_work *w, const model_pass *pass);
/* A session has left the pass, its step and chunk were given up. */
void overlap_drop(overlap_work *w, const drey_session *s);
/* The pass is over; `moved` as tree_moves has it. The session's step under way, if there is one, is
 * finished where one of its nodes stays, and given up otherwise. */
void overlap_settle(drey_session *s, const int32_t *moved);
/* The pass is over: a chunk of a prompt that is under way is finished. */
void overlap_end_chunk(drey_session *s);
/* Gives it up. */
void overlap_give_up(drey_session *s);

#endif
