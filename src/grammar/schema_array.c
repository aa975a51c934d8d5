/* Arrays of JSON Schema. */
#include <stdio.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

typedef struct array_shape {
    int32_t n_first, least, most;
    bool closed;                         /* nothing after the first ones */
    const json_value *unique, *contains; /* schemas that say so; NULL: none */
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
    bool any_others = false, closed = false, x;
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
        if (json_member_bool(set->of[i], "uniqueItems", &x) && x && !a->unique)
            a->unique = set->of[i];
        if (schema_word(set->of[i], "contains") && a->contains)
            schema_leave_out(r, set->of[i], "contains");
        else if (schema_word(set->of[i], "contains"))
            a->contains = set->of[i];
        const json_value *rest = schema_word(set->of[i], "unevaluatedItems");
        if (rest && rest->type != JSON_TRUE && (i > 0 || !set->of_one || rest->type == JSON_OBJECT))
            schema_leave_out(r, set->of[i], "unevaluatedItems");
        if (!json_member_bool(set->of[i], "unevaluatedItems", &x))
            continue;
        closed = closed || !x;
        any_others = any_others || x;
    }
    a->closed = !any_others && (closed || a->n_first > 0);
    if (a->most == 0 || a->most == 1 || (a->closed && a->n_first <= 1))
        a->unique = NULL;
    return DREY_OK;
}

/* Collects everything that the schemas say about item i; -1: about the others. */
static drey_status said_of(schema_reader *r, const schema_set *set, int32_t i, schema_set *item)
{
    *item = (schema_set){.n = 0};
    for (int32_t k = 0; k < set->n; k++) {
        const json_value *first, *others;
        items_of(set->of[k], &first, &others);
        const json_value *v = first && i >= 0 && i < (int32_t)first->n ? first->first : NULL;
        for (int32_t n = i; v && n > 0; n--)
            v = v->next;
        v = v ? v : others;
        if (v)
            TRY(schema_set_add(r, item, v));
    }
    return DREY_OK;
}

static drey_status item_of(schema_reader *r, const schema_set *set, int32_t i, expr *out)
{
    schema_set item;
    size_t above = schema_enter(r, i < 0 ? "items" : "prefixItems", 0);
    if (i >= 0)
        schema_enter(r, NULL, i);
    TRY(said_of(r, set, i, &item));
    TRY(schema_set_expr(r, &item, out));
    schema_leave(r, above);
    return DREY_OK;
}

/* Items that differ, or of which some satisfy another schema; *held is false where that is not
 * said, or left out. */
static drey_status more_of(schema_reader *r, const schema_set *set, const array_shape *a,
                           expr *inside, bool *held)
{
    schema_set items;
    TRY(said_of(r, set, -1, &items));
    const schema_list list = {.least = a->least,
                              .most = a->most,
                              .items = &items,
                              .unique = a->unique,
                              .contains = a->contains};
    const bool alone = a->n_first == 0 && !a->closed;
    *held = false;
    if (a->unique && alone)
        TRY(schema_unique(r, &list, inside, held));
    else if (a->unique)
        schema_leave_out(r, a->unique, "uniqueItems");
    if (a->contains && alone && !*held)
        return schema_containing(r, &list, inside, held);
    if (a->contains)
        schema_leave_out(r, a->contains, "contains");
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
    if (a.unique || a.contains) {
        bool held;
        TRY(more_of(r, set, &a, &inside, &held));
        if (held && inside != EXPR_NEVER)
            *out = written_between(g, &r->json, "[", inside, "]");
        if (held)
            return DREY_OK;
    }
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
