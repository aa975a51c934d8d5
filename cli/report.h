/* Tables for people: the memory plan, the statistics of a run. */
#ifndef DREY_CLI_REPORT_H
#define DREY_CLI_REPORT_H

#include "drey/drey.h"

#include <stdio.h>

/* The plan as a table. Colours only if out is standard error. */
void report_plan(FILE *out, const drey_plan *plan);

/* "disk 1.50G/s: at most 2.1 tokens/s without a draft", or what a disk would have to do. */
void report_ceiling(FILE *out, const drey_plan *plan);

void report_statistics(FILE *out, const drey_statistics *s);

#endif
