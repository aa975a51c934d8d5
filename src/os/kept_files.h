/* A folder of files that are kept for later, by number, within a bound: the oldest go.
 *
 * A file is FOLDER/0123456789abcdef.kept. It grows under another ending and takes its name when it
 * is whole; after a crash of the machine it may be there in part all the same, as nothing waits for
 * the disk, so that readers check what they read. What is used is young again, also for the next
 * process. One process at a time has a folder. Once open, nothing takes memory. */
#ifndef DREY_OS_KEPT_FILES_H
#define DREY_OS_KEPT_FILES_H

#include "base/arena.h"

typedef struct kept_file {
    uint64_t key, n_bytes;
    int64_t used; /* the greater, the later */
} kept_file;

typedef struct kept_files {
    int fd;          /* of the folder; -1: closed */
    kept_file *file; /* [n] */
    int32_t n, max;
    uint64_t n_bytes, max_bytes;
    int64_t now; /* counts uses */
} kept_files;

typedef struct kept_part { /* one behind the other */
    void *bytes;
    size_t n;
} kept_part;

/* Memory for up to max_files. */
size_t kept_files_memory(int32_t max_files);
/* Makes the folder, unless it is there, and looks at what is in it; what is beyond the bounds goes.
 * Other files stay as they are. DREY_ERR_IO: no such place, its rights, another process has it. */
drey_status kept_files_open(kept_files *k, const char *folder, uint64_t max_bytes,
                            int32_t max_files, arena *a, drey_error *err);
/* Accepts what was never open, with fd -1. */
void kept_files_close(kept_files *k);

bool kept_files_has(const kept_files *k, uint64_t key);
/* The whole file, whose parts have these sizes, and counts as a use. False, and the file is gone:
 * it has another size, or cannot be read. */
bool kept_files_read(kept_files *k, uint64_t key, const kept_part *parts, int n_parts);
/* False: it is not there: larger than the bound, or the disk is full or fails. */
bool kept_files_write(kept_files *k, uint64_t key, const kept_part *parts, int n_parts);
void kept_files_drop(kept_files *k, uint64_t key);

#endif
