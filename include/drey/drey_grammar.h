/* Grammars: texts that have a form, as JSON of a schema. */
#ifndef DREY_DREY_GRAMMAR_H
#define DREY_DREY_GRAMMAR_H

#include "drey/drey_model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum drey_grammar_kind {
    DREY_GRAMMAR_GBNF = 0,        /* llama.cpp's notation, from its rule "root" on */
    DREY_GRAMMAR_JSON_SCHEMA = 1, /* JSON of this schema; {"type": "object"}: any object */
    DREY_GRAMMAR_REGEX = 2,       /* texts that match the regular expression as a whole */
    DREY_GRAMMAR_CHOICES = 3,     /* a JSON array of texts, one of which is written */
    DREY_GRAMMAR_STRICT = 256     /* added to one of these: what is not held is refused */
} drey_grammar_kind;

/* Grammar of a text. It can be given to one text after the other, of sessions whose target is
 * `model` (drey_generate_options.grammar). */
typedef struct drey_grammar drey_grammar;

/* Reads text[0..n_bytes). The model is borrowed. The first call for a model sorts its vocabulary;
 * after it, several threads may call this. DREY_ERR_USAGE says what is wrong with the text, as an
 * undefined rule, a rule that begins with itself, a grammar that no text can satisfy, or one that
 * is too large; DREY_ERR_MEMORY. */
DREY_API drey_status drey_grammar_open(drey_grammar **out, drey_model *model,
                                       drey_grammar_kind kind, const char *text, size_t n_bytes,
                                       drey_error *err);
/* Returns the places of what it does not hold, words of its schemas that no grammar can, such as
 * "uniqueItems" of any numbers, with ", " between them ("/properties/ids/uniqueItems"), members in
 * the order of their object. Texts may violate those. "": it holds all. Bytes that an HTTP field
 * cannot have are written as %41. The grammar's. */
DREY_API const char *drey_grammar_not_held(const drey_grammar *grammar);
/* After the text that it was given to has ended. Accepts NULL; nulls the pointer, which as
 * drey_generate_options.grammar would be any text. */
DREY_API void drey_grammar_close(drey_grammar **grammar);
/* Returns what n grammars of this model take in all, at most, with its vocabulary: add it to the
 * engine's held_bytes. */
DREY_API uint64_t drey_grammar_bytes(const drey_model *model, int32_t n);

#ifdef __cplusplus
}
#endif
#endif
