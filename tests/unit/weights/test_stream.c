/* The stream delivers every byte in every way of reading, whatever is released, skipped, delayed or
 * interrupted in whatever order; and a read that fails ends every wait with one clear sentence. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/num.h"
#include "os/reader.h"
#include "support/bytes_file.h"
#include "support/faults/child.h"
#include "support/faults/deny.h"
#include "support/scene.h"
#include "weights/stream.h"

enum {
    PAGE = 4096,
    N_FILES = 2,
    FILE_BYTES = (5 << 20) + 1234,
    MOST_PIECES = 200,
    LARGEST = 3 << 20,
    CANARY = 0xEE,
    JUNK = 0xDD
};

static const drey_io MODES[] = {DREY_IO_AUTO, DREY_IO_URING, DREY_IO_PREAD, DREY_IO_BUFFERED};
enum { N_MODES = sizeof MODES / sizeof MODES[0] };

/* Two files, their pieces, and a ring between two canary pages. */
typedef struct rig {
    const char *paths[N_FILES];
    uint8_t *bytes[N_FILES];
    stream_piece pieces[MOST_PIECES];
    stream_options options;
    int32_t n_more; /* pieces after those of `first` that are appended in turns */
    uint8_t *memory;
    stream *stream;
    drey_error err;
    /* seed of the fault hook */
    uint64_t fault_seed;
    _Atomic uint64_t n_reads;
    int32_t eio_part;            /* EIO for reads of this part ... */
    uint64_t eio_offset;         /* ... that cover this byte, */
    _Atomic int32_t n_eio;       /* so many times; negative: always */
    long delay_us;               /* delay of each read */
    _Atomic bool held;           /* no read begins */
    _Atomic uint32_t most_bytes; /* the most bytes of a read so far */
} rig;

static uint8_t *file_bytes[N_FILES];
static char file_paths[N_FILES][2048];

static int make_files(void **state)
{
    chmod(temp_dir(), 0755); /* also for the children that give up root */
    for (int i = 0; i < N_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "weights-%d.bin", i);
        snprintf(file_paths[i], sizeof file_paths[i], "%s", temp_path(name));
        file_bytes[i] = bytes_file_random(file_paths[i], FILE_BYTES, 100 + (uint64_t)i);
    }
    return 0;
}

static int free_files(void **state)
{
    for (int i = 0; i < N_FILES; i++)
        free(file_bytes[i]);
    temp_dir_remove();
    return 0;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* n_first and n_cycle random pieces; sizes from a byte to `largest`, most of them small. */
static void rig_init(rig *r, uint64_t seed, int32_t n_first, int32_t n_cycle, uint32_t largest)
{
    *r = (rig){.eio_part = -1, .n_eio = -1};
    rng random = rng_from(seed);
    uint32_t most = 0;
    for (int i = 0; i < N_FILES; i++) {
        r->paths[i] = file_paths[i];
        r->bytes[i] = file_bytes[i];
    }
    for (int32_t i = 0; i < n_first + n_cycle; i++) {
        uint64_t kind = rng_next(&random) % 8;
        uint64_t limit = kind == 0 ? largest : kind < 3 ? largest / 8 + 1 : largest / 64 + 1;
        uint32_t n = (uint32_t)(1 + rng_next(&random) % limit);
        if (i == 1)
            n = largest;
        uint64_t last = FILE_BYTES - n; /* some pieces end with the file, some begin a page */
        uint64_t offset = i % 7 == 3 ? last : rng_next(&random) % (last + 1);
        if (i % 5 == 0)
            offset &= ~(uint64_t)(PAGE - 1);
        r->pieces[i] = (stream_piece){
            .part = (int32_t)(rng_next(&random) % N_FILES), .n_bytes = n, .offset = offset};
        most = n > most ? n : most;
    }
    r->options = (stream_options){.paths = r->paths,
                                  .n_paths = N_FILES,
                                  .first = r->pieces,
                                  .n_first = n_first,
                                  .cycle = r->pieces + n_first,
                                  .n_cycle = n_cycle,
                                  .ring_bytes = 2 * STREAM_ROOM_BYTES(most)};
}

/* Pieces of one size in file 0, one each `step` bytes. */
static void rig_even(rig *r, int32_t n_first, int32_t n_cycle, uint32_t n_bytes, uint64_t step)
{
    rig_init(r, 11, n_first, n_cycle, n_bytes);
    for (int32_t i = 0; i < n_first + n_cycle; i++)
        r->pieces[i] = (stream_piece){.n_bytes = n_bytes, .offset = (uint64_t)i * step};
}

static void rig_open(rig *r, drey_io io)
{
    size_t n = r->options.ring_bytes;
    if (posix_memalign((void **)&r->memory, PAGE, n + 2 * PAGE) != 0)
        fail();
    memset(r->memory, JUNK, n + 2 * PAGE);
    memset(r->memory, CANARY, PAGE);
    memset(r->memory + PAGE + n, CANARY, PAGE);
    r->options.ring = r->memory + PAGE;
    r->options.io = io;
    MUST(stream_open, &r->stream, &r->options);
}

/* The status before closing. */
static drey_status rig_close(rig *r)
{
    drey_status status = stream_status(r->stream, &r->err);
    stream_close(&r->stream);
    assert_null(r->stream);
    for (size_t i = 0; i < PAGE; i++) {
        assert_int_equal(r->memory[i], CANARY);
        assert_int_equal(r->memory[PAGE + r->options.ring_bytes + i], CANARY);
    }
    free(r->memory);
    return status;
}

static const stream_piece *piece_of(const rig *r, int64_t seq)
{
    int64_t n_first = r->options.n_first;
    return seq < n_first ? &r->pieces[seq]
                         : &r->options.cycle[(seq - n_first) % (r->options.n_cycle + r->n_more)];
}

static bool right(const rig *r, int64_t seq, const uint8_t *at)
{
    const stream_piece *p = piece_of(r, seq);
    return memcmp(at, r->bytes[p->part] + p->offset, p->n_bytes) == 0;
}

/* Waits, checks, spoils the bytes (they must be read again) and releases. */
static bool take(rig *r, int64_t seq, long hold_us)
{
    uint8_t *at = (uint8_t *)(uintptr_t)stream_wait(r->stream, seq);
    if (!at || !right(r, seq, at))
        return false;
    if (hold_us) {
        sleep_us(hold_us);
        if (!right(r, seq, at)) /* nothing landed on it meanwhile */
            return false;
    }
    memset(at, JUNK, piece_of(r, seq)->n_bytes);
    stream_release(r->stream, seq);
    return true;
}

/* Takes the first n pieces, and closes. */
static void finish(rig *r, int64_t n)
{
    for (int64_t seq = 0; seq < n; seq++)
        assert_true(take(r, seq, 0));
    assert_int_equal(rig_close(r), DREY_OK);
}

/* ---- A system that refuses, in children. Their verdicts: 0 right, or CANNOT_TRY ---- */

/* Two passes in this process as it now is; what was used comes out in count. */
static bool still_works(drey_io io, stream_counters *count)
{
    rig r;
    rig_init(&r, 1000, 5, 10, 200000);
    rig_open(&r, io);
    bool works = true;
    for (int64_t seq = 0; seq < 5 + 2 * 10; seq++)
        works = works && take(&r, seq, 0);
    stream_count(r.stream, count);
    return rig_close(&r) == DREY_OK && works;
}

typedef struct refusal {
    int error;
    bool only_use;
} refusal;

static int without_uring(void *arg)
{
    const refusal *how = arg;
    if (!deny_uring(how->error, how->only_use))
        return CANNOT_TRY;
    stream_counters count;
    if (!still_works(DREY_IO_AUTO, &count) || count.uring || count.registered)
        return 1;
    rig r;
    rig_init(&r, 1001, 1, 1, 100);
    r.options.io = DREY_IO_URING;
    r.options.ring = aligned_alloc(PAGE, r.options.ring_bytes);
    if (stream_open(&r.stream, &r.options, &r.err) != DREY_ERR_IO)
        return 2;
    return r.err.hint == DREY_HINT_IO ? 0 : 3;
}

static int without_direct(void *arg)
{
    if (!deny_direct())
        return CANNOT_TRY;
    stream_counters count;
    for (int m = 0; m < N_MODES; m++)
        if (!still_works(MODES[m], &count) || count.direct)
            return 1 + m;
    return 0;
}

/* Runs as an ordinary user whose RLIMIT_MEMLOCK is *arg. */
static int with_little_locked_memory(void *arg)
{
    rlim_t limit = *(const rlim_t *)arg;
    if (setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){limit, limit}) != 0)
        return CANNOT_TRY;
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return CANNOT_TRY;
    stream_counters count;
    if (!still_works(DREY_IO_AUTO, &count))
        return 1;
    print_message("unprivileged, RLIMIT_MEMLOCK %zu: io_uring %s, registered %s\n", (size_t)limit,
                  count.uring ? "yes" : "no", count.registered ? "yes" : "no");
    return count.registered ? 2 : 0; /* the ring is larger: what is registered would be locked */
}

static void check_child(int (*check)(void *arg), void *arg)
{
    int verdict = child_run(check, arg);
    if (verdict == CANNOT_TRY)
        NOT_RUN("a way of reading that this kernel refuses");
    assert_int_equal(verdict, 0);
}

TEST(uring_refused)
{
    refusal refusals[] = {{EPERM, false}, {ENOSYS, false}, {ENOMEM, false}, {EPERM, true}};
    for (int i = 0; i < 4; i++)
        check_child(without_uring, &refusals[i]);
}

TEST(direct_refused)
{
    check_child(without_direct, NULL);
}

TEST(unprivileged_with_little_locked_memory)
{
    /* Kernels differ in whether io_uring's own queues count; a few pages are enough for them. */
    rlim_t limits[] = {0, 256 * 1024};
    for (int i = 0; i < 2; i++)
        check_child(with_little_locked_memory, &limits[i]);
}

/* ---- Here ---- */

TEST(passes_of_every_mode)
{
    static const size_t scale[] = {1, 3, 40}; /* of the smallest ring; 40: everything fits */
    static const uint32_t largest[] = {LARGEST, LARGEST / 2, 200000};
    for (int m = 0; m < N_MODES; m++) {
        for (int size = 0; size < 3; size++) {
            rig r;
            rig_init(&r, (uint64_t)(m * 10 + size), 20, 15, largest[size]);
            r.options.ring_bytes *= scale[size];
            r.options.depth = size == 1 ? 3 : 0;
            rig_open(&r, MODES[m]);
            uint64_t needed = 0;
            int64_t n = 20 + 3 * 15;
            for (int64_t seq = 0; seq < n; seq++) {
                assert_true(take(&r, seq, 0));
                needed += piece_of(&r, seq)->n_bytes;
            }
            stream_counters count;
            stream_count(r.stream, &count);
            assert_true(count.read_bytes >= needed);
            assert_true(count.device_bytes >= count.read_bytes);
            assert_true(count.busy_ns > 0);
            if (MODES[m] == DREY_IO_BUFFERED)
                assert_false(count.direct || count.uring || count.registered);
            if (MODES[m] == DREY_IO_PREAD)
                assert_false(count.uring || count.registered);
            if (MODES[m] == DREY_IO_URING)
                assert_true(count.uring);
            assert_int_equal(rig_close(&r), DREY_OK);
        }
    }
}

typedef struct crew {
    rig *r;
    _Atomic int64_t next;
    int64_t end;
    _Atomic int n_wrong;
} crew;

static void *consume(void *arg)
{
    crew *c = arg;
    for (int64_t seq; (seq = atomic_fetch_add(&c->next, 1)) < c->end;)
        if (!take(c->r, seq, (long)(seq * 7919 % 13) * 40))
            atomic_fetch_add(&c->n_wrong, 1);
    return NULL;
}

static void run_crew(rig *r, int64_t end, int expect_wrong)
{
    enum { N_THREADS = 5 };
    crew c = {.r = r, .end = end};
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, consume, &c), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.n_wrong > 0, expect_wrong);
}

TEST(consumers_release_out_of_order)
{
    for (int m = 0; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 500 + (uint64_t)m, 10, 30, 300000);
        r.options.ring_bytes += (size_t)m * 300000;
        rig_open(&r, MODES[m]);
        run_crew(&r, 10 + 4 * 30, 0);
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

/* Interrupts, shortens and delays reads by chance. */
static int shake(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    rig *r = user;
    rng random = rng_from(r->fault_seed + atomic_fetch_add(&r->n_reads, 1));
    uint64_t chance = rng_next(&random) % 16;
    if (r->delay_us)
        sleep_us(r->delay_us);
    while (atomic_load(&r->held))
        sleep_us(200);
    bool bad = part == r->eio_part && offset <= r->eio_offset && r->eio_offset - offset < n_bytes;
    if (bad && r->n_eio > 0)
        atomic_fetch_sub(&r->n_eio, 1);
    else
        bad &= r->n_eio < 0;
    if (bad)
        return EIO;
    if (r->fault_seed == 0)
        return 0;
    if (chance < 3)
        return EINTR;
    if (chance == 3)
        return EAGAIN;
    if (chance < 8)
        return -(int)(1 + rng_next(&random) % n_bytes);
    if (chance == 8)
        sleep_us((long)(rng_next(&random) % 3000));
    return 0;
}

static void rig_shake(rig *r, uint64_t seed)
{
    r->fault_seed = seed;
    r->options.fault = shake;
    r->options.fault_user = r;
}

TEST(interrupted_short_and_late_reads)
{
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 900 + (uint64_t)m, 10, 20, 200000);
        r.options.ring_bytes *= 2;
        rig_shake(&r, 1234 + (uint64_t)m);
        rig_open(&r, MODES[m]);
        run_crew(&r, 10 + 3 * 20, 0);
        assert_true(r.n_reads > 80); /* some were continued */
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

TEST(skips_of_every_kind)
{
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 40 + (uint64_t)m, 12, 25, 150000);
        r.options.ring_bytes *= m == 1 ? 1 : 3;
        rig_shake(&r, 99);
        rig_open(&r, MODES[m]);
        rng random = rng_from((uint64_t)m);
        stream_skip(r.stream, 0, 2); /* asked or not, none has arrived */
        int64_t skipped_from = 0, skipped_to = 2, end = 12 + 5 * 25;
        for (int64_t seq = 0; seq < end;) {
            if (seq >= skipped_from && seq < skipped_to) {
                seq = skipped_to;
                continue;
            }
            uint64_t choice = rng_next(&random) % 8;
            int64_t n = (int64_t)(1 + rng_next(&random) % 9);
            int64_t pass_end = seq < 12 ? 12 : 12 + (seq - 12) / 25 * 25 + 25;
            if (choice == 0 && seq >= skipped_to) { /* ahead, as an early exit does */
                skipped_from = seq + n < pass_end ? seq + n : pass_end;
                skipped_to = pass_end;
                stream_skip(r.stream, skipped_from, skipped_to);
            } else if (choice == 1 || choice == 2) { /* after arrival; whatever state it is in */
                while (choice == 1 && !stream_ready(r.stream, seq))
                    sleep_us(50);
                stream_skip(r.stream, seq, seq + 1);
                seq++;
            } else {
                assert_true(take(&r, seq, 0));
                seq++;
            }
        }
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

TEST(what_is_skipped_in_time_is_not_read)
{
    enum { N = 40, BYTES = 100000 };
    rig r;
    rig_even(&r, 0, N, BYTES, BYTES);
    rig_open(&r, DREY_IO_AUTO);
    assert_true(take(&r, 0, 0));
    stream_skip(r.stream, 1, N);
    assert_true(take(&r, N, 0)); /* the next pass's first */
    stream_counters count;
    stream_count(r.stream, &count);
    /* The ring holds two pieces: those that were under way before and after the skip. */
    assert_true(count.read_bytes <= 6 * BYTES);
    assert_int_equal(rig_close(&r), DREY_OK);
}

/* A busy machine is slow: this ends only a wait that would have no end. */
enum { PATIENCE_MS = 120 * 1000 };

static bool comes(stream *s, int64_t seq)
{
    for (int tries = 0; tries < PATIENCE_MS && !stream_ready(s, seq); tries++)
        sleep_us(1000);
    return stream_ready(s, seq);
}

TEST(skipping_what_does_not_fit_lets_the_next_in)
{
    enum { LARGE = 100 * PAGE };
    rig r;
    rig_even(&r, 4, 0, LARGE, LARGE);
    r.pieces[3].n_bytes = 10;
    rig_open(&r, DREY_IO_AUTO);
    assert_true(comes(r.stream, 0) && comes(r.stream, 1));
    sleep_us(5000);
    assert_false(stream_ready(r.stream, 2)); /* the ring is full but for a page or two */
    stream_skip(r.stream, 2, 3);
    assert_true(comes(r.stream, 3));
    assert_int_equal(rig_close(&r), DREY_OK);
}

/* Nothing after the limit is read, and no other reason stops the reads there. */
TEST(the_limit_holds_reads_back)
{
    enum { N = 20, BYTES = 30000 };
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_even(&r, 0, N, BYTES, BYTES);
        rig_shake(&r, 0);
        r.delay_us = 1000;
        r.options.ring_bytes *= 4; /* eight pieces */
        rig_open(&r, MODES[m]);
        stream_limit(r.stream, 12); /* more than fit */
        for (int64_t seq = 0; seq < 10; seq++)
            assert_true(take(&r, seq, 0));
        assert_true(comes(r.stream, 10) && comes(r.stream, 11));
        sleep_us(5000);
        stream_counters count;
        stream_count(r.stream, &count);
        assert_int_equal(count.read_bytes, 12 * BYTES);
        assert_int_equal(count.room_bytes, 0); /* the ring has room, the limit has none */
        stream_limit(r.stream, 5);             /* what was asked for stays so */
        assert_true(take(&r, 10, 0) && stream_is_valid(r.stream));
        stream_limit(r.stream, 14);
        assert_true(take(&r, 11, 0) && take(&r, 12, 0) && comes(r.stream, 13));
        sleep_us(5000);
        assert_false(stream_ready(r.stream, 14));
        stream_skip(r.stream, 13, N); /* one of them has been read */
        stream_count(r.stream, &count);
        assert_int_equal(count.vain_bytes, BYTES);
        stream_limit(r.stream, N + 2); /* into the next pass */
        assert_true(take(&r, N, 0));
        assert_true(take(&r, N + 1, 0) && take(&r, N + 2, 0)); /* waiting raises it */
        stream_limit(r.stream, INT64_MAX);
        assert_true(comes(r.stream, N + 3) && comes(r.stream, N + 4));
        assert_true(stream_is_valid(r.stream));
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

/* Passes that end early, their limits raised by and by: all that was read was used or in vain. */
TEST(what_is_given_up_is_counted)
{
    enum { N = 15, N_PASSES = 20, STEP = 3 };
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 60 + (uint64_t)m, 0, N, 40000);
        r.options.ring_bytes *= (size_t)m;
        rig_shake(&r, 7);
        rig_open(&r, MODES[m]);
        stream_limit(r.stream, STEP);
        rng random = rng_from((uint64_t)m);
        uint64_t used = 0;
        for (int64_t pass = 0; pass < N_PASSES; pass++) {
            int64_t begin = pass * N, end = begin + N, stop = begin + rng_below(&random, N + 1);
            for (int64_t seq = begin; seq < stop; seq++) {
                if (seq % STEP == 0)
                    stream_limit(r.stream,
                                 min_i64(seq + STEP + rng_below(&random, 4), N_PASSES * N));
                assert_true(take(&r, seq, 0));
                used += piece_of(&r, seq)->n_bytes;
            }
            stream_skip(r.stream, stop, end);
            stream_limit(r.stream, pass + 1 < N_PASSES ? end + STEP : end);
            assert_true(stream_is_valid(r.stream));
        }
        stream_counters count = {0};
        stream_count(r.stream, &count);
        for (int tries = 0; tries < PATIENCE_MS && count.read_bytes != used + count.vain_bytes;
             tries++) {
            sleep_us(1000); /* the last ones given up are still under way */
            stream_count(r.stream, &count);
        }
        assert_int_equal(count.read_bytes, used + count.vain_bytes);
        assert_true(count.vain_bytes > 0);
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

TEST(passes_may_be_skipped_whole)
{
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 12, 3, 7, 50000);
        rig_shake(&r, 0);
        r.delay_us = 300; /* reads that were given up are still under way */
        rig_open(&r, MODES[m]);
        stream_skip(r.stream, 0, 3);
        for (int64_t pass = 0; pass < 30; pass++) {
            int64_t begin = 3 + pass * 7;
            if (pass % 5 == 4) {
                assert_true(take(&r, begin, 0));
                stream_skip(r.stream, begin + 1, begin + 7);
            } else {
                stream_skip(r.stream, begin, begin + 7);
            }
        }
        assert_true(take(&r, 3 + 30 * 7, 0));
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

TEST(next_pass_is_read_ahead)
{
    rig r;
    rig_init(&r, 21, 3, 4, 50000);
    r.options.ring_bytes *= 20;
    rig_open(&r, DREY_IO_AUTO);
    for (int64_t seq = 0; seq < 7; seq++)
        assert_true(take(&r, seq, 0));
    for (int64_t seq = 7; seq <= 10; seq++) /* nobody waits for them */
        assert_true(comes(r.stream, seq));
    assert_int_equal(rig_close(&r), DREY_OK);
}

static int note_size(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    rig *r = user;
    for (uint32_t most = r->most_bytes; n_bytes > most;)
        if (atomic_compare_exchange_weak(&r->most_bytes, &most, n_bytes))
            break;
    return 0;
}

/* However large the pieces are: pages in the page cache also count against a budget. */
TEST(cached_reads_go_in_small_steps)
{
    for (int m = 0; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 33, 12, 0, LARGEST);
        r.options.fault = note_size;
        r.options.fault_user = &r;
        rig_open(&r, MODES[m]);
        stream_counters count;
        stream_count(r.stream, &count);
        finish(&r, 12);
        assert_true(count.direct ? r.most_bytes >= LARGEST : r.most_bytes == READER_CACHED_BYTES);
    }
}

TEST(first_alone)
{
    rig r;
    rig_init(&r, 31, 6, 0, 50000);
    rig_open(&r, DREY_IO_AUTO);
    finish(&r, 6);
    rig_init(&r, 32, 0, 0, 1);
    r.options.ring_bytes = 8 * PAGE;
    rig_open(&r, DREY_IO_AUTO); /* nothing to do at all */
    assert_int_equal(rig_close(&r), DREY_OK);
}

/* Takes or gives up pieces [first, first + n), in their own order. */
static void use_all(rig *r, rng *random, int64_t first, int32_t n)
{
    int32_t order[MOST_PIECES];
    for (int32_t i = 0; i < n; i++) {
        int32_t at = rng_below(random, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int32_t i = 0; i < n; i++) {
        int64_t seq = first + order[i];
        if (rng_below(random, 5) == 0)
            stream_skip(r->stream, seq, seq + 1);
        else
            assert_true(take(r, seq, 0));
    }
}

/* Batches as a pass would ask for them, before and after all that was asked for has been used. */
TEST(appended_pieces)
{
    enum { FIRST = 5, MORE = 60, MOST_APPENDED = 16 };
    for (int m = 0; m < N_MODES; m++) {
        rig r;
        rng random = rng_from(70 + (uint64_t)m);
        rig_init(&r, 70 + (uint64_t)m, FIRST, MORE, 200000);
        r.options.n_cycle = 0;
        r.options.most_appended = MOST_APPENDED;
        r.options.ring_bytes = MOST_APPENDED * STREAM_ROOM_BYTES(200000);
        r.n_more = MORE;
        rig_open(&r, MODES[m]);
        use_all(&r, &random, 0, FIRST);
        int64_t next = FIRST;
        for (int round = 0; round < 200; round++) {
            int32_t n = 1 + rng_below(&random, MOST_APPENDED);
            for (int32_t done = 0, part; done < n; done += part) { /* in one call or in several */
                part = 1 + rng_below(&random, n - done);
                stream_piece pieces[MOST_APPENDED];
                for (int32_t i = 0; i < part; i++)
                    pieces[i] = *piece_of(&r, next + done + i);
                assert_int_equal(stream_append(r.stream, pieces, part), next + done);
            }
            assert_false(stream_ready(r.stream, next + n));
            use_all(&r, &random, next, n);
            assert_true(stream_is_valid(r.stream));
            next += n;
        }
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

/* Pieces that were asked for and are not wanted any more; a failed read of one ends every wait. */
TEST(appended_and_left)
{
    rig r;
    rig_init(&r, 80, 1, 40, 50000);
    r.options.n_cycle = 0;
    r.options.most_appended = 8;
    r.n_more = 40;
    rig_open(&r, DREY_IO_AUTO);
    assert_true(take(&r, 0, 0));
    stream_append(r.stream, &r.options.cycle[0], 8);
    assert_int_equal(rig_close(&r), DREY_OK);
    r.eio_part = r.options.cycle[3].part;
    r.eio_offset = r.options.cycle[3].offset;
    rig_shake(&r, 0);
    rig_open(&r, DREY_IO_AUTO);
    assert_int_equal(stream_append(r.stream, &r.options.cycle[3], 1), 1);
    assert_null(stream_wait(r.stream, 1));
    assert_int_equal(rig_close(&r), DREY_ERR_IO);
}

/* Guesses wait for what is needed, and are read after it; what of them turns out to be needed is
 * like the rest. */
TEST(guesses_come_last)
{
    enum { NEEDED = 4, GUESSED = 6, N = NEEDED + GUESSED };
    for (int m = 0; m < N_MODES; m++) {
        rig r;
        rig_even(&r, 0, N, 100000, 200000);
        r.options.n_cycle = 0;
        r.options.most_appended = N;
        r.options.ring_bytes = (N + 1) * STREAM_ROOM_BYTES(100000);
        r.n_more = N;
        rig_shake(&r, 0);
        atomic_store(&r.held, true);
        rig_open(&r, MODES[m]);
        stream_counters count;
        stream_append(r.stream, r.options.cycle, NEEDED);
        assert_int_equal(stream_guess(r.stream, r.options.cycle + NEEDED, GUESSED), NEEDED);
        stream_skip(r.stream, N - 1, N); /* before it can have been asked for */
        stream_count(r.stream, &count);
        assert_int_equal(count.read_bytes, 0);
        atomic_store(&r.held, false);
        for (int32_t i = 0; i < NEEDED; i++)
            assert_true(take(&r, i, 0));
        while (!stream_ready(r.stream, N - 2))
            sleep_us(100); /* nobody waits for them */
        stream_end_guesses(r.stream);
        assert_false(stream_lost(r.stream, NEEDED, N - 1));
        stream_skip(r.stream, NEEDED, NEEDED + 1);
        for (int32_t i = NEEDED + 1; i < N - 1; i++)
            assert_true(take(&r, i, 0));
        stream_count(r.stream, &count);
        assert_int_equal(count.read_bytes, (N - 1) * 100000);
        assert_int_equal(count.vain_bytes, 100000);
        assert_true(stream_is_valid(r.stream));
        assert_int_equal(rig_close(&r), DREY_OK);
    }
}

/* A guess that cannot be read is lost; asked for again, it is a failure. */
TEST(guess_that_cannot_be_read)
{
    rig r;
    rig_even(&r, 0, 3, 1000, 100000);
    r.options.n_cycle = 0;
    r.options.most_appended = 4;
    r.options.ring_bytes = 64 * PAGE;
    r.n_more = 3;
    rig_shake(&r, 0);
    r.eio_part = 0;
    r.eio_offset = r.options.cycle[1].offset;
    rig_open(&r, DREY_IO_AUTO);
    stream_guess(r.stream, r.options.cycle, 3);
    while (!stream_ready(r.stream, 2))
        sleep_us(100);
    while (!stream_lost(r.stream, 1, 2))
        sleep_us(100); /* it is tried a few times */
    stream_end_guesses(r.stream);
    assert_false(stream_lost(r.stream, 0, 1) || stream_lost(r.stream, 2, 3));
    MUST(stream_status, r.stream);
    stream_skip(r.stream, 1, 2);
    assert_true(take(&r, 0, 0));
    assert_true(take(&r, 2, 0));
    assert_int_equal(stream_append(r.stream, &r.options.cycle[1], 1), 3);
    assert_null(stream_wait(r.stream, 3));
    assert_int_equal(rig_close(&r), DREY_ERR_IO);
}

TEST(device_error_ends_every_wait)
{
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 60, 8, 16, 200000);
        rig_shake(&r, 0);
        const stream_piece *bad = &r.pieces[13];
        r.eio_part = bad->part;
        r.eio_offset = bad->offset;
        rig_open(&r, MODES[m]);
        run_crew(&r, 8 + 16, 1);
        assert_true(stream_ready(r.stream, 1000));
        assert_null(stream_wait(r.stream, 1000));
        assert_int_equal(rig_close(&r), DREY_ERR_IO);
        assert_non_null(strstr(r.err.message, r.paths[bad->part]));
        assert_non_null(strstr(r.err.message, "Input/output error; check the disk"));
        assert_non_null(strstr(r.err.message, "at byte "));
    }
}

TEST(error_of_a_skipped_piece_is_nobodys)
{
    rig r;
    rig_even(&r, 4, 0, 1000, 100000); /* apart, so that only piece 1 covers the bad byte */
    r.options.ring_bytes = 64 * PAGE;
    rig_shake(&r, 0);
    atomic_store(&r.held, true);
    r.eio_part = 0;
    r.eio_offset = r.pieces[1].offset;
    rig_open(&r, DREY_IO_PREAD);
    stream_skip(r.stream, 1, 2);
    atomic_store(&r.held, false);
    assert_true(take(&r, 0, 0));
    assert_true(take(&r, 2, 0));
    assert_true(take(&r, 3, 0));
    assert_int_equal(rig_close(&r), DREY_OK);
}

TEST(device_that_recovers_is_forgiven)
{
    for (int m = 1; m < N_MODES; m++) {
        for (int32_t n_eio = 1; n_eio <= 6; n_eio++) {
            rig r;
            rig_even(&r, 4, 0, 100000, 1000000); /* apart: one alone covers the bad byte */
            rig_shake(&r, 0);
            r.eio_part = 0;
            r.eio_offset = r.pieces[2].offset + 50000;
            r.n_eio = n_eio;
            rig_open(&r, MODES[m]);
            int64_t seq = 0;
            while (seq < 4 && take(&r, seq, 0))
                seq++;
            assert_int_equal(seq == 4, n_eio <= 3);
            assert_int_equal(rig_close(&r), n_eio <= 3 ? DREY_OK : DREY_ERR_IO);
            assert_int_equal(r.n_eio, n_eio <= 4 ? 0 : n_eio - 4); /* asked four times at most */
        }
    }
}

TEST(changed_files_are_reported)
{
    static const char *const says[] = {"it was written to", "it is longer now",
                                       "it is shorter now"};
    for (int how = 0; how < 3; how++) {
        rig r;
        rig_init(&r, 63, 4, 0, 1000);
        const char *path = temp_path("changed.bin");
        bytes_file_write(path, r.bytes[0], FILE_BYTES);
        r.paths[0] = path;
        rig_open(&r, DREY_IO_AUTO);
        MUST(stream_check_files, r.stream);
        if (how == 0) { /* the clock of a file system may be coarse: a time that it was not */
            struct timespec past[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
            assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
        } else {
            assert_int_equal(truncate(path, how == 1 ? FILE_BYTES + 1 : FILE_BYTES - 1), 0);
        }
        assert_int_equal(stream_check_files(r.stream, &r.err), DREY_ERR_IO);
        assert_non_null(strstr(r.err.message, path));
        assert_non_null(strstr(r.err.message, says[how]));
        assert_non_null(strstr(r.err.message, "leave the file alone"));
        /* Reads themselves went well, but for those that still met the shorter file. */
        assert_true(rig_close(&r) == DREY_OK || how == 2);
    }
}

/* Another file under the same name: the open one is as before; a new stream is refused. */
TEST(replaced_files_are_refused)
{
    rig r;
    rig_init(&r, 64, 4, 0, 1000);
    const char *path = temp_path("replaced.bin");
    bytes_file_write(path, r.bytes[0], FILE_BYTES);
    r.paths[0] = path;
    file_stamp stamps[N_FILES];
    for (int i = 0; i < N_FILES; i++) {
        file f;
        MUST(file_open, &f, r.paths[i], false);
        stamps[i] = f.stamp;
        file_close(&f);
    }
    r.options.stamps = stamps;
    rig_open(&r, DREY_IO_AUTO);
    bytes_file_write(temp_path("new.bin"), r.bytes[1], FILE_BYTES);
    assert_int_equal(truncate(temp_path("new.bin"), FILE_BYTES + 10), 0);
    assert_int_equal(rename(temp_path("new.bin"), temp_path("replaced.bin")), 0);
    MUST(stream_check_files, r.stream);
    for (int64_t seq = 0; seq < 4; seq++)
        assert_true(take(&r, seq, 0));
    stream *second = NULL;
    REFUSED(DREY_ERR_IO, "has changed", stream_open, &second, &r.options);
    assert_int_equal(rig_close(&r), DREY_OK);
}

TEST(close_in_any_state)
{
    for (int i = 0; i < 24; i++) {
        rig r;
        rig_init(&r, 70 + (uint64_t)i, 10, 10, 300000);
        rig_shake(&r, i % 2 ? 7 : 0);
        r.delay_us = i % 3 ? 0 : 1500;
        rig_open(&r, MODES[i % N_MODES]);
        for (int64_t seq = 0; seq < i / 2; seq++)
            assert_true(take(&r, seq, 0));
        if (i % 5 == 0) /* one is in use */
            assert_non_null(stream_wait(r.stream, i / 2));
        assert_int_equal(rig_close(&r), DREY_OK);
    }
    stream *none = NULL;
    stream_close(&none);
}

TEST(shortened_file_is_reported)
{
    for (int m = 1; m < N_MODES; m++) {
        rig r;
        rig_even(&r, 0, 4, 100000, 1000000);
        const char *path = temp_path("shortened.bin");
        bytes_file_write(path, r.bytes[0], FILE_BYTES);
        r.paths[0] = path;
        for (int i = 0; i < 4; i++)
            r.pieces[i].offset += 17;
        rig_open(&r, MODES[m]);
        assert_int_equal(truncate(path, 3050000), 0); /* in the middle of the last piece */
        int64_t seq = 0;
        while (seq < 40 && take(&r, seq, 0))
            seq++;
        assert_true(seq < 8); /* pieces before it may be lost too: it was read ahead */
        assert_int_equal(rig_close(&r), DREY_ERR_IO);
        assert_non_null(strstr(r.err.message, path));
        assert_non_null(strstr(r.err.message, "has become shorter: byte 3050000 is gone"));
    }
}

TEST(bad_openings_are_reported)
{
    rig r;
    stream *s = NULL;
    rig_init(&r, 90, 2, 2, 1000);
    void *ring = aligned_alloc(PAGE, 64 * PAGE);
    r.options.ring = ring;
    r.options.ring_bytes = PAGE;
    REFUSED(DREY_ERR_MEMORY, "", stream_open, &s, &r.options);
    assert_null(s);
    r.options.ring_bytes = 64 * PAGE;
    r.pieces[3].offset = FILE_BYTES;
    REFUSED(DREY_ERR_IO, "has become shorter", stream_open, &s, &r.options);
    r.pieces[3].offset = UINT64_MAX - 5;
    REFUSED(DREY_ERR_IO, "", stream_open, &s, &r.options);
    r.pieces[3] = (stream_piece){.part = N_FILES, .n_bytes = 1};
    REFUSED(DREY_ERR_INTERNAL, "", stream_open, &s, &r.options);
    r.pieces[3] = (stream_piece){.part = 0, .n_bytes = 1};
    r.paths[1] = "/nonexistent/part.gguf";
    REFUSED(DREY_ERR_IO, "cannot open /nonexistent/part.gguf", stream_open, &s, &r.options);
    assert_null(s);
    assert_true(stream_overhead_bytes(&r.options) > 64 * 1024);
    free(ring);
}

TEST(memory_file_system)
{
    char path[] = "/dev/shm/drey-test-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        NOT_RUN("there is no /dev/shm");
    close(fd);
    bytes_file_write(path, file_bytes[0], FILE_BYTES);
    for (int m = 0; m < N_MODES; m++) {
        rig r;
        rig_init(&r, 110, 5, 10, 200000);
        for (int i = 0; i < 15; i++)
            r.pieces[i].part = 0;
        r.paths[0] = path;
        rig_open(&r, MODES[m]);
        finish(&r, 25);
    }
    unlink(path);
}

TEST_GROUP(make_files, free_files)
