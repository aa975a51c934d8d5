/* Texts in which some words do not occur, as rules: one for each beginning of a word that a text
 * may have just written. Each is left by its last part alone, so that a long text is no deep one.
 *
 *     without "ab":   none ::= [^a] none | "a" a |          after neither
 *                     a    ::= [^ab] none | "a" a |         after "a" */
#include "grammar/readers.h"

#include <string.h>

#include "common/utf8.h"

typedef struct words {
    uint32_t of[GRAMMAR_MOST_WORDS][GRAMMAR_WORD_CHARACTERS];
    int32_t n_of[GRAMMAR_MOST_WORDS], n;
    int32_t rule[GRAMMAR_MOST_WORDS][GRAMMAR_WORD_CHARACTERS]; /* -1: another word's is used */
} words;

/* The first n characters of a word. */
typedef struct beginning {
    int32_t word, n;
} beginning;

static bool same(const words *w, beginning a, int32_t word)
{
    return a.n <= w->n_of[word] &&
           memcmp(w->of[a.word], w->of[word], (size_t)a.n * sizeof(uint32_t)) == 0;
}

/* Chooses the first of words that begin alike. */
static beginning first_of(const words *w, beginning a)
{
    for (int32_t i = 0; i < a.word; i++)
        if (same(w, a, i))
            return (beginning){i, a.n};
    return a;
}

/* The longest beginning that a text ends with which ended with `a` and continues with c. */
static beginning step(const words *w, beginning a, uint32_t c)
{
    uint32_t text[GRAMMAR_WORD_CHARACTERS + 1];
    memcpy(text, w->of[a.word], (size_t)a.n * sizeof *text);
    text[a.n] = c;
    for (int32_t from = 0; from <= a.n; from++)
        for (int32_t i = 0; i < w->n; i++) {
            int32_t n = a.n + 1 - from;
            if (n <= w->n_of[i] && memcmp(text + from, w->of[i], (size_t)n * sizeof *text) == 0)
                return (beginning){i, n};
        }
    return (beginning){0, 0};
}

/* One of the characters that words have; each once. */
static bool is_new(const words *w, int32_t word, int32_t at)
{
    for (int32_t i = 0; i <= word; i++)
        for (int32_t k = 0; k < (i < word ? w->n_of[i] : at); k++)
            if (w->of[i][k] == w->of[word][at])
                return false;
    return true;
}

static expr after(grammar_rules *g, const words *w, beginning a)
{
    char_range others[GRAMMAR_MOST_WORDS * GRAMMAR_WORD_CHARACTERS];
    expr all = EXPR_EMPTY;
    int32_t n = 0;
    for (int32_t i = 0; i < w->n; i++)
        for (int32_t k = 0; k < w->n_of[i]; k++) {
            uint32_t c = w->of[i][k];
            beginning to = is_new(w, i, k) ? step(w, a, c) : (beginning){0, 0};
            char bytes[4];
            if (to.n == 0)
                continue;
            others[n++] = (char_range){c, c};
            if (to.n == w->n_of[to.word])
                continue;
            to = first_of(w, to);
            all = expr_alt(g, all,
                           expr_seq(g, expr_bytes(g, bytes, utf8_write(c, bytes)),
                                    expr_rule(g, w->rule[to.word][to.n])));
        }
    expr other = expr_class(g, others, n, true);
    return expr_alt(g, all, expr_seq(g, other, expr_rule(g, w->rule[0][0])));
}

static void take_word(words *w, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text;
    for (int length; n > 0 && (length = utf8_length(p, n)) > 0; p += length, n -= (size_t)length)
        if (w->n_of[w->n] < GRAMMAR_WORD_CHARACTERS - 1)
            w->of[w->n][w->n_of[w->n]++] = utf8_code_point(p, length);
    w->n += w->n_of[w->n] > 0;
}

expr text_without(grammar_rules *g, const grammar_word *list, int32_t n)
{
    words w = {.n = 0};
    for (int32_t i = 0; i < n; i++)
        take_word(&w, list[i].text, list[i].n);
    w.rule[0][0] = rule_new(g, "without");
    for (int32_t i = 0; i < w.n; i++)
        for (int32_t k = 1; k < w.n_of[i]; k++)
            w.rule[i][k] = first_of(&w, (beginning){i, k}).word == i ? rule_new(g, "without") : -1;
    for (int32_t i = 0; i < w.n && !g->full; i++)
        for (int32_t k = i ? 1 : 0; k < w.n_of[i] && !g->full; k++)
            if (w.rule[i][k] >= 0)
                g->rules[w.rule[i][k]].body = after(g, &w, (beginning){i, k});
    if (w.n == 0 && !g->full)
        g->rules[w.rule[0][0]].body =
            expr_repeat(g, expr_class(g, NULL, 0, true), 0, REPEAT_FOREVER);
    return expr_rule(g, w.rule[0][0]);
}
