/* A text's memory in a model: which positions its layers know, and the stores that hold what they
 * know of them.
 *
 *   committed: positions 0 .. end - 1     pending rows, in the order in which they were computed
 *   |------------------------------|      0 -> 1 -> 2
 *                                  |           `--> 3        row 3's parent is row 1
 *
 * A pending row knows its parent, so prompt chunks (a chain) and token trees (branches) are the
 * same thing. Committing moves the rows of one path to the front of the pending ones, and what is
 * kept after them; the rest is forgotten and nothing is computed again (LLMCad 3.2). A row's
 * numbers depend on its path alone and not on where they are, so moving them changes no bit.
 *
 * A view of a cache has the same committed positions, which the cache's owner computes and commits,
 * and pending rows of its own: guesses at rows that the owner may compute as well.
 *
 * Where the numbers are is each store's own affair (state_store.h, kv.h). Members are read and
 * written in this folder alone.
 *
 * Invariants, which cache_is_valid checks:
 *   (1) no more than max_pending rows are pending, and stores have places for all rows;
 *   (2) a pending row's parent is -1 (the last committed position) or a pending row before it;
 *   (3) its depth is 0 below the committed part, else its parent's and one;
 *   (4) what is certain is committed. */
#pragma once

#include "common/error.h"
#include "state/text_cache.h"

bool cache_is_valid(const text_cache *c);

/* ---- Rows of a pass ----
 *
 * Some layers have a state that runs through the text and cannot go back (state_store.h:
 * in_blocks). How far it may go, and which older states there are, is for the cache to say, by
 * numbers of positions alone, so that all ranks of a model say the same. In a pass states go up to
 * the last multiple of STORE_BLOCK in front of the first position that a layer may still have to
 * compute. Besides the newest there are states
 *
 *   a block before it, until the text is cut there,
 *   where a prompt ended: made when the first other rows come, a block before that if there is one,
 *     as the next text of a conversation may part from this one some tokens before the end, and
 *   at multiples of a stride, the larger the larger a state is. */

/* A pass begins; the last n_deferred committed positions lack layers. Its first n_whole rows of
 * this cache are a prompt's: they follow the last committed position and each other, are all that
 * is pending, and are committed all or not at all. Running layers keep little of such rows. 0: they
 * are not. */
void cache_pass_begins(text_cache *c, int32_t n_deferred, int32_t n_whole);

/* Room for n more pending rows? whole: they are a prompt's. */
bool cache_has_room(const text_cache *c, int32_t n);
bool cache_has_room_whole(const text_cache *c, int32_t n);
/* Gives n more pending rows their places, where that needs a disk; asked before rows are added.
 * DREY_ERR_IO: the disk is full or fails; the cache is as it was. */
drey_status cache_make_room(text_cache *c, int32_t n, drey_error *err);
/* A row of a pass that is to become pending row `row`; its parent is a row before it, or -1.
 * Returns its depth. */
int32_t cache_place_row(text_cache *c, int32_t row, int32_t parent);
/* The pending rows from the committed part down to `row`, itself included: the last n of them,
 * where n is at most its depth and one. */
void cache_path(const text_cache *c, int32_t row, int32_t *path, int32_t n);
/* The next n rows, which were placed, are pending: a pass that is over has computed them. */
void cache_add(text_cache *c, int32_t n);
/* Returns whether path[0..n) are pending rows, each the parent of the next, and the first a child
 * of the committed part. */
bool cache_is_path(const text_cache *c, const int32_t *path, int32_t n);

/* ---- What becomes of pending rows ---- */

/* Makes path[0..n) (pending indices, each the parent of the next, the first a child of the
 * committed part) the new end of the committed part; all other pending rows are dropped. n = 0
 * drops them all; path NULL: the first n, a chain. */
void cache_commit(text_cache *c, const int32_t *path, int32_t n);
/* The same, but of the other pending rows keep[0..n_keep) stay (ascending; all below the path's
 * last row, each with its parent unless that is this last row): keep[i] becomes pending row i. */
void cache_reroot(text_cache *c, const int32_t *path, int32_t n_path, const int32_t *keep,
                  int32_t n_keep);
/* Forgets what is pending. */
void cache_drop(text_cache *c);
/* Forgets committed positions from n on, and everything pending. Returns how many stay: n, or where
 * a state has gone further, the last position before n at which there is one. What is missing has
 * to be computed again. */
__attribute__((warn_unused_result)) int32_t cache_cut(text_cache *c, int32_t n);
/* The same for all of them. */
void cache_clear(text_cache *c);

/* The owner of a view has committed up to `end` positions. Of the view's pending rows
 * keep[0..n_keep) stay (ascending, each with its parent unless that was committed): keep[i] becomes
 * pending row i. */
void cache_view_keep(text_cache *view, int32_t end, const int32_t *keep, int32_t n_keep);
/* The owner has `end` positions, fewer or others than before: nothing is pending. */
void cache_view_sync(text_cache *view, int32_t end);

/* ---- For measuring ---- */

/* Commits n positions that nothing computed: whatever was there, now small numbers. For measuring
 * a pass after a long context, whose time does not depend on them. DREY_ERR_IO: of a file. */
drey_status cache_make_up(text_cache *c, int32_t n, drey_error *err);
