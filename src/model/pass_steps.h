/* Steps of a pass around its layers (block/block.h has what is inside of one): places, embedding,
 * the head; and how steps share their rows.
 *
 * Each step leaves the next product's activations in the workspace, quantised as its matrices want
 * them. Steps share the rows among all threads in tiles of TOKEN_TILE; one tile is done by the
 * calling thread (handing it out would cost more than the work), but for the widest step, whose
 * columns are then shared. */
#pragma once

#include "model/pass.h"
#include "model/pass_program.h"
#include "weights/product.h"

typedef struct act_numbers act_numbers;

/* Positions, angles and paths of the rows: pass_group.first_pending is set. */
void pass_place_rows(model_pass *p);
/* Deferred rows that lack layer p->layer become the pass's last ones. */
void pass_join(model_pass *p);
/* Puts back the rows that have joined, with what they have come to: p->layer is the next. */
void pass_put_back(const model_pass *p);
/* Row `row` of the pass becomes deferred row i. */
void pass_keep_row(const model_pass *p, int32_t row, deferred_rows *d, int32_t i);
/* Rows [first, first + n) go, and those after them take their places. Between two layers. */
void pass_drop_rows(model_pass *p, int32_t first, int32_t n);
/* Copies the target's states, in a layer after a target, to where the product reads them that makes
 * rows of them. Returns whether there are any. */
bool pass_take_tapped(model_pass *p);
/* Reads the part of the rows' caches that is in the file (pass_offload.c): asks for what the
 * present layer and those after it will read, as far as there is room; gives up what was asked for.
 * */
void pass_offload_begin(model_pass *p);
void pass_offload_leave(model_pass *p);
/* The chunks of a run's cache that its rows see in the present layer, first to *end. */
int32_t pass_offload_chunks(const model_pass *p, int32_t group, int32_t layer, int32_t *end);
/* The next one, in that order, which pass_offload_next gives back. */
drey_status pass_offload_wait(model_pass *p, const uint8_t **keys, drey_error *err);
void pass_offload_next(model_pass *p);
/* Tokens to the residual stream; of a layer after a target, which is there already, next to it.
 * DREY_ERR_IO. */
drey_status pass_embed(model_pass *p, drey_error *err);
/* Copies out the rows of taps at the layers that are complete. */
void pass_take_taps(model_pass *p);
/* The pass stops here: fills the taps of later layers with what its rows are now. */
void pass_take_left_taps(model_pass *p);
/* Makes the rows that need logits the pass's only ones: they are head_row[0 .. n_logits) of x.
 * DREY_ERR_FORMAT: they are not finite. */
drey_status pass_take_head(model_pass *p, drey_error *err);
/* Norms these for the head, or takes them as they are in y where hyper connections have made them.
 */
void pass_norm_head(model_pass *p);
/* Applies what the model does to logits after the head: of rows [n][pass_logits_stride]; of n
 * numbers, of these ids, or NULL: of the head's rows and then the table's. */
void pass_finish_logits(model_pass *p);
void pass_finish(const runner *r, const int64_t *ids, float *logits, int64_t n);

/* Opens a product with what was quantised last; or one of no rows, which brings what is pinned of a
 * matrix that the pass does not multiply with. */
void pass_open_product(model_pass *p, const product *products, int32_t n);
void pass_open_loading(model_pass *p, weight *m);
/* Gives the rows to those who compute the layers after the own ones, if there are some. */
drey_status pass_send_remote(model_pass *p, drey_error *err);

/* Runs a step over the pass's rows, in tiles of TOKEN_TILE that threads take. */
void pass_each_row(model_pass *p, pass_rows_fn *step);
/* Says what the next product reads: k numbers of `source` per row, in the kinds that its matrices
 * (NULL: one that the layer has not) want. */
void pass_set_source(model_pass *p, const float *source, int64_t ld, int64_t k,
                     weight *const matrices[], int32_t n);
/* The same is read by more matrices. */
void pass_add_kinds(model_pass *p, weight *const matrices[], int32_t n);
/* Quantises rows [from, to) of that, from a multiple of TOKEN_TILE. */
void pass_quantise_rows(model_pass *p, int32_t from, int32_t to);
/* y = norm(x), of [D], as the architecture has it. norm NULL: x. y may be x if there is one. */
void pass_norm(const runner *r, float *y, const float *x, const float *norm, const float *bias);
/* gate = activation of gate and up [n], as the architecture has it, with the layer's numbers; up
 * NULL: there are no gates, and gate is what is activated. up is overwritten. */
void pass_activate(const runner *r, const act_numbers *numbers, float *gate, float *up, int64_t n);
/* x *= factor, unless that is 1. */
void pass_scale(float *x, float factor, int64_t n);

/* Numbers from one row of y to the next, and of other rows of D; of x. */
int64_t pass_embd_ld(const model_pass *p);
int64_t pass_x_ld(const model_pass *p);

/* ---- Rows of a table on the disk (pass_lookup.c), of models that have one ---- */

/* The token of a row of a pass, of its own ones and of deferred ones. */
int32_t pass_token(const model_pass *p, int32_t row);
/* Asks for the rows that the pass needs, at its beginning. DREY_ERR_IO. */
drey_status pass_ask_looked_up(model_pass *p, drey_error *err);
/* A deferred row has joined, as this one. */
void pass_join_looked_up(model_pass *p, int32_t row);
/* Blocks until they are here. DREY_ERR_IO. */
drey_status pass_wait_looked_up(model_pass *p, drey_error *err);
/* Numbers [from, from + n) of the row's `which`-th one, in whole blocks of its type. */
void pass_looked_up(const model_pass *p, int32_t row, int32_t which, int64_t from, int64_t n,
                    float *out, int32_t thread);
