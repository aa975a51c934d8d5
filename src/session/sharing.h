/* What sessions that share passes decide together: who drafts what, how many rows of prompts go
 * with the trees, and what turns cost, which the engine follows for all of them. */
#ifndef DREY_SESSION_SHARING_H
#define DREY_SESSION_SHARING_H

#include "session/session.h"

/* Whether times are measured: not where no measurement may change the text. */
bool sharing_measures(const drey_engine *e);

/* Grows the trees of the sessions, which are in DECODE, and marks what is submitted: `most` drafted
 * nodes together. n_reading others read prompts in the same pass. Drafts that have still to read do
 * so before; in shared passes only where drafting promises to pay, and about as long as a pass
 * takes, and those that are not ready draft nothing. Fails only where the draft's reads do; it may
 * be called again. n may be 0. */
drey_status sharing_draft(drey_session *const *sessions, int32_t n, int32_t n_reading, int32_t most,
                          drey_error *err);

/* Rows of prompts for the next pass, rows[i] of sessions[i], which are n in PROMPT: at least one
 * each, `room` together at most, room >= n. With n_rows rows of texts the turn takes about twice
 * the time that it takes without, and no longer. A half is dealt evenly, so that nobody waits for a
 * long prompt of others; the rest goes to those who need the fewest, who begin to write soonest. */
void sharing_prompt_rows(drey_session *const *sessions, int32_t n, int32_t n_rows, int32_t room,
                         int32_t *rows);

typedef struct pass_watch { /* when a pass began */
    int64_t begun_ns, waited_ns;
} pass_watch;
void sharing_pass_begins(drey_engine *e, pass_watch *w);
/* A pass of texts is over. n_rows 0: some left on the way, and its time says nothing. alone: it is
 * one session's. */
void sharing_pass_ends(drey_engine *e, const pass_watch *w, int32_t n_rows, bool alone);

#endif
