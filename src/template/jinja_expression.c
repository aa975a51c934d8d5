/* Expressions of a template, as Python computes them: see jinja_run.h. */
#include "template/jinja_lexer.h"
#include "template/jinja_run.h"

#include <math.h>
#include <string.h>

/* ---- Arguments ---- */

const value *argument(const arguments *a, int i, const char *name)
{
    if (i >= 0 && i < a->n)
        return &a->positional[i];
    for (int k = 0; name && k < a->n_keywords; k++)
        if (string_is(a->keyword[k].name, name))
            return &a->keyword[k].v;
    return NULL;
}

bool argument_flag(const arguments *a, int i, const char *name)
{
    const value *v = argument(a, i, name);
    return v && value_true(*v);
}

static bool is_word_of(value name, const char *words)
{
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == name.n && memcmp(at, name.text, n) == 0)
            return true;
        at += n;
    }
    return false;
}

bool arguments_fit(jinja *j, const arguments *a, const char *what, int least, int most,
                   const char *known)
{
    if (a->n + a->n_keywords < least || a->n > most)
        heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"%s\" with %d arguments is not supported", what,
                  a->n + a->n_keywords);
    for (int k = 0; k < a->n_keywords; k++)
        if (!is_word_of(a->keyword[k].name, known))
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"%s\" with the argument %.*s is not supported",
                      what, (int)a->keyword[k].name.n, a->keyword[k].name.text);
    return heap_ok(j->r);
}

void jinja_arguments(jinja *j, const node *list, arguments *out)
{
    out->n = out->n_keywords = 0;
    for (const node *n = list; n && heap_ok(j->r); n = n->next) {
        bool keyword = n->kind == NODE_KEYWORD;
        if ((keyword ? out->n_keywords : out->n) == MOST_ARGUMENTS) {
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "more than %d arguments", MOST_ARGUMENTS);
            return;
        }
        if (keyword) {
            out->keyword[out->n_keywords].name = n->v;
            out->keyword[out->n_keywords++].v = jinja_eval(j, n->a);
        } else {
            out->positional[out->n++] = jinja_eval(j, n);
        }
    }
}

/* ---- Arithmetic ---- */

/* Fails where a or b is not defined. */
static bool defined(jinja *j, value a, value b)
{
    const value *missing = a.kind == VALUE_UNDEFINED ? &a : &b;
    if (missing->kind == VALUE_UNDEFINED)
        heap_fail(j->r, DREY_ERR_USAGE, "\"%.*s\" is not defined", (int)missing->n, missing->text);
    return missing->kind != VALUE_UNDEFINED;
}

static value unfit(jinja *j, char sign, value a, value b)
{
    const char plain[] = {sign, 0};
    const char *shown = sign == SIGN_POWER ? "**" : sign == SIGN_FLOOR_DIV ? "//" : plain;
    if (defined(j, a, b))
        heap_fail(j->r, DREY_ERR_USAGE, "%s %s %s is not possible", value_type_name(a), shown,
                  value_type_name(b));
    return value_none();
}

static value too_large(jinja *j)
{
    heap_fail(j->r, DREY_ERR_UNSUPPORTED, "numbers of more than 64 bits are not computed with");
    return value_none();
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

/* a ** b, b >= 0: by squaring, which is fast also if a is 0, 1 or -1 and b is large. */
static value power_whole(jinja *j, int64_t a, int64_t b)
{
    int64_t out = 1;
    bool over = false;
    while (b > 0 && !over) {
        if (b & 1)
            over = __builtin_mul_overflow(out, a, &out);
        b >>= 1;
        if (b > 0)
            over |= __builtin_mul_overflow(a, a, &a);
    }
    return over ? too_large(j) : value_int(out);
}

static value compute_whole(jinja *j, char sign, int64_t a, int64_t b)
{
    int64_t out = 0;
    bool over = false;
    if (sign == '/')
        return value_float((double)a / (double)b);
    if (sign == SIGN_POWER && b < 0)
        return value_float(pow((double)a, (double)b));
    if (b == -1 && (sign == SIGN_FLOOR_DIV || sign == '%')) { /* the one that overflows */
        over = sign != '%' && __builtin_sub_overflow(0, a, &out);
    } else if (sign == SIGN_FLOOR_DIV) {
        out = floor_divide(a, b);
    } else if (sign == '%') {
        out = a % b;
        out += out != 0 && (out < 0) != (b < 0) ? b : 0;
    } else if (sign == '+') {
        over = __builtin_add_overflow(a, b, &out);
    } else if (sign == '-') {
        over = __builtin_sub_overflow(a, b, &out);
    } else if (sign == '*') {
        over = __builtin_mul_overflow(a, b, &out);
    } else {
        return power_whole(j, a, b);
    }
    return over ? too_large(j) : value_int(out);
}

static value compute_float(char sign, double a, double b)
{
    double rest = sign == '%' ? fmod(a, b) : 0;
    switch (sign) {
    case '+':
        return value_float(a + b);
    case '-':
        return value_float(a - b);
    case '*':
        return value_float(a * b);
    case '/':
        return value_float(a / b);
    case '%':
        return value_float(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    case SIGN_FLOOR_DIV:
        return value_float(floor(a / b));
    default:
        return value_float(pow(a, b));
    }
}

static value repeated(jinja *j, value s, int64_t times)
{
    size_t at = text_begin(j->r);
    for (int64_t i = 0; i < times && s.n > 0 && heap_ok(j->r); i++)
        text_put_value(j->r, s);
    return text_end(j->r, at);
}

static value lists_joined(jinja *j, value a, value b)
{
    value out = list_new(j->r, a.list->n + b.list->n, (list_style)a.style);
    out.marked = a.marked || b.marked;
    for (uint32_t i = 0; i < a.list->n; i++)
        list_add(j->r, out, a.list->items[i]);
    for (uint32_t i = 0; i < b.list->n; i++)
        list_add(j->r, out, b.list->items[i]);
    heap_charge(j->r, (a.list->n + b.list->n) * sizeof(value));
    return out;
}

/* Escapes for HTML: what happens to a string that is added to one that "safe" made. */
static value escaped(jinja *j, value s)
{
    static const char special[] = "&<>'\"";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t at = text_begin(j->r), done = 0;
    if (s.safe)
        return s;
    for (size_t i = 0; i < s.n && heap_ok(j->r); i++) {
        const char *found = memchr(special, s.text[i], 5);
        if (!found)
            continue;
        text_put(j->r, s.text + done, i - done);
        text_put_marked(j->r, written[found - special], strlen(written[found - special]),
                        text_is_marked(j->r, s.text + i));
        done = i + 1;
    }
    if (done == 0)
        return s;
    text_put(j->r, s.text + done, s.n - done);
    return text_end(j->r, at);
}

static value strings_joined(jinja *j, value a, value b)
{
    bool safe = a.safe || b.safe;
    if (safe) {
        a = escaped(j, a);
        b = escaped(j, b);
    }
    value out = string_join2(j->r, a, b);
    out.safe = safe;
    return out;
}

static value compute(jinja *j, char sign, value a, value b)
{
    value out;
    if (a.kind == VALUE_BIG || b.kind == VALUE_BIG)
        return too_large(j);
    if (is_number(a) && is_number(b) && number_float(b) == 0 &&
        strchr((const char[]){'/', '%', SIGN_FLOOR_DIV, 0}, sign)) {
        heap_fail(j->r, DREY_ERR_USAGE, "a division by zero");
        return value_none();
    }
    if (is_whole(a) && is_whole(b)) {
        out = compute_whole(j, sign, number_int(a), number_int(b));
    } else if (is_number(a) && is_number(b)) {
        out = compute_float(sign, number_float(a), number_float(b));
    } else if (sign == '+' && a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
        return strings_joined(j, a, b);
    } else if (sign == '+' && a.kind == VALUE_LIST && b.kind == VALUE_LIST && a.style == b.style &&
               a.style <= STYLE_TUPLE) {
        return lists_joined(j, a, b);
    } else if (sign == '*' && a.kind == VALUE_STRING && is_whole(b)) {
        return repeated(j, a, number_int(b));
    } else if (sign == '*' && b.kind == VALUE_STRING && is_whole(a)) {
        return repeated(j, b, number_int(a));
    } else {
        return unfit(j, sign, a, b);
    }
    out.marked = a.marked || b.marked;
    return out;
}

static value eval_sign(jinja *j, char sign, value v)
{
    if (v.kind == VALUE_FLOAT)
        v.f = sign == '-' ? -v.f : v.f;
    else if (is_whole(v) && number_int(v) != INT64_MIN)
        v.i = sign == '-' ? -number_int(v) : number_int(v), v.kind = VALUE_INT;
    else if (v.kind == VALUE_UNDEFINED)
        heap_fail(j->r, DREY_ERR_USAGE, "\"%.*s\" is not defined", (int)v.n, v.text);
    else
        heap_fail(j->r, DREY_ERR_USAGE, "a %s has no negative", value_type_name(v));
    return v;
}

/* ---- Comparing ---- */

bool jinja_contains(jinja *j, value in, value what)
{
    if (in.kind == VALUE_STRING && what.kind == VALUE_STRING)
        return heap_charge(j->r, in.n) && text_find(in.text, in.n, what.text, what.n) != SIZE_MAX;
    if (in.kind == VALUE_MAP)
        return map_get(j->r, in, what) != NULL;
    if (in.kind == VALUE_LIST) {
        value items = jinja_items(j, in);
        for (uint32_t i = 0; i < items.list->n && heap_ok(j->r); i++)
            if (value_equal(j->r, items.list->items[i], what))
                return true;
        return false;
    }
    if (in.kind != VALUE_UNDEFINED)
        heap_fail(j->r, DREY_ERR_USAGE, "whether a %s is in a %s cannot be said",
                  value_type_name(what), value_type_name(in));
    return false;
}

static bool holds(jinja *j, char sign, value a, value b)
{
    switch (sign) {
    case SIGN_EQ:
        return value_equal(j->r, a, b);
    case SIGN_NE:
        return !value_equal(j->r, a, b);
    case 'i':
        return jinja_contains(j, b, a);
    case 'n':
        return !jinja_contains(j, b, a);
    default:
        break;
    }
    if (!defined(j, a, b))
        return false;
    int order = value_order(j->r, a, b);
    return sign == '<'       ? order < 0
           : sign == '>'     ? order > 0
           : sign == SIGN_LE ? order <= 0
                             : order >= 0;
}

static value eval_comparison(jinja *j, const node *n)
{
    value left = jinja_eval(j, n->a);
    for (const node *operand = n->b; operand && heap_ok(j->r); operand = operand->next) {
        value right = jinja_eval(j, operand->a);
        if (!holds(j, operand->sign, left, right))
            return value_bool(false);
        left = right;
    }
    return value_bool(true);
}

/* ---- Making lists, maps and strings ---- */

static value eval_items(jinja *j, const node *n)
{
    value list = list_new(j->r, 0, n->kind == NODE_TUPLE ? STYLE_TUPLE : STYLE_LIST);
    for (const node *item = n->a; item && heap_ok(j->r); item = item->next)
        list_add(j->r, list, jinja_eval(j, item));
    return list;
}

static value eval_map(jinja *j, const node *n)
{
    value map = map_new(j->r, 0);
    for (const node *pair = n->a; pair && heap_ok(j->r); pair = pair->next) {
        value key = jinja_eval(j, pair->a);
        map_set(j->r, map, key, jinja_eval(j, pair->b));
    }
    return map;
}

/* a ~ b ~ c: everything as text. All are known before the first is written: the values that they
 * create in the room come first. */
static value eval_concat(jinja *j, const node *n)
{
    value items = eval_items(j, n), all = string_of("");
    for (uint32_t i = 0; i < items.list->n; i++)
        items.list->items[i] = string_from(j->r, items.list->items[i]);
    for (uint32_t i = 0; i < items.list->n && heap_ok(j->r); i++)
        all = string_join2(j->r, all, items.list->items[i]);
    return all;
}

static value eval_slice(jinja *j, const node *n)
{
    value of = jinja_eval(j, n->a), part[3];
    const node *bounds[] = {n->b, n->c, n->d};
    const value *given[3] = {0};
    for (int i = 0; i < 3; i++) {
        if (!bounds[i])
            continue;
        part[i] = jinja_eval(j, bounds[i]);
        given[i] = part[i].kind == VALUE_NONE ? NULL : &part[i];
    }
    return member_slice(j, of, given[0], given[1], given[2]);
}

/* ---- Calls ---- */

static value call(jinja *j, value callee, const arguments *a)
{
    switch (callee.kind) {
    case VALUE_MACRO:
        return macro_call(j, callee.macro, a);
    case VALUE_METHOD:
        return method_call(j, callee.method, a);
    case VALUE_FUNCTION:
        return function_call(j, callee.text, a);
    case VALUE_UNDEFINED:
        heap_fail(j->r, DREY_ERR_USAGE, "\"%.*s\" is not defined, and cannot be called",
                  (int)callee.n, callee.text);
        break;
    default:
        heap_fail(j->r, DREY_ERR_USAGE, "a %s cannot be called", value_type_name(callee));
    }
    return value_none();
}

/* A call, a filter or a test: of n->a, with the arguments n->b. */
static value eval_call(jinja *j, const node *n)
{
    arguments a;
    value of = jinja_eval(j, n->a);
    jinja_arguments(j, n->b, &a);
    j->r->line = n->line;
    if (!heap_ok(j->r))
        return value_none();
    if (n->kind == NODE_TEST)
        return value_bool(test_apply(j, n->v, of, &a));
    return n->kind == NODE_FILTER ? filter_apply(j, n->v, of, &a) : call(j, of, &a);
}

/* ---- All of them ---- */

static value eval_choice(jinja *j, const node *n)
{
    if (value_true(jinja_eval(j, n->a)))
        return jinja_eval(j, n->b);
    static const char missing[] = "the \"else\" of an expression";
    return n->c ? jinja_eval(j, n->c) : value_undefined(missing, sizeof missing - 1);
}

static value eval_binary(jinja *j, const node *n)
{
    value a = jinja_eval(j, n->a), b = jinja_eval(j, n->b);
    j->r->line = n->line;
    return heap_ok(j->r) ? compute(j, n->sign, a, b) : value_none();
}

static value eval_logic(jinja *j, const node *n)
{
    value a = jinja_eval(j, n->a);
    return value_true(a) == (n->kind == NODE_AND) ? jinja_eval(j, n->b) : a;
}

static value eval_node(jinja *j, const node *n)
{
    switch ((node_kind)n->kind) {
    case NODE_CONSTANT:
        return n->v;
    case NODE_NAME:
        return jinja_look_up(j, n->v);
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_items(j, n);
    case NODE_MAP:
        return eval_map(j, n);
    case NODE_MEMBER:
        return member_get(j, jinja_eval(j, n->a), n->v);
    case NODE_ITEM: {
        value of = jinja_eval(j, n->a);
        return member_item(j, of, jinja_eval(j, n->b));
    }
    case NODE_SLICE:
        return eval_slice(j, n);
    case NODE_CALL:
    case NODE_FILTER:
    case NODE_TEST:
        return eval_call(j, n);
    case NODE_NOT:
        return value_bool(!value_true(jinja_eval(j, n->a)));
    case NODE_NEGATE:
        return eval_sign(j, '-', jinja_eval(j, n->a));
    case NODE_PLUS:
        return eval_sign(j, '+', jinja_eval(j, n->a));
    case NODE_AND:
    case NODE_OR:
        return eval_logic(j, n);
    case NODE_BINARY:
        return eval_binary(j, n);
    case NODE_CONCAT:
        return eval_concat(j, n);
    case NODE_COMPARE:
        return eval_comparison(j, n);
    case NODE_CHOICE:
        return eval_choice(j, n);
    default:
        return value_none(); /* statements are no expressions */
    }
}

value jinja_eval(jinja *j, const node *n)
{
    value v = value_none();
    if (jinja_deeper(j)) {
        j->r->line = n->line;
        v = eval_node(j, n);
    }
    j->depth--;
    return v;
}
