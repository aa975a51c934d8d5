/* Vectors of texts: /v1/embeddings as OpenAI has it, /embedding and /embeddings as llama.cpp's
 * server does. */
#pragma once

#include "serve/answer/answer.h"

/* Fills the request; native: in llama.cpp's form. */
bool parse_embedding(request *t, const json_value *body, bool native, const serve_options *o,
                     refusal *r);
extern const serializer answer_embedding;
