/* Makes a tree from words: recursive descent, with Jinja's precedences. See jinja_tree.h. */
#include "template/jinja_tree.h"

#include <string.h>

#include "template/jinja_lexer.h"

/* the most expressions in expressions and blocks in blocks, which bounds the stack; templates in
 * use have two dozen. (Chains, a + b + ..., are deep in the tree without being nested here:
 * rendering has its own limit.) */
enum { MOST_NESTED = 150 };

typedef struct parser {
    heap *r;
    lexer lexer;
    token t; /* the next word */
    int depth;
    int loops; /* around the next word */
} parser;

static void advance(parser *p)
{
    p->t = lexer_next(&p->lexer);
}

static node *stop(parser *p, drey_status code, const char *why)
{
    p->r->line = p->t.line;
    heap_fail(p->r, code, "%s", why);
    return NULL;
}

/* The present word, for a message. */
static node *unexpected(parser *p, const char *wanted)
{
    token t = p->t;
    p->r->line = t.line;
    if (t.kind == WORD_NAME || t.kind == WORD_STRING)
        heap_fail(p->r, DREY_ERR_FORMAT, "\"%.*s\" where %s was expected",
                  (int)(t.v.n < 40 ? t.v.n : 40), t.v.text, wanted);
    else if (t.kind == WORD_SIGN)
        heap_fail(p->r, DREY_ERR_FORMAT, "\"%c\" where %s was expected", t.sign, wanted);
    else
        heap_fail(p->r, DREY_ERR_FORMAT, "%s is missing", wanted);
    return NULL;
}

static node *new_node(parser *p, node_kind kind, uint32_t line)
{
    node *n = heap_take(p->r, sizeof *n);
    if (n) {
        n->kind = (uint8_t)kind;
        n->line = line;
    }
    return n;
}

static node *join(parser *p, node_kind kind, uint32_t line, node *a, node *b)
{
    node *n = new_node(p, kind, line);
    if (n) {
        n->a = a;
        n->b = b;
    }
    return n;
}

static node *named(parser *p, node_kind kind, token name, node *a, node *b)
{
    node *n = join(p, kind, name.line, a, b);
    if (n)
        n->v = name.v;
    return n;
}

static bool deeper(parser *p)
{
    if (++p->depth > MOST_NESTED)
        stop(p, DREY_ERR_UNSUPPORTED, "this is nested too deep");
    return heap_ok(p->r);
}

/* ---- Words ---- */

static bool is_sign(const parser *p, char sign)
{
    return p->t.kind == WORD_SIGN && p->t.sign == sign;
}

static bool is_name(const parser *p, const char *name)
{
    return p->t.kind == WORD_NAME && p->t.v.n == strlen(name) &&
           memcmp(p->t.v.text, name, p->t.v.n) == 0;
}

static bool take_sign(parser *p, char sign)
{
    bool is = is_sign(p, sign);
    if (is)
        advance(p);
    return is;
}

static bool take_name(parser *p, const char *name)
{
    bool is = is_name(p, name);
    if (is)
        advance(p);
    return is;
}

static void want_sign(parser *p, char sign)
{
    char wanted[] = {'"', sign, '"', 0};
    if (!take_sign(p, sign))
        unexpected(p, wanted);
}

static token want_name(parser *p, const char *what)
{
    token t = p->t;
    if (t.kind == WORD_NAME)
        advance(p);
    else
        unexpected(p, what);
    return t;
}

static void want_end(parser *p)
{
    if (p->t.kind == WORD_BLOCK_END)
        advance(p);
    else
        unexpected(p, "the end of the tag");
}

/* A list that grows at its end. */
typedef struct list {
    node *first, **end;
} list;

static void add(list *l, node *n)
{
    if (!l->end)
        l->end = &l->first;
    *l->end = n;
    if (n)
        l->end = &n->next;
}

/* ---- Expressions ---- */

static node *parse_expression(parser *p);
static node *parse_unary(parser *p, bool filters);
static node *parse_or(parser *p);

/* After "(": arguments up to ")". */
static node *parse_arguments(parser *p)
{
    list arguments = {0};
    while (heap_ok(p->r) && !is_sign(p, ')')) {
        if (is_sign(p, '*') || is_sign(p, SIGN_POWER))
            return stop(p, DREY_ERR_UNSUPPORTED, "arguments after \"*\" are not supported");
        node *argument = parse_expression(p);
        if (argument && argument->kind == NODE_NAME && is_sign(p, '=')) {
            advance(p);
            argument->kind = NODE_KEYWORD;
            argument->a = parse_expression(p);
        }
        add(&arguments, argument);
        if (!take_sign(p, ','))
            break;
    }
    want_sign(p, ')');
    return arguments.first;
}

/* Expressions separated by commas, up to a sign that is not consumed; *n: how many; *comma: there
 * was one after the last. */
static node *parse_items(parser *p, char closing, int *n, bool *comma)
{
    list items = {0};
    *n = 0;
    *comma = false;
    while (heap_ok(p->r) && !is_sign(p, closing) && p->t.kind != WORD_BLOCK_END &&
           p->t.kind != WORD_PRINT_END) {
        add(&items, parse_expression(p));
        ++*n;
        *comma = take_sign(p, ',');
        if (!*comma)
            break;
    }
    return items.first;
}

/* (a), (a, b) or [a, b]. */
static node *parse_bracketed(parser *p, char closing)
{
    uint32_t line = p->t.line;
    int n;
    bool comma;
    advance(p);
    node *items = parse_items(p, closing, &n, &comma);
    want_sign(p, closing);
    if (closing == ']')
        return join(p, NODE_LIST, line, items, NULL);
    return n == 1 && !comma ? items : join(p, NODE_TUPLE, line, items, NULL);
}

static node *parse_map(parser *p)
{
    uint32_t line = p->t.line;
    list pairs = {0};
    advance(p);
    while (heap_ok(p->r) && !is_sign(p, '}')) {
        node *key = parse_expression(p);
        want_sign(p, ':');
        add(&pairs, join(p, NODE_PAIR, line, key, parse_expression(p)));
        if (!take_sign(p, ','))
            break;
    }
    want_sign(p, '}');
    return join(p, NODE_MAP, line, pairs.first, NULL);
}

/* true, false and none are constants, also with a capital letter; other names are names. */
static node *parse_name(parser *p)
{
    static const struct {
        const char *name;
        int meaning;
    } constants[] = {{"true", 1},  {"True", 1}, {"false", 0},
                     {"False", 0}, {"none", 2}, {"None", 2}};
    node *n = named(p, NODE_NAME, p->t, NULL, NULL);
    for (size_t i = 0; n && i < sizeof constants / sizeof *constants; i++) {
        if (!is_name(p, constants[i].name))
            continue;
        n->kind = NODE_CONSTANT;
        n->v = constants[i].meaning == 2 ? value_none() : value_bool(constants[i].meaning);
    }
    advance(p);
    return n;
}

/* Consecutive strings are one. */
static node *parse_strings(parser *p)
{
    node *n = named(p, NODE_CONSTANT, p->t, NULL, NULL);
    for (advance(p); n && p->t.kind == WORD_STRING; advance(p))
        n->v = string_join2(p->r, n->v, p->t.v);
    return n;
}

static node *parse_primary(parser *p)
{
    switch (p->t.kind) {
    case WORD_NAME:
        return parse_name(p);
    case WORD_STRING:
        return parse_strings(p);
    case WORD_INT:
    case WORD_FLOAT: {
        node *n = named(p, NODE_CONSTANT, p->t, NULL, NULL);
        advance(p);
        return n;
    }
    case WORD_SIGN:
        if (p->t.sign == '(')
            return parse_bracketed(p, ')');
        if (p->t.sign == '[')
            return parse_bracketed(p, ']');
        if (p->t.sign == '{')
            return parse_map(p);
        break;
    default:
        break;
    }
    return unexpected(p, "an expression");
}

/* After "[": an index or a slice. */
static node *parse_subscript(parser *p, node *of, uint32_t line)
{
    node *part[3] = {0};
    int n_colons = 0;
    while (heap_ok(p->r) && !is_sign(p, ']')) {
        if (!take_sign(p, ':'))
            part[n_colons] = parse_expression(p);
        else if (++n_colons == 3)
            return stop(p, DREY_ERR_FORMAT, "a slice with three colons");
        if (!is_sign(p, ']') && !is_sign(p, ':') && part[n_colons])
            break;
    }
    if (n_colons == 0 && !part[0])
        return unexpected(p, "an index");
    want_sign(p, ']');
    node *n = join(p, n_colons ? NODE_SLICE : NODE_ITEM, line, of, part[0]);
    if (n) {
        n->c = part[1];
        n->d = part[2];
    }
    return n;
}

static node *parse_member(parser *p, node *of, uint32_t line)
{
    token t = p->t;
    if (t.kind == WORD_NAME) {
        advance(p);
        return named(p, NODE_MEMBER, t, of, NULL);
    }
    if (t.kind != WORD_INT)
        return unexpected(p, "a name");
    advance(p);
    return join(p, NODE_ITEM, line, of, named(p, NODE_CONSTANT, t, NULL, NULL));
}

static node *parse_postfix(parser *p, node *n)
{
    while (heap_ok(p->r) && n) {
        uint32_t line = p->t.line;
        if (take_sign(p, '.'))
            n = parse_member(p, n, line);
        else if (take_sign(p, '['))
            n = parse_subscript(p, n, line);
        else if (take_sign(p, '('))
            n = join(p, NODE_CALL, line, n, parse_arguments(p));
        else
            break;
    }
    return n;
}

static node *parse_filter(parser *p, node *of)
{
    token name = want_name(p, "a filter's name");
    if (is_sign(p, '.'))
        return stop(p, DREY_ERR_UNSUPPORTED, "filters with a point in their name");
    node *arguments = take_sign(p, '(') ? parse_arguments(p) : NULL;
    return named(p, NODE_FILTER, name, of, arguments);
}

static node *parse_test(parser *p, node *of)
{
    uint32_t line = p->t.line;
    bool negated = take_name(p, "not");
    token name = want_name(p, "a test's name");
    node *arguments = NULL;
    if (take_sign(p, '(')) {
        arguments = parse_arguments(p);
    } else if (p->t.kind == WORD_STRING || p->t.kind == WORD_INT || p->t.kind == WORD_FLOAT ||
               is_sign(p, '[') || is_sign(p, '{') ||
               (p->t.kind == WORD_NAME && !is_name(p, "else") && !is_name(p, "or") &&
                !is_name(p, "and") && !is_name(p, "is") && !is_name(p, "if"))) {
        arguments = parse_postfix(p, parse_primary(p));
    }
    node *n = named(p, NODE_TEST, name, of, arguments);
    return negated ? join(p, NODE_NOT, line, n, NULL) : n;
}

/* Filters, tests and calls after an expression. */
static node *parse_filters(parser *p, node *n)
{
    while (heap_ok(p->r) && n) {
        uint32_t line = p->t.line;
        if (take_sign(p, '|'))
            n = parse_filter(p, n);
        else if (take_name(p, "is"))
            n = parse_test(p, n);
        else if (take_sign(p, '('))
            n = join(p, NODE_CALL, line, n, parse_arguments(p));
        else
            break;
    }
    return n;
}

static node *parse_unary(parser *p, bool filters)
{
    uint32_t line = p->t.line;
    node *n = NULL;
    if (deeper(p)) {
        if (take_sign(p, '-'))
            n = join(p, NODE_NEGATE, line, parse_unary(p, false), NULL);
        else if (take_sign(p, '+'))
            n = join(p, NODE_PLUS, line, parse_unary(p, false), NULL);
        else
            n = parse_primary(p);
        n = parse_postfix(p, n);
        if (filters)
            n = parse_filters(p, n);
    }
    p->depth--;
    return n;
}

/* Operators of one precedence, from the left: each of `signs` between two of what `inner` reads. */
static node *parse_chain(parser *p, const char *signs, node *(*inner)(parser *p))
{
    node *n = inner(p);
    while (heap_ok(p->r) && p->t.kind == WORD_SIGN && strchr(signs, p->t.sign)) {
        char sign = p->t.sign;
        uint32_t line = p->t.line;
        advance(p);
        n = join(p, NODE_BINARY, line, n, inner(p));
        if (n)
            n->sign = sign;
    }
    return n;
}

static node *parse_filtered(parser *p)
{
    return parse_unary(p, true);
}

static node *parse_power(parser *p)
{
    return parse_chain(p, (const char[]){SIGN_POWER, 0}, parse_filtered);
}

static node *parse_product(parser *p)
{
    return parse_chain(p, (const char[]){'*', '/', '%', SIGN_FLOOR_DIV, 0}, parse_power);
}

static node *parse_concat(parser *p)
{
    uint32_t line = p->t.line;
    node *first = parse_product(p);
    if (!is_sign(p, '~'))
        return first;
    list items = {0};
    add(&items, first);
    while (heap_ok(p->r) && take_sign(p, '~'))
        add(&items, parse_product(p));
    return join(p, NODE_CONCAT, line, items.first, NULL);
}

static node *parse_sum(parser *p)
{
    return parse_chain(p, "+-", parse_concat);
}

/* Consumes the sign of a comparison and returns it; 0: there is none. */
static char take_comparison(parser *p)
{
    char sign = 0;
    if (p->t.kind == WORD_SIGN &&
        strchr((const char[]){'<', '>', SIGN_EQ, SIGN_NE, SIGN_LE, SIGN_GE, 0}, p->t.sign))
        sign = p->t.sign;
    else if (is_name(p, "in"))
        sign = 'i';
    else if (is_name(p, "not"))
        sign = 'n';
    if (sign)
        advance(p);
    if (sign == 'n' && !take_name(p, "in"))
        unexpected(p, "\"in\"");
    return sign;
}

static node *parse_comparison(parser *p)
{
    uint32_t line = p->t.line;
    node *first = parse_sum(p);
    list operands = {0};
    for (char sign; heap_ok(p->r) && (sign = take_comparison(p)) != 0;) {
        node *operand = join(p, NODE_OPERAND, line, parse_sum(p), NULL);
        if (operand)
            operand->sign = sign;
        add(&operands, operand);
    }
    return operands.first ? join(p, NODE_COMPARE, line, first, operands.first) : first;
}

static node *parse_not(parser *p)
{
    uint32_t line = p->t.line;
    if (!is_name(p, "not"))
        return parse_comparison(p);
    node *n = NULL;
    advance(p);
    if (deeper(p))
        n = join(p, NODE_NOT, line, parse_not(p), NULL);
    p->depth--;
    return n;
}

/* "and" or "or" between what `inner` reads. */
static node *parse_words(parser *p, const char *word, node_kind kind, node *(*inner)(parser *p))
{
    uint32_t line = p->t.line;
    node *n = inner(p);
    while (heap_ok(p->r) && take_name(p, word))
        n = join(p, kind, line, n, inner(p));
    return n;
}

static node *parse_and(parser *p)
{
    return parse_words(p, "and", NODE_AND, parse_not);
}

static node *parse_or(parser *p)
{
    return parse_words(p, "or", NODE_OR, parse_and);
}

static node *parse_expression(parser *p)
{
    node *n = NULL;
    if (deeper(p)) {
        uint32_t line = p->t.line;
        n = parse_or(p);
        while (heap_ok(p->r) && take_name(p, "if")) {
            node *test = parse_or(p);
            n = join(p, NODE_CHOICE, line, test, n);
            if (n && take_name(p, "else"))
                n->c = parse_expression(p);
        }
    }
    p->depth--;
    return n;
}

/* An expression, or several with commas, which are a tuple. */
static node *parse_tuple(parser *p)
{
    uint32_t line = p->t.line;
    int n;
    bool comma;
    node *items = parse_items(p, 0, &n, &comma);
    if (n == 0)
        return unexpected(p, "an expression");
    return n == 1 && !comma ? items : join(p, NODE_TUPLE, line, items, NULL);
}

/* ---- Statements ---- */

static node *parse_body(parser *p, const char *const *ends);

static bool is_one_of(const parser *p, const char *const *names)
{
    for (; *names; names++)
        if (is_name(p, *names))
            return true;
    return false;
}

/* Up to {% END %}, which is consumed. */
static node *parse_block(parser *p, const char *end)
{
    node *body = parse_body(p, (const char *const[]){end, NULL});
    advance(p);
    want_end(p);
    return body;
}

/* {% else %} and its block, if there is one, up to {% END %}, which is consumed. */
static node *parse_otherwise(parser *p, const char *end)
{
    bool otherwise = take_name(p, "else");
    if (!otherwise)
        advance(p);
    want_end(p);
    return otherwise ? parse_block(p, end) : NULL;
}

/* After "if". */
static node *parse_if(parser *p, uint32_t line)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    node *first = NULL, *last = NULL;
    do {
        node *n = new_node(p, NODE_IF, line);
        node *test = parse_tuple(p);
        want_end(p);
        node *body = parse_body(p, ends);
        if (!n || !heap_ok(p->r))
            return NULL;
        n->a = test;
        n->b = body;
        if (last)
            last->d = n;
        else
            first = n;
        last = n;
        line = p->t.line;
    } while (take_name(p, "elif"));
    last->c = parse_otherwise(p, "endif");
    return first;
}

/* Names to which something is assigned: one, or several with commas, which are a tuple. */
static node *parse_target(parser *p)
{
    list names = {0};
    uint32_t line = p->t.line;
    bool parentheses = take_sign(p, '('), comma = false;
    do {
        if (p->t.kind != WORD_NAME || is_name(p, "in"))
            break;
        add(&names, named(p, NODE_NAME, p->t, NULL, NULL));
        advance(p);
        comma = is_sign(p, ',');
    } while (heap_ok(p->r) && take_sign(p, ','));
    if (parentheses)
        want_sign(p, ')');
    if (!names.first)
        return unexpected(p, "a name");
    return names.first->next || comma ? join(p, NODE_TUPLE, line, names.first, NULL) : names.first;
}

static node *parse_for(parser *p, uint32_t line)
{
    node *n = new_node(p, NODE_FOR, line);
    node *target = parse_target(p);
    if (!take_name(p, "in"))
        return unexpected(p, "\"in\"");
    /* "if" belongs to the loop: no conditional expression here. */
    node *over = parse_or(p), *condition = NULL;
    if (is_sign(p, ','))
        return stop(p, DREY_ERR_UNSUPPORTED, "a loop over several expressions without brackets");
    if (take_name(p, "if"))
        condition = parse_expression(p);
    if (is_name(p, "recursive"))
        return stop(p, DREY_ERR_UNSUPPORTED, "recursive loops are not supported");
    want_end(p);
    p->loops++;
    node *body = parse_body(p, (const char *const[]){"else", "endfor", NULL});
    p->loops--;
    node *otherwise = parse_otherwise(p, "endfor");
    if (!n || !heap_ok(p->r))
        return NULL;
    n->a = target;
    n->b = over;
    n->c = body;
    n->d = condition;
    n->e = otherwise;
    return n;
}

/* NAME | FILTER ...: the filters, the last one first; NULL: there are none. */
static node *parse_block_filters(parser *p, bool first)
{
    node *filters = NULL;
    while (heap_ok(p->r) && (first || take_sign(p, '|'))) {
        filters = parse_filter(p, filters);
        first = false;
    }
    return filters;
}

/* A block whose body does not belong to the loops around it. */
static node *parse_apart(parser *p, node *n, const char *end)
{
    int loops = p->loops;
    want_end(p);
    p->loops = 0;
    node *body = parse_block(p, end);
    p->loops = loops;
    if (n)
        n->c = body;
    return n;
}

static node *parse_set(parser *p, uint32_t line)
{
    node *target = parse_target(p);
    if (target && target->kind == NODE_NAME && take_sign(p, '.'))
        target = named(p, NODE_MEMBER, want_name(p, "a name"), target, NULL);
    if (take_sign(p, '=')) {
        node *from = parse_tuple(p);
        want_end(p);
        return join(p, NODE_SET, line, target, from);
    }
    node *filters = parse_block_filters(p, false);
    return parse_apart(p, join(p, NODE_SET_BLOCK, line, target, filters), "endset");
}

static node *parse_parameters(parser *p)
{
    list parameters = {0};
    want_sign(p, '(');
    while (heap_ok(p->r) && !is_sign(p, ')')) {
        token name = want_name(p, "a parameter's name");
        node *n = named(p, NODE_KEYWORD, name, NULL, NULL);
        if (n && take_sign(p, '='))
            n->a = parse_expression(p);
        else if (parameters.first && n && parameters.first->a)
            return stop(p, DREY_ERR_FORMAT, "a parameter without a default after one that has it");
        add(&parameters, n);
        if (!take_sign(p, ','))
            break;
    }
    want_sign(p, ')');
    return parameters.first;
}

static node *parse_macro(parser *p)
{
    token name = want_name(p, "a macro's name");
    node *parameters = parse_parameters(p);
    return parse_apart(p, named(p, NODE_MACRO, name, NULL, parameters), "endmacro");
}

static node *parse_jump(parser *p, node_kind kind, uint32_t line)
{
    if (p->loops == 0)
        return stop(p, DREY_ERR_FORMAT, "break or continue outside of a loop");
    want_end(p);
    return new_node(p, kind, line);
}

static node *unknown_statement(parser *p, token name)
{
    p->r->line = name.line;
    if (name.v.n >= 3 && (memcmp(name.v.text, "end", 3) == 0 ||
                          memcmp(name.v.text, "els", 3) == 0 || memcmp(name.v.text, "eli", 3) == 0))
        heap_fail(p->r, DREY_ERR_FORMAT, "{%% %.*s %%} closes nothing that is open",
                  (int)(name.v.n < 40 ? name.v.n : 40), name.v.text);
    else
        heap_fail(
            p->r, DREY_ERR_UNSUPPORTED,
            "the statement {%% %.*s %%} is not supported (for, if, set, macro, filter, break, "
            "continue, generation and raw are)",
            (int)(name.v.n < 40 ? name.v.n : 40), name.v.text);
    return NULL;
}

/* After "{%". */
static node *parse_statement(parser *p)
{
    token name = want_name(p, "a statement");
    uint32_t line = name.line;
    value word = name.v;
    if (!heap_ok(p->r))
        return NULL;
    if (string_is(word, "if"))
        return parse_if(p, line);
    if (string_is(word, "for"))
        return parse_for(p, line);
    if (string_is(word, "set"))
        return parse_set(p, line);
    if (string_is(word, "macro"))
        return parse_macro(p);
    if (string_is(word, "filter")) {
        node *filters = parse_block_filters(p, true);
        return parse_apart(p, join(p, NODE_FILTER_BLOCK, line, NULL, filters), "endfilter");
    }
    if (string_is(word, "generation"))
        return parse_apart(p, new_node(p, NODE_SCOPE, line), "endgeneration");
    if (string_is(word, "break"))
        return parse_jump(p, NODE_BREAK, line);
    if (string_is(word, "continue"))
        return parse_jump(p, NODE_CONTINUE, line);
    return unknown_statement(p, name);
}

static node *parse_print(parser *p)
{
    uint32_t line = p->t.line;
    node *n = join(p, NODE_PRINT, line, parse_tuple(p), NULL);
    if (p->t.kind == WORD_PRINT_END)
        advance(p);
    else
        unexpected(p, "\"}}\"");
    return n;
}

/* Statements up to {% END, where the next word is the end's name; ends NULL: all of the
 * template. */
static node *parse_body(parser *p, const char *const *ends)
{
    list body = {0};
    if (!deeper(p))
        return NULL;
    while (heap_ok(p->r)) {
        token t = p->t;
        if (t.kind == WORD_END) {
            if (ends && heap_ok(p->r))
                unexpected(p, ends[0]);
            break;
        }
        advance(p);
        if (t.kind == WORD_DATA) {
            add(&body, named(p, NODE_DATA, t, NULL, NULL));
        } else if (t.kind == WORD_PRINT_BEGIN) {
            add(&body, parse_print(p));
        } else {
            if (ends && is_one_of(p, ends))
                break;
            add(&body, parse_statement(p));
        }
    }
    p->depth--;
    return body.first;
}

node *jinja_parse(heap *r, const char *chat_template, size_t n)
{
    parser p = {.r = r};
    lexer_init(&p.lexer, r, lexer_source(r, chat_template, n));
    advance(&p);
    node *body = parse_body(&p, NULL);
    r->line = 0;
    return heap_ok(r) ? body : NULL;
}
