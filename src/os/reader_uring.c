/* Reads by io_uring: the kernel keeps the queue, one thread fills and empties it.
 *
 * The destination region and the files are registered, so that the kernel neither pins pages nor
 * looks files up for each read. If it refuses that (RLIMIT_MEMLOCK of ordinary users), plain reads
 * do the same work a little slower. reader_wake wakes a thread that waits for completions with an
 * eventfd on which a poll is always armed. */
#include "common/num.h"
#include "os/reader.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BUFFERS = 64 };
static const size_t BUFFER_BYTES = (size_t)1 << 30; /* the kernel's limit for one of them */

typedef struct uring_reader {
    reader base;
    struct io_uring ring;
    bool has_ring, fixed_files;
    int wake_fd;
    bool woken;
    reader_request *finished; /* not yet given back by wait */
} uring_reader;

static struct io_uring_sqe *take_entry(uring_reader *r)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&r->ring);
    while (!entry) { /* cannot happen while requests are limited to depth */
        io_uring_submit(&r->ring);
        entry = io_uring_get_sqe(&r->ring);
    }
    return entry;
}

static void arm_wake(uring_reader *r)
{
    struct io_uring_sqe *entry = take_entry(r);
    io_uring_prep_poll_add(entry, r->wake_fd, POLLIN);
    io_uring_sqe_set_data(entry, NULL);
}

/* The registered buffer that holds an attempt's bytes, or -1. */
static int buffer_of(const uring_reader *r, const uint8_t *at, size_t n)
{
    if (!r->base.registered)
        return -1;
    size_t begin = (size_t)(at - (const uint8_t *)r->base.options.region);
    size_t buffer = begin / BUFFER_BYTES;
    return (begin + n - 1) / BUFFER_BYTES == buffer ? (int)buffer : -1;
}

/* Puts the request's next attempt into the queue, or finishes it. */
static void issue(uring_reader *r, reader_request *q)
{
    for (int fault; (fault = reader_attempt(&r->base, q)) != 0;) {
        if (reader_result(&r->base, q, -fault)) {
            q->next = r->finished;
            r->finished = q;
            return;
        }
    }
    struct io_uring_sqe *entry = take_entry(r);
    int fd = r->fixed_files ? q->file : r->base.options.files[q->file].fd;
    uint8_t *at = q->dst + q->n_begin;
    uint64_t offset = q->offset + q->n_begin;
    int buffer = buffer_of(r, at, q->n_ask);
    if (buffer >= 0)
        io_uring_prep_read_fixed(entry, fd, at, q->n_ask, offset, buffer);
    else
        io_uring_prep_read(entry, fd, at, q->n_ask, offset);
    if (r->fixed_files)
        io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data(entry, q);
}

static void submit(reader *base, reader_request *q)
{
    issue((uring_reader *)base, q);
}

static void complete(uring_reader *r, struct io_uring_cqe *cqe)
{
    reader_request *q = io_uring_cqe_get_data(cqe);
    int32_t result = cqe->res;
    io_uring_cqe_seen(&r->ring, cqe); /* before issue, which may need a free entry */
    if (!q) {
        uint64_t count;
        ssize_t n = read(r->wake_fd, &count, sizeof count);
        (void)n; /* non-blocking: nothing to read is no harm */
        r->woken = true;
        arm_wake(r);
    } else if (reader_result(&r->base, q, result)) {
        q->next = r->finished;
        r->finished = q;
    } else {
        issue(r, q);
    }
}

static reader_request *await(reader *base)
{
    uring_reader *r = (uring_reader *)base;
    for (;;) {
        bool idle = !r->finished && !r->woken;
        int n = idle ? io_uring_submit_and_wait(&r->ring, 1) : io_uring_submit(&r->ring);
        if (n < 0 && n != -EINTR) /* out of memory: requests under way will free some */
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(&r->ring, &cqe) == 0)
            complete(r, cqe);
        if (!idle)
            break;
    }
    reader_request *finished = r->finished;
    r->finished = NULL;
    r->woken = false;
    return finished;
}

static void wake(reader *base)
{
    const uint64_t one = 1;
    ssize_t n = write(((uring_reader *)base)->wake_fd, &one, sizeof one);
    (void)n; /* fails only if the counter is full: then the thread is being woken already */
}

static void close_reader(reader *base)
{
    uring_reader *r = (uring_reader *)base;
    if (r->has_ring) {
        /* Closing the ring unpins later, in the background; this does it now. */
        if (r->base.registered)
            io_uring_unregister_buffers(&r->ring);
        io_uring_queue_exit(&r->ring);
    }
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    free(r);
}

static bool register_region(uring_reader *r)
{
    const reader_options *options = &r->base.options;
    struct iovec buffers[MOST_BUFFERS];
    unsigned n = 0;
    for (size_t at = 0; at < options->region_bytes; at += BUFFER_BYTES, n++) {
        if (n == MOST_BUFFERS)
            return false;
        size_t left = options->region_bytes - at;
        buffers[n].iov_base = (uint8_t *)options->region + at;
        buffers[n].iov_len = min_size(left, BUFFER_BYTES);
    }
    return n > 0 && io_uring_register_buffers(&r->ring, buffers, n) == 0;
}

static bool register_files(uring_reader *r)
{
    const reader_options *options = &r->base.options;
    int *fds = malloc((size_t)options->n_files * sizeof *fds);
    if (!fds)
        return false;
    for (int32_t i = 0; i < options->n_files; i++)
        fds[i] = options->files[i].fd;
    bool accepted = io_uring_register_files(&r->ring, fds, (unsigned)options->n_files) == 0;
    free(fds);
    return accepted;
}

/* Returns whether the kernel knows reads and the queue accepts an entry (the poll of reader_wake):
 * a sandbox may allow the queue and refuse its use. */
static bool works(uring_reader *r)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&r->ring);
    bool reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    io_uring_free_probe(probe);
    if (!reads)
        return false;
    arm_wake(r);
    return io_uring_submit(&r->ring) == 1;
}

drey_status reader_open_uring(reader **out, const reader_options *options, drey_error *err)
{
    static const reader_ops ops = {submit, await, wake, close_reader};
    *out = NULL;
    uring_reader *r = calloc(1, sizeof *r);
    if (!r)
        FAIL(err, DREY_ERR_MEMORY, "no memory for reading");
    r->base = (reader){.ops = &ops, .options = *options, .uring = true};
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int refused = r->wake_fd < 0 ? errno : 0;
    if (!refused) /* room for every request, its continuation and the poll */
        refused = -io_uring_queue_init((unsigned)options->depth + 2, &r->ring, 0);
    if (refused) {
        close_reader(&r->base);
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_IO,
                  "the system refuses io_uring: %s; read in another way", strerror(refused));
    }
    r->has_ring = true;
    if (!works(r)) {
        close_reader(&r->base);
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_IO,
                  "io_uring is too old or crippled here; read in another way");
    }
    r->base.registered = register_region(r);
    r->fixed_files = register_files(r);
    *out = &r->base;
    return DREY_OK;
}
