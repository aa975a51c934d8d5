/* Files that are read past the page cache where the system allows it. */
#ifndef DREY_OS_FILE_H
#define DREY_OS_FILE_H

#include "base/error.h"

typedef struct file {
    int fd;      /* -1 when closed */
    bool direct; /* O_DIRECT: offset, length and address must be multiples of align_bytes */
    uint32_t align_bytes; /* what the file system asks for with O_DIRECT (at least 512), else 1 */
    uint64_t n_bytes;     /* size when it was opened */
} file;

/* want_direct: try O_DIRECT, fall back to buffered reads when refused. Messages name the path and
 * what to do. */
drey_status file_open(file *f, const char *path, bool want_direct, drey_error *err);
void file_close(file *f);

/* Reads exactly n bytes at offset to dst, whatever the alignment (a bounce buffer of the caller's,
 * or none for a buffered file: then what was read is dropped from the page cache). Retries EINTR
 * and short reads. bounce: align_bytes-aligned, at least 64 KiB; may be NULL when !f->direct.
 * DREY_ERR_IO when the device fails or the file has become shorter. */
drey_status file_read(const file *f, const char *path, uint64_t offset, size_t n, void *dst,
                      void *bounce, size_t bounce_bytes, drey_error *err);

/* Why a read failed: an errno, or FILE_SHORTER. Returns DREY_ERR_IO. */
enum { FILE_SHORTER = -1 };
drey_status file_read_failed(const char *path, uint64_t offset, int reason, drey_error *err);

/* Drops the pages that hold these bytes from the page cache, where they are clean. */
void file_drop(const file *f, uint64_t offset, size_t n);

#endif
