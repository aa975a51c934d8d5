/* Lines for people, which break at blanks on a terminal: a terminal breaks them within words. */
#pragma once

#include "cli/terminal/terminal.h"

#include <stdint.h>
#include <stdio.h>

/* A stream for whole lines that come out at `out`, which is stdout or stderr: as they are, or,
 * where it is a terminal, in rows of its width, the further ones indented. A stream of the
 * program's lifetime. What is written to `out` itself between two lines keeps its place. */
FILE *page_of(FILE *out);
/* stdout or stderr, for a stream of page_of. */
FILE *page_target(FILE *page);

/* Columns of the terminal that a stream is, or its page; 0: it is none, or says nothing. */
int32_t page_columns(FILE *out);

/* One line, text[0..n) without its newline, in rows of so many columns. */
void page_break(FILE *out, const char *text, size_t n, int32_t columns);
/* Columns that a text takes; sequences of a terminal take none. */
int32_t page_width(const char *text, size_t n);
/* The sequence that begins a style in what is written to stdout, stderr or a page of theirs; "" in
 * other files, and where the terminal has no colours. */
const char *page_style(FILE *out, terminal_style style);
