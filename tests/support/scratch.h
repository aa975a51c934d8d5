/* Files that a test makes for itself, in a directory of its own that goes away at exit. */
#ifndef DREY_TESTS_SCRATCH_H
#define DREY_TESTS_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* base/name, in a directory made at the first call under $TMPDIR or /tmp. Lives until exit. */
const char *scratch_path(const char *name);

/* Writes n bytes (created, truncated); parent directories are made. Aborts the test on failure. */
void scratch_write(const char *path, const void *bytes, size_t n);

/* A file of n seeded random bytes; also returns them (caller frees). */
uint8_t *scratch_random(const char *path, size_t n, uint64_t seed);

/* A generator for tests: SplitMix64 over *state. */
uint64_t scratch_next(uint64_t *state);

#endif
