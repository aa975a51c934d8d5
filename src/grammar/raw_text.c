/* Texts as they are written, which no JSON is around: those that an expression does not match, and
 * those of them that satisfy a schema (readers.h). Answers of models have such: what is said before
 * a call, and values between marks (src/reply). */
#include "grammar/schema_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- A language as rules ---- */

typedef struct raw_writer {
    grammar_rules *g;
    const language *l;
    bool ticks;
    int32_t rule[LANGUAGE_MOST_STATES], todo[LANGUAGE_MOST_STATES], n_todo;
} raw_writer;

static int32_t rule_of(raw_writer *w, int32_t state)
{
    if (w->rule[state] < 0) {
        w->rule[state] = rule_new(w->g, "text");
        w->todo[w->n_todo++] = state;
    }
    return w->rule[state];
}

/* The characters that lead from the state to `to`. */
static expr characters_to(const raw_writer *w, const int16_t *row, int16_t to)
{
    char_range ranges[LANGUAGE_MOST_CLASSES];
    int32_t n = 0;
    for (int32_t k = 0; k < w->l->n_classes; k++)
        if (row[k] == to)
            ranges[n++] = (char_range){w->l->first[k], w->l->first[k + 1] - 1};
    return expr_class(w->g, ranges, n, false);
}

static expr write_state(raw_writer *w, int32_t state)
{
    const language *l = w->l;
    const int16_t *row = l->to + (size_t)state * (size_t)l->n_classes;
    expr all = EXPR_NEVER;
    for (int32_t k = 0; k < l->n_classes && !w->g->full; k++) {
        bool seen = row[k] == 0;
        for (int32_t i = 0; i < k && !seen; i++)
            seen = row[i] == row[k];
        if (seen)
            continue;
        expr one = characters_to(w, row, row[k]);
        if (w->ticks)
            one = expr_seq(w->g, expr_tick(w->g), one);
        all = expr_alt(w->g, all, expr_seq(w->g, one, expr_rule(w->g, rule_of(w, row[k]))));
    }
    return l->ends[state] ? expr_alt(w->g, all, EXPR_EMPTY) : all;
}

expr language_raw(grammar_rules *g, const language *l, bool ticks)
{
    if (language_is_empty(l))
        return EXPR_NEVER;
    raw_writer *w = calloc(1, sizeof *w);
    if (!w) {
        g->full = true;
        return EXPR_NEVER;
    }
    w->g = g;
    w->l = l;
    w->ticks = ticks;
    memset(w->rule, -1, sizeof w->rule);
    expr out = expr_rule(g, rule_of(w, 1));
    while (w->n_todo > 0 && !g->full) {
        int32_t state = w->todo[--w->n_todo];
        expr body = write_state(w, state);
        if (!g->full)
            g->rules[w->rule[state]].body = body;
    }
    free(w);
    return out;
}

/* ---- Texts that are not of an expression ---- */

/* but_not is EXPR_NEVER where there is none. */
drey_status raw_texts_init(raw_texts *t, grammar_rules *g, expr begins, expr but_not,
                           drey_error *err)
{
    language *l = malloc(2 * sizeof *l), *all = malloc(sizeof *all);
    *t = (raw_texts){.all = all, .counting = -1};
    drey_status status = DREY_OK;
    if (!l || !all)
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    else if (!language_unlike(all, g, begins) ||
             (but_not != EXPR_NEVER &&
              !(language_of(&l[0], g, but_not) && language_both(&l[1], all, &l[0], true))))
        status = error_set(err, DREY_ERR_USAGE,
                           "the grammar is too large: what \"%%unlike\" leaves out is too long, or "
                           "has rules");
    else if (but_not != EXPR_NEVER)
        *all = l[1];
    free(l);
    if (status != DREY_OK)
        raw_texts_free(t);
    return status;
}

void raw_texts_free(raw_texts *t)
{
    free(t->all);
    *t = (raw_texts){.counting = -1};
}

expr raw_texts_expr(grammar_rules *g, const raw_texts *t)
{
    return language_raw(g, t->all, false);
}

/* ---- Texts of a schema ---- */

/* Lengths alone: the same rules for all of them. */
static expr of_length(raw_texts *t, grammar_rules *g, int32_t least, int32_t most)
{
    if (t->counting < 0) {
        t->counting = rule_new(g, "counted");
        expr body = language_raw(g, t->all, true);
        if (!g->full)
            g->rules[t->counting].body = body;
    }
    return g->full ? EXPR_NEVER : expr_counted(g, expr_rule(g, t->counting), least, most);
}

static drey_status read_texts(raw_texts *t, schema_reader *r, expr *out)
{
    static const char *const shapes[] = {"pattern", "format"};
    schema_set set = {.of = {r->root}, .n = 1};
    schema_languages l = {NULL, NULL, NULL};
    int32_t least, most;
    bool any = true, shaped = false;
    TRY(schema_check_words(r, r->root));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        shaped = shaped || schema_word(r->root, shapes[i]);
    TRY(schema_counts(r, &set, "minLength", "maxLength", &least, &most));
    if (!shaped) {
        any = least == 0 && most == REPEAT_FOREVER;
        *out = any ? raw_texts_expr(r->g, t) : of_length(t, r->g, least, most);
        return DREY_OK;
    }
    TRY(schema_languages_init(r, &l));
    drey_status status = schema_texts(r, r->root, &l, &any);
    if (status == DREY_OK && !any) {
        *l.other = *t->all;
        status = schema_languages_both(r, &l, false, "pattern");
    }
    if (status == DREY_OK)
        *out = language_raw(r->g, any ? t->all : l.now, false);
    schema_languages_free(&l);
    return status;
}

drey_status raw_texts_add(raw_texts *t, grammar_rules *g, const char *schema, size_t n, expr *out,
                          drey_error *err)
{
    json_document d;
    *out = EXPR_NEVER;
    if (!json_load(&d, schema, n))
        FAIL(err, DREY_ERR_USAGE, "the schema is no JSON, or is nested deeper than %d",
             JSON_MOST_DEPTH);
    schema_reader *r = calloc(1, sizeof *r);
    drey_status status = DREY_OK;
    if (r) {
        r->g = g;
        r->root = d.root;
        r->err = err;
        status = read_texts(t, r, out);
    } else {
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a schema");
    }
    free(r);
    json_free(&d);
    return status;
}
