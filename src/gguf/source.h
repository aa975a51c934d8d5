/* The front of a GGUF file, read as far as its parser has come.
 *
 * A header's length is known only when it has been parsed, and it may be some megabytes of a file
 * of many gigabytes. So the parser asks for bytes as it goes (source_take), and the source reads in
 * steps into an address range that is as long as a header may be: pointers into it stay valid, and
 * only what was read takes memory. Reads go past the page cache where the file system allows it;
 * where not, what was read is dropped from it, because a memory budget counts that cache too. */
#ifndef DREY_GGUF_SOURCE_H
#define DREY_GGUF_SOURCE_H

#include "os/file.h"

/* Longer headers are taken for damage. The largest vocabularies in use need a quarter of this. */
#define SOURCE_HEADER_LIMIT ((size_t)64 << 20)

typedef struct source {
    char shown[ERROR_PATH_BYTES]; /* the path as messages name it */
    file file;                    /* closed when there is nothing more to read */
    uint8_t *bounce;              /* [bounce_bytes] for direct reads */
    uint8_t *base;
    size_t n_read;       /* bytes at base */
    size_t capacity;     /* most bytes that can be read to base */
    size_t at;           /* where the parser stands; at <= n_read */
    uint64_t file_bytes; /* of the whole file */
    bool mapped;         /* base is a mapping, otherwise from malloc */
} source;

/* Opens a regular file that is not empty; reads nothing yet. */
drey_status source_open(source *s, const char *path, drey_error *err);
/* n_bytes (copied) are the front of a file of file_bytes. */
drey_status source_from_memory(source *s, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                               drey_error *err);
void source_close(source *s);

/* The next n bytes, valid until source_close; moves on behind them. */
drey_status source_take(source *s, uint64_t n, const uint8_t **bytes, drey_error *err);

/* Bytes that may still follow in a header: an upper bound for counts. */
uint64_t source_left(const source *s);

/* Nothing more will be read: closes the file and gives back memory behind the first n_kept bytes.
 */
void source_finish(source *s, size_t n_kept);

#endif
