/* Gives the target's likely tokens to the drafter. */
#ifndef DREY_SESSION_FEEDBACK_H
#define DREY_SESSION_FEEDBACK_H

#include "drey/drey.h"
#include "model/model.h"

/* For each submitted node of the turn, if the drafter uses that. */
void feedback_give(drey_session *s, const pass_group *group);

#endif
