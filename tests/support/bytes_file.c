/* Files for tests: see bytes_file.h. */
#include "support/bytes_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/rng.h"

static void make_parents(const char *path)
{
    char parent[4096];
    snprintf(parent, sizeof parent, "%s", path);
    for (char *at = parent + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(parent, 0755);
        *at = '/';
    }
}

void bytes_file_write(const char *path, const void *bytes, size_t n)
{
    make_parents(path);
    FILE *f = fopen(path, "wbe");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        abort();
    }
}

uint8_t *bytes_file_random(const char *path, size_t n, uint64_t seed)
{
    uint8_t *bytes = malloc(n + 8);
    if (!bytes) {
        perror("malloc");
        abort();
    }
    rng random = rng_from(seed);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = rng_next(&random);
        memcpy(bytes + i, &word, 8);
    }
    bytes_file_write(path, bytes, n);
    return bytes;
}

uint8_t *bytes_file_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        abort();
    *n = (size_t)ftell(f);
    uint8_t *bytes = malloc(*n + 1);
    rewind(f);
    if (!bytes || fread(bytes, 1, *n, f) != *n)
        abort();
    fclose(f);
    return bytes;
}
