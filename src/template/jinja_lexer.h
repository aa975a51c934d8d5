/* The words of a Jinja template: the text between tags, and the words in tags.
 *
 * As in Jinja with trim_blocks and lstrip_blocks, these are removed: a newline after a block or
 * comment, and the blanks before one that begins a line. "-" removes all white space on its side,
 * "+" keeps it. A newline at the template's end is removed. */
#pragma once

#include "template/value.h"

typedef enum token_kind {
    WORD_END,  /* end of the template */
    WORD_DATA, /* text as it is */
    WORD_BLOCK_BEGIN,
    WORD_BLOCK_END,
    WORD_PRINT_BEGIN,
    WORD_PRINT_END,
    WORD_NAME,
    WORD_STRING, /* quotes off, escapes undone */
    WORD_INT,
    WORD_FLOAT,
    WORD_SIGN /* an operator or bracket: sign */
} token_kind;

/* Operators of one character are themselves. */
enum {
    SIGN_EQ = 'E',       /* == */
    SIGN_NE = 'N',       /* != */
    SIGN_LE = 'L',       /* <= */
    SIGN_GE = 'G',       /* >= */
    SIGN_POWER = 'P',    /* ** */
    SIGN_FLOOR_DIV = 'D' /* // */
};

typedef struct token {
    uint8_t kind;
    char sign;
    uint32_t line;
    value v; /* value of data, names and literals */
} token;

typedef struct lexer {
    heap *r;
    const char *text;
    size_t n, at;
    uint32_t line;
    enum { IN_DATA, IN_RAW, BEFORE_PRINT, BEFORE_BLOCK, IN_PRINT, IN_BLOCK } state;
    char brackets[64]; /* the closing brackets of the open ones */
    int n_brackets;
    bool line_begins; /* `at` is where a line of text begins, in the sense of lstrip_blocks */
} lexer;

/* text[0..n) must stay valid; lexer_source makes it. */
void lexer_init(lexer *l, heap *r, value source);
/* The template with \n as its only kind of newline, and without one at its end. */
value lexer_source(heap *r, const char *chat_template, size_t n);
/* WORD_END at the end, and after a failure of the room. */
token lexer_next(lexer *l);
