/* Memory of layers whose state runs through a text: a store (state_store.h) of the states after
 * every RECURRENT_BLOCK positions, and of what the rows after the last of them added.
 *
 *   states    | 0 | 16 | 32 | .. base |       of each layer, up to its base
 *   records                           | committed after base | pending rows |
 *
 * A row's record is what it adds to the state: numbers that depend on the row alone. A row's state
 * is that at the beginning of its block, and then the records of its path from there on, one after
 * the other. So branches of a tree need no states, a commit computes nothing, and a
 * row's bits depend on its path alone. A layer's base moves in the passes that come later
 * (recurrent_advance), and never beyond what the cache says is certain (cache_certain): a pass that
 * fails, and rows that are deferred, find everything as it was.
 *
 * A kind of layer has a recurrent_class, whose store is RECURRENT_STORE(name); block_record and
 * block_recur (model/block/block.h) are its steps. */
#pragma once

#include "state/state_store.h"
#include "state/text_cache.h"

enum { RECURRENT_BLOCK = STORE_BLOCK };

typedef struct recurrent_class {
    store_class store;
    /* Numbers of a row's record in one layer, and of a state. */
    int64_t (*record_numbers)(const store_shape *s);
    int64_t (*state_numbers)(const store_shape *s);
    /* Adds records[0..n) to a state, in this order: n is at most RECURRENT_BLOCK. */
    void (*add)(const store_shape *s, float *state, const float *const *records, int32_t n);
    /* A row's output from the state at the beginning of its block, and the records [0, n) of its
     * path since then: the last one is its own. */
    void (*read)(const store_shape *s, const float *state, const float *const *records, int32_t n,
                 float *out);
} recurrent_class;

typedef struct recurrent_store {
    state_store store;
    int64_t n_record, n_state;
    float *states;  /* [n_layers][n_blocks + 1][n_state]: the first is 0 */
    float *records; /* [n_layers][n_recent][n_record] */
    float *branch;  /* [n_state]: the state of a row whose block begins among pending rows */
    int32_t *base;  /* [n_layers] */
    int32_t *at;    /* [n_recent]: the record of position p is at[p % n_recent], pending rows being
                       the positions after the committed ones */
} recurrent_store;

/* The functions of store_class; the rest of a class is its own. */
#define RECURRENT_STORE(its_name)                                                                  \
    {                                                                                              \
        .name = (its_name), .struct_bytes = sizeof(recurrent_store), .in_blocks = true,            \
        .bytes = recurrent_bytes, .init = recurrent_init, .has_room = recurrent_has_room,          \
        .move = recurrent_move, .cut = recurrent_cut, .settle = recurrent_settle,                  \
        .make_up = recurrent_make_up, .restored = recurrent_restored,                              \
        .n_pieces = recurrent_n_pieces, .piece_bytes = recurrent_piece_bytes,                      \
        .piece = recurrent_piece, .is_valid = recurrent_is_valid                                   \
    }
size_t recurrent_bytes(const store_class *class, const store_shape *s, const store_size *size);
void recurrent_init(state_store *s, arena *a);
bool recurrent_has_room(const state_store *s, const text_cache *c, int32_t n);
void recurrent_move(state_store *s, const text_cache *c, int32_t to, const int32_t *from,
                    int32_t n);
void recurrent_cut(state_store *s, const text_cache *c, int32_t n);
void recurrent_settle(state_store *s, const text_cache *c, int32_t end);
void recurrent_make_up(state_store *s, const text_cache *c, int32_t from, int32_t to);
void recurrent_restored(state_store *s, const text_cache *c, int32_t n);
int32_t recurrent_n_pieces(const state_store *s);
size_t recurrent_piece_bytes(const state_store *s, int32_t piece, int32_t n_positions);
uint8_t *recurrent_piece(const state_store *s, int32_t piece, int32_t group);
bool recurrent_is_valid(const state_store *s, const text_cache *c);

/* ---- For the step of a layer ---- */

/* The store of a cache that has one. */
recurrent_store *recurrent_of(const text_cache *c);
/* The place for the record of a row: a committed position, or pending row i as cache_end + i. */
float *recurrent_record(const recurrent_store *r, int32_t layer, int32_t position);
/* Brings a layer's base up to what is certain, before its rows are read. */
void recurrent_advance(recurrent_store *r, const text_cache *c, int32_t layer);
/* A row's output; every row of its path has its record. position: as above. `branch` says which
 * state is in r->branch, from one row of a walk over rows to the next; begin with {-1, -1}. */
typedef struct recurrent_branch {
    int32_t begin, last; /* the block that it is the beginning of, and the record before that */
} recurrent_branch;
void recurrent_read(recurrent_store *r, const text_cache *c, int32_t layer, int32_t position,
                    recurrent_branch *branch, float *out);
