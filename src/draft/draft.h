/* Drafters, which guess the tokens that come next, for other folders.
 *
 *   drafter_kind.h    what engine, plan and command ask of a drafter: one row of a table
 *   drafter.h         a session's drafter at work: begin, expand, reroot
 *   model_drafter.h   a small model, or the target with some bits of its weights
 *   medusa_drafter.h  heads on the target's hidden state (medusa_heads.h: their file, their step)
 *   eagle_drafter.h   a layer after the target, with its own keys and values
 *   lookup_drafter.h  what followed the same tokens earlier in the text
 *   blend.h           lookup next to another drafter
 *
 * A drafter is in memory of its session. It writes its guesses to the nodes of a tree that the
 * caller owns. */
#pragma once

#include "draft/blend.h"
#include "draft/drafter.h"
#include "draft/drafter_kind.h"
#include "draft/eagle_drafter.h"
#include "draft/lookup_drafter.h"
#include "draft/medusa_drafter.h"
#include "draft/medusa_heads.h"
#include "draft/model_drafter.h"
