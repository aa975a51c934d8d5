/* States of the target for a drafter that is a layer after it (draft_source.taps). */
#pragma once

#include "session/session.h"

/* Lets the pass keep the states of the group's rows, if the drafter wants them. */
void tapped_offer(drey_session *s, pass_group *group);
/* Hands those of a row of the group to the drafter: its token is final, at `position`, and `next`
 * follows it. */
void tapped_take(drey_session *s, const pass_group *group, int32_t row, int32_t position,
                 int32_t next);
