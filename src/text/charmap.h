/* The character map of a unigram tokenizer: how SentencePiece normalizes text, as the GGUF key
 * tokenizer.ggml.precompiled_charsmap has it.
 *
 *   u32 n_bytes | n_bytes of a double-array trie over UTF-8 bytes | strings, each ended by a NUL
 *
 * A unit of the trie (Darts-clone): bits 0-7 and 31 its label, bit 8 whether a string ends here,
 * bits 10-30 the offset to its children, times 256 with bit 9; of a value bits 0-30, the place of
 * its string. Nothing is trusted: a step outside of the trie ends a match. */
#pragma once

#include "common/error.h"
#include "gguf/gguf.h"

typedef struct charmap {
    const uint8_t *units; /* borrowed, little-endian and unaligned, like the strings */
    size_t n_units;
    const char *strings;
    size_t n_bytes; /* bytes of the strings, the last one being a NUL */
} charmap;

/* DREY_ERR_FORMAT: the file has no such map, or a broken one. */
drey_status charmap_init(charmap *m, const gguf *g, drey_error *err);

/* The longest beginning of text[0..n) that is replaced: its length, 0 if there is none. */
size_t charmap_match(const charmap *m, const char *text, size_t n, gguf_string *replacement);
