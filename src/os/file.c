/* Reading files without the page cache.
 *
 * A direct read must begin and end at a multiple of the file system's block, and its address must
 * be aligned. file_read hides that with a bounce buffer; the stream (reader.h) arranges its ring so
 * that none is needed. A buffered file is read without read-ahead, and what was read is dropped
 * from the cache, so that reading a model does not evict other programs' pages. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/num.h"

enum {
    DIRECT_ALIGN = 4096, /* a multiple of what any usual device requires */
    LEAST_ALIGN = 512,
    MOST_ALIGN = 64 * 1024, /* the size of callers' bounce buffers */
    CACHE_PAGE = 4096,
    BUFFERED_CHUNK = 1 << 20,
    MOST_IDLE = 1000, /* interruptions in a row before a read counts as failed */
    MOST_FAILED = 3,  /* failures of a device in a row that are tolerated */
    IDLE_PAUSE_NS = 100 * 1000,
    FAILED_PAUSE_NS = 2 * 1000 * 1000 /* four times as long after each */
};

/* The alignment that the file system reports; 0 if it refuses O_DIRECT, DIRECT_ALIGN if it reports
 * none. */
static uint32_t stated_align(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx about;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 &&
        (about.stx_mask & STATX_DIOALIGN)) {
        uint32_t offset = about.stx_dio_offset_align, memory = about.stx_dio_mem_align;
        uint32_t align = offset > memory ? offset : memory;
        return align == 0 ? 0 : align < LEAST_ALIGN ? LEAST_ALIGN : align;
    }
#else
    (void)fd;
#endif
    return DIRECT_ALIGN;
}

/* Some file systems accept O_DIRECT and refuse the reads; one read shows that. */
static bool direct_works(int fd, uint32_t align)
{
    if (align == 0 || align > MOST_ALIGN)
        return false;
    void *block = aligned_alloc(align, align);
    if (!block)
        return false;
    ssize_t n;
    do
        n = pread(fd, block, align, 0);
    while (n < 0 && errno == EINTR);
    bool refused = n < 0 && (errno == EINVAL || errno == EOPNOTSUPP);
    free(block);
    return !refused; /* a failing disk is reported by the read that needs the bytes */
}

/* O_NONBLOCK: opening a pipe by mistake must not hang; regular files do not care. */
static int open_quietly(const char *path, int more)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | more);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static void open_direct(file *f, const char *path)
{
    f->fd = open_quietly(path, O_DIRECT);
    if (f->fd < 0)
        return;
    uint32_t align = stated_align(f->fd);
    if (direct_works(f->fd, align)) {
        f->direct = true;
        f->align_bytes = align;
        return;
    }
    close(f->fd);
    f->fd = -1;
}

static file_stamp stamp_of(const struct stat *about)
{
    return (file_stamp){.n_bytes = (uint64_t)about->st_size,
                        .changed_s = about->st_mtim.tv_sec,
                        .changed_ns = about->st_mtim.tv_nsec};
}

drey_status file_open(file *f, const char *path, bool want_direct, drey_error *err)
{
    *f = (file){.fd = -1, .align_bytes = 1};
    if (want_direct)
        open_direct(f, path);
    if (f->fd < 0)
        f->fd = open_quietly(path, 0);
    if (f->fd < 0)
        FAIL(err, DREY_ERR_IO, "cannot open %s: %s; check its name and permissions",
             SHOWN_PATH(path), strerror(errno));
    struct stat about;
    if (fstat(f->fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        file_close(f);
        FAIL(err, DREY_ERR_IO, "%s is not a regular file; give the path of a model file",
             SHOWN_PATH(path));
    }
    f->stamp = stamp_of(&about);
    f->n_bytes = f->stamp.n_bytes;
    if (!f->direct)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: it would not be dropped */
    return DREY_OK;
}

void file_close(file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

drey_status file_check(const file *f, const char *path, const file_stamp *since, drey_error *err)
{
    struct stat about;
    if (fstat(f->fd, &about) != 0)
        return file_read_failed(path, 0, errno, err);
    file_stamp now = stamp_of(&about);
    if (now.n_bytes == since->n_bytes && now.changed_s == since->changed_s &&
        now.changed_ns == since->changed_ns)
        return DREY_OK;
    FAIL(err, DREY_ERR_IO,
         "%s has changed while it was in use (%s); start again, and leave the file alone while "
         "drey runs",
         SHOWN_PATH(path),
         now.n_bytes < since->n_bytes   ? "it is shorter now"
         : now.n_bytes > since->n_bytes ? "it is longer now"
                                        : "it was written to");
}

void file_drop(const file *f, uint64_t offset, size_t n)
{
    /* Partly covered pages would stay. */
    uint64_t begin = offset & ~(uint64_t)(CACHE_PAGE - 1);
    uint64_t end = (offset + n + CACHE_PAGE - 1) & ~(uint64_t)(CACHE_PAGE - 1);
    posix_fadvise(f->fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
}

drey_status file_read_failed(const char *path, uint64_t offset, int reason, drey_error *err)
{
    if (reason == FILE_SHORTER)
        FAIL(err, DREY_ERR_IO,
             "%s has become shorter: byte %" PRIu64
             " is gone; copy the file again and leave it alone while drey runs",
             SHOWN_PATH(path), offset);
    FAIL(err, DREY_ERR_IO,
         "cannot read %s at byte %" PRIu64 ": %s; check the disk, or copy the file again",
         SHOWN_PATH(path), offset, strerror(reason));
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

bool file_try_again(file_patience *p, int error)
{
    switch (error) {
    case EAGAIN:
        pause_ns(IDLE_PAUSE_NS);
        return ++p->n_idle <= MOST_IDLE;
    case EINTR:
        return ++p->n_idle <= MOST_IDLE;
    case EIO: /* a bad cable, a drive that is busy internally */
    case ETIMEDOUT:
    case ENOMEM: /* the kernel's, for the request */
        if (++p->n_failed > MOST_FAILED)
            return false;
        pause_ns((long)FAILED_PAUSE_NS << 2 * (p->n_failed - 1));
        return true;
    default:
        return false;
    }
}

/* One read of at most n bytes; returns the bytes read (0 at the end of the file) or minus an
 * errno. */
static int64_t read_some(const file *f, uint64_t offset, size_t n, void *dst)
{
    for (file_patience patience = {0};;) {
        ssize_t got = pread(f->fd, dst, n, (off_t)offset);
        if (got >= 0)
            return got;
        int error = errno;
        if (!file_try_again(&patience, error))
            return -error;
    }
}

static drey_status read_buffered(const file *f, const char *path, uint64_t offset, size_t n,
                                 uint8_t *dst, drey_error *err)
{
    while (n > 0) {
        size_t ask = min_size(n, BUFFERED_CHUNK);
        int64_t got = read_some(f, offset, ask, dst);
        if (got <= 0)
            return file_read_failed(path, offset, got == 0 ? FILE_SHORTER : (int)-got, err);
        file_drop(f, offset, (size_t)got);
        offset += (uint64_t)got;
        dst += got;
        n -= (size_t)got;
    }
    return DREY_OK;
}

drey_status file_read(const file *f, const char *path, uint64_t offset, size_t n, void *dst,
                      void *bounce, size_t bounce_bytes, drey_error *err)
{
    if (!f->direct)
        return read_buffered(f, path, offset, n, dst, err);
    uint8_t *to = dst;
    size_t most = bounce_bytes / f->align_bytes * f->align_bytes;
    while (n > 0) {
        size_t lead = (size_t)(offset % f->align_bytes); /* bytes before those that are wanted */
        size_t ask = (lead + n + f->align_bytes - 1) / f->align_bytes * f->align_bytes;
        int64_t got = read_some(f, offset - lead, min_size(ask, most), bounce);
        if (got < 0)
            return file_read_failed(path, offset, (int)-got, err);
        if ((size_t)got <= lead)
            return file_read_failed(path, offset, FILE_SHORTER, err);
        size_t useful = min_size((size_t)got - lead, n);
        memcpy(to, (const uint8_t *)bounce + lead, useful);
        offset += useful;
        to += useful;
        n -= useful;
    }
    return DREY_OK;
}
