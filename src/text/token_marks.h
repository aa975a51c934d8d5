/* Marks are tokens that are no text: ends of texts and turns, roles, holes to fill. Converters
 * sometimes give them the type of text, or give no types at all. Then they would be read, and
 * shown, as the characters they are spelled with. */
#pragma once

#include "text/vocab.h"

/* Names that many families' vocabularies have; the last one is NULL. */
typedef struct token_name {
    const char *name;
    bool is_mark; /* no text contains it as one token, whatever its type in the file */
    bool ends;    /* it ends a text, if it is a control or user-defined token */
} token_name;
extern const token_name token_names[];

/* Corrects the types of tokens that have to be marks:
 *   - those that a key names as an end, a beginning, padding or a hole, if they look like a mark
 *   - those that families name so; <|...|> and <｜...｜>
 *   - of byte-level BPE, what looks like a mark and is no merge's result: it was added. It becomes
 *     a user-defined token.
 * </s>, which is a tag of HTML as well, stays text if no key names it. from_merges: [n_tokens],
 * which tokens are the result of a merge; NULL: there are no merges. */
void marks_resolve(vocab *v, const gguf *g, const bool *from_merges);
