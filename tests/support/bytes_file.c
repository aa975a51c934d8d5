/* Files for tests: see bytes_file.h. */
#include "support/bytes_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool same_files(const char *one, const char *other)
{
    size_t n, n_other;
    uint8_t *bytes = bytes_file_read(one, &n), *others = bytes_file_read(other, &n_other);
    bool same = n == n_other && memcmp(bytes, others, n) == 0;
    free(bytes);
    free(others);
    return same;
}

size_t cached_pages(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0)
        abort();
    size_t n_bytes = (size_t)about.st_size, n_pages = (n_bytes + 4095) / 4096, n = 0;
    unsigned char *resident = malloc(n_pages + 1);
    void *map = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (!resident || map == MAP_FAILED || mincore(map, n_bytes, resident) != 0)
        abort();
    for (size_t i = 0; i < n_pages; i++)
        n += resident[i] & 1;
    munmap(map, n_bytes);
    free(resident);
    close(fd);
    return n;
}

void drop_cached_pages(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}
