/* Early exits of a session, an observer of its passes: passes stop when their tokens are decided
 * (SpecEE, arXiv 2504.08850), and later passes complete the rows that were left (model/deferred.h).
 *
 * Between two layers of a watched pass, a predictor gets the logits of a few candidates at each
 * submitted node: of an inner node what its drafter guessed, of a leaf what is known without a step
 * (drafter_class.peek) or was drafted since. Each path from the root to a leaf, or to where the
 * likeliest candidate is no node, is treated as one token, a hyper-token (section 6): after each of
 * its nodes has scored, the whole head is computed for all of them, and if it agrees the pass
 * stops. If the heads choose another path, that one leaves if its nodes have scored. So a path
 * leaves with the last of its nodes.
 *
 *      root o--- a o--- b o        root and b have scored, a has not: the pass continues
 *             \- c o               a scores: whole heads of root, a, b say a, b, d. It stops here:
 *                                  a, b and d join the text, three rows are deferred
 *
 * A pass that is not stopped completes all deferred rows, so that the target's own tokens after
 * them are known. In DREY_EXIT_EXACT tokens that left are unverified until then: they are in the
 * timeline, but the caller has not got them. The first one that differs is replaced, and the tokens
 * after it are removed:
 *
 *      timeline | verified ... | t1 t2 t3 t4 (the root)      deferred: the rows before t1 .. t4
 *      the target says t1 t2 u: verified are ... t1 t2 u, and u is the root
 *
 * A pass goes to its end if there would be too many deferred rows, if it is shared with other
 * sessions, in `exact` if the text could end, and if a token that left would end it. These
 * decisions are the same on every machine. In DREY_EXIT_FAST the text depends on them, so there
 * drafting must not depend on time either (drafting_may_be_timed). */
#pragma once

#include <assert.h>

#include "exit/exit.h"
#include "session/pass_observer.h"
#include "session/session.h"

/* A row of a watched pass. */
typedef struct watched_row {
    int32_t node;
    exit_features features; /* n 0: nothing has guessed yet what follows */
    int64_t ids[EXIT_CANDIDATES];
    float logits[EXIT_CANDIDATES]; /* at the last look */
    bool known_free;               /* candidates without a step: drafted ones replace them */
    bool ready;                    /* has scored, and no whole head has differed since */
    const float *head;             /* its whole logits; NULL: not computed after this layer */
    const float *hidden;           /* the normed state that they were computed from */
} watched_row;

typedef struct session_exits {
    pass_observer base;
    exit_schedule schedule;
    watched_row row[TREE_MAX_ROWS]; /* [n_rows], as in the pass; n_rows 0: not watched */
    pass_look look[TREE_MAX_ROWS];
    int32_t n_rows;
    drey_exits count;
    int64_t n_layers_run; /* for its tokens */
    uint64_t vain_before; /* bytes, when the text began */
} session_exits;
static_assert(sizeof(session_exits) <= EXIT_SESSION_BYTES, "plans count a session's exits");

static inline session_exits *exits_of(const drey_session *s)
{
    return (session_exits *)s->observer;
}

/* Makes exits the session's observer; does nothing if they are off. */
void exits_init(drey_session *s);

/* The observer's functions, in exit_finish.c. */
bool exits_finish(drey_session *s, const pass_group *group);
void exits_count(drey_session *s, int32_t n);
