/* A disk for engines of tests: slow at random, and failing. engine_hooks.fault is disk_read, with
 * a disk as its user. Another one, of all files: full. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Attempts that fail in a row: more than are forgiven. */
enum { DISK_BROKEN = 12 };

typedef struct disk {
    int32_t slow_of, slow_us; /* one read of slow_of takes less than slow_us; 0: none is slow */
    _Atomic int32_t fail_of;  /* one read of so many fails, at once and for good; 0: none */
    _Atomic int32_t n_broken; /* the next attempts fail */
    _Atomic uint64_t n_reads; /* so far */
} disk;

int disk_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes);

/* Sets whether files of this process may only have some kilobytes from now on. */
void disk_set_full(bool full);
