/* Parts of a layer: blocks, each of which computes something from the residual stream and adds it
 * to that.
 *
 *   attention      x += O attend(Q n, K n, V n)         n = norm(x)
 *   latent         x += O Vb attend(Kb Qb norm(Qa n), norm(Kv n))          Kb, Vb: of each head
 *   cross          x += O attend(Q n, an encoder's output)
 *   delta net      x += Out (norm(o) * silu(Z n))       o = what a state gives for q (delta.h)
 *   state space    x += Out norm(y * silu(z))           y = what a state gives for C (delta.h)
 *   short conv     x += Out (c * taps of b * x of the rows before)         [b; c; x] = In n
 *   feed-forward   x += Down (act(Gate n) * Up n)
 *   experts        the same of the experts that a router chooses for each row, and of a shared one
 *
 *   n-grams        x += y + silu(taps of norm(y))       y = sigmoid(K e . x) V e, e of a table
 *   per-layer      x += Proj (gelu(Gate x) * what the layer knows of the row's token)
 *
 * Where the residual stream is of several parts (hyper_block.c), n is a mean of them, weighed by
 * gates, and each part gets its share of what is added.
 *
 * Architectures differ in forms of these (arch.h: FORM_...): where norms are, whether the
 * feed-forward part reads what attention reads (parallel), gates of what attention gives.
 *
 * Biases, norms of heads and of sums, windows, sinks, gates are there if the layer's tensors are
 * (layout.h); no block asks for a model's name. A block writes the steps that the program of a pass
 * has for it (pass_program.h). */
#pragma once

#include "model/layout.h"
#include "model/pass.h"
#include "model/pass_program.h"
#include "state/recurrent.h"

typedef struct kv_store kv_store;
typedef struct binder binder; /* model/binder.h */

struct block_class {
    const char *name;
    /* Binds the tensors of layer b->layer. */
    drey_status (*bind)(binder *b, layer_layout *y);
    /* Writes the steps of layer w->layer. */
    void (*write)(program_writer *w);
    /* Asks for its own buffers, the same for all layers, which it numbers from BUFFER_OWN on
     * (workspace.h). NULL: it has none. */
    void (*needs)(buffer_needs *n);
    bool attends; /* it has keys and values */
    /* Store of its state, and that one's sizes in a layer. NULL: it has none. */
    const store_class *store;
    void (*store_shape)(const model_shape *s, int32_t layer, store_shape *out);
};

extern const block_class ends_block, attention_block, cross_block, feed_forward_block,
    experts_block, latent_block, short_conv_block, delta_block, mamba_block, per_layer_block;
/* Hyper connections in front of a layer's first block, and of its other one (hyper_block.c). */
extern const block_class hyper_block, hyper_ffn_block;
/* Adds what the last tokens say, in front of a layer; it has a state besides the layer's
 * (ngram_block.c). */
extern const block_class ngram_block;
/* arch_layers.rows of these. */
void ngram_rows(const model_pass *p, int32_t row, int32_t token, int64_t *out);
/* The same layer of all. */
bool layer_has_ngrams(const model_shape *s, int32_t layer);

/* The blocks of a layer, in their order, and then NULL. */
const block_class *const *layer_blocks(const model_shape *s, int32_t layer);
/* The kinds of all layers' blocks. */
block_list list_blocks(const model_shape *s);

/* Says in which stores of model_cache_spec the layers have their places. */
void place_layers(model_layout *l);

/* ends_block stands for what is around the layers: it has buffers, and binds and writes nothing.
 * What comes before the layers: rows become the residual stream; and what comes after them: logits,
 * or the keys and values that the layers of a decoder read. */
void write_beginning(program_writer *w);
void write_ending(program_writer *w);

/* ---- For blocks ---- */

static inline const layer_layout *layer_of(const model_pass *p, const program_step *s)
{
    return &p->r->layout->layer[s->layer];
}

/* A buffer of the block whose step this is. */
static inline const workspace_buffer *block_buffer(const model_pass *p, const program_step *s,
                                                   int32_t buffer)
{
    return &p->r->ws->buffer[s->first_buffer + buffer];
}
/* Row i of one that has rows. */
static inline float *block_row(const model_pass *p, const program_step *s, int32_t buffer,
                               int32_t i)
{
    const workspace_buffer *b = block_buffer(p, s, buffer);
    return (float *)b->at + i * b->ld;
}
/* The same of the mix that is under way. */
static inline void *mix_buffer(const model_pass *p, int32_t buffer)
{
    return block_buffer(p, p->walk.step, buffer)->at;
}

/* Buffers of attention, which block_attend reads: rows of queries, keys, values and results, and
 * the rest is its own. */
enum {
    ATTEND_Q = BUFFER_OWN, /* [B][H*S] */
    ATTEND_K,              /* [B][K*S] */
    ATTEND_V,              /* [B][K*S] */
    ATTEND_OUT,            /* [B][H*S] */
    ATTEND_SCRATCH,        /* [n_threads + n_devices][attend_scratch_bytes] */
    ATTEND_RUNS,           /* attend_layer [max_groups + max_deferred]: runs of rows of one cache */
    ATTEND_MORE,           /* attend_more, the same: of models with an encoder */
    ATTEND_NOTHING,        /* [B] of 0: positions of rows that have none */
    ATTEND_SEEN,           /* [B]: positions that all rows of a run see */
    ATTEND_PARTIALS,       /* floats: of heads that several threads share */
    ATTEND_KEPT,           /* [B][2 H]: of attention that is left and continued */
    ATTEND_SPLIT,          /* attend_split, where there are several units */
    ATTEND_GATE,           /* [B][H*V], or of queries and gates in turn [B][H*2*S]: gates */
    ATTEND_OTHERS
};
void attend_needs(buffer_needs *n);
/* A step: attention to the rows before a row. */
drey_status attend_before(model_pass *p, const program_step *s, drey_error *err);
/* The factor of a position's queries, in a layer of this rotation. */
float attend_temperature(const model_shape *s, const attention_shape *a, int32_t position);
/* A thread's, or a device's. */
void *attend_scratch(const model_pass *p, const program_step *s, int32_t slot);

/* Forms of attention that some architectures have (arch.h), in attention_forms.c. */
/* The norms of heads, and the matrix of gates. */
drey_status block_bind_head_norms(binder *b, attention_tensors *t);
drey_status block_bind_gate(binder *b, attention_tensors *t);
/* Norms the heads of a row, queries or keys, each or all together. norm NULL: as they are. */
void block_norm_heads(const model_pass *p, const attention_tensors *t, float *x, const float *norm,
                      int32_t n_heads, int32_t head_dim);
/* Steps of rows: takes queries from where they and their gates are in turn; multiplies what
 * attention gives with its gates. */
void block_take_queries(model_pass *p, const program_step *s, int32_t from, int32_t to,
                        int32_t thread);
void block_gate_attended(model_pass *p, const program_step *s, int32_t from, int32_t to,
                         int32_t thread);

/* Binds a hyper connection of the model, or "blk.N" of the present layer in front. */
drey_status block_bind_hyper(binder *b, const char *name, hyper_tensors *t);
/* Writes the steps that make y of the rows that need logits, before the head. */
void write_hyper_head(program_writer *w);
/* Each part of x gets its share of y: rows [from, to). */
void block_add_to_parts(const model_pass *p, int32_t from, int32_t to);

/* Buffers of two products with an activation between them. */
enum {
    FFN_GATE = BUFFER_OWN, /* [B][F]; without gates it holds Up's product */
    FFN_UP,                /* [B][F] */
    FFN_OTHERS
};

/* y = norm(x) of rows [from, to). */
void block_norm(model_pass *p, const float *norm, const float *bias, int32_t from, int32_t to);
/* x += y of rows [from, to), with what becomes of y on its way. */
void block_add(const model_pass *p, const added_tensors *t, int32_t from, int32_t to);
/* The norm of the residual stream after a sum, of architectures that norm there; what surrounds a
 * feed-forward part. */
drey_status block_bind_sums(binder *b, const char *norm, added_tensors *t);
drey_status block_bind_ffn(binder *b, layer_layout *y);
/* A norm of rows that the architecture has, ROLE.weight and ROLE.bias. */
drey_status block_bind_norm(binder *b, const char *role, float **norm, float **bias);
/* The matrices of a layer's experts, which are in no pass: in front of all layers. */
drey_status block_bind_slots(binder *b, layer_layout *y);
/* Adds what the feed-forward part has made: a step of rows. */
void block_add_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread);
/* A step of rows: y = what the norm of a layer's first block has made, for others as well. */
void block_take_normed(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread);
/* Returns whether the model's feed-forward parts have gates. */
bool block_has_gate(const binder *b);
/* Writes the step that norms rows for the feed-forward part, after the sum of what came before it;
 * or takes what attention's norm has made of them. */
void block_write_ffn_norm(program_writer *w);
/* Biases and activation of gate and up: a step of columns. */
void block_activate(model_pass *p, const program_step *s, int32_t from, int32_t to, int64_t k_from,
                    int64_t k_to);
/* The mix of a layer with a running state (state/recurrent.h), whose units the threads share. Of
 * the present step's layer compute gets the pass as its user: a row's buffers have its number. */
void block_recur(model_pass *p, recurrent_rows_fn *compute);

/* Blocks with a running state have these in front of their own tensors (layer_layout.own). */
typedef struct recur_tensors {
    recurrent_rows_fn *compute; /* their mix (block_recur) */
    float *norm;                /* [D]; NULL: attention's, which they share (FORM_BESIDE) */
    added_tensors added;
} recur_tensors;
drey_status block_bind_recur(binder *b, recur_tensors *t, recurrent_rows_fn *compute);
/* Writes the norm, which the products after it read; the mix; the product of n numbers of a row
 * with `out`, and the sum. */
void block_write_recur_norm(program_writer *w);
void block_write_recur(program_writer *w);
void block_write_recur_out(program_writer *w, int32_t buffer, int64_t n, const weight *out);
/* Finds the inputs of a row's convolution, x[n_taps] being its own. Each is `at` bytes into a
 * record; those of the rows before the block are in `before`, ld numbers apart. */
void block_conv_inputs(const float **x, const recurrent_row *row, size_t at, const float *before,
                       int64_t ld, int32_t n_taps);
/* Copies the inputs of the last n_taps rows of a block, n numbers each, to its end's state. */
void block_keep_inputs(float *to, uint8_t *const records[RECURRENT_BLOCK], size_t at,
                       int32_t n_taps, int64_t n);
/* log(1 + exp(x)) */
double block_softplus(double x);
/* Attention of the rows whose queries are in the workspace: to their own cache, or to what an
 * encoder has put out (cache_cross). DREY_ERR_IO: what is away. */
drey_status block_attend(model_pass *p, bool cross, drey_error *err);
/* Row i's keys and values to a slot of a layer. The step's buffers are attention's. */
void block_store_heads(const model_pass *p, const program_step *s, const kv_store *kv,
                       int32_t layer, int32_t i, int32_t slot, void *scratch);
