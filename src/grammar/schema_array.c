/* Arrays of JSON Schema. */
#include <stdio.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

typedef struct array_shape {
    int32_t n_first, least, most;
    bool closed; /* nothing after the first ones */
} array_shape;

/* The schemas of the first items, and of the others; NULL: there are none. */
static void items_of(const json_value *schema, const json_value **first, const json_value **others)
{
    *first = json_member(schema, "prefixItems");
    *others = json_member(schema, "items");
    if (*others && (*others)->type == JSON_ARRAY) { /* before draft 2020-12 */
        *first = *others;
        *others = json_member(schema, "additionalItems");
    }
    if (*first && (*first)->type == JSON_OBJECT && !*others) { /* as others' readers take it */
        *others = *first;
        *first = NULL;
    }
}

static drey_status shape_of(schema_reader *r, const schema_set *set, array_shape *a)
{
    bool any_others = false, closed = false, unique = false, x;
    *a = (array_shape){.n_first = 0};
    TRY(schema_counts(r, set, "minItems", "maxItems", &a->least, &a->most));
    for (int32_t i = 0; i < set->n; i++) {
        const json_value *first, *others;
        items_of(set->of[i], &first, &others);
        if (first && first->type != JSON_ARRAY)
            SCHEMA_FAIL(r, "\"prefixItems\" is a list of schemas");
        if (first)
            a->n_first = max_i32(a->n_first, (int32_t)first->n);
        any_others = any_others || others;
        unique = unique || (json_member_bool(set->of[i], "uniqueItems", &x) && x);
        if (!json_member_bool(set->of[i], "unevaluatedItems", &x))
            continue;
        if (!x && (i > 0 || !set->of_one))
            SCHEMA_FAIL(r, "\"unevaluatedItems\" within another schema is not supported");
        closed = closed || !x;
        any_others = any_others || x;
    }
    bool may_be_many = a->most == REPEAT_FOREVER || a->most > 1;
    if (unique && may_be_many && (any_others || a->n_first != 1))
        SCHEMA_FAIL(r, "\"uniqueItems\" is not supported; leave it out");
    a->closed = !any_others && (closed || a->n_first > 0);
    return DREY_OK;
}

/* What all schemas say about item i; -1: about the others. */
static drey_status item_of(schema_reader *r, const schema_set *set, int32_t i, expr *out)
{
    schema_set item = {.n = 0};
    size_t above = schema_enter(r, i < 0 ? "items" : "prefixItems", 0);
    if (i >= 0)
        schema_enter(r, NULL, i);
    for (int32_t k = 0; k < set->n; k++) {
        const json_value *first, *others;
        items_of(set->of[k], &first, &others);
        const json_value *v = first && i >= 0 && i < (int32_t)first->n ? first->first : NULL;
        for (int32_t n = i; v && n > 0; n--)
            v = v->next;
        v = v ? v : others;
        if (v)
            TRY(schema_set_add(r, &item, v));
    }
    TRY(schema_set_expr(r, &item, out));
    schema_leave(r, above);
    return DREY_OK;
}

static expr as_rule(grammar_rules *g, expr body)
{
    int32_t rule = rule_new(g, "item");
    if (!g->full)
        g->rules[rule].body = body;
    return expr_rule(g, rule);
}

/* After n items, which are `inside`: the others, at least and at most so many. */
static expr and_others(schema_reader *r, expr inside, int32_t n, expr item, int32_t least,
                       int32_t most)
{
    grammar_rules *g = r->g;
    if (item == EXPR_NEVER || most == 0)
        return least > 0 ? EXPR_NEVER : inside;
    item = as_rule(g, item);
    expr more = expr_seq(g, written_comma(g, &r->json), item);
    if (n > 0)
        return expr_seq(g, inside, expr_repeat(g, more, least, most));
    most = most == REPEAT_FOREVER ? REPEAT_FOREVER : most - 1;
    inside = expr_seq(g, item, expr_repeat(g, more, max_i32(least - 1, 0), most));
    return expr_repeat(g, inside, least > 0, 1);
}

/* The first items, all of which are written, then the others. */
drey_status schema_array(schema_reader *r, const schema_set *set, expr *out)
{
    grammar_rules *g = r->g;
    array_shape a;
    expr inside = EXPR_EMPTY, item = EXPR_EMPTY;
    int32_t n = 0;
    *out = EXPR_NEVER;
    TRY(shape_of(r, set, &a));
    if (a.most != REPEAT_FOREVER && a.most < a.least)
        return DREY_OK;
    while (n < a.n_first && n != a.most) {
        TRY(item_of(r, set, n, &item));
        if (item == EXPR_NEVER)
            break; /* nothing can be there: the array ends before it */
        inside =
            expr_seq(g, n ? expr_seq(g, inside, written_comma(g, &r->json)) : EXPR_EMPTY, item);
        n++;
    }
    int32_t least = max_i32(a.least - n, 0);
    int32_t most = a.most == REPEAT_FOREVER ? REPEAT_FOREVER : a.most - n;
    bool ended = a.closed || item == EXPR_NEVER;
    if (ended && least > 0 && set->n == 1)
        SCHEMA_FAIL(r, "\"minItems\" is %d, but it can have %d alone", a.least, n);
    if (!ended && most != 0)
        TRY(item_of(r, set, -1, &item));
    inside = and_others(r, inside, n, ended ? EXPR_NEVER : item, least, most);
    if (inside != EXPR_NEVER)
        *out = written_between(g, &r->json, "[", inside, "]");
    return DREY_OK;
}
