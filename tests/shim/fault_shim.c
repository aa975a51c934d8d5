/* A failing disk for command-line tests: preloaded, it spoils a program's pread and pwrite calls.
 *
 *   LD_PRELOAD=libfault_shim.so FAULT_FILE=model.gguf FAULT_KIND=eio FAULT_AFTER=1000000 \
 *       drey run --io pread ...
 *
 * FAULT_FILE   files whose path has this in it (needed; without it nothing happens)
 * FAULT_KIND   eio: reads fail; end: they return 0, as at the end of a shorter file;
 *              short: each brings at most half of what it asks for, down to 4096 bytes;
 *              interrupt: every other one fails with EINTR; delay: they take longer
 *              full: writes fail as on a full disk, which cannot reserve space either;
 *              kill: the first write ends the process
 * FAULT_AFTER  bytes that are read from such files, or written to them, before it begins (0)
 * FAULT_US     microseconds for delay (1000)
 *
 * io_uring does not pass through here: only --io pread and buffered do. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t pread_fn(int fd, void *to, size_t n, off_t offset);
typedef ssize_t pwrite_fn(int fd, const void *from, size_t n, off_t offset);
typedef int fallocate_fn(int fd, int mode, off_t offset, off_t n);

/* Built without _FILE_OFFSET_BITS, which would make both names one; off_t has 64 bits all the same.
 */
ssize_t pread(int fd, void *to, size_t n, off_t offset);
ssize_t pread64(int fd, void *to, size_t n, off_t offset);
ssize_t pwrite(int fd, const void *from, size_t n, off_t offset);
ssize_t pwrite64(int fd, const void *from, size_t n, off_t offset);
int fallocate64(int fd, int mode, off_t offset, off_t n);

static _Atomic unsigned long long n_read, n_written; /* bytes of matching files */
static _Atomic unsigned n_calls;

static const char *setting(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

static bool matches(int fd)
{
    const char *wanted = getenv("FAULT_FILE");
    if (!wanted || !*wanted)
        return false;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return false;
    path[n] = '\0';
    return strstr(path, wanted) != NULL;
}

static ssize_t spoilt(pread_fn *real, int fd, void *to, size_t n, off_t offset)
{
    const char *kind = setting("FAULT_KIND", "eio");
    if (strcmp(kind, "eio") == 0) {
        errno = EIO;
        return -1;
    }
    if (strcmp(kind, "end") == 0)
        return 0;
    if (strcmp(kind, "interrupt") == 0 && atomic_fetch_add(&n_calls, 1) % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (strcmp(kind, "short") == 0 && n >= 2 * 4096)
        n = n / 2 / 4096 * 4096;
    if (strcmp(kind, "delay") == 0) {
        long us = atol(setting("FAULT_US", "1000"));
        nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
    }
    return real(fd, to, n, offset);
}

ssize_t pread64(int fd, void *to, size_t n, off_t offset)
{
    pread_fn *real;
    void *symbol = dlsym(RTLD_NEXT, "pread64");
    memcpy(&real, &symbol, sizeof real); /* ISO C has no cast from void * to a function */
    if (!matches(fd))
        return real(fd, to, n, offset);
    bool begun = atomic_load(&n_read) >= strtoull(setting("FAULT_AFTER", "0"), NULL, 10);
    ssize_t got = begun ? spoilt(real, fd, to, n, offset) : real(fd, to, n, offset);
    if (got > 0)
        atomic_fetch_add(&n_read, (unsigned long long)got);
    return got;
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    return pread64(fd, to, n, offset);
}

static bool is_kind(const char *kind)
{
    return strcmp(setting("FAULT_KIND", "eio"), kind) == 0;
}

ssize_t pwrite64(int fd, const void *from, size_t n, off_t offset)
{
    pwrite_fn *real;
    void *symbol = dlsym(RTLD_NEXT, "pwrite64");
    memcpy(&real, &symbol, sizeof real);
    if (!matches(fd))
        return real(fd, from, n, offset);
    if (atomic_load(&n_written) >= strtoull(setting("FAULT_AFTER", "0"), NULL, 10)) {
        if (is_kind("kill"))
            raise(SIGKILL);
        if (is_kind("full")) {
            errno = ENOSPC;
            return -1;
        }
    }
    ssize_t put = real(fd, from, n, offset);
    if (put > 0)
        atomic_fetch_add(&n_written, (unsigned long long)put);
    return put;
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t offset)
{
    return pwrite64(fd, from, n, offset);
}

int fallocate64(int fd, int mode, off_t offset, off_t n)
{
    fallocate_fn *real;
    void *symbol = dlsym(RTLD_NEXT, "fallocate64");
    memcpy(&real, &symbol, sizeof real);
    if (matches(fd) && is_kind("full")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return real(fd, mode, offset, n);
}
