/* A file without a name, for what a process may forget at its end: it is gone when it is closed, or
 * when the process dies. Written and read without the page cache where the system allows that. */
#pragma once

#include "common/error.h"

enum { TEMP_FILE_ALIGN = 4096 }; /* alignment of offsets, lengths and addresses that are written */

typedef struct temp_file {
    int fd;        /* -1 when closed */
    bool direct;   /* O_DIRECT */
    char path[32]; /* by which this process can open it again, to read it */
} temp_file;

/* Makes one of n_bytes, none of which takes room on the disk before it is written. DREY_ERR_IO: no
 * such folder, no permission, or, unless it may be, that it is in memory (tmpfs). */
drey_status temp_file_open(temp_file *f, const char *folder, bool may_be_memory, uint64_t n_bytes,
                           drey_error *err);
/* Accepts one that is closed. */
void temp_file_close(temp_file *f);
/* Writes all of it, to the disk: nothing of it stays in the page cache. Returns 0 or an errno. */
int temp_file_write(const temp_file *f, uint64_t offset, const void *bytes, size_t n);
