/* Many reads at once, to keep a disk busy.
 *
 * One thread submits requests and waits for them; two implementations carry them out. io_uring
 * (reader_uring.c) leaves the queue to the kernel; if it is refused, a few threads call pread
 * (reader_pread.c). What they share is here: a request is finished when all the bytes that it needs
 * have arrived or when it has failed. Interrupted and short reads are continued, and failed ones
 * are tried a few times (file_try_again), so that the submitter sees neither.
 *
 *   submit -> (attempt -> result)* -> finished, error = 0, an errno or FILE_SHORTER */
#pragma once

#include "os/file.h"

enum {
    /* Reads begin at multiples of this and have multiples of it as length, as O_DIRECT requires. */
    READER_ALIGN = 4096,
    /* Requests through the page cache are read in steps of this size. Each step is dropped from the
     * cache when it has arrived, so that a request's part of the cache is bounded. */
    READER_CACHED_BYTES = 512 << 10,
    READER_MOST_THREADS = 8 /* threads that call pread: enough to keep an NVMe drive busy with 1 MiB
                               each */
};

typedef struct reader_request {
    int32_t file;      /* index into the reader's files */
    uint32_t n_bytes;  /* bytes to read; may reach past the end of the file */
    uint32_t n_needed; /* number of them that must arrive */
    uint64_t offset;
    uint8_t *dst;
    int error;             /* when finished: 0, an errno, or FILE_SHORTER */
    uint64_t error_offset; /* position in the file */
    uint32_t n_done;       /* bytes that have arrived */
    /* Private to the reader while the request is under way. */
    uint32_t n_begin, n_ask; /* the attempt: from offset + n_begin, n_ask bytes */
    file_patience patience;
    struct reader_request *next;
} reader_request;

/* For tests, called before each attempt: return 0 to continue, a positive errno to fail it with, or
 * minus the number of bytes to cut it to. A pread reader calls it on its threads. */
typedef int reader_fault_fn(void *user, int32_t file, uint64_t offset, uint32_t n_bytes);

typedef struct reader_options {
    const file *files; /* borrowed while open */
    int32_t n_files;
    int32_t depth; /* most requests under way */
    void *region;  /* the destination of all reads; borrowed while open */
    size_t region_bytes;
    reader_fault_fn *fault; /* may be NULL */
    void *fault_user;
} reader_options;

typedef struct reader reader;

/* Each fails if the system refuses: DREY_ERR_IO for io_uring, DREY_ERR_MEMORY. */
drey_status reader_open_uring(reader **out, const reader_options *options, drey_error *err);
drey_status reader_open_pread(reader **out, const reader_options *options, drey_error *err);
/* No request may be under way. Accepts NULL. */
void reader_close(reader **r);

/* The request belongs to the reader until reader_wait returns it. The read may begin as late as in
 * reader_wait. One thread submits and waits. */
void reader_submit(reader *r, reader_request *request);
/* Blocks until requests have finished or reader_wake was called. Returns the finished ones, linked
 * by `next` (NULL if it was only woken). */
reader_request *reader_wait(reader *r);
/* Makes the present or the next reader_wait return. Any thread may call it. */
void reader_wake(reader *r);

bool reader_is_uring(const reader *r);
bool reader_is_registered(const reader *r); /* the region is registered with the kernel */

/* Memory of a reader, including threads and kernel: the most of all implementations. */
size_t reader_overhead_bytes(int32_t depth);

/* ---- For the implementations ---- */

typedef struct reader_ops {
    void (*submit)(reader *r, reader_request *request);
    reader_request *(*wait)(reader *r);
    void (*wake)(reader *r);
    void (*close)(reader *r);
} reader_ops;

struct reader { /* first member of each implementation */
    const reader_ops *ops;
    reader_options options;
    bool uring, registered;
};

/* Sets the request's next attempt. Returns 0, or an errno with which the attempt fails at once. */
int reader_attempt(const reader *r, reader_request *request);
/* Takes an attempt's result (bytes, or minus an errno). True when the request has finished. */
bool reader_result(const reader *r, reader_request *request, int64_t result);
