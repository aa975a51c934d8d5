/* The first lines of a command that runs or plans a model: what it is and what to expect. */
#pragma once

#include "cli/commands/models.h"

#include <stdio.h>

/* The verdict of m->outlook and what a draft would change, to stdout or stderr, unless quiet; the
 * warning of a budget that is more than the machine has in any case. */
void verdict_show(FILE *out, const models *m, const cli_settings *settings);

/* Hint that says why no model drafts and which one would, where a person can change that: texts
 * that wait for the disk gain most. "": nothing to say. */
enum { VERDICT_HINT_BYTES = 500 };
void verdict_draft_hint(const models *m, const cli_settings *settings, char *out, size_t room);

/* The same of an engine on several ranks, to stderr; or of ranks that might be. The plan is that of
 * rank 0, whose predictions are of all. */
void verdict_show_ranks(FILE *out, const models *m);
void verdict_show_machines(FILE *out, const models *m, const drey_rank_plan *plan, int32_t n);
