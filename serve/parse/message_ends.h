/* Ends of a chat's messages in its prompt, so that an answer can say in which message the
 * prompt began to differ from what was known. */
#pragma once

#include "common/json_value.h"
#include "serve/text_out.h"
#include "serve/requests.h"

/* Fills t->parts for the ids of a conversation. A message whose text the template changed, or
 * that has none, has no known end. scratch is used for the time of the call. */
void message_ends_find(request *t, json_value *messages, const drey_model *model,
                       text_out *scratch);
/* The message in which the token at `at` is, or after which; -1: not known. */
int32_t message_ends_at(const request *t, int64_t at);
