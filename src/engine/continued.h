/* Prompts of requests that `continues`: their last message begins the answer. */
#pragma once

#include "template/conversation.h"

/* Renders like chat_render_for: the text ends with what is begun, which is plain text.
 * request->chat_template has to be set. */
drey_status continued_render(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                             drey_error *err);
