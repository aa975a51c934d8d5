/* Declarations that the files that write grammars share: see reply_grammar.c. */
#pragma once

#include "reply/reply_forms.h"

#include <stdio.h>

typedef struct writing {
    FILE *out;
    const reply_form *form;
    const reply_family *f;
    const reply_thinking *t;
    const bool *optional; /* flags of the tools: there may be no arguments */
} writing;

/* ` word"text"`, with what quotes need; nothing for an empty text. */
void writing_quoted(FILE *out, const char *word, const char *text, size_t n);
/* A text of the form as it stands, in which some parts may be special tokens. */
void writing_text(const writing *w, const char *text, size_t n);
/* A form's text; name and number: of the tool. */
void writing_pattern(const writing *w, const char *pattern, const char *name, int32_t tool);
bool writing_allows(const drey_reply_options *o, const json_value *function);
/* The answer itself may begin with a call's object. */
bool writing_bare(const writing *w);
/* The text is longer than a grammar may be and will be refused: no more of it need be written. */
bool writing_full(const writing *w);

/* text_grammar.c. The rules content and thought, as far as they are needed. */
void writing_texts(const writing *w, const reply_tools *tools, const drey_reply_options *options);
/* One of some names, of which each is the whole or, where they are many, its beginning: `rest` is
 * left out then. */
typedef struct name_list {
    const char *of[2 * REPLY_MOST_TOOLS];
    size_t n_of[2 * REPLY_MOST_TOOLS];
    int32_t n;
} name_list;
void writing_names(const writing *w, const name_list *names, const char *rest);

/* value_grammar.c. The rule arguments-TOOL, and those that it needs; before them once what all of
 * them use; the call around it. */
drey_status writing_values(const writing *w, const json_value *function, int32_t tool, bool loose,
                           drey_error *err);
void writing_value_text(const writing *w, const reply_tools *tools);
void writing_value_call(const writing *w, const char *name, int32_t tool);

/* ` %text SCHEMA`, where the schema of a text says how texts are; false: it does not. */
bool writing_text_schema(const writing *w, const json_value *schema);

/* literal_grammar.c. The rule arguments-TOOL; before it once what all of them use. */
drey_status writing_literal(const writing *w, const json_value *function, int32_t tool, bool loose,
                            drey_error *err);
void writing_literal_rules(const writing *w);

/* channel_grammar.c. What the rules root and answer consist of, with further rules; a call. */
void writing_channels(const writing *w);
void writing_channel_answer(const writing *w, bool schema);
void writing_channel_call(const writing *w, const char *name, int32_t tool);
