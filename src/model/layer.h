/* What a layer computes between its products, of any architecture: what its description
 * (layer_layout, model_shape) leaves out is left out, and nothing asks for a model's name.
 *
 *   n = norm(x), or [norm(e); norm(x)] m = norm(x)
 *   q, k, v = Q n, K n, V n (+ biases) g, u = Gate m, Up m (+ biases)
 *   q, k = norm of each head (or not)
 *   q, k = rotated                     y = Down (act(g) * u) + bias
 *   y = O attend(q, k, v) + bias       x += scale * norm(y), or of y
 *   x += scale * norm(y), or of y
 *
 * Each step leaves the next product's activations in the workspace (pass_steps.h). */
#pragma once

#include "model/pass.h"

/* In this order, of layer p->layer. */
void layer_norm_attention(model_pass *p); /* for Q, K, V */
void layer_attend(model_pass *p);         /* their products, to the cache; for O */
void layer_norm_ffn(model_pass *p);       /* adds O; for Gate and Up */
void layer_activate(model_pass *p);       /* their products; for Down */
void layer_add_ffn(model_pass *p);        /* adds Down */
