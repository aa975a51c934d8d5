/* Pictures of a trace. */
#pragma once

#include "cli/files/trace_file.h"

#include <stdio.h>

/* The lanes of EdgeLLM's Fig. 21 over turns [first, last] of the file's list, and the tokens that
 * are drafted, verified and written meanwhile. */
void trace_svg_lanes(FILE *out, const trace_file *t, int first, int last);

/* A turn's tree: each node's token and confidence, the accepted path, and the target's own token
 * after it. False: memory is short. */
bool trace_svg_tree(FILE *out, const trace_file *t, const trace_turn *turn);
