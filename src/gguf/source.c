/* Growing reads of a header: see source.h. */
#include "gguf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* First read, and the multiple of all others: any file system's O_DIRECT unit divides it. */
static const size_t step_bytes = (size_t)256 << 10;
static const size_t page_bytes = 4096;

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Keeps a path's end, which tells files apart, so that the hint behind it is never cut off. */
static void show_path(char *out, size_t capacity, const char *path)
{
    size_t n = strlen(path);
    if (n < capacity)
        memcpy(out, path, n + 1);
    else
        snprintf(out, capacity, "...%s", path + n - (capacity - 4));
}

static drey_status open_regular(source *s, const char *path, drey_error *err)
{
    /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    s->fd = open(path, flags);
    if (s->fd < 0 && errno == ENOENT)
        FAIL(err, DREY_ERR_IO, "%s does not exist; check the path", s->shown);
    if (s->fd < 0)
        FAIL(err, DREY_ERR_IO, "%s cannot be opened (%s); check its permissions", s->shown,
             strerror(errno));
    struct stat st;
    if (fstat(s->fd, &st) != 0)
        FAIL(err, DREY_ERR_IO, "%s cannot be examined (%s); check the file system", s->shown,
             strerror(errno));
    if (S_ISDIR(st.st_mode))
        FAIL(err, DREY_ERR_IO, "%s is a directory; name the GGUF file in it", s->shown);
    if (!S_ISREG(st.st_mode))
        FAIL(err, DREY_ERR_IO, "%s is not a regular file; save the model to a file first",
             s->shown);
    if (st.st_size == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is empty; fetch the file again", s->shown);
    s->file_bytes = (uint64_t)st.st_size;
    int direct = open(path, flags | O_DIRECT);
    struct stat again;
    if (direct >= 0 && fstat(direct, &again) == 0 && again.st_dev == st.st_dev &&
        again.st_ino == st.st_ino) {
        close(s->fd);
        s->fd = direct;
    } else if (direct >= 0) {
        close(direct);
    }
    return DREY_OK;
}

drey_status source_open(source *s, const char *path, drey_error *err)
{
    *s = (source){.fd = -1};
    show_path(s->shown, sizeof s->shown, path);
    drey_status status = open_regular(s, path, err);
    if (status == DREY_OK) {
        size_t limit = SOURCE_HEADER_LIMIT;
        if (s->file_bytes < limit)
            limit = round_up((size_t)s->file_bytes, step_bytes);
        void *map = mmap(NULL, limit, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map != MAP_FAILED) {
            s->base = map;
            s->capacity = limit;
            s->mapped = true;
            return DREY_OK;
        }
        status =
            error_set(err, DREY_ERR_MEMORY,
                      "the system refused memory for the header of %s; free some memory", s->shown);
    }
    source_close(s);
    return status;
}

drey_status source_from_memory(source *s, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                               drey_error *err)
{
    *s = (source){.shown = "the GGUF data", .fd = -1, .file_bytes = file_bytes};
    if (n_bytes == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is empty; fetch the file again", s->shown);
    s->base = malloc(n_bytes);
    if (!s->base)
        FAIL(err, DREY_ERR_MEMORY,
             "the system refused memory for the header of %s; free some memory", s->shown);
    memcpy(s->base, bytes, n_bytes);
    s->n_read = s->capacity = n_bytes;
    return DREY_OK;
}

/* Drops from the page cache what a buffered read left there; of no effect on direct reads. */
static void close_file(source *s)
{
    if (s->fd >= 0 && s->n_read)
        posix_fadvise(s->fd, 0, (off_t)s->n_read, POSIX_FADV_DONTNEED);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void source_close(source *s)
{
    close_file(s);
    if (s->mapped)
        munmap(s->base, s->capacity);
    else
        free(s->base);
    s->base = NULL;
    s->n_read = s->capacity = s->at = 0;
}

void source_finish(source *s, size_t n_kept)
{
    close_file(s);
    if (s->mapped) {
        size_t kept = round_up(n_kept ? n_kept : 1, page_bytes);
        if (kept < s->capacity) {
            munmap(s->base + kept, s->capacity - kept);
            s->capacity = kept;
        }
    }
    s->n_read = n_kept;
}

/* One read at n_read, which is where the last one ended. */
static drey_status read_some(source *s, size_t n_wanted, drey_error *err)
{
    ssize_t n;
    do {
        n = pread(s->fd, s->base + s->n_read, n_wanted, (off_t)s->n_read);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EINVAL) { /* this file system opens O_DIRECT files but cannot read them */
        int flags = fcntl(s->fd, F_GETFL);
        if (flags >= 0 && (flags & O_DIRECT) && fcntl(s->fd, F_SETFL, flags & ~O_DIRECT) == 0)
            return DREY_OK;
    }
    if (n < 0)
        FAIL(err, DREY_ERR_IO, "%s cannot be read (%s); check the disk", s->shown, strerror(errno));
    if (n == 0)
        FAIL(err, DREY_ERR_IO, "%s became shorter while it was read; try again when it is complete",
             s->shown);
    s->n_read += (size_t)n;
    if (s->n_read > s->file_bytes) /* the file grew: what came later is not ours */
        s->n_read = (size_t)s->file_bytes;
    return DREY_OK;
}

/* Reads ahead, doubling, until the first n_needed bytes are there. */
static drey_status read_up_to(source *s, size_t n_needed, drey_error *err)
{
    size_t target = s->n_read * 2 > n_needed ? s->n_read * 2 : n_needed;
    target = round_up(target, step_bytes);
    if (target > s->capacity)
        target = s->capacity;
    while (s->n_read < n_needed)
        TRY(read_some(s, target - s->n_read, err));
    return DREY_OK;
}

drey_status source_take(source *s, uint64_t n, const uint8_t **bytes, drey_error *err)
{
    bool complete = s->file_bytes <= s->capacity || !s->mapped;
    if (n > (complete ? source_left(s) : s->file_bytes - s->at))
        FAIL(err, DREY_ERR_FORMAT,
             "%s ends inside its header (%llu bytes); it is damaged or not all there, fetch it "
             "again",
             s->shown, (unsigned long long)s->file_bytes);
    if (n > s->capacity - s->at)
        FAIL(err, DREY_ERR_FORMAT,
             "%s has a header of more than %zu MiB, which no model needs; it is damaged, fetch it "
             "again",
             s->shown, s->capacity >> 20);
    if (n > s->n_read - s->at)
        TRY(read_up_to(s, s->at + (size_t)n, err));
    *bytes = s->base + s->at;
    s->at += (size_t)n;
    return DREY_OK;
}

uint64_t source_left(const source *s)
{
    uint64_t end = s->file_bytes < s->capacity ? s->file_bytes : s->capacity;
    return end - s->at;
}
