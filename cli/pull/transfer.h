/* Reading from web servers, by curl, which gives every byte to the command: the command writes them
 * itself, and ends a request whose answer is longer than the server or the hub has said. */
#pragma once

#include "common/error.h"
#include "common/new_file.h"

#include <stdint.h>

typedef struct transfer {
    const char *token; /* for who wants to know who asks; NULL: none */
    int32_t timeout_s; /* without a byte */
} transfer;

/* A server's answer about a file. */
typedef struct remote_file {
    uint64_t n_bytes; /* 0: it does not say */
    bool in_parts;    /* it gives parts of the file */
    char version[96]; /* changes with the file: its ETag; "" if the server gives none */
} remote_file;

/* The text at the URL, which the caller frees. DREY_ERR_IO: why not, with the URL. */
drey_status transfer_text(const transfer *t, const char *url, char **text, drey_error *err);
/* The file's first n bytes, or all of a shorter one, to `to`, which is empty. If the server gives
 * no parts, `about` alone is filled. DREY_ERR_IO as above. */
drey_status transfer_beginning(const transfer *t, const char *url, new_file *to, uint64_t n,
                               remote_file *about, drey_error *err);

/* Reports how many bytes are there. */
typedef void transfer_progress(void *user, uint64_t n_bytes);
/* The rest of the file after what is in `to`, of about->n_bytes in all, and not a byte more. What
 * breaks off is continued a few times. DREY_ERR_IO: what has come stays, but for an answer that is
 * longer than it may be; DREY_ERR_CANCELLED by a signal: the same. */
drey_status transfer_rest(const transfer *t, const char *url, new_file *to,
                          const remote_file *about, transfer_progress *show, void *user,
                          drey_error *err);
