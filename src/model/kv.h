/* The KV cache: committed positions, and pending rows whose fate is open.
 *
 *   slots | 0 .. n_committed - 1     | pending rows in the order  | free |
 *         | position p is in slot p    | in which they were computed |      |
 *
 * A pending row knows its parent, so prompt chunks (a chain) and token trees (branches) are the
 * same thing. Committing moves the rows of one path to the front of the pending ones, and what is
 * kept after them; the rest is forgotten and nothing is computed again (LLMCad 3.2). A row's
 * attention does not depend on where rows are, so moving them changes no bit.
 *
 * A view of a cache has the same committed positions, which the cache's owner computes and commits,
 * and pending rows of its own in slots that no other cache uses: guesses at rows that the owner may
 * compute as well.
 *
 * slots | 0 .. n_committed - 1 | the owner's pending rows | free | the view's pending rows | free |
 *
 * A cache with a file (kv_file.h) may have its first positions there: slots then begin with
 * position n_away, and before rows are added kv_make_room has to be asked for their slots.
 *
 * Invariants, which kv_is_valid checks:
 *   (1) committed and pending rows have slots, and no more than max_pending are pending;
 *   (2) a pending row's parent is -1 (the last committed position) or a pending row before it;
 *   (3) its depth is 0 below the committed part, else its parent's and one;
 *   (4) what is away is committed, and is whole chunks. */
#pragma once

#include "base/arena.h"
#include "kernel/kernel.h"
#include "model/arch.h"

/* What a cache committed last, for others that have the same rows in other layers, and forget it
 * when they have done so (n = 0). */
typedef struct kv_trail {
    int32_t *path; /* [max]: pending indices, in the order of positions */
    int32_t n, max;
} kv_trail;

typedef struct kv_cache kv_cache;
typedef struct kv_file kv_file; /* kv_file.h */
struct kv_cache {
    int32_t n_layers, n_heads_kv, head_dim;
    int32_t n_slots;
    int32_t n_committed, n_pending;
    int32_t max_pending;
    int32_t view_slot; /* of a view: of its first pending row; 0: the cache is none */
    int32_t *parent;   /* [max_pending]: pending index of a row's parent, -1: the last committed
                        position */
    int32_t *depth;    /* [max_pending]: 0 for a child of the last committed position */
    kv_format format;
    size_t head_bytes;
    uint8_t *keys, *values; /* [n_layers][n_heads_kv], head_bytes each: kernel/attend.h */
    /* Of a decoder that reads an encoder's output: the keys and values of that, as a cache of so
     * many committed positions, to which this cache's rows attend as well. Borrowed; else NULL. */
    const kv_cache *cross;
    kv_trail *trail; /* filled by each commit; borrowed; NULL: nobody asks */
    /* Where the first n_away positions are, whole chunks of it; borrowed; NULL: there is none. Of
     * positions n_away .. n_back - 1 only the file has the numbers: kv_make_room reads them. */
    kv_file *file;
    int32_t place, chunk, n_away, n_back;
};

size_t kv_bytes(const model_shape *s, int32_t n_slots, int32_t max_pending, kv_format format);
void kv_init(kv_cache *kv, const model_shape *s, int32_t n_slots, int32_t max_pending,
             kv_format format, arena *a);

/* A view of a cache that was made for n_slots slots more than its owner uses: those are the view's.
 * The owner's n_slots are taken back by them. */
void kv_view_init(kv_cache *view, kv_cache *of, int32_t n_slots, int32_t max_pending, arena *a);
size_t kv_view_bytes(int32_t max_pending);
/* The owner has committed up to n_committed positions. Of the view's pending rows keep[0..n_keep)
 * stay (ascending, each with its parent unless that was committed): keep[i] becomes pending
 * row i. */
void kv_view_keep(kv_cache *view, int32_t n_committed, const int32_t *keep, int32_t n_keep);

/* The slot of the first pending row. */
static inline int32_t kv_pending_slot(const kv_cache *kv)
{
    return kv->view_slot ? kv->view_slot : kv->n_committed - kv->n_away;
}

/* Where a head's keys (or values) begin, in bytes from kv->keys (or values). */
static inline size_t kv_at(const kv_cache *kv, int32_t layer, int32_t head)
{
    return ((size_t)layer * (size_t)kv->n_heads_kv + (size_t)head) * kv->head_bytes;
}

/* Room for n more pending rows? */
static inline bool kv_has_room(const kv_cache *kv, int32_t n)
{
    return kv->n_pending + n <= kv->max_pending &&
           kv_pending_slot(kv) + kv->n_pending + n <= kv->n_slots;
}

/* Gives n more pending rows their slots, of a cache with a file: reads back what was cut to, and
 * writes out the oldest positions. Without a file it does nothing. DREY_ERR_IO: the disk is full or
 * fails; the cache is as it was. */
drey_status kv_make_room(kv_cache *kv, int32_t n, drey_error *err);

/* Makes path[0..n) (pending indices, each the parent of the next, the first a child of the
 * committed part) the new end of the committed part; all other pending rows are dropped. n = 0
 * drops them all; path NULL: the first n, a chain. */
void kv_commit(kv_cache *kv, const int32_t *path, int32_t n);
/* The same, but of the other pending rows keep[0..n_keep) stay (ascending; all below the path's
 * last row, each with its parent unless that is this last row): keep[i] becomes pending row i. */
void kv_reroot(kv_cache *kv, const int32_t *path, int32_t n_path, const int32_t *keep,
               int32_t n_keep);
/* Commits n positions that nothing computed: whatever was there, now small numbers. For measuring
 * a pass after a long context, whose time does not depend on them. DREY_ERR_IO: of a file. */
drey_status kv_make_up(kv_cache *kv, int32_t n, drey_error *err);
/* Forgets committed positions from n_committed on, and everything pending. */
void kv_truncate(kv_cache *kv, int32_t n_committed);

/* Committed positions as bytes, to be kept elsewhere. Groups of KV_GROUP positions of one head, its
 * keys or its values, follow each other; there are kv_n_pieces such rows of groups: of
 * each layer the keys of all heads, then the values. The same on every machine. */
static inline int32_t kv_n_pieces(const kv_cache *kv)
{
    return 2 * kv->n_layers * kv->n_heads_kv;
}

static inline size_t kv_group_bytes(const kv_cache *kv)
{
    return kv_head_bytes(kv->format, KV_GROUP, kv->head_dim);
}

static inline uint8_t *kv_piece(const kv_cache *kv, int32_t piece, int32_t group)
{
    int32_t side = piece / kv->n_heads_kv, head = piece % kv->n_heads_kv;
    uint8_t *base = side % 2 ? kv->values : kv->keys;
    return base + kv_at(kv, side / 2, head) + (size_t)group * kv_group_bytes(kv);
}

/* The first n positions have been filled so, all of them in memory: they are committed, and nothing
 * is pending. */
void kv_restore(kv_cache *kv, int32_t n);

/* Makes positions [n_committed, n) of `to` those of `from`, a cache of the same shape that has
 * committed n; nothing is pending in `to`. Both are in memory. */
void kv_copy(kv_cache *to, const kv_cache *from, int32_t n);

bool kv_is_valid(const kv_cache *kv);
