/* Reading a prompt: the target in chunks, and the draft while the target waits, or afterwards. */
#pragma once

#include "drey/drey_session.h"

typedef struct drey_session drey_session;
typedef struct pass_group pass_group;
typedef struct pass_row pass_row;

typedef struct progress_line { /* the text on which a progress callback reports */
    const drey_engine *engine;
    drey_progress what;
    uint64_t total;
} progress_line;

/* Returns whether the target has to read before a turn. If only the root has to be computed, a turn
 * does that, with a tree below it. */
bool prompt_left(const drey_session *s);
/* Lets the encoders read the session's input, if they have not. The whole of it is one pass. */
drey_status session_read_input(drey_session *s, drey_error *err);
/* Commits what is known of the timeline after what the session's cache has, but not its last
 * token: rows that another session has, and kept ones (store/prefix_store.h). All are equal, bit by
 * bit, to what a pass would compute. Fills the statistics. */
void prompt_take_known(drey_session *s);
/* Keeps what the session has computed. is_end: its text is over. */
void prompt_keep(drey_session *s, bool is_end);
/* Gives the prompt to the draft, so that it can read it while the target's pass waits
 * (overlap.h). */
drey_status prompt_begin(drey_session *s, drey_error *err);
/* The next chunk, at most max_rows of it. */
void prompt_offer(drey_session *s, pass_row *rows, int32_t max_rows, pass_group *group);
/* After the pass; logits as group->logits. The last chunk's are the first token's. */
void prompt_take(drey_session *s, const pass_group *group);
int32_t prompt_rows_left(const drey_session *s);
/* Returns whether the draft still has to read before it can guess. */
bool prompt_unread(const drey_session *s);
/* The target has read everything: the draft reads it as well, and decoding begins. If other
 * sessions would wait for that (shared passes), or the reader for long, the draft reads later, and
 * drafts from then on. */
drey_status prompt_end(drey_session *s, bool shared, drey_error *err);
/* The runners' `loading`; user is a progress_line. */
void prompt_report(void *user, uint64_t done);
