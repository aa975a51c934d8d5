/* Parts of a conversation that a model was trained with and its template leaves out. */
#pragma once

#include "template/jinja_run.h"

/* Adds the calls of earlier answers to their contents, where the template writes none. */
void left_out_calls(heap *r, const char *chat_template, value messages);
/* The text that a prompt is to end with, where the template ends it after an answer with calls as
 * text[0..n); "": nothing is left out. */
const char *left_out_turn(const char *chat_template, const char *text, size_t n);
