/* Files of given or random bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes n bytes (created, truncated); parent directories are made. Aborts on failure. */
void bytes_file_write(const char *path, const void *bytes, size_t n);

/* A file of n seeded random bytes; also returns them (caller frees). */
uint8_t *bytes_file_random(const char *path, size_t n, uint64_t seed);

/* All bytes of a file (caller frees). Aborts on failure. */
uint8_t *bytes_file_read(const char *path, size_t *n);
bool same_files(const char *one, const char *other);

/* Returns how many pages of a file are in the page cache; and a request to drop them. */
size_t cached_pages(const char *path);
void drop_cached_pages(const char *path);
