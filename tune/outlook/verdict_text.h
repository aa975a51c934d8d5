/* An outlook in a person's words. */
#pragma once

#include "drey/tune.h"

/* Fills verdict and warning by what else the outlook has. */
void verdict_write(drey_outlook *outlook, const drey_engine_options *options);
void verdict_warn(drey_outlook *outlook, const drey_engine_options *options);
