/* The rules of pre-tokenizers and the names that files have for them.
 *
 * A rule is a list of steps. Each divides every piece that the step before left: into the parts
 * that its expression matches, and what is between them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PRETOKENIZER_STEPS = 6, PRETOKENIZER_EXPRESSION_BYTES = 4096 };

typedef struct split_step {
    /* Expression of the model's tokenizer.json, but in ASCII: controls are \r, \n and so on, other
     * characters \x{HEX}. NULL: there are no more steps. */
    const char *expression;
    /* Compiled instead, where PCRE2 has another syntax or would need more than linear time;
     * NULL: the expression. */
    const char *compiled;
    bool joins_next; /* a match stays together with the text up to the next match */
    bool thirds;     /* a match is cut into three characters each, counted from its end */
} split_step;

typedef struct pretokenizer_family {
    const char *name; /* as converters write it */
    const split_step *steps;
    bool ignore_merges; /* a word that is a token as a whole is not merged (Llama 3) */
    bool wants_bos;     /* used if the file does not say */
} pretokenizer_family;

/* NULL: unknown. */
const pretokenizer_family *pretokenizer_find(const char *name, size_t n_bytes);
/* The known name that begins most alike; NULL: none does. */
const char *pretokenizer_like(const char *name, size_t n_bytes);
/* Returns why a name is not a rule here: the kind of tokenizer that it belongs to; NULL: not
 * known. */
const char *pretokenizer_other(const char *name, size_t n_bytes);
/* GPT-2's expression. */
extern const char pretokenizer_gpt2[];
/* The name for steps [PRETOKENIZER_STEPS], of which only `expression` and `joins_next` count; NULL:
 * no rule has them. */
const char *pretokenizer_name_of(const split_step *steps, bool ignore_merges);
