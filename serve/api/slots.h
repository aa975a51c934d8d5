/* POST /slots/ID?action=save|restore|erase: sessions in files, as llama.cpp's server has it. */
#pragma once

#include "serve/answer/answer.h"
#include "serve/net/http.h"

/* Fills the request for the session `id`, the rest of the path. */
bool ask_slot(request *t, http_part id, http_part query, const json_value *body,
              const serve_options *o, refusal *r);
extern const answer_form answer_slot;
