/* Scratch files of tests. */
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PATHS = 256 };

static char directory[512];
static pid_t owner; /* forked children leave the directory to their parent */
static char *paths[MOST_PATHS];
static int n_paths;

static void die(const char *what)
{
    fprintf(stderr, "scratch: %s: %s\n", what, strerror(errno));
    abort();
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about, (void)kind, (void)walk;
    return remove(path);
}

static void clean(void)
{
    if (getpid() == owner)
        nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < n_paths; i++)
        free(paths[i]);
    n_paths = 0;
}

static void make_directory(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/drey-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(directory))
        die(directory);
    chmod(directory, 0755); /* tests that give up root still read it */
    owner = getpid();
    atexit(clean);
}

const char *scratch_path(const char *name)
{
    if (!directory[0])
        make_directory();
    size_t n = strlen(directory) + strlen(name) + 2;
    char *path = malloc(n);
    if (!path || n_paths == MOST_PATHS)
        die("too many paths");
    snprintf(path, n, "%s/%s", directory, name);
    paths[n_paths++] = path;
    return path;
}

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

void scratch_write(const char *path, const void *bytes, size_t n)
{
    make_parents(path);
    FILE *f = fopen(path, "wbe");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        die(path);
}

uint64_t scratch_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint8_t *scratch_random(const char *path, size_t n, uint64_t seed)
{
    uint8_t *bytes = malloc(n + 8);
    if (!bytes)
        die("malloc");
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = scratch_next(&seed);
        memcpy(bytes + i, &word, 8);
    }
    scratch_write(path, bytes, n);
    return bytes;
}
