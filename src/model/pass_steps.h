/* What a pass does between its products: embedding, norms, rotation, attention, activation.
 *
 * Each step leaves the next product's activations in the workspace, quantised as its matrices want
 * them. Steps share the rows among all threads in tiles of TOKEN_TILE; one tile is done by the
 * calling thread (handing it out would cost more than the work), but for the widest step, whose
 * columns are then shared. */
#ifndef DREY_MODEL_PASS_STEPS_H
#define DREY_MODEL_PASS_STEPS_H

#include "model/pass.h"

/* Positions, angles and paths of the rows: pass_group.first_pending is set. */
void pass_place_rows(model_pass *p);
/* Deferred rows that lack layer p->layer become the pass's last ones. */
void pass_join(model_pass *p);
/* Those that have joined keep what they have come to: p->layer is the next. */
void pass_put_back(const model_pass *p);
/* Row `row` of the pass becomes deferred row i. */
void pass_keep_row(const model_pass *p, int32_t row, deferred_rows *d, int32_t i);
/* Tokens to the residual stream. DREY_ERR_IO. */
drey_status pass_embed(model_pass *p, drey_error *err);
/* In the order of a layer, of layer p->layer. */
void pass_norm_attention(model_pass *p); /* for Q, K, V */
void pass_attend(model_pass *p);         /* their products, to the cache; for O */
void pass_norm_ffn(model_pass *p);       /* adds O; for Gate and Up */
void pass_activate(model_pass *p);       /* their products; for Down */
void pass_add_ffn(model_pass *p);        /* adds Down */
/* Of the rows that need logits, which become rows 0 .. n_logits - 1; for the head. DREY_ERR_FORMAT:
 * they are not finite. */
drey_status pass_norm_head(model_pass *p, drey_error *err);

/* Strides of the workspace's arrays: [D], [H*S], [K*S], [F]. */
int64_t pass_embd_ld(const model_pass *p);
int64_t pass_q_ld(const model_pass *p);
int64_t pass_kv_ld(const model_pass *p);
int64_t pass_ff_ld(const model_pass *p);

#endif
