/* A file that appears under its name whole or not at all.
 *
 * It grows as NAME.partial in the same folder, locked against a second writer, and takes its name
 * when all of it is on the disk. Whatever ends the writer before that, NAME is what it was; a
 * .partial that a crash has left is taken over by the next writer.
 *
 *   open -> write* -> commit      (discard at any point before it removes what was written) */
#ifndef DREY_COMMON_NEW_FILE_H
#define DREY_COMMON_NEW_FILE_H

#include "common/error.h"

typedef struct new_file {
    int fd;           /* -1 when closed */
    char *path;       /* where it will be: links are followed */
    char *partial;    /* where it is now */
    uint64_t begun;   /* what lies before it was told to go to the disk, */
    uint64_t dropped; /* what lies before this is there and has left the page cache */
} new_file;

/* The path that a file grows under: NAME.partial, with links followed. The caller frees; NULL when
 * memory is short. */
char *new_file_partial(const char *path);
/* Makes NAME.partial, empty. DREY_ERR_IO: the folder, the rights, another writer, or NAME is
 * something else than a file. */
drey_status new_file_open(new_file *f, const char *path, drey_error *err);
/* Bytes that the file system still has for this user. */
drey_status new_file_space(const new_file *f, uint64_t *free_bytes, drey_error *err);
/* Gives the file its full length, with the disk space for it where the file system can reserve. */
drey_status new_file_reserve(new_file *f, uint64_t n_bytes, drey_error *err);
/* Writes all n bytes. What lies some MiB behind the last byte is on its way to the disk and no
 * longer in the page cache, so that neither memory nor the last fsync grows with the file. */
drey_status new_file_write(new_file *f, uint64_t offset, const void *bytes, size_t n,
                           drey_error *err);
/* Puts everything on the disk, the name too, and closes. A failure discards. */
drey_status new_file_commit(new_file *f, drey_error *err);
/* Removes the .partial and closes. Nothing to do for a file that is committed or was never open
 * (all zero with fd -1). */
void new_file_discard(new_file *f);

#endif
