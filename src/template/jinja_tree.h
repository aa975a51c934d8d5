/* A Jinja template as a tree, and the parser that makes it.
 *
 * It has the statements and expressions that chat templates use; errors name anything else of Jinja
 * and its line. Filters, tests and methods are looked up during rendering, so that a branch that is
 * not taken may contain unknown ones. */
#pragma once

#include "template/value.h"

typedef enum node_kind {
    /* Expressions. */
    NODE_CONSTANT, /* v */
    NODE_NAME,     /* v: the name */
    NODE_LIST,     /* a: items */
    NODE_TUPLE,    /* a: items */
    NODE_MAP,      /* a: NODE_PAIRs */
    NODE_PAIR,     /* a: key, b: item */
    NODE_MEMBER,   /* a.v */
    NODE_ITEM,     /* a[b] */
    NODE_SLICE,    /* a[b:c:d], each of b, c, d may be NULL */
    NODE_CALL,     /* a(b), b: arguments */
    NODE_KEYWORD,  /* an argument or parameter v=a; a NULL: a parameter without a default */
    NODE_FILTER,   /* a | v(b); a NULL: the text of a filter's or set's block */
    NODE_TEST,     /* a is v(b) */
    NODE_NOT,      /* not a */
    NODE_NEGATE,   /* -a */
    NODE_PLUS,     /* +a */
    NODE_AND,      /* a and b */
    NODE_OR,       /* a or b */
    NODE_BINARY,   /* a sign b */
    NODE_CONCAT,   /* a: what "~" stands between */
    NODE_COMPARE,  /* a, then NODE_OPERANDs b */
    NODE_OPERAND,  /* sign a; 'i': in, 'n': not in */
    NODE_CHOICE,   /* b if a else c; c NULL: undefined */
    /* Statements; bodies are lists. */
    NODE_DATA,         /* v */
    NODE_PRINT,        /* a */
    NODE_IF,           /* if a: b, else: d, a NODE_IF (elif), or c */
    NODE_FOR,          /* for a in b if d: c, where there is none: e */
    NODE_SET,          /* a = b; a: NODE_NAME, NODE_TUPLE or NODE_MEMBER of a name */
    NODE_SET_BLOCK,    /* a = c, through filters b (may be NULL) */
    NODE_MACRO,        /* v(b): c */
    NODE_FILTER_BLOCK, /* c through filters b */
    NODE_SCOPE,        /* c in its own scope: {% generation %} */
    NODE_BREAK,
    NODE_CONTINUE
} node_kind;

typedef struct node {
    uint8_t kind;
    char sign;
    uint32_t line;
    struct node *a, *b, *c, *d, *e;
    struct node *next; /* in its list */
    value v;
} node;

/* The template's statements; NULL also if there are none; failures are the room's. */
node *jinja_parse(heap *r, const char *chat_template, size_t n);
