/* Lists of which more is said than what each item is: "uniqueItems" and "contains". What is written
 * so far is a rule, of which the next item makes another. */
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

enum { MOST_RULES = 1024, MOST_VALUES = 100 };

static expr rule_of(schema_reader *r, int32_t *rules, int32_t i)
{
    if (rules[i] < 0)
        rules[i] = rule_new(r->g, "items");
    return expr_rule(r->g, rules[i]);
}

static void set_body(schema_reader *r, const int32_t *rules, int32_t i, expr body)
{
    if (!r->g->full)
        r->g->rules[rules[i]].body = body;
}

/* An item, with a comma before it unless it is the first one, and what follows. */
static expr then(schema_reader *r, bool first, expr item, expr rest)
{
    if (!first)
        item = expr_seq(r->g, written_comma(r->g, &r->json), item);
    return expr_seq(r->g, item, rest);
}

/* ---- Items that differ ---- */

/* Few values in any order: a rule for each set of those that were written. */
static expr any_order(schema_reader *r, const schema_list *list, const expr *values, int32_t n)
{
    int32_t rules[1 << 8];
    memset(rules, -1, sizeof rules);
    expr all = rule_of(r, rules, 0);
    for (int32_t set = 0; set < 1 << n && !r->g->full; set++) {
        int32_t n_written = 0;
        for (int32_t i = 0; i < n; i++)
            n_written += set >> i & 1;
        expr body = n_written >= list->least ? EXPR_EMPTY : EXPR_NEVER;
        if (rules[set] < 0)
            continue;
        for (int32_t i = 0; i < n && (list->most == REPEAT_FOREVER || n_written < list->most); i++)
            if (!(set >> i & 1))
                body = expr_alt(r->g, body,
                                then(r, set == 0, values[i], rule_of(r, rules, set | 1 << i)));
        set_body(r, rules, set, body);
    }
    return all;
}

/* More values in their order, which has a text of each set as well: rules for (how many values were
 * passed, how many written). */
static expr in_order(schema_reader *r, const schema_list *list, const expr *values, int32_t n,
                     int32_t most)
{
    int32_t rules[MOST_RULES];
    memset(rules, -1, sizeof rules);
    expr all = rule_of(r, rules, 0);
    for (int32_t i = 0; i <= n && !r->g->full; i++)
        for (int32_t c = 0; c <= most; c++) {
            const int32_t at = i * (most + 1) + c;
            const int32_t more = min_i32(c + 1, most);
            const bool ends = i == n && c >= list->least;
            if (rules[at] < 0)
                continue;
            expr body = ends ? EXPR_EMPTY : EXPR_NEVER;
            if (i < n)
                body = rule_of(r, rules, at + most + 1);
            if (i < n && (c < most || list->most == REPEAT_FOREVER))
                body = expr_alt(
                    r->g, body,
                    then(r, c == 0, values[i], rule_of(r, rules, (i + 1) * (most + 1) + more)));
            set_body(r, rules, at, body);
        }
    return all;
}

drey_status schema_unique(schema_reader *r, const schema_list *list, expr *inside, bool *held)
{
    enum { ANY_ORDER = 7 };
    expr values[MOST_VALUES];
    int32_t n = -1;
    *held = false;
    if (r->most_choices > 0)
        TRY(schema_finite(r, list->items, values, MOST_VALUES, &n));
    /* Without a limit, as many are counted as have to be there, but for the first one. */
    const int32_t most =
        list->most == REPEAT_FOREVER ? max_i32(list->least, 1) : min_i32(list->most, max_i32(n, 1));
    if (n < 0 || (n > ANY_ORDER && (n + 1) * (most + 1) > MOST_RULES)) {
        schema_leave_out(r, list->unique, "uniqueItems");
        return DREY_OK;
    }
    *held = true;
    *inside = n <= ANY_ORDER ? any_order(r, list, values, n) : in_order(r, list, values, n, most);
    if (n < list->least)
        *inside = EXPR_NEVER;
    return DREY_OK;
}

/* ---- Items of which some satisfy another schema ---- */

typedef struct containing {
    expr one, other;     /* an item that does, and any or one that does not */
    int32_t least, most; /* bounds of how many do; REPEAT_FOREVER */
} containing;

static drey_status item_with(schema_reader *r, const schema_list *list, const json_value *more,
                             expr *out)
{
    schema_set set = *list->items;
    if (more)
        TRY(schema_set_add(r, &set, more));
    TRY(schema_set_expr(r, &set, out));
    int32_t rule = rule_new(r->g, "item");
    if (!r->g->full && *out != EXPR_NEVER && *out != EXPR_EMPTY) {
        r->g->rules[rule].body = *out;
        *out = expr_rule(r->g, rule);
    } else if (!r->g->full) {
        r->g->rules[rule].body = EXPR_NEVER;
    }
    return DREY_OK;
}

/* Rules for (how many items were written, how many of them satisfy it). */
static expr grid(schema_reader *r, const schema_list *list, const containing *x, int32_t n)
{
    const bool endless = list->most == REPEAT_FOREVER, no_most = x->most == REPEAT_FOREVER;
    const int32_t width = (no_most ? x->least : x->most) + 1;
    int32_t rules[MOST_RULES];
    memset(rules, -1, sizeof rules);
    expr all = rule_of(r, rules, 0);
    for (int32_t i = 0; i <= n && !r->g->full; i++)
        for (int32_t c = 0; c < width; c++) {
            const int32_t at = i * width + c, next = min_i32(i + 1, n) * width;
            if (rules[at] < 0)
                continue;
            expr body = i >= list->least && c >= x->least ? EXPR_EMPTY : EXPR_NEVER;
            if ((endless || i < n) && x->other != EXPR_NEVER)
                body = expr_alt(r->g, body, then(r, i == 0, x->other, rule_of(r, rules, next + c)));
            if ((endless || i < n) && c + 1 < width && x->one != EXPR_NEVER)
                body =
                    expr_alt(r->g, body, then(r, i == 0, x->one, rule_of(r, rules, next + c + 1)));
            set_body(r, rules, at, body);
        }
    return all;
}

drey_status schema_containing(schema_reader *r, const schema_list *list, expr *inside, bool *held)
{
    const json_value *schema = list->contains, *wanted = schema_word(schema, "contains");
    const json_value *negated = NULL;
    containing x = {.one = EXPR_NEVER};
    TRY(schema_count(r, schema, "minContains", 1, &x.least));
    TRY(schema_count(r, schema, "maxContains", REPEAT_FOREVER, &x.most));
    *held = false;
    if (x.least == 0 && x.most == REPEAT_FOREVER)
        return DREY_OK;
    if (x.most != REPEAT_FOREVER && x.most < x.least)
        SCHEMA_FAIL(r, "\"maxContains\" is less than \"minContains\"");
    if (x.most != REPEAT_FOREVER && r->most_choices > 0)
        negated = schema_negated(r, wanted);
    if (x.most != REPEAT_FOREVER && !negated) {
        schema_leave_out(r, schema, "maxContains");
        x.most = REPEAT_FOREVER;
    }
    const int32_t n =
        list->most == REPEAT_FOREVER ? max_i32(max_i32(list->least, x.least), 1) : list->most;
    const int32_t width = x.most == REPEAT_FOREVER ? x.least : x.most;
    if (r->most_choices == 0 || (int64_t)(n + 1) * (width + 1) > MOST_RULES) {
        schema_leave_out(r, schema, x.least > 0 ? "contains" : "maxContains");
        return DREY_OK;
    }
    TRY(item_with(r, list, wanted, &x.one));
    TRY(item_with(r, list, negated, &x.other));
    *inside = grid(r, list, &x, n);
    *held = true;
    return DREY_OK;
}
