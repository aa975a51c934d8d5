/* A door for those who measure and train with a session: they use this header of the folder alone.
 *
 * Between texts the target runs passes of the caller's own (model/pass.h) on the session's cache,
 * whose committed positions then need not be the timeline's: drey_session_reset ends that. */
#ifndef DREY_SESSION_SESSION_PROBE_H
#define DREY_SESSION_SESSION_PROBE_H

#include "engine/engine.h"
#include "session/turn_log.h"

/* Borrowed as long as the session is open, as all that follows. */
drey_engine *probe_engine(const drey_session *s);
/* Passes of the target: rows, logits and hidden states. Its `kv` is the session's cache. */
runner *probe_target(drey_session *s);
/* Gives the sampler these settings, until the next text; DREY_ERR_USAGE: sampler_init's. */
drey_status probe_settings(drey_session *s, const drey_sampling *settings, drey_error *err);
sampler *probe_sampler(drey_session *s);
/* NULL: nothing drafts. Its steps are the caller's between texts, and between two turns of a text
 * if probe_redraft follows. */
drafter *probe_drafter(const drey_session *s);
/* The drafter begins with the timeline as it is, and the tree is its root. */
drey_status probe_redraft(drey_session *s, drey_error *err);
/* A text is written, and its prompt has been read. */
bool probe_decodes(const drey_session *s);
/* NULL: nobody watches. */
void probe_watch(drey_session *s, turn_watch *watch);

#endif
