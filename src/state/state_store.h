/* One kind of memory that layers have of a text: keys and values (kv.h), or another.
 *
 * A store knows nothing of trees and texts. It is asked by the cache that it is part of (cache.h),
 * which names rows by their places: committed positions by their numbers, pending rows by the order
 * in which they were computed. */
#pragma once

#include "base/arena.h"
#include "common/error.h"
#include "kernel/kernel.h"

/* The numbers of a layer's rows, the same in all layers of the store. */
typedef struct store_shape {
    int32_t n_layers, n_heads;
    int32_t k_dim, v_dim; /* numbers of a head's key and value */
    kv_format format;
    bool latent;         /* keys alone are kept: the values are their first v_dim numbers */
    int32_t n_key_heads; /* heads of a state's keys, which several of the n_heads share */
    int32_t n_taps;      /* rows before a row that its convolution sees */
} store_shape;

/* Positions that are saved together, and after which there may be a state. */
enum { STORE_BLOCK = KV_GROUP };

/* The rows of a store. */
typedef struct store_size {
    int32_t n_slots;  /* slots that it has memory for, committed and pending */
    int32_t n_recent; /* slots after the last STORE_BLOCK that all layers are certain of */
    int32_t n_kept;   /* older states */
} store_size;

typedef struct text_cache text_cache;
typedef struct store_class store_class;

/* The beginning of every store. */
typedef struct state_store {
    const store_class *class;
    store_shape shape;
    store_size size;
    bool in_file; /* committed positions may be in a file, which cannot be copied or kept */
} state_store;

struct store_class {
    const char *name;
    size_t struct_bytes; /* bytes of a struct that begins with a state_store */
    bool in_blocks;      /* it has states at some multiples of STORE_BLOCK, and what came after the
                            last of them: it can be cut, copied and saved there alone */
    /* Memory of these rows, besides the struct. */
    size_t (*bytes)(const store_class *class, const store_shape *shape, const store_size *size);
    /* Takes that memory from `a`, whose owner checks it; class, shape and size are set. */
    void (*init)(state_store *s, arena *a);
    /* Makes a copy of `of` a view of it: its pending rows have the last n_slots slots of `of`.
     * NULL: it has no views. */
    void (*view)(state_store *s, state_store *of, int32_t n_slots);
    /* whole: the rows are those of cache_pass_begins. */
    bool (*has_room)(const state_store *s, const text_cache *c, int32_t n, bool whole);
    /* Makes room for n more pending rows. NULL: there is room or there is none. DREY_ERR_IO: the
     * store is as it was. */
    drey_status (*make_room)(state_store *s, const text_cache *c, int32_t n, drey_error *err);
    /* The pending rows from[0..n) become those from `to` on: from ascends, and from[i] >= to + i,
     * so that no row overwrites one that is still to be moved. */
    void (*move)(state_store *s, const text_cache *c, int32_t to, const int32_t *from, int32_t n);
    /* The positions from n on are forgotten, and all pending rows. NULL: nothing has to be done. */
    void (*cut)(state_store *s, const text_cache *c, int32_t n);
    /* Computes the states up to `end`, a certain multiple of STORE_BLOCK. NULL: as above. */
    void (*settle)(state_store *s, const text_cache *c, int32_t end);
    /* n rows that were whole are about to be committed. NULL: as above. */
    void (*whole)(state_store *s, const text_cache *c, int32_t n);
    /* Copies the newest state, or that before it, to a slot of older ones. NULL: as above. */
    void (*keep)(state_store *s, const text_cache *c, int32_t slot, bool previous);
    /* The pieces of n positions, or the state there, were filled. NULL: as above. */
    void (*restored)(state_store *s, const text_cache *c, int32_t n);
    /* Fills the slots of positions [from, to) with small numbers. */
    void (*make_up)(state_store *s, const text_cache *c, int32_t from, int32_t to);
    /* Committed positions as bytes, the same on every machine: n_pieces rows of them, each of which
     * has those of STORE_BLOCK positions one after the other. */
    int32_t (*n_pieces)(const state_store *s);
    size_t (*piece_bytes)(const state_store *s, int32_t piece, int32_t n_positions);
    uint8_t *(*piece)(const state_store *s, int32_t piece, int32_t group);
    /* A layer's state at a position where the cache has one; to be filled before `restored`: at
     * -1. NULL: it has none. */
    uint8_t *(*state)(const state_store *s, const text_cache *c, int32_t layer, int32_t position);
    size_t (*state_bytes)(const store_class *class, const store_shape *shape);
    bool (*is_valid)(const state_store *s, const text_cache *c);
};
