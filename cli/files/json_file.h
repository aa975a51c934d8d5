/* JSON for other programs: files that are there whole or not at all. */
#pragma once

#include "common/json_buffer.h"
#include "drey/drey_plan.h"
#include "drey/drey_session.h"

#include <stdio.h>

/* Fails early where json_write would fail after a long run, the folder being missing or closed, and
 * where it would replace a model. NULL: nothing is to be written. */
drey_status json_check_path(const char *path, drey_error *err);

/* Has put write to path: into a new file next to it that then takes its place, so that a reader
 * never sees half of it. "-" is standard output; a device or pipe is written to as it is. put
 * returns false, with errno, where it fails. */
typedef bool file_put_fn(FILE *file, void *user);
drey_status file_write(const char *path, file_put_fn *put, void *user, drey_error *err);
/* The same for JSON, which it ends and frees. */
drey_status json_write(const char *path, json_buffer *b, drey_error *err);

/* Begins what a command has to report: its version, and CPU, cores, kernel and memory of this
 * machine. */
json_writer *json_report_begin(json_buffer *b);

/* Members of an object: a plan with what it predicts; */
void json_plan(json_writer *w, const drey_plan *plan);
/* the statistics of a run, keys as documented in drey(1); */
void json_statistics(json_writer *w, const drey_statistics *s);
/* writes results of drafting, and of early exits. */
void json_speculation(json_writer *w, const drey_speculation *c);
void json_exits(json_writer *w, const drey_exits *c);
/* Items of an array: the engine's units. */
void json_units(json_writer *w, const drey_engine *engine);
