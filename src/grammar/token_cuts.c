/* Ends of tokens in the texts of a grammar. A certain text can be written with many tokens. A model
 * nearly always writes those of its tokenizer, and guesses of others are lost. It is done while a
 * grammar is opened, because encoding allocates. */
#include "grammar/token_cuts.h"

#include <string.h>

#include "grammar/grammar_rules.h"
#include "grammar/vocab_trie.h"
#include "text/tokenizer.h"

enum { MOST_BYTES = 256 };

/* After a quote that begins the text a new token begins: usually it belongs to the blank or bracket
 * before it. A blank stands for these. */
static void mark_text(grammar_rules *g, const tokenizer *t, int32_t from, int32_t n)
{
    char text[1 + MOST_BYTES], piece[VOCAB_TRIE_LONGEST];
    int32_t ids[2 + MOST_BYTES], before = g->bytes[from] == '"';
    size_t n_ids;
    text[0] = ' ';
    memcpy(text + before, g->bytes + from, (size_t)n);
    if (tokenizer_encode(t, text, (size_t)(n + before), 0, ids, 2 + MOST_BYTES, &n_ids, NULL) !=
        DREY_OK)
        return;
    int32_t at = -before;
    for (size_t i = 0; i < n_ids; i++) {
        at += (int32_t)tokenizer_piece(t, ids[i], false, i == 0, piece, sizeof piece);
        if (at > 0 && at < n)
            g->cuts[from + at - 1] = true;
    }
}

void token_cuts_mark(grammar_rules *g, const tokenizer *t)
{
    for (int32_t i = 0; i < g->n_exprs; i++) {
        const expr_node *e = &g->exprs[i];
        if (e->kind == EXPR_IS_BYTES && e->b >= 2 && e->b <= MOST_BYTES)
            mark_text(g, t, e->a, e->b);
    }
}
