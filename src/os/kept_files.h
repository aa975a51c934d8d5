/* A folder of files that are kept for later, by number, up to a limit: the oldest are removed.
 *
 * Files belong to groups, whose members can be listed: a file is FOLDER/GROUP-KEY.kept, two
 * numbers of 16 digits; in group 0 it is KEY.kept. It is written under another ending and renamed
 * when it is complete. Nothing waits for the disk, so after a crash of the machine it may still be
 * incomplete: readers check what they read. Using a file makes it the newest, also for the next
 * process. One process at a time uses a folder. After opening, nothing allocates memory. */
#pragma once

#include "base/arena.h"

typedef struct kept_file {
    uint64_t key, group, n_bytes;
    int64_t used; /* greater is later */
} kept_file;

typedef struct kept_files {
    int fd;          /* the folder; -1: closed */
    kept_file *file; /* [n] */
    int32_t n, max;
    uint64_t n_bytes, max_bytes;
    int64_t now; /* counts uses */
} kept_files;

typedef struct kept_part { /* one after the other */
    void *bytes;
    size_t n;
} kept_part;

/* Memory for up to max_files. */
size_t kept_files_memory(int32_t max_files);
/* Creates the folder if it does not exist, lists its files and removes those beyond the limits.
 * Other files are not touched. DREY_ERR_IO: no such place, no permission, or another process uses
 * it. */
drey_status kept_files_open(kept_files *k, const char *folder, uint64_t max_bytes,
                            int32_t max_files, arena *a, drey_error *err);
/* Accepts one that was never open, with fd -1. */
void kept_files_close(kept_files *k);

bool kept_files_has(const kept_files *k, uint64_t key);
/* The next file of a group at or after *at, which moves past it: 0 begins. False: there is none. */
bool kept_files_next(const kept_files *k, uint64_t group, int32_t *at, uint64_t *key);
/* Reads the first bytes of a file, which may have more. False: it has fewer, or cannot be read. */
bool kept_files_peek(const kept_files *k, uint64_t key, const kept_part *parts, int n_parts);
/* The file will be read soon: the disk may begin. */
void kept_files_expect(const kept_files *k, uint64_t key);
/* Reads the whole file, whose parts have these sizes, and counts as a use. If it has another size
 * or cannot be read, removes the file and returns false. */
bool kept_files_read(kept_files *k, uint64_t key, const kept_part *parts, int n_parts);
/* False: it was not kept: it is larger than the limit, or the disk is full or fails. */
bool kept_files_write(kept_files *k, uint64_t group, uint64_t key, const kept_part *parts,
                      int n_parts);
void kept_files_drop(kept_files *k, uint64_t key);
