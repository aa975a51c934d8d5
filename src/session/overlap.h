/* Drafting while the target's pass waits for weights: the drafts continue to grow their sessions'
 * trees, beyond what the pass verifies (EdgeLLM III-D: provisional generation). First the masks of
 * grammars are made that the choices after the pass will need.
 *
 * The tree of a session under verification only gains nodes, after the others; the submitted ones
 * do not change. If a session's prompt is being read, its draft reads it as well. Errors of the
 * draft are ignored here; the next turn meets them again if they persist. */
#pragma once

#include "drey/drey_session.h"

typedef struct drey_session drey_session;
typedef struct model_pass model_pass;

typedef struct overlap_work {
    drey_session *session[DREY_MAX_SESSIONS]; /* [n]: those with something to draft */
    int32_t n;
    int32_t next;                           /* the session of the next step; they take turns */
    drey_session *bound[DREY_MAX_SESSIONS]; /* [n_bound]: those with a grammar */
    int32_t n_bound, next_node;             /* bound of the last of them: whose mask is next */
    int32_t n_expanded;                     /* nodes, during this wait */
    const model_pass *waits;                /* the pass, during this wait */
} overlap_work;

/* For one pass of these sessions. */
void overlap_begin(overlap_work *w, drey_session *const *sessions, int32_t n);
/* Drafts until the pass can continue. False: there is nothing to draft, or no time, and the caller
 * waits. It may leave a step unfinished, which overlap_finish or session_retry ends. */
bool overlap_fill(overlap_work *w, const model_pass *pass);
/* A session has left the pass; its step and chunk were given up. */
void overlap_drop(overlap_work *w, const drey_session *s);
/* The pass is over; `moved` is from tree_moves. The session's unfinished step, if there is one, is
 * completed if one of its nodes stays, and given up otherwise. */
void overlap_finish(drey_session *s, const int32_t *moved);
/* The pass is over: completes an unfinished chunk of a prompt. */
void overlap_end_chunk(drey_session *s);
/* Gives up that chunk. */
void overlap_give_up(drey_session *s);
