/* Files that are read past the page cache where the system allows it. */
#ifndef DREY_OS_FILE_H
#define DREY_OS_FILE_H

#include "common/error.h"

typedef struct file_stamp { /* tells whether a file was written to */
    uint64_t n_bytes;
    int64_t changed_s, changed_ns;
} file_stamp;

typedef struct file {
    int fd;      /* -1 when closed */
    bool direct; /* O_DIRECT: offset, length and address must be multiples of align_bytes */
    uint32_t align_bytes; /* what the file system asks for with O_DIRECT (at least 512), else 1 */
    uint64_t n_bytes;     /* size when it was opened */
    file_stamp stamp;     /* when it was opened */
} file;

/* want_direct: try O_DIRECT, fall back to buffered reads when refused. Messages name the path and
 * what to do. */
drey_status file_open(file *f, const char *path, bool want_direct, drey_error *err);
void file_close(file *f);

/* Reads exactly n bytes at offset to dst, whatever the alignment (a bounce buffer of the caller's,
 * or none for a buffered file: then what was read is dropped from the page cache). Goes on after
 * interrupted and short reads, and after others as file_try_again says. bounce:
 * align_bytes-aligned, at least 64 KiB; may be NULL when !f->direct. DREY_ERR_IO when the device
 * fails or the file has become shorter. */
drey_status file_read(const file *f, const char *path, uint64_t offset, size_t n, void *dst,
                      void *bounce, size_t bounce_bytes, drey_error *err);

/* DREY_ERR_IO when the file is not what it was at `since`: its size or its time of change. A file
 * that another one has replaced under its name is unchanged, as long as it is open. */
drey_status file_check(const file *f, const char *path, const file_stamp *since, drey_error *err);

/* The failures of one read since it last brought something; all zero at first. */
typedef struct file_patience {
    int32_t n_idle, n_failed;
} file_patience;
/* True if a read that failed with this errno is to be tried again, after a pause where one helps:
 * an interrupted one nearly always, one that a device refused a few times. */
bool file_try_again(file_patience *p, int error);

/* Why a read failed: an errno, or FILE_SHORTER. Returns DREY_ERR_IO. */
enum { FILE_SHORTER = -1 };
drey_status file_read_failed(const char *path, uint64_t offset, int reason, drey_error *err);

/* Drops the pages that hold these bytes from the page cache, where they are clean. */
void file_drop(const file *f, uint64_t offset, size_t n);

#endif
