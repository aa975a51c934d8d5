/* Ends of a tokenizer's tokens in the texts of a grammar. */
#pragma once

typedef struct grammar_rules grammar_rules;
typedef struct tokenizer tokenizer;

/* Sets cuts[] of the bytes that end a token inside of a text. What it cannot encode has none. */
void token_cuts_mark(grammar_rules *g, const tokenizer *t);
