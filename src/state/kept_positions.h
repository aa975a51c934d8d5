/* Committed positions of a cache that are copied, kept as bytes and taken from there: prefixes,
 * saved sessions, and sessions that begin as another one did. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "state/text_cache.h"

/* Some positions may be in a file, and the cache can be neither copied nor saved. */
bool cache_is_in_file(const text_cache *c);
/* Number of the first n committed positions that can be copied or saved: n, or the multiple of
 * STORE_BLOCK before it. */
int32_t cache_whole(const text_cache *c, int32_t n);
/* Computes what states lack before positions are copied or saved; the last n_deferred positions
 * lack layers. Takes time for each position since the last passes. */
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
/* The pieces of the first n positions have been filled: they are committed, as far as they are
 * cache_whole, and nothing is pending. */
void cache_restore(text_cache *c, int32_t n);
