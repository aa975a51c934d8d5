/* The draft that goes with a model of a folder, without measuring anything. */
#pragma once

#include "drey/drey_engine.h"

#include <limits.h>

/* Options of a text of usual length; model: borrowed. */
void next_draft_options(drey_engine_options *o, const drey_model *model);
/* Writes what -d auto takes for the model in a file: the name of a model next to it, without its
 * end, or the drafter whose file is next to it; "" where neither drafts. */
void next_draft_name(const char *path, char out[NAME_MAX + 1]);
