/* Texts as they are written, which no JSON is around: those that an expression does not match, and
 * those of them that satisfy a schema (readers.h). Answers of models have such: what is said before
 * a call, and values between marks (src/reply). */
#include "grammar/schema_reader.h"

#include <stdlib.h>
#include <string.h>

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
    return language_written(g, t->all, false);
}

/* ---- Texts of a schema ---- */

/* Lengths alone: the same rules for all of them. */
static expr of_length(raw_texts *t, grammar_rules *g, int32_t least, int32_t most)
{
    if (t->counting < 0) {
        t->counting = rule_new(g, "counted");
        expr body = language_ticking(g, t->all);
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
        any = !schema_languages_both(&l, false);
        if (any)
            schema_leave_out(r, r->root, schema_word(r->root, "pattern") ? "pattern" : "format");
    }
    if (status == DREY_OK)
        *out = language_written(r->g, any ? t->all : l.now, false);
    schema_languages_free(&l);
    return status;
}

drey_status raw_texts_add(raw_texts *t, grammar_rules *g, const char *schema, size_t n, expr *out,
                          drey_error *err)
{
    json_document d;
    schema_reader *r;
    *out = EXPR_NEVER;
    TRY(schema_reader_open(&r, &d, g, schema, n, err));
    drey_status status = read_texts(t, r, out);
    schema_reader_close(&r, &d);
    return status;
}
