/* A grammar as its readers build it: rules, each an expression over characters.
 *
 *   gbnf.c          llama.cpp's GBNF
 *   regex.c         regular expressions
 *   json_schema.c   JSON Schema
 *
 * An expression is an index into a table, so that a part can be used in many places. Building never
 * fails: what has no room is dropped, and grammar_rules_check says so once at the end. */
#pragma once

#include "common/error.h"

typedef struct tokenizer tokenizer;

typedef int32_t expr; /* EXPR_EMPTY: matches the empty text */
enum { EXPR_EMPTY = 0, EXPR_NEVER = 1, REPEAT_FOREVER = -1 };

typedef enum expr_kind {
    EXPR_IS_EMPTY,
    EXPR_IS_NEVER,
    EXPR_IS_BYTES,   /* bytes[a .. a + b) */
    EXPR_IS_CLASS,   /* a character of ranges[a .. a + b) */
    EXPR_IS_SEQ,     /* a, then b */
    EXPR_IS_ALT,     /* a or b */
    EXPR_IS_REPEAT,  /* a, `least` to `most` times */
    EXPR_IS_RULE,    /* rule a */
    EXPR_IS_EACH,    /* sets[a] */
    EXPR_IS_COUNTED, /* a, in which `least` to `most` ticks come */
    EXPR_IS_TICK     /* nothing: one more in what is counted */
} expr_kind;

typedef struct expr_node {
    expr_kind kind;
    int32_t a, b, least, most;
} expr_node;

/* Each of items[first .. first + n) once at most and in any order, those that are required always.
 * Between them is the separator, and any number of others. */
enum { EACH_MOST = 64 };
typedef struct each_set {
    expr separator, other; /* EXPR_EMPTY, EXPR_NEVER: there is none */
    int32_t first, n;      /* n: at most EACH_MOST */
    uint64_t required;     /* bits */
} each_set;

typedef struct char_range { /* code points, both included */
    uint32_t from, to;
} char_range;

typedef struct grammar_rule {
    int32_t name, n_name; /* in bytes[] */
    expr body;            /* -1: used, but not defined yet */
    int32_t next;         /* with the same hash of the name */
} grammar_rule;

enum {
    RULES_MOST_EXPRS = 48 << 10,
    RULES_MOST_RANGES = 32 << 10,
    RULES_MOST_BYTES = 320 << 10,
    RULES_MOST_RULES = 12 << 10,
    RULES_MOST_SETS = 2 << 10,
    RULES_MOST_ITEMS = 8 << 10, /* items of all sets */
    RULES_BUCKETS = 1 << 12,
    RULES_MOST_REPEATS = 1 << 29,
    RULES_LEFT_OUT_BYTES = 1024
};

typedef struct grammar_rules {
    expr_node exprs[RULES_MOST_EXPRS];
    char_range ranges[RULES_MOST_RANGES];
    uint8_t bytes[RULES_MOST_BYTES];
    bool cuts[RULES_MOST_BYTES]; /* the byte ends a token inside of its text (token_cuts.h) */
    grammar_rule rules[RULES_MOST_RULES];
    int32_t buckets[RULES_BUCKETS]; /* hash table of rules by name; -1: none */
    each_set sets[RULES_MOST_SETS];
    expr items[RULES_MOST_ITEMS];
    int32_t n_exprs, n_ranges, n_bytes, n_rules, n_sets, n_items;
    bool full;
    bool plainly; /* asked for: schemas are read so that they have few rules */
    bool widened; /* some were not */
    char left_out[RULES_LEFT_OUT_BYTES]; /* places of what is not held, with ", " between them */
    size_t n_left_out;
    /* tokenizer with the tokens that a grammar may name; NULL: none's */
    const tokenizer *tokenizer;
} grammar_rules;

/* Memory of this size is the caller's; nothing has to be freed. */
void grammar_rules_init(grammar_rules *g);
/* DREY_ERR_USAGE: it did not fit. */
drey_status grammar_rules_check(const grammar_rules *g, drey_error *err);

/* Notes the place of something that the grammar does not hold: once, and "..." where there is no
 * more room. Bytes that an HTTP field cannot have are written as %41. */
void grammar_rules_leave_out(grammar_rules *g, const char *place, size_t n);

expr expr_bytes(grammar_rules *g, const void *bytes, size_t n);
expr expr_text(grammar_rules *g, const char *text);
/* The same in parts: keep some, then make one of all that were kept since n_bytes was `from`. */
void grammar_rules_keep(grammar_rules *g, const void *bytes, size_t n);
expr expr_kept(grammar_rules *g, int32_t from);
/* A character of (but_not: of none of) ranges[0..n), which may overlap and are sorted here. */
expr expr_class(grammar_rules *g, char_range *ranges, int32_t n, bool but_not);
expr expr_seq(grammar_rules *g, expr a, expr b);
expr expr_alt(grammar_rules *g, expr a, expr b);
/* most: REPEAT_FOREVER, or at least `least`. */
expr expr_repeat(grammar_rules *g, expr a, int32_t least, int32_t most);
expr expr_rule(grammar_rules *g, int32_t rule);
/* set->first is set here. Items that are EXPR_NEVER and not required are left out by the caller. */
expr expr_each(grammar_rules *g, const each_set *set, const expr *items);
/* Makes a counted expression, which ends `a`: nothing but rules' last parts may be between it and
 * its ticks. */
expr expr_counted(grammar_rules *g, expr a, int32_t least, int32_t most);
expr expr_tick(grammar_rules *g);
/* One of some texts, each an expr_bytes (or EXPR_EMPTY); they are sorted here. What they begin with
 * in common is there once. */
expr expr_one_of(grammar_rules *g, expr *texts, int32_t n);

/* The rule of that name; a new one without a body if there is none. */
int32_t rule_named(grammar_rules *g, const char *name, size_t n);
/* A new rule; the name is for messages alone. */
int32_t rule_new(grammar_rules *g, const char *name);
/* Returns a rule's name for a message: at most 60 bytes, printable. */
const char *rule_shown(const grammar_rules *g, int32_t rule, char out[static 64]);

/* Sorted and merged, in place; returns how many remain. */
int32_t ranges_sort(char_range *ranges, int32_t n);
/* All code points that are not in the sorted ranges[0..n), surrogates left out; out has room for
 * n + 2. Returns how many. */
int32_t ranges_invert(const char_range *ranges, int32_t n, char_range *out);
