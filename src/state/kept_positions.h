/* Committed positions of a cache that are copied, kept as bytes and taken from there: prefixes,
 * saved sessions, and sessions that begin as another one did. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "state/text_cache.h"

/* Some positions may be in a file, and the cache can be neither copied nor saved. */
bool cache_is_in_file(const text_cache *c);
/* Number of the first n committed positions that can be copied or saved, where the last n_deferred
 * lack layers: n, or the last position before it at which there is a state, or would be once the
 * cache is settled. */
int32_t cache_whole(const text_cache *c, int32_t n, int32_t n_deferred);
/* Computes what states lack before positions are copied or saved. Takes time for each position
 * since the last passes. */
void cache_settle(text_cache *c, int32_t n_deferred);
/* Makes positions [end, n) of `to` those of `from`, a cache of the same spec in which n are
 * committed and lack no layer; n is cache_whole, and nothing is pending in `to`. Neither is in a
 * file. */
void cache_copy(text_cache *to, text_cache *from, int32_t n);
/* Committed positions as bytes, to be kept elsewhere: n_pieces rows of them, of which each has
 * piece_bytes for n positions (whole groups of STORE_BLOCK), the first at a position that is a
 * multiple of STORE_BLOCK. The same on every machine. */
int32_t cache_n_pieces(const text_cache *c);
size_t cache_piece_bytes(const text_cache *c, int32_t piece, int32_t n_positions);
uint8_t *cache_piece(const text_cache *c, int32_t piece, int32_t position);
/* The states that running layers have at a position, as bytes as well: n_states of them, of which
 * each has state_size. */
int32_t cache_n_states(const text_cache *c);
size_t cache_state_size(const text_cache *c, int32_t i);
/* State i at a position, which is cache_whole of itself in a settled cache; at -1 where to put it
 * before cache_restore. What is there then serves no row any more. */
uint8_t *cache_state(const text_cache *c, int32_t i, int32_t position);
/* The pieces of the first n positions, and the states there, have been filled: they are committed,
 * and nothing is pending. */
void cache_restore(text_cache *c, int32_t n);
