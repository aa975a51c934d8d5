/* Statements of a template: see jinja_run.h. */
#include "template/jinja_run.h"

#include <string.h>

typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

/* Nested statements and expressions, including macros that call macros. This bounds the stack: a
 * level takes less than half a KiB. */
enum { MOST_DEPTH = 600 };

static flow run_body(jinja *j, const node *n);

bool jinja_deeper(jinja *j)
{
    if (++j->depth > MOST_DEPTH)
        heap_fail(j->r, DREY_ERR_UNSUPPORTED, "this is nested more than %d deep", MOST_DEPTH);
    return heap_charge(j->r, 0);
}

/* ---- Names ---- */

static scope *open_scope(jinja *j, scope *outer)
{
    scope *s = heap_take(j->r, sizeof *s);
    if (s)
        s->outer = outer;
    return s;
}

static variable *find(jinja *j, const scope *s, value name)
{
    uint32_t n = 0;
    for (variable *v = s->first; v; v = v->next) {
        if (text_equal(v->name, name))
            return v;
        if (++n % 16 == 0 && !heap_charge(j->r, 0))
            break;
    }
    return NULL;
}

static void set(jinja *j, value name, value v)
{
    variable *there = find(j, j->scope, name);
    if (!there && heap_ok(j->r) && (there = heap_take(j->r, sizeof *there)) != NULL) {
        there->name = name;
        there->next = j->scope->first;
        j->scope->first = there;
    }
    if (there)
        there->v = v;
}

value jinja_look_up(jinja *j, value name)
{
    for (const scope *s = j->scope; s && heap_charge(j->r, 0); s = s->outer) {
        const variable *v = find(j, s, name);
        if (v)
            return v->v;
    }
    const char *function = function_find(name);
    if (function)
        return (value){.kind = VALUE_FUNCTION, .text = function, .n = (uint32_t)strlen(function)};
    return value_undefined(name.text, name.n);
}

/* ---- Output ---- */

static void put_out(jinja *j, value text)
{
    capture *c = j->out;
    if (text.n == 0 || !heap_charge(j->r, 0))
        return;
    /* The text has to fit into the room once more, as one string. */
    if (text.n > j->r->most_text - c->n_bytes) {
        heap_fail(j->r, DREY_ERR_UNSUPPORTED,
                  "the text becomes longer than %zu bytes, which is far more than the conversation",
                  j->r->most_text);
        return;
    }
    piece *p = heap_take(j->r, sizeof *p);
    if (!p)
        return;
    p->text = text;
    *c->end = p;
    c->end = &p->next;
    c->n_bytes += text.n;
}

static void begin_capture(jinja *j, capture *c)
{
    *c = (capture){.outer = j->out, .end = &c->first};
    j->out = c;
}

/* All of it as one string. */
static value captured(jinja *j, capture *c)
{
    if (c->first && !c->first->next)
        return string_span(c->first->text.text, c->first->text.n);
    size_t at = text_begin(j->r);
    for (const piece *p = c->first; p && heap_ok(j->r); p = p->next)
        text_put_value(j->r, p->text);
    return text_end(j->r, at);
}

/* Runs a body in its own scope and returns what it wrote. */
static value run_captured(jinja *j, const node *body, scope *inner)
{
    capture c;
    scope *outer = j->scope;
    begin_capture(j, &c);
    if (inner) {
        j->scope = inner;
        run_body(j, body);
    }
    j->scope = outer;
    j->out = c.outer;
    return captured(j, &c);
}

/* ---- Loops ---- */

static value characters(jinja *j, value s)
{
    value list = list_new(j->r, 0, STYLE_LIST);
    for (size_t at = 0; at < s.n && heap_charge(j->r, 0);) {
        size_t n = character_bytes(s.text + at, s.n - at);
        list_add(j->r, list, string_part(s, at, at + n));
        at += n;
    }
    return list;
}

static value keys(jinja *j, value map)
{
    value list = list_new(j->r, map.map->n, STYLE_LIST);
    for (uint32_t i = 0; i < map.map->n; i++)
        list_add(j->r, list, map.map->pairs[i].key);
    heap_charge(j->r, map.map->n * sizeof(value));
    return list;
}

value jinja_items(jinja *j, value v)
{
    if (v.kind == VALUE_STRING)
        return characters(j, v);
    if (v.kind == VALUE_MAP)
        return keys(j, v);
    if (v.kind == VALUE_LIST && v.style == STYLE_GENERATOR) {
        if (v.list->consumed)
            return list_new(j->r, 0, STYLE_LIST);
        v.list->consumed = heap_ok(j->r);
        return v;
    }
    if (v.kind == VALUE_LIST)
        return v;
    if (v.kind != VALUE_UNDEFINED)
        heap_fail(j->r, DREY_ERR_USAGE, "a %s is no list that can be gone through",
                  value_type_name(v));
    return list_new(j->r, 0, STYLE_LIST);
}

static void assign(jinja *j, const node *target, value v)
{
    if (target->kind == NODE_NAME) {
        set(j, target->v, v);
        return;
    }
    value items = jinja_items(j, v);
    uint32_t n = 0;
    for (const node *name = target->a; name; name = name->next, n++)
        if (n < items.list->n)
            set(j, name->v, items.list->items[n]);
    if (n != items.list->n)
        heap_fail(j->r, DREY_ERR_USAGE, "%u values for %u names", items.list->n, n);
}

/* The items for which the loop's condition is true. */
static value wanted_items(jinja *j, const node *n, value items)
{
    scope *outer = j->scope;
    value kept = list_new(j->r, 0, STYLE_LIST);
    for (uint32_t i = 0; i < items.list->n && heap_ok(j->r); i++) {
        scope *inner = open_scope(j, outer);
        if (!inner)
            break;
        j->scope = inner;
        assign(j, n->a, items.list->items[i]);
        if (value_true(jinja_eval(j, n->d)))
            list_add(j->r, kept, items.list->items[i]);
    }
    j->scope = outer;
    return kept;
}

static void run_for(jinja *j, const node *n)
{
    scope *outer = j->scope;
    value items = jinja_items(j, jinja_eval(j, n->b));
    if (n->d)
        items = wanted_items(j, n, items);
    loop_state *loop = heap_take(j->r, sizeof *loop);
    flow how = FLOW_ON;
    if (!loop)
        return;
    *loop = (loop_state){.items = items, .depth = ++j->loop_depth};
    uint32_t n_items = items.list->n; /* a loop that lengthens its own list ends as well */
    for (; loop->i < n_items && how != FLOW_BREAK && heap_ok(j->r); loop->i++) {
        j->scope = open_scope(j, outer);
        if (!j->scope)
            break;
        set(j, string_of("loop"), (value){.kind = VALUE_LOOP, .loop = loop});
        assign(j, n->a, items.list->items[loop->i]);
        how = run_body(j, n->c);
    }
    j->loop_depth--;
    if (n_items == 0 && n->e && heap_ok(j->r) && (j->scope = open_scope(j, outer)) != NULL)
        run_body(j, n->e);
    j->scope = outer;
}

/* ---- Other statements ---- */

static void run_set(jinja *j, const node *target, value v)
{
    if (target->kind != NODE_MEMBER) {
        assign(j, target, v);
        return;
    }
    value space = jinja_look_up(j, target->a->v);
    if (space.kind != VALUE_NAMESPACE)
        heap_fail(j->r, DREY_ERR_USAGE, "\"%.*s\" is no namespace, so no member of it can be set",
                  (int)target->a->v.n, target->a->v.text);
    else
        map_set(j->r, space, target->v, v);
}

/* A block's text through its filters: NODE_FILTERs whose innermost has no operand. */
static value filtered(jinja *j, const node *filter, value text)
{
    if (!filter)
        return text;
    arguments a;
    if (jinja_deeper(j)) {
        text = filtered(j, filter->a, text);
        j->r->line = filter->line;
        jinja_arguments(j, filter->b, &a);
        text = heap_ok(j->r) ? filter_apply(j, filter->v, text, &a) : text;
    }
    j->depth--;
    return text;
}

static void run_macro(jinja *j, const node *n)
{
    macro *m = heap_take(j->r, sizeof *m);
    if (!m)
        return;
    *m = (macro){n, j->scope};
    set(j, n->v, (value){.kind = VALUE_MACRO, .macro = m});
}

static flow run_if(jinja *j, const node *n)
{
    for (; n; n = n->d) {
        j->r->line = n->line;
        bool is = value_true(jinja_eval(j, n->a));
        if (!heap_ok(j->r))
            return FLOW_ON;
        if (is || !n->d)
            return run_body(j, is ? n->b : n->c);
    }
    return FLOW_ON;
}

static flow run_statement(jinja *j, const node *n)
{
    j->r->line = n->line;
    switch ((node_kind)n->kind) {
    case NODE_DATA:
        put_out(j, n->v);
        break;
    case NODE_PRINT:
        put_out(j, string_from(j->r, jinja_eval(j, n->a)));
        break;
    case NODE_IF:
        return run_if(j, n);
    case NODE_FOR:
        run_for(j, n);
        break;
    case NODE_SET:
        run_set(j, n->a, jinja_eval(j, n->b));
        break;
    case NODE_SET_BLOCK:
        run_set(j, n->a, filtered(j, n->b, run_captured(j, n->c, open_scope(j, j->scope))));
        break;
    case NODE_MACRO:
        run_macro(j, n);
        break;
    case NODE_FILTER_BLOCK:
        put_out(j, string_from(j->r,
                               filtered(j, n->b, run_captured(j, n->c, open_scope(j, j->scope)))));
        break;
    case NODE_SCOPE:
        put_out(j, run_captured(j, n->c, open_scope(j, j->scope)));
        break;
    case NODE_BREAK:
        return FLOW_BREAK;
    case NODE_CONTINUE:
        return FLOW_CONTINUE;
    default:
        break; /* expressions are no statements */
    }
    return FLOW_ON;
}

static flow run_body(jinja *j, const node *n)
{
    flow how = FLOW_ON;
    if (jinja_deeper(j))
        for (; n && how == FLOW_ON && heap_charge(j->r, 0); n = n->next)
            how = run_statement(j, n);
    j->depth--;
    return how;
}

/* ---- Macros ---- */

value macro_call(jinja *j, const macro *m, const arguments *a)
{
    const node *p = m->definition->b;
    scope *outer = j->scope, *inner = open_scope(j, m->scope);
    int i = 0, n_known = 0;
    if (!inner)
        return string_of("");
    j->scope = inner;
    for (; p && heap_ok(j->r); p = p->next, i++) {
        const value *given = i < a->n ? &a->positional[i] : NULL;
        for (int k = 0; k < a->n_keywords; k++) {
            if (!text_equal(a->keyword[k].name, p->v))
                continue;
            given = &a->keyword[k].v;
            n_known++;
        }
        set(j, p->v,
            given  ? *given
            : p->a ? jinja_eval(j, p->a)
                   : value_undefined(p->v.text, p->v.n));
    }
    if (a->n > i || n_known < a->n_keywords)
        heap_fail(j->r, DREY_ERR_USAGE, "the macro \"%.*s\" got arguments that it does not have",
                  (int)m->definition->v.n, m->definition->v.text);
    j->scope = outer;
    int loops = j->loop_depth;
    j->loop_depth = 0;
    value text = heap_ok(j->r) ? run_captured(j, m->definition->c, inner) : string_of("");
    j->loop_depth = loops;
    return text;
}

void jinja_run(jinja *j, const node *body, value variables)
{
    scope *s = open_scope(j, NULL);
    if (!s)
        return;
    j->scope = s;
    for (uint32_t i = 0; i < variables.map->n; i++)
        set(j, variables.map->pairs[i].key, variables.map->pairs[i].item);
    run_body(j, body);
    j->r->line = 0;
}
