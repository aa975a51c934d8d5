/* Early exits of a session: its passes stop where their tokens are decided (SpecEE, arXiv 2504.08850),
 * and later passes carry what was left undone to the end (model/deferred.h).
 *
 * Between two layers of a watched pass the logits of a few candidates go to a predictor, at each node
 * of the path from the root along the likeliest of them: the rest of the tree will hardly matter. Such
 * a path is one token, a hyper-token (section 6): once each of its nodes has scored, the whole head is
 * computed for all of them, and where it agrees the pass stops. So a path leaves with the rearmost of
 * its nodes, and looking costs what its nodes cost.
 *
 *      root o--- a o--- b o        root and b have scored, a has not: the pass goes on
 *             \- c o               a scores: whole heads of root, a, b say a, b, d. It stops here:
 *                                  a, b and d join the text, three rows are deferred
 *
 * A pass that is not stopped completes all deferred rows, so that the target's own tokens behind them
 * are known. In DREY_EXIT_EXACT tokens that left are unverified until then: they stand in the timeline,
 * but nobody has got them. The first that differs is replaced, and what stands behind it goes:
 *
 *      timeline | verified ... | t1 t2 t3 t4 (the root)      deferred: the rows before t1 .. t4
 *      the target says t1 t2 u: verified are ... t1 t2 u, and u is the root
 *
 * A pass goes to its end where the deferred rows would get too many, where it is shared with other
 * sessions, in `exact` where the text could end, and where a token that left would end it. What
 * decides is the same on every machine; in DREY_EXIT_FAST, whose text depends on it, nothing that
 * drafts may depend on time either. */
#ifndef DREY_SESSION_EXITS_H
#define DREY_SESSION_EXITS_H

#include "session/session.h"

/* A deferred row is a row of every later pass from its layer on: eight with the pass's own. A path of
 * a tree has several. */
enum { EXITS_MOST_SINGLE = 7, EXITS_MOST_PATH = 15 };

/* What exits want of an engine; all do nothing, and take nothing, where exits are off.
 * DREY_ERR_USAGE: there are no predictors, or they are for another drafter; the errors of exit_open. */
drey_status exits_open(drey_engine *e, drey_error *err);
/* Most deferred rows of a session, and of a pass. */
int32_t exits_most_deferred(const drey_engine_options *o);
/* Layers that a pass goes through, in the mean over the texts that the predictors were trained on and
 * the passes that complete what left; 0: as good as all. */
double exits_usual_layers(const drey_engine *e);
/* Memory of a session, its deferred rows not counted. */
size_t exits_bytes(const drey_engine *e);
void exits_init(drey_session *s);
/* A text begins. */
void exits_begin(drey_session *s);

/* Whether tokens that left are shown to nobody before they are compared. */
static inline bool exits_are_exact(const drey_session *s)
{
    return s->exits && s->engine->options.exit == DREY_EXIT_EXACT;
}

/* The pass with this group begins; alone: no other session has rows in it. */
void exits_watch(drey_session *s, const pass_group *group, bool alone);
/* Behind each layer of the pass. True: it is to be stopped, and s->accepted is what it found. */
bool exits_look(drey_session *s, model_pass *pass);
/* The pass was stopped so. */
static inline bool exits_stopped(const drey_session *s)
{
    return s->exits && s->exits->stopped > 0;
}
/* It went to its end instead: what had left is compared, and in `exact` handed out. False: there is
 * no turn to take, because a token was replaced, or one of them ended the text. */
bool exits_settle(drey_session *s, const pass_group *group);
/* The turn has found n tokens. */
void exits_count(drey_session *s, int32_t n);
/* The text ends: what is deferred is forgotten, and tokens that nobody got. */
void exits_drop(drey_session *s);
bool exits_are_valid(const drey_session *s);

#endif
