/* Finds what is bold, a heading or code in a growing text in Markdown.
 *
 * A character's style depends on the characters before it in its line, and on whether the line is
 * in a block of code: nothing that is on the screen changes its style when more comes, and a text
 * that is taken back leaves no trace. The marks themselves (**, `, #) stay in the text, so that
 * what is copied from a screen is what the model wrote. What is not closed ends with its line. A
 * parser of whole documents (md4c, cmark) knows a style only once it is closed, and drops the
 * marks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum text_style {
    TEXT_STYLE_PLAIN,
    TEXT_STYLE_BOLD,
    TEXT_STYLE_CODE,
    TEXT_STYLE_HEADING
} text_style;

typedef struct text_styles { /* all zero at the beginning of a text */
    char fence;              /* the mark of the block of code around the line; 0: there is none */
    int32_t n_fence;         /* marks that opened it */
    /* State of the line: */
    bool begun;  /* it has more than blanks and the marks of lists */
    char opens;  /* a block of code begins after it, with this mark */
    bool closes; /* the block ends here unless more than blanks follow */
    bool heading, bold, escaped;
    int32_t n_code; /* marks that opened the code in it; 0: none is open */
    /* Marks directly before the next character: */
    char run; /* 0: none */
    int32_t n_run;
    bool run_is_first; /* nothing of the line is before them */
    uint32_t before;   /* the character before them, or before the next one; 0: none */
} text_styles;

/* Goes over a character and returns its style. */
text_style text_styles_pass(text_styles *s, uint32_t code);
/* Returns whether the line, as far as it is known, belongs to a block of code: such lines are not
 * broken at blanks. */
bool text_styles_in_block(const text_styles *s);

/* The sequences of a terminal around text of a style; "" for plain text. */
extern const char *const text_style_begin[], *const text_style_end[];
