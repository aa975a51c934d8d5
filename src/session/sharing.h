/* Common decisions of sessions that share passes: what is drafted for which of them, and how many
 * rows of prompts a pass takes besides the trees. The engine records the cost of turns for all of
 * them. */
#pragma once

#include "session/session.h"

/* Returns whether times are measured: not if no measurement may change the text. */
bool sharing_measures(const drey_engine *e);

/* Grows the trees of the sessions, which are in DECODE, and marks what is submitted: at most `most`
 * drafted nodes in all. n_reading other sessions read prompts in the same pass. Drafts that still
 * have to read do so before, for about the time of a pass, and only if drafting promises to pay;
 * those that are not ready then draft nothing but what needs no reading. Fails only if the draft's
 * reads fail; it may be called again. n may be 0. */
drey_status sharing_draft(drey_session *const *sessions, int32_t n, int32_t n_reading, int32_t most,
                          drey_error *err);

/* Rows of prompts for the next pass: rows[i] for sessions[i], n sessions in PROMPT. At least one
 * each, at most `room` in all, room >= n. With n_rows rows of texts, the turn takes at most about
 * twice its time without prompts. Half of the rows is shared evenly, so that no session waits for
 * long prompts of others; the rest goes to the sessions with the fewest rows left, which begin to
 * write soonest. */
void sharing_prompt_rows(drey_session *const *sessions, int32_t n, int32_t n_rows, int32_t room,
                         int32_t *rows);

typedef struct pass_watch { /* when a pass began */
    int64_t begun_ns, waited_ns;
} pass_watch;
void sharing_pass_begins(drey_engine *e, pass_watch *w);
/* A pass of texts is over. n_rows 0: some sessions left it, so its time says nothing. alone: it had
 * only one session. */
void sharing_pass_ends(drey_engine *e, const pass_watch *w, int32_t n_rows, bool alone);
