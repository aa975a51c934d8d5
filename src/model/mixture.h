/* The feed-forward part of a layer that is a mixture of experts.
 *
 *   m = norm(x)                     w, chosen = the router's choice for each row (router.h)
 *   y = sum over the chosen experts e, by rising number, of
 *         w_e (Down_e act(Gate_e m + bias, Up_e m + bias) + bias), biases where there are some,
 *       + sigmoid(s . m) * (the shared expert's), where there is one
 *
 * A row's sum has one order and one place, mixture_add: neither slots nor waves, other rows or
 * threads can show in it. Experts are multiplied with in waves and batches (weights/experts.h):
 *
 *   ROUTE --choose--> [SHARED] --> bring a wave --> UP --activate--> DOWN --+--> add
 *                                       ^           ^------ next batch -----+
 *                                       +---------------- next wave --------+ */
#pragma once

#include "model/pass.h"

/* After the router's product: chooses, and begins the first wave's reads. DREY_ERR_FORMAT: the
 * router's numbers are not finite. */
drey_status mixture_choose(model_pass *p, drey_error *err);
/* Makes the next batch ready for its products; false: there is none. */
bool mixture_next(model_pass *p);
/* Products of the batch: its gates and ups, its downs. */
void mixture_begin_up(model_pass *p);
void mixture_begin_down(model_pass *p);
/* After all of them: ws->y is what the layer adds. */
void mixture_add(model_pass *p);
