/* Columns that characters take on a terminal: the one place that knows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns the columns of a character alone: 0 for marks and joiners, 1, or 2; -1: it is a control
 * character. By the C library's Unicode tables; where it has no UTF-8 locale, by blocks of wide
 * characters. */
int char_width(uint32_t code);
/* Returns whether terminals disagree about the place after a character: what joins emoji, chooses
 * their form or colour, or makes flags of letters. */
bool char_is_disputed(uint32_t code);
