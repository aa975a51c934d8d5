/* One file's header, parsed and validated: gguf.c opens them and joins them to a model.
 *
 *   magic, version, n_tensors, n_keys | keys | tensor infos | padding | tensor data
 *
 * Internal to this folder. */
#pragma once

#include "gguf/gguf.h"
#include "gguf/source.h"

#define DAMAGED "the file is damaged, fetch it again" /* the end of many messages */

enum { HEADER_MOST_KEYS = 1 << 16, HEADER_MOST_TENSORS = 1 << 16 };

typedef struct header {
    source source; /* contains the keys' names and values */
    uint32_t version;
    uint64_t n_keys, n_tensors;
    gguf_key *keys;           /* [n_keys], in the file's order */
    const gguf_key **by_name; /* [n_keys], sorted */
    gguf_tensor *tensors;     /* [n_tensors], in the file's order; part is 0 */
} header;

/* Parses the header of an open source. The header owns the source from now on, also after a
 * failure. */
drey_status header_parse(header *h, drey_error *err);
/* Accepts a header that is all zero or half-parsed. */
void header_free(header *h);

const gguf_key *header_find(const header *h, const char *name);

/* Little-endian bytes of any alignment. */
uint32_t header_u32(const uint8_t *bytes);
uint64_t header_u64(const uint8_t *bytes);

/* Bytes of one value of a scalar kind; 0 for strings, arrays and numbers that are no kind. */
size_t header_kind_bytes(uint32_t kind);
