/* Access to a session for measuring and training: code outside that does so uses only this header
 * of the folder.
 *
 * Between texts the target runs the caller's passes (model/pass.h) on the session's cache, whose
 * committed positions then need not be the timeline's: drey_session_reset ends that. */
#pragma once

#include "drey/drey_model.h"
#include "engine/engine.h"
#include "tree/turn_log.h"

typedef struct drafter drafter;
typedef struct drey_sampling drey_sampling;
typedef struct drey_session drey_session;
typedef struct pass_group pass_group;
typedef struct runner runner;
typedef struct sampler sampler;
typedef struct turn_watch turn_watch;

/* Borrowed while the session is open, as are all others here. */
drey_engine *probe_engine(const drey_session *s);
/* Passes of the target: rows, logits and hidden states. Its `kv` is the session's cache. */
runner *probe_target(drey_session *s);
/* Gives the sampler these settings, until the next text; DREY_ERR_USAGE: as sampler_init. */
drey_status probe_settings(drey_session *s, const drey_sampling *settings, drey_error *err);
sampler *probe_sampler(drey_session *s);
/* NULL: there is none. The caller may run its steps between texts, and between two turns of a text
 * if it then calls probe_redraft. */
drafter *probe_drafter(const drey_session *s);
/* For such passes of the target: lets one keep the states that the drafter reads, and hands those
 * of a row, whose token is at `position`, to it. Without such a drafter nothing. */
void probe_offer_taps(drey_session *s, pass_group *group);
void probe_take_taps(drey_session *s, const pass_group *group, int32_t row, int32_t position,
                     int32_t next);
/* The drafter begins with the current timeline, and the tree is only its root. */
drey_status probe_redraft(drey_session *s, drey_error *err);
/* Returns whether a text is being written whose prompt has been read. */
bool probe_decodes(const drey_session *s);
/* NULL: ends watching. */
void probe_watch(drey_session *s, turn_watch *watch);
