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
 * A decoder that reads an encoder's output does the left half twice, the second time with the keys
 * and values of that output (cache_cross), which do not change.
 *
 * Where norms are of sums (arch.h: norms_sums), n = x, m = x, and x = norm(x + y) in place of x +=.
 *
 * Each step leaves the next product's activations in the workspace (pass_steps.h). */
#pragma once

#include "model/pass.h"

/* In this order, of layer p->layer. */
void layer_norm_attention(model_pass *p);                 /* for Q, K, V */
drey_status layer_attend(model_pass *p, drey_error *err); /* their products, to the cache; for
                                                           * O. DREY_ERR_IO: what is away */
void layer_norm_cross(model_pass *p);   /* of a decoder with an encoder: adds O; for its Q */
void layer_attend_cross(model_pass *p); /* its product; for its O */
void layer_norm_ffn(model_pass *p);     /* adds O; for Gate and Up */
void layer_activate(model_pass *p);     /* their products; for Down */
void layer_add_ffn(model_pass *p);      /* adds Down */

/* After the last layer of an encoder, whose rows are all of the input: the norm, for the readers'
 * products; and their results, to the cross cache (runner.cross). */
void layer_norm_output(model_pass *p);
void layer_store_output(model_pass *p); /* of p->reader */
