/* The front of a GGUF file, read as far as its parser has come.
 *
 * A header's length is known only after parsing, and it may be some megabytes of a file of many
 * gigabytes. So the parser asks for bytes when it needs them (source_take), and the source reads in
 * steps into an address range as long as the longest header: pointers into it stay valid, and only
 * what was read takes memory. Reads bypass the page cache if the file system allows it; otherwise
 * what was read is dropped from the cache, because a memory budget includes that cache. */
#pragma once

#include "os/file.h"

/* Longer headers are treated as damage. The largest vocabularies in use need a quarter of this. */
#define SOURCE_HEADER_LIMIT ((size_t)64 << 20)

typedef struct source {
    char shown[ERROR_PATH_BYTES]; /* the path for messages */
    file file;                    /* closed when there is nothing more to read */
    uint8_t *bounce;              /* [bounce_bytes] for direct reads */
    uint8_t *base;
    size_t n_read;       /* bytes at base */
    size_t capacity;     /* most bytes that can be read to base */
    size_t at;           /* the parser's position; at <= n_read */
    uint64_t file_bytes; /* size of the whole file */
    bool mapped;         /* base is a mapping, otherwise from malloc */
} source;

/* Opens a regular file that is not empty; reads nothing yet. */
drey_status source_open(source *s, const char *path, drey_error *err);
/* n_bytes (copied) are the beginning of a file of file_bytes. */
drey_status source_from_memory(source *s, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                               drey_error *err);
void source_close(source *s);

/* The next n bytes, valid until source_close; advances past them. */
drey_status source_take(source *s, uint64_t n, const uint8_t **bytes, drey_error *err);

/* Bytes that may still follow in a header: an upper bound for counts. */
uint64_t source_left(const source *s);

/* Nothing more will be read: closes the file and frees the memory after the first n_kept bytes. */
void source_finish(source *s, size_t n_kept);
