/* Texts of tokens that spell a blank as U+2581 and a byte as <0x0A>: those of SentencePiece, and of
 * BPE over characters. */
#pragma once

#include "text/vocab.h"

extern const char piece_blank[]; /* U+2581 */
enum { PIECE_BLANK_BYTES = 3 };

/* Returns whether p[0..n) begins with U+2581. */
bool piece_is_blank(const char *p, size_t n);
/* The byte of a text such as <0x0A>; -1: it is not one. */
int piece_byte(gguf_string text);
/* Fills id[256] with the tokens of bytes; -1: there is none. */
void piece_find_bytes(const vocab *v, int32_t id[static 256]);
/* The bytes of a normal, user-defined or byte token. Returns how many and writes at most capacity.
 */
size_t piece_decode(const vocab *v, int32_t id, char *out, size_t capacity);
