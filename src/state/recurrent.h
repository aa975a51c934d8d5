/* Memory of layers whose state runs through a text: a store (state_store.h) of the newest state and
 * some older ones, and of what the rows after the newest one add.
 *
 *   kept | .. a few older states .. | previous | base |
 *   records                                            | committed after base | pending rows |
 *
 * A row's record is what it adds to the state: numbers that depend on the row and its path. A row
 * is computed from the state at the beginning of its block of RECURRENT_BLOCK positions and the
 * records of its path since then. So branches of a tree need no states, a commit computes nothing,
 * and a row's bits depend on its path alone. A layer's base moves in the passes that come later,
 * and never beyond what the cache says is certain (cache_certain): a pass that fails, and rows that
 * are deferred, find everything as it was.
 *
 * The rows of a prompt (cache_pass_begins: they are committed all or not at all) go further: their
 * states take turns in two buffers next to base, and only the records of the last block stay. When
 * they are committed, the last state becomes base. So a prompt of any length needs the records of
 * one block.
 *
 * Which older states there are, the cache says by numbers of positions alone (cache.h).
 *
 * A layer's work is divided into units, which need nothing of each other: heads, or channels. A
 * kind of layer has a recurrent_class, whose store is RECURRENT_STORE(name), and its block the
 * function that computes rows (block_recur). */
#pragma once

#include "state/state_store.h"
#include "state/text_cache.h"

enum { RECURRENT_BLOCK = STORE_BLOCK };

typedef struct recurrent_class {
    store_class store;
    int32_t (*n_units)(const store_shape *s);
    /* Bytes of a row's record in one layer, a multiple of 8, of all units. */
    size_t (*record_bytes)(const store_shape *s);
    /* Numbers of a unit's part of a state. */
    int64_t (*state_numbers)(const store_shape *s);
    /* The unit's part of the state after a block, from that before it: `to` may be `from`. */
    void (*end)(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK]);
} recurrent_class;

/* Buffers of a layer's states: their roles change places. */
enum { RECURRENT_BASE, RECURRENT_PREVIOUS, RECURRENT_SPARE, RECURRENT_STATES };

typedef struct recurrent_store {
    state_store store;
    const kernel_table *kernels; /* kernels of its passes; NULL: there was none */
    size_t record_bytes;
    int64_t n_state; /* numbers of a layer's state: of all units */
    int32_t n_units;
    float *states;    /* [n_layers][RECURRENT_STATES][n_state] */
    float *kept;      /* [n_kept][n_layers][n_state] */
    uint8_t *records; /* [n_layers][n_recent + RECURRENT_BLOCK] */
    int32_t *buffer;  /* [n_layers][RECURRENT_STATES]: the buffer in each role */
    int32_t *base;    /* [n_layers]: position of that state */
    int32_t *at; /* [n_recent]: the record of position p is at[p % n_recent], pending rows being
                         the positions after the committed ones; */
    int32_t
        *of_prompt; /* [RECURRENT_BLOCK]: and of a prompt's row of_prompt[p % RECURRENT_BLOCK] */
} recurrent_store;

/* The functions of store_class; the rest of a class is its own. */
#define RECURRENT_STORE(its_name)                                                                  \
    {                                                                                              \
        .name = (its_name), .struct_bytes = sizeof(recurrent_store), .in_blocks = true,            \
        .bytes = recurrent_bytes, .init = recurrent_init, .has_room = recurrent_has_room,          \
        .move = recurrent_move, .cut = recurrent_cut, .settle = recurrent_settle,                  \
        .whole = recurrent_whole, .keep = recurrent_keep, .make_up = recurrent_make_up,            \
        .restored = recurrent_restored, .n_pieces = recurrent_n_pieces, .state = recurrent_state,  \
        .state_bytes = recurrent_state_bytes, .is_valid = recurrent_is_valid                       \
    }
size_t recurrent_bytes(const store_class *class, const store_shape *s, const store_size *size);
void recurrent_init(state_store *s, arena *a);
bool recurrent_has_room(const state_store *s, const text_cache *c, int32_t n, bool whole);
void recurrent_move(state_store *s, const text_cache *c, int32_t to, const int32_t *from,
                    int32_t n);
void recurrent_cut(state_store *s, const text_cache *c, int32_t n);
void recurrent_settle(state_store *s, const text_cache *c, int32_t end);
void recurrent_whole(state_store *s, const text_cache *c, int32_t n);
void recurrent_keep(state_store *s, const text_cache *c, int32_t slot, bool previous);
void recurrent_make_up(state_store *s, const text_cache *c, int32_t from, int32_t to);
void recurrent_restored(state_store *s, const text_cache *c, int32_t n);
int32_t recurrent_n_pieces(const state_store *s);
size_t recurrent_state_bytes(const store_class *class, const store_shape *s);
uint8_t *recurrent_state(const state_store *s, const text_cache *c, int32_t layer,
                         int32_t position);
bool recurrent_is_valid(const state_store *s, const text_cache *c);

/* ---- For what a layer knows of a path before its step ---- */

/* The position before a row's, both as recurrent_walk_row names them; -1: the row is the text's
 * first. */
int32_t recurrent_before(const text_cache *c, int32_t position);
/* The record of a position of an earlier pass; NULL: it is before the layer's state, which *base
 * then is, after *n positions. */
const uint8_t *recurrent_record(const recurrent_store *r, const text_cache *c, int32_t layer,
                                int32_t position, const float **base, int32_t *n);

/* ---- For the step of a layer ---- */

/* The i-th store of a cache. */
recurrent_store *recurrent_of(const text_cache *c, int32_t i);

/* A row, and the records of its path since the beginning of its block: the last one is its own,
 * which is to be written. */
typedef struct recurrent_row {
    int32_t row, n;
    uint8_t *records[RECURRENT_BLOCK]; /* [n] */
} recurrent_row;

/* Rows that are computed together, at most. */
enum { RECURRENT_ROWS = 8 };

/* Computes a unit's part of rows whose blocks begin with this state, in this order. */
typedef void recurrent_rows_fn(void *user, int32_t thread, int32_t unit, const float *state,
                               const recurrent_row *rows, int32_t n);

/* A unit's way over the rows of one cache in a layer. */
typedef struct recurrent_walk {
    const recurrent_store *store;
    const text_cache *cache;
    recurrent_rows_fn *compute;
    void *user;
    int32_t layer, unit, thread;
    int32_t buffer[RECURRENT_STATES], base;
    int32_t made, made_by; /* position of the state in the spare buffer, and the record before it */
    const float *state;    /* state of the rows that are waiting */
    recurrent_row row[RECURRENT_ROWS]; /* [n] */
    int32_t n;
} recurrent_walk;

/* Brings the unit's part of base up to what is certain. */
void recurrent_walk_begin(recurrent_walk *w, recurrent_rows_fn *compute, void *user);
/* The next row: a committed position, or pending row i as cache_end + i. Every row of its path was
 * walked over, in this pass or before. */
void recurrent_walk_row(recurrent_walk *w, int32_t position, int32_t row);
void recurrent_walk_end(recurrent_walk *w);
/* All units have begun a walk: the layer's base is what is certain. */
void recurrent_advanced(recurrent_store *r, const text_cache *c, int32_t layer);
