/* Questions that are answered with yes or no. */
#pragma once

#include <stdbool.h>

/* Asks on standard error and reads a line of standard input, which a person types. An empty line
 * means `usual`; what is neither yes nor no, the end of input, or a signal means no. */
bool ask_yes(const char *question, bool usual);
