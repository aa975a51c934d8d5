/* A step: one pass of the target for all sessions that take part. */
#pragma once

#include "drey/drey_session.h"

/* One target pass for n sessions that are writing: each offers rows, one pass computes all of them,
 * each takes its logits. After an error none has advanced, and the step may be repeated.
 * DREY_ERR_IO; DREY_ERR_CANCELLED only for n = 1. */
drey_status sessions_step(drey_session *const *sessions, int32_t n, drey_error *err);
