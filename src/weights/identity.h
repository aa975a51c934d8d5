/* Identity of a model file: a number that a copy of it shares and another model does not.
 *
 * Of each part of the model its size, all before its first tensor and pages spread over the tensors
 * are hashed, as for a sidecar; not when it was changed. */
#pragma once

#include "drey/drey_model.h"

typedef struct gguf gguf;

/* Reads some MiB of the model's files. DREY_ERR_IO, DREY_ERR_MEMORY. */
drey_status model_identity(const gguf *g, uint64_t *identity, drey_error *err);
