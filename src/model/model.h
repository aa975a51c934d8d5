/* Decoder-only models, for other folders.
 *
 *   arch.h       what a file's model is: its architecture as data, its shape
 *   layout.h     its tensors, bound to their roles
 *   kv.h         the keys and values of one timeline: committed positions, pending rows
 *   kv_file.h    their first positions in a file, where memory has no room for all
 *   workspace.h  the buffers of a pass
 *   pass.h       the pass: rows (token, parent) in, logits out
 *   deferred.h   rows whose pass was stopped before the last layer
 *
 * All of them take their memory from an arena of the caller. Letters in shapes ([B][D]) are those
 * of arch.h. */
#pragma once

#include "model/arch.h"
#include "model/deferred.h"
#include "model/kv.h"
#include "model/kv_file.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/workspace.h"
