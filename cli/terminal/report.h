/* Tables for people: the memory plan, the statistics of a run, a machine's limits. */
#pragma once

#include "common/json_writer.h"
#include "drey/tune.h"

#include <stdio.h>

/* The plan as a table and a bar. alone_bytes: the smallest budget without its draft; 0: not known.
 * Colours only if out is standard error. */
void report_plan(FILE *out, const drey_plan *plan, drey_drafter drafter, uint64_t alone_bytes);

/* Sources of a figure. */
typedef enum report_source { REPORT_UNKNOWN, REPORT_STATED, REPORT_MEASURED } report_source;
const char *report_source_name(report_source source);

/* Prints why this draft was taken, in a line; nothing for "". */
void report_draft(FILE *out, const char *why);
/* The predicted speed, and what it is made of. */
void report_prediction(FILE *out, const drey_outlook *look, report_source disk);

/* Prints what a larger budget would buy. */
void report_more(FILE *out, const drey_plan *plan, const drey_plan *more);

/* The plan in two lines, before a run. */
void report_plan_briefly(FILE *out, const drey_plan *plan);

/* Prints who computes which layers, and what each has read. Nothing for NULL. */
void report_ranks(FILE *out, const drey_ranks *ranks, bool drafts);
void report_rank_reads(FILE *out, const drey_ranks *ranks);
/* A rank that might be; what passes around all of them would reach, of rank 0's plan. */
void report_rank_plan(FILE *out, int32_t i, const drey_rank_plan *r, report_source disk);
void report_rank_prediction(FILE *out, const drey_plan *plan);

/* Speed and memory of a text in two lines, and what makes it another text than the target's. */
void report_briefly(FILE *out, const drey_statistics *s, const drey_speculation *c,
                    const drey_exits *x);
void report_statistics(FILE *out, const drey_statistics *s);
/* Prints what came of drafting; nothing where nothing was drafted. */
void report_speculation(FILE *out, const drey_speculation *c);
/* Prints what each unit did. Nothing where there is one cluster. */
void report_units(FILE *out, const drey_engine *engine);
/* Complains of each unit that has failed. */
void report_failed_units(const drey_engine *engine);
/* Prints what came of early exits; nothing where they are off. */
void report_exits(FILE *out, const drey_exits *c);

/* The limits of a machine as one line, and as members of root. */
void report_limits(const drey_limits *limits, FILE *out, json_writer *root);
