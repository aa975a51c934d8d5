/* The form that a request asks its text to have, in OpenAI's, llama.cpp's and vLLM's words. */
#pragma once

#include "serve/parse/parse_request.h"

/* Keeps the places that the form of the text does not hold, for the answer's head. */
void request_not_held(request *t, const char *places);
/* Fills t->grammar, if one is asked for, and tries it out: nothing is computed for what is refused.
 */
bool parse_grammar(request *t, const json_value *body, const serve_options *o, refusal *r);
