/* What the files that write grammars share: see reply_grammar.c. */
#pragma once

#include "reply/reply_forms.h"

#include <stdio.h>

typedef struct writing {
    FILE *out;
    const drey_reply_form *form;
    const reply_family *f;
    const reply_thinking *t;
} writing;

/* ` word"text"`, with what quotes need; nothing for an empty text. */
void writing_quoted(FILE *out, const char *word, const char *text, size_t n);
/* A form's text; name and number: of the tool. */
void writing_pattern(const writing *w, const char *pattern, const char *name, int32_t tool);
/* The same as words that a text must not contain: a mark as it is written. */
void writing_word(FILE *out, const char *mark);
bool writing_allows(const drey_reply_options *o, const json_value *function);
/* The text is longer than a grammar may be and will be refused: no more of it need be written. */
bool writing_full(const writing *w);

/* value_grammar.c. The rule arguments-TOOL, and those that it needs. */
drey_status writing_values(const writing *w, const json_value *function, int32_t tool, bool loose,
                           drey_error *err);

/* channel_grammar.c. What the rules root and answer consist of, with further rules; a call. */
void writing_channels(const writing *w);
void writing_channel_answer(const writing *w, bool schema);
void writing_channel_call(const writing *w, const char *name, int32_t tool);
