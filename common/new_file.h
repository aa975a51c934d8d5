/* A file that appears under its name complete or not at all.
 *
 * It is written as NAME.partial in the same folder, locked against a second writer, and renamed
 * when all of it is on the disk. If the writer ends before that, NAME is unchanged; the next writer
 * reuses a .partial that a crash has left.
 *
 *   open -> write* -> commit      (discard at any point before it removes what was written) */
#pragma once

#include "common/error.h"

typedef struct new_file {
    int fd;           /* -1 when closed */
    bool keeps;       /* an unfinished file is kept, for new_file_resume */
    char *path;       /* the final path, with links followed */
    char *partial;    /* the present path */
    uint64_t begun;   /* writing to disk has been started for all before this, */
    uint64_t dropped; /* and all before this is on disk and has left the page cache */
} new_file;

/* The path of the unfinished file: NAME.partial, with links followed. The caller frees; NULL: out
 * of memory. */
char *new_file_partial(const char *path);
/* Makes NAME.partial, empty. DREY_ERR_IO: no such folder, no permission, another writer, or NAME is
 * not a file. */
drey_status new_file_open(new_file *f, const char *path, drey_error *err);
/* The same, but the unfinished file is NAME and `ending`, has what an earlier writer left there,
 * and keeps when it is discarded. */
drey_status new_file_resume(new_file *f, const char *path, const char *ending, drey_error *err);
/* Free bytes of the file system for this user. */
drey_status new_file_space(const new_file *f, uint64_t *free_bytes, drey_error *err);
/* Checks that n_bytes are no more than that; both in the message. DREY_ERR_IO. */
drey_status new_file_check_room(const new_file *f, uint64_t n_bytes, uint64_t free_bytes,
                                drey_error *err);
/* Sets the file's full length, and reserves the disk space if the file system can. */
drey_status new_file_reserve(new_file *f, uint64_t n_bytes, drey_error *err);
/* Writes all n bytes. Data some MiB before the last byte is already going to the disk and leaves
 * the page cache, so that neither memory nor the last fsync grows with the file. */
drey_status new_file_write(new_file *f, uint64_t offset, const void *bytes, size_t n,
                           drey_error *err);
/* Writes everything to the disk, including the name, and closes. Discards the file on failure. */
drey_status new_file_commit(new_file *f, drey_error *err);
/* Removes the .partial, unless it keeps, and closes. Does nothing for a file that is committed or
 * was never open (all zero with fd -1). */
void new_file_discard(new_file *f);

/* Commits, or discards if status is a failure; returns the first failure. */
drey_status new_file_end(new_file *f, drey_status status, drey_error *err);
/* Checks that a file could be made there, before much work is done for its contents. */
drey_status new_file_check(const char *path, drey_error *err);

/* Makes the folders that a path names before its last part. One that cannot be made shows when the
 * file is written. */
void new_file_make_folders(char *path);
