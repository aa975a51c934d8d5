/* POST /slots/ID?action=save|restore|erase: sessions in files, as llama.cpp's server has it. */
#pragma once

#include "serve/answer/answer.h"
#include "serve/net/http.h"

/* Fills the request for the session `id`, the rest of the path. */
bool parse_slot(request *t, http_span id, http_span query, const json_value *body,
                const serve_options *o, refusal *r);
extern const serializer answer_slot;
