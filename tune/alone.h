/* An engine with one session that measures: passes over rows that mean nothing. */
#pragma once

#include "engine/config.h"

/* An engine for these options, with room for passes of `rows` rows, and its session; to be closed
 * in any case. hooks: what else is set; least_logit_rows is set here. */
drey_status alone_open(drey_engine **e, drey_session **s, drey_engine_options options,
                       engine_hooks hooks, int32_t rows, drey_error *err);
void alone_close(drey_engine **e, drey_session **s);

/* The time that a pass over a chain of n rows computes, without its waits for the disk. Its rows
 * are dropped afterwards. */
drey_status alone_pass(drey_session *s, int32_t n, double *seconds, drey_error *err);
