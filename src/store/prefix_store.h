/* Computed prefixes, kept for texts with the same beginning.
 *
 * A *block* is 64 positions with their keys and values; the last one of a text may have fewer. It
 * is found by all tokens up to its end, which are stored with it and compared; so a restored row is
 * equal, byte by byte, to a computed one. Blocks are independent of texts: blocks that two texts
 * have in common are stored once. Where two texts part within a block, the rows before are taken:
 * blocks that follow the same tokens are a *group*.
 *
 *    tokens   |0 ........ 63|64 ...... 127|128 .. 170|
 *    block    |key of 0..63 |key of 0..127|key of 0..170, group: key of 0..127|
 *    memory   |    slot     |    slot     |          |    those used last
 *    folder   |    file     |    file     |   file   |    older ones, other processes'
 *
 * A slot has the keys and values piece by piece (cache_piece). A slot that is not in the folder yet
 * is written there between two steps, one at a time, or when its place is needed. All memory is in
 * the plan; an open store takes no more.
 *
 * Of a model whose layers have states that run through the text, some of these are kept as well, in
 * slots of their own: those that the cache has where a text is kept. Then positions are restored up
 * to a state. */
#pragma once

#include "drey/drey_session.h"
#include "os/kept_files.h"
#include "store/kv_origin.h"

typedef struct drey_prefix_options drey_prefix_options; /* drey/drey_engine.h */

typedef struct cache_spec cache_spec;
typedef struct text_cache text_cache;

enum { PREFIX_POSITIONS = 64 };

typedef struct prefix_origin { /* 40 bytes in a file */
    saved_origin saved;
    uint64_t zero;
} prefix_origin;

typedef struct prefix_header { /* header of a file */
    char magic[8];
    prefix_origin origin;
    int32_t n_ids, version;
    uint64_t hash; /* hash of ids and bytes */
} prefix_header;

typedef struct prefix_entry {
    uint64_t key, group;
    int64_t used;
    int32_t n_ids; /* up to the block's end; 0: the slot is free */
    bool written;  /* it is in the folder or need not be */
    int32_t *ids;  /* [n_ids], of n_context at most */
    uint8_t *bytes;
} prefix_entry;

/* Slots of one size. */
typedef struct prefix_shelf {
    prefix_entry *slot; /* [n] */
    int32_t n;
    size_t bytes; /* bytes of each */
} prefix_shelf;

/* Bytes of what is kept. */
typedef struct prefix_sizes {
    size_t block, state; /* numbers of a block, and of a state in all layers; 0: there are none */
    int32_t n_context;
} prefix_sizes;

typedef struct prefix_store {
    prefix_shelf blocks, states; /* no blocks: there is no store */
    prefix_sizes sizes;
    prefix_origin origin;
    int64_t now;
    kept_files files; /* fd -1: only memory */
    bool disk_failed; /* nothing more is written */
    drey_prefixes count;
} prefix_store;

prefix_sizes prefix_sizes_of(const cache_spec *spec, int32_t n_context);
/* Returns the bytes of the largest file. */
size_t prefix_file_bytes(const prefix_sizes *s);
/* Bytes of the slots that the options' memory has room for, with the store's own memory; states get
 * half of it. */
size_t prefix_memory(const drey_prefix_options *o, const prefix_sizes *s);

/* origin: of the target's keys and values; takes prefix_memory bytes of `a`. DREY_ERR_IO: the
 * folder. */
drey_status prefix_open(prefix_store *p, const drey_prefix_options *o, const saved_origin *origin,
                        const prefix_sizes *s, arena *a, drey_error *err);
/* Closes the store. Prefixes that are not in the folder yet are lost: prefix_write comes before. */
void prefix_close(prefix_store *p);

/* Commits what the store has of ids[0..n) after the committed positions of a cache, which are the
 * first of them. Returns how many of these positions came from the folder. */
int32_t prefix_restore(prefix_store *p, const int32_t *ids, int32_t n, text_cache *cache);
/* Stores blocks of a cache's committed positions, which are ids[0 .. n_committed): the whole ones,
 * and the rest after them if the text is at its end. */
void prefix_keep(prefix_store *p, const int32_t *ids, const text_cache *cache, bool is_end);
/* Counts what is stored and what was done. */
void prefix_count(const prefix_store *p, drey_prefixes *out);
/* Writes one block; false: there is none to write. */
bool prefix_write(prefix_store *p);
/* Blocks that are not in the folder, though there is one. */
int64_t prefix_unwritten(const prefix_store *p);
