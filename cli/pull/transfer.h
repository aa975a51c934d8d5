/* Reading from web servers, by curl. */
#pragma once

#include "common/error.h"

#include <stdint.h>

typedef struct transfer {
    const char *token; /* for who wants to know who asks; NULL: none */
    int32_t timeout_s; /* without a byte */
} transfer;

/* What a server says about a file. */
typedef struct remote_file {
    uint64_t n_bytes;
    bool in_parts;    /* it gives parts of the file */
    char version[96]; /* changes with the file: its ETag; "" if the server gives none */
} remote_file;

/* The text at the URL, which the caller frees. DREY_ERR_IO: why not, with the URL. */
drey_status transfer_text(const transfer *t, const char *url, char **text, drey_error *err);
/* The file's first n bytes, or all of a shorter one, to a new file at `path`. If the server gives
 * no parts, `about` alone is filled, and the file is empty. DREY_ERR_IO as above. */
drey_status transfer_beginning(const transfer *t, const char *url, const char *path, uint64_t n,
                               remote_file *about, drey_error *err);

/* How many bytes are there. */
typedef void transfer_progress(void *user, uint64_t n_bytes);
/* The rest of the file after what is at `path`, of n_bytes in all. What breaks off is continued a
 * few times. DREY_ERR_IO: what has come stays; DREY_ERR_CANCELLED by a signal: the same. */
drey_status transfer_rest(const transfer *t, const char *url, const char *path,
                          const remote_file *about, transfer_progress *show, void *user,
                          drey_error *err);
