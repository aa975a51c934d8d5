/* Models and their passes, for other folders.
 *
 *   arch.h       what a file's model is: its architecture as data, its shape
 *   layout.h     its tensors, bound to their roles
 *   workspace.h  the buffers of a pass
 *   pass_program.h  its steps, which the blocks of layers write
 *   pass.h       the pass: rows (token, parent) in, logits out
 *   deferred.h   rows whose pass was stopped before the last layer
 *
 * All of them take their memory from an arena of the caller. Letters in shapes ([B][D]) are those
 * of arch.h. */
#pragma once

#include "model/arch.h"
#include "model/deferred.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/workspace.h"
