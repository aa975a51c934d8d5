/* Files that are read without the page cache if the system allows it. */
#pragma once

#include "common/error.h"

typedef struct file_stamp { /* shows whether a file was written to */
    uint64_t n_bytes;
    int64_t changed_s, changed_ns;
} file_stamp;

typedef struct file {
    int fd;      /* -1 when closed */
    bool direct; /* O_DIRECT: offset, length and address must be multiples of align_bytes */
    /* alignment that the file system requires with O_DIRECT (at least 512), else 1 */
    uint32_t align_bytes;
    uint64_t n_bytes; /* its size when it was opened */
    file_stamp stamp; /* when it was opened */
} file;

/* want_direct: try O_DIRECT, and use buffered reads if it is refused. Messages name the path and
 * what to do. */
drey_status file_open(file *f, const char *path, bool want_direct, drey_error *err);
void file_close(file *f);

/* Reads exactly n bytes at offset to dst, whatever the alignment (through the caller's bounce
 * buffer; a buffered file needs none, and what was read is dropped from the page cache). Continues
 * after interrupted and short reads, and after failed ones if file_try_again says so. bounce:
 * align_bytes-aligned, at least 64 KiB; may be NULL when !f->direct. DREY_ERR_IO: the device fails
 * or the file has become shorter. */
drey_status file_read(const file *f, const char *path, uint64_t offset, size_t n, void *dst,
                      void *bounce, size_t bounce_bytes, drey_error *err);

/* DREY_ERR_IO if the file has changed since `since`: its size or its time of change. An open file
 * counts as unchanged when another file replaces it under its name. */
drey_status file_check(const file *f, const char *path, const file_stamp *since, drey_error *err);

/* The failures of one read since it last made progress; all zero at first. */
typedef struct file_patience {
    int32_t n_idle, n_failed;
} file_patience;
/* True if a read that failed with this errno should be tried again; pauses first if that helps. An
 * interrupted read is nearly always tried again, one that a device refused only a few times. */
bool file_try_again(file_patience *p, int error);

/* Reasons of a failed read: an errno, or FILE_SHORTER. Returns DREY_ERR_IO. */
enum { FILE_SHORTER = -1 };
drey_status file_read_failed(const char *path, uint64_t offset, int reason, drey_error *err);

/* Drops the clean pages with these bytes from the page cache. */
void file_drop(const file *f, uint64_t offset, size_t n);
