/* The stream: one thread that fills a ring with pieces, ahead of their use.
 *
 * A piece's life, with the function on each arrow:
 *
 *             ask            handle              stream_release, stream_skip
 *   (none) ---------> ASKED ---------> ARRIVED ------------------------------> GIVEN -> (none)
 *      |                 | stream_skip             handle                       ^  advance_tail
 *      |                 +------------> DROPPED --------------------------------+
 *      |                 +------------> LOST, of a guess: stream_skip ----------+
 *      | stream_skip                                                            |
 *      +------------------------------------------------------------------------+
 *
 * Its state is in a table that is indexed by seq modulo its length; the entry's tag holds seq and
 * state together, so that a waiting thread reads both at once, without the lock. The table covers
 * tail .. tail + n_entries: two passes, as a skip may reach into the next one. */
#include "weights/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/num.h"
#include "os/clock.h"
#include "os/reader.h"
#include "os/thread.h"

/* A layer's experts are few reads, all asked for at once, and a disk that shares its speed among
 * them ends them together: nothing could be computed before the last. A few at a time arrive one
 * after the other (docs/lab/2026-11-experts.md). */
enum {
    PAGE = READER_ALIGN,
    DEPTH = 16,
    APPENDED_DEPTH = 4,
    GUESSES_ASKED = 2,
    MOST_DEPTH = 256,
    STACK_BYTES = 64 * 1024
};

enum { ASKED = 1, ARRIVED, DROPPED, LOST, GIVEN, N_STATES };

typedef struct entry {
    _Atomic int64_t tag; /* seq * N_STATES + state; ARRIVED is read without the lock */
    uint32_t page;       /* page of the ring */
} entry;

typedef struct flight { /* a read under way */
    reader_request request;
    int64_t seq, asked_ns;
    struct flight *next_idle;
} flight;

struct stream {
    stream_options options;
    file *files;
    reader *reader;
    pthread_t thread;
    bool has_thread;
    _Atomic bool failed;
    _Atomic bool usable; /* always, or with in_turns from the arrival of a ring's worth on */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t news;  /* a piece has arrived, or the stream has failed */
    struct {
        int32_t for_piece, for_tail; /* threads; tail: tables do not reach yet what is skipped or
                                        appended */
    } n_waiting;
    entry *entries;
    int64_t n_entries;
    struct {
        stream_piece *piece; /* [most_appended], by seq - n_first modulo that */
        int64_t n;           /* so far */
    } appended;
    int64_t tail, head;     /* oldest piece that is not given back; next to ask for */
    int64_t limit, guessed; /* none from limit on is read, which is never below head when it is set;
                               those from guessed on are guesses, INT64_MAX: none is */
    uint32_t head_page, ring_pages;
    struct {
        flight *all, *idle;
        int32_t n; /* under way */
        size_t bytes;
        int64_t busy_since_ns;
    } reads;
    int64_t wanted; /* the last piece that anybody has waited for; -1: none */
    bool starved;   /* the thread has nothing to ask for until the tail moves */
    bool stop;
    struct {
        drey_error error;
        stream_piece piece; /* piece; with n_bytes 0: it is of none */
    } failure;
    stream_counters counters;
};

static const stream_piece *piece_at(const stream *s, int64_t seq)
{
    const stream_options *o = &s->options;
    int64_t later = seq - o->n_first;
    if (later < 0)
        return &o->first[seq];
    return o->n_cycle ? &o->cycle[later % o->n_cycle]
                      : &s->appended.piece[later % o->most_appended];
}

static bool exists(const stream *s, int64_t seq)
{
    return seq >= 0 && (seq < s->options.n_first + s->appended.n || s->options.n_cycle > 0);
}

static entry *entry_at(const stream *s, int64_t seq)
{
    return &s->entries[seq % s->n_entries];
}

static bool is(const stream *s, int64_t seq, int state)
{
    return atomic_load_explicit(&entry_at(s, seq)->tag, memory_order_acquire) ==
           seq * N_STATES + state;
}

static void set(stream *s, int64_t seq, int state)
{
    atomic_store_explicit(&entry_at(s, seq)->tag, seq * N_STATES + state, memory_order_release);
}

static bool has_failed(const stream *s)
{
    return atomic_load_explicit(&s->failed, memory_order_acquire);
}

/* Returns whether reads may be requested: with in_turns none are between the arrival of a ring's
 * worth and the end of its use, except for pieces that a thread waits for, as pieces that are used
 * together may be cut by the ring's end. */
static bool may_ask(stream *s)
{
    if (s->options.in_turns && s->tail == s->head)
        atomic_store_explicit(&s->usable, false, memory_order_relaxed); /* none is in use */
    return !s->options.in_turns || s->head <= s->wanted ||
           !atomic_load_explicit(&s->usable, memory_order_relaxed);
}

/* The ring has no more room, or nothing is left to ask for, and all of it is there. */
static void finish_reads(stream *s)
{
    if (s->options.in_turns && s->starved && s->reads.n == 0 && s->tail < s->head)
        atomic_store_explicit(&s->usable, true, memory_order_release);
}

static int32_t depth_of(const stream_options *o)
{
    int32_t usual = o->most_appended > 0 ? APPENDED_DEPTH : DEPTH;
    int32_t depth = o->depth > 0 ? o->depth : usual;
    return depth < MOST_DEPTH ? depth : MOST_DEPTH;
}

/* ---- The ring, under the lock ---- */

static uint32_t pages_of(const stream_piece *piece)
{
    uint64_t lead = piece->offset % PAGE;
    return (uint32_t)((lead + piece->n_bytes + PAGE - 1) / PAGE);
}

/* Finds room at the head; false when there is none yet. */
static bool place(stream *s, uint32_t n_pages, uint32_t *page)
{
    if (s->tail == s->head)
        s->head_page = 0; /* empty: the whole ring in one run */
    uint32_t tail_page = s->tail == s->head ? 0 : entry_at(s, s->tail)->page;
    bool wrapped = s->tail != s->head && s->head_page <= tail_page;
    uint32_t end = wrapped ? tail_page : s->ring_pages;
    *page = s->head_page;
    if (n_pages > end - s->head_page) {
        if (wrapped || n_pages > tail_page)
            return false;
        *page = 0;
    }
    s->head_page = *page + n_pages;
    return true;
}

/* Takes back the oldest pieces that are no longer needed. True when that made room. */
static bool advance_tail(stream *s)
{
    int64_t before = s->tail;
    while (s->tail < s->head && is(s, s->tail, GIVEN))
        s->tail++;
    if (s->tail != before && s->n_waiting.for_tail > 0)
        pthread_cond_broadcast(&s->news);
    return s->tail != before;
}

/* Guesses are read while the disk has nothing else to do, and few at a time: a read that is needed
 * has to wait for those. */
static bool is_in_turn(const stream *s, int64_t seq)
{
    int32_t n_guesses = 0;
    for (int64_t i = s->tail; i < s->head && seq >= s->guessed; i++) {
        bool asked = is(s, i, ASKED);
        if (asked && i < s->guessed)
            return false;
        n_guesses += asked;
    }
    return n_guesses < GUESSES_ASKED;
}

/* Makes the requests that the ring and the depth have room for, linked by next. */
static reader_request *ask(stream *s)
{
    reader_request *asked = NULL, **end = &asked;
    s->starved = false;
    while (s->reads.idle) {
        while (is(s, s->head, GIVEN)) {
            s->head++; /* skipped beforehand */
            advance_tail(s);
        }
        uint32_t page;
        s->starved = !exists(s, s->head) || s->head >= s->limit ||
                     s->head >= s->tail + s->n_entries || !may_ask(s) || !is_in_turn(s, s->head) ||
                     !place(s, pages_of(piece_at(s, s->head)), &page);
        if (s->starved)
            break;
        const stream_piece *piece = piece_at(s, s->head);
        entry_at(s, s->head)->page = page;
        set(s, s->head, ASKED);
        flight *f = s->reads.idle;
        s->reads.idle = f->next_idle;
        f->seq = s->head++;
        uint32_t lead = (uint32_t)(piece->offset % PAGE);
        f->request = (reader_request){.file = piece->part,
                                      .n_bytes = pages_of(piece) * PAGE,
                                      .n_needed = lead + piece->n_bytes,
                                      .offset = piece->offset - lead,
                                      .dst = (uint8_t *)s->options.ring + (size_t)page * PAGE};
        *end = &f->request;
        end = &f->request.next;
        f->asked_ns = clock_ns();
        s->reads.bytes += f->request.n_bytes;
        if (s->reads.n++ == 0)
            s->reads.busy_since_ns = f->asked_ns;
    }
    return asked;
}

static void fail(stream *s, const flight *f)
{
    if (has_failed(s))
        return;
    const reader_request *q = &f->request;
    file_read_failed(s->options.paths[q->file], q->error_offset, q->error, &s->failure.error);
    s->failure.piece = *piece_at(s, f->seq);
    atomic_store(&s->failed, true);
}

/* A read is over. */
static void handle(stream *s, flight *f)
{
    const stream_piece *piece = piece_at(s, f->seq);
    const trace_part of = piece->of;
    bool dropped = is(s, f->seq, DROPPED);
    if (!f->request.error) {
        s->counters.read_bytes += piece->n_bytes;
        s->counters.device_bytes += f->request.n_done;
    }
    if (dropped) { /* it is not needed, so it cannot fail either */
        s->counters.vain_bytes += f->request.error ? 0 : piece->n_bytes;
        set(s, f->seq, GIVEN);
        advance_tail(s);
    } else if (f->request.error && f->seq >= s->guessed) {
        set(s, f->seq, LOST);
    } else if (f->request.error) {
        fail(s, f);
    } else {
        set(s, f->seq, ARRIVED);
    }
    f->next_idle = s->reads.idle;
    s->reads.idle = f;
    int64_t now = clock_ns();
    trace_add_of(s->options.trace, s->options.trace_lane, TRACE_READ, f->asked_ns, now,
                 (int32_t)f->request.n_done, of);
    s->reads.bytes -= f->request.n_bytes;
    if (--s->reads.n == 0)
        s->counters.busy_ns += now - s->reads.busy_since_ns;
}

static int state_at(const stream *s, int64_t seq)
{
    int64_t tag = atomic_load_explicit(&entry_at(s, seq)->tag, memory_order_relaxed);
    return tag / N_STATES == seq && tag > 0 ? (int)(tag % N_STATES) : 0;
}

/* The live pieces in the order of seq: from the tail's page upwards, then at most once from the
 * ring's start up to the tail. */
static bool pieces_in_order(const stream *s, int32_t *n_live_reads)
{
    bool wrapped = false;
    uint32_t end = 0, tail_page = s->tail < s->head ? entry_at(s, s->tail)->page : 0;
    for (int64_t seq = s->tail; seq < s->head; seq++) {
        int state = state_at(s, seq);
        if (state == 0)
            return false;
        if (state == ASKED || state == DROPPED)
            (*n_live_reads)++;
        if (state == GIVEN && seq > s->tail)
            continue; /* perhaps never asked for: it has no place */
        if (seq >= s->limit)
            return false;
        uint32_t page = entry_at(s, seq)->page, n = pages_of(piece_at(s, seq));
        if (page < end) {
            if (wrapped)
                return false;
            wrapped = true;
        }
        end = page + n;
        if (end > (wrapped ? tail_page : s->ring_pages))
            return false;
    }
    return true;
}

static bool valid(const stream *s)
{
    int32_t n_idle = 0, n_live_reads = 0;
    for (const flight *f = s->reads.idle; f; f = f->next_idle)
        n_idle++;
    if (s->tail > s->head || s->head > s->tail + s->n_entries ||
        n_idle + s->reads.n != depth_of(&s->options))
        return false;
    if (s->tail < s->head && state_at(s, s->tail) == GIVEN)
        return false;
    return pieces_in_order(s, &n_live_reads) && (has_failed(s) || n_live_reads == s->reads.n);
}

bool stream_is_valid(stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool is = valid(s);
    pthread_mutex_unlock(&s->lock);
    return is;
}

/* ---- The stream's thread ---- */

static void *serve(void *arg)
{
    stream *s = arg;
    thread_asks_for_short_slices();
    pthread_mutex_lock(&s->lock);
    for (;;) {
        bool ends = s->stop || has_failed(s);
        if (ends && s->reads.n == 0)
            break;
        reader_request *asked = ends ? NULL : ask(s);
        finish_reads(s);
        if (s->options.in_turns)
            pthread_cond_broadcast(&s->news);
        pthread_mutex_unlock(&s->lock);
        for (reader_request *next; asked; asked = next) {
            next = asked->next;
            reader_submit(s->reader, asked);
        }
        reader_request *finished = reader_wait(s->reader);
        pthread_mutex_lock(&s->lock);
        for (; finished; finished = finished->next)
            handle(s, (flight *)finished);
        assert(valid(s));
        if (s->n_waiting.for_piece + s->n_waiting.for_tail > 0)
            pthread_cond_broadcast(&s->news);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

drey_status stream_check_read_bytes(uint64_t read_bytes, drey_error *err)
{
    if (read_bytes != 0 && (read_bytes < DREY_MIN_READ_BYTES || read_bytes > DREY_MAX_READ_BYTES))
        FAIL(err, DREY_ERR_USAGE, "reads of %" PRIu64 " bytes are not possible (%d to %d)",
             read_bytes, DREY_MIN_READ_BYTES, DREY_MAX_READ_BYTES);
    return DREY_OK;
}

static int64_t n_entries_of(const stream_options *o)
{
    int64_t later = max_i64(o->n_cycle, o->most_appended);
    int64_t n = o->n_cycle + max_i64(o->n_first, later);
    return n > 0 ? n : 1;
}

size_t stream_overhead_bytes(const stream_options *o)
{
    return sizeof(stream) + (size_t)n_entries_of(o) * sizeof(entry) +
           (size_t)o->most_appended * sizeof(stream_piece) + (size_t)depth_of(o) * sizeof(flight) +
           (size_t)o->n_paths * sizeof(file) + STACK_BYTES + THREAD_KERNEL_BYTES +
           reader_overhead_bytes(depth_of(o));
}

/* Returns whether direct reads suit the ring: it is not arranged for larger blocks. */
static bool reads_direct(const file *f)
{
    return f->direct && f->align_bytes <= PAGE;
}

size_t stream_cached_bytes(const char *const *paths, int32_t n_paths, drey_io io)
{
    bool direct = true;
    for (int32_t i = 0; i < n_paths && direct; i++) {
        file f;
        direct = file_open(&f, paths[i], io != DREY_IO_BUFFERED, NULL) == DREY_OK;
        direct = direct && reads_direct(&f);
        file_close(&f);
    }
    int32_t n = io == DREY_IO_URING ? DEPTH : READER_MOST_THREADS;
    return direct ? 0 : (size_t)n * READER_CACHED_BYTES;
}

static drey_status open_files(stream *s, drey_error *err)
{
    const stream_options *o = &s->options;
    s->files = calloc((size_t)o->n_paths + 1, sizeof *s->files);
    if (!s->files)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %d files", o->n_paths);
    for (int32_t i = 0; i < o->n_paths; i++)
        s->files[i].fd = -1;
    s->counters.direct = o->n_paths > 0;
    for (int32_t i = 0; i < o->n_paths; i++) {
        file *f = &s->files[i];
        TRY(file_open(f, o->paths[i], o->io != DREY_IO_BUFFERED, err));
        if (f->direct && !reads_direct(f)) {
            file_close(f);
            TRY(file_open(f, o->paths[i], false, err));
        }
        if (o->stamps)
            f->stamp = o->stamps[i];
        s->counters.direct &= f->direct;
    }
    return stream_check_files(s, err);
}

static drey_status check_pieces(const stream *s, const stream_piece *pieces, int64_t n,
                                drey_error *err)
{
    const stream_options *o = &s->options;
    for (int64_t i = 0; i < n; i++) {
        const stream_piece *p = &pieces[i];
        if (p->part < 0 || p->part >= o->n_paths || p->n_bytes == 0 ||
            p->n_bytes > INT32_MAX - 3 * PAGE)
            FAIL(err, DREY_ERR_INTERNAL, "a piece of %" PRIu32 " bytes in file %d cannot be read",
                 p->n_bytes, p->part);
        uint64_t n_file = s->files[p->part].n_bytes;
        if (p->n_bytes > n_file || p->offset > n_file - p->n_bytes)
            return file_read_failed(o->paths[p->part], n_file, FILE_SHORTER, err);
        if (STREAM_ROOM_BYTES(p->n_bytes) > o->ring_bytes / 2)
            FAIL(err, DREY_ERR_MEMORY,
                 "%zu bytes are too few to stream pieces of %" PRIu32 " bytes; allow more memory",
                 o->ring_bytes, p->n_bytes);
    }
    return DREY_OK;
}

static drey_status open_reader(stream *s, drey_error *err)
{
    const stream_options *o = &s->options;
    reader_options options = {.files = s->files,
                              .n_files = o->n_paths,
                              .depth = depth_of(o),
                              .region = o->ring,
                              .region_bytes = o->ring_bytes,
                              .fault = o->fault,
                              .fault_user = o->fault_user};
    /* io_uring hands buffered reads to threads of the kernel's: ours do as well. */
    bool try_uring = o->io == DREY_IO_URING || (o->io == DREY_IO_AUTO && s->counters.direct);
    if (try_uring) {
        drey_status status = reader_open_uring(&s->reader, &options, err);
        if (status != DREY_OK && o->io == DREY_IO_URING)
            return status;
    }
    if (!s->reader)
        TRY(reader_open_pread(&s->reader, &options, err));
    s->counters.uring = reader_is_uring(s->reader);
    s->counters.registered = reader_is_registered(s->reader);
    return DREY_OK;
}

static drey_status make_tables(stream *s, drey_error *err)
{
    int32_t depth = depth_of(&s->options);
    s->n_entries = n_entries_of(&s->options);
    s->entries = malloc((size_t)s->n_entries * sizeof *s->entries);
    s->appended.piece = calloc((size_t)s->options.most_appended + 1, sizeof *s->appended.piece);
    s->reads.all = calloc((size_t)depth, sizeof *s->reads.all);
    if (!s->entries || !s->appended.piece || !s->reads.all)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a table of %" PRId64 " pieces", s->n_entries);
    for (int64_t i = 0; i < s->n_entries; i++) {
        s->entries[i].page = 0;
        atomic_init(&s->entries[i].tag, -1);
    }
    for (int32_t i = 0; i < depth; i++) {
        s->reads.all[i].next_idle = s->reads.idle;
        s->reads.idle = &s->reads.all[i];
    }
    return DREY_OK;
}

static drey_status start(stream *s, drey_error *err)
{
    const stream_options *o = &s->options;
    assert((uintptr_t)o->ring % PAGE == 0);
    atomic_store(&s->usable, !o->in_turns);
    s->wanted = -1;
    s->limit = s->guessed = INT64_MAX;
    s->ring_pages =
        (uint32_t)(o->ring_bytes / PAGE < UINT32_MAX ? o->ring_bytes / PAGE : UINT32_MAX);
    TRY(open_files(s, err));
    TRY(check_pieces(s, o->first, o->n_first, err));
    TRY(check_pieces(s, o->cycle, o->n_cycle, err));
    TRY(make_tables(s, err));
    TRY(open_reader(s, err));
    TRY(thread_start(&s->thread, "drey-stream", STACK_BYTES, serve, s, err));
    s->has_thread = true;
    return DREY_OK;
}

drey_status stream_open(stream **out, const stream_options *options, drey_error *err)
{
    *out = NULL;
    stream *s = calloc(1, sizeof *s);
    if (!s)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a stream");
    s->options = *options;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    drey_status status = start(s, err);
    if (status != DREY_OK)
        stream_close(&s);
    *out = s;
    return status;
}

void stream_close(stream **out)
{
    stream *s = *out;
    *out = NULL;
    if (!s)
        return;
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_mutex_unlock(&s->lock);
        reader_wake(s->reader);
        pthread_join(s->thread, NULL);
    }
    reader_close(&s->reader);
    for (int32_t i = 0; s->files && i < s->options.n_paths; i++)
        file_close(&s->files[i]);
    free(s->files);
    free(s->entries);
    free(s->appended.piece);
    free(s->reads.all);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- Using it ---- */

bool stream_ready(stream *s, int64_t seq)
{
    return has_failed(s) ||
           (is(s, seq, ARRIVED) && atomic_load_explicit(&s->usable, memory_order_acquire));
}

static const uint8_t *bytes_of(const stream *s, int64_t seq)
{
    if (has_failed(s))
        return NULL;
    return (const uint8_t *)s->options.ring + (size_t)entry_at(s, seq)->page * PAGE +
           piece_at(s, seq)->offset % PAGE;
}

/* Wakes the stream's thread if it waits for what has just changed. The lock is held; the thread
 * takes it when it has woken. */
static void report_moved(stream *s, bool moved)
{
    if (moved && s->starved) {
        s->starved = false;
        reader_wake(s->reader);
    }
}

const uint8_t *stream_wait(stream *s, int64_t seq)
{
    assert(exists(s, seq));
    if (stream_ready(s, seq))
        return bytes_of(s, seq);
    for (int64_t until = clock_ns() + s->options.spin_ns; clock_ns() < until;) {
        for (int i = 0; i < 16; i++)
            thread_pause();
        if (stream_ready(s, seq))
            return bytes_of(s, seq);
    }
    pthread_mutex_lock(&s->lock);
    s->n_waiting.for_piece++;
    s->wanted = max_i64(s->wanted, seq);
    bool held = seq >= s->limit;
    s->limit = max_i64(s->limit, seq + 1);
    report_moved(s, held || (s->options.in_turns && s->head <= seq));
    while (!stream_ready(s, seq))
        pthread_cond_wait(&s->news, &s->lock);
    s->n_waiting.for_piece--;
    pthread_mutex_unlock(&s->lock);
    return bytes_of(s, seq);
}

/* Reads that were given up may still be under way and keep the tail for a moment. */
static void await_tail(stream *s, int64_t tail)
{
    s->n_waiting.for_tail++;
    while (s->tail < tail && !has_failed(s))
        pthread_cond_wait(&s->news, &s->lock);
    s->n_waiting.for_tail--;
}

/* The lock is held. */
static int64_t append(stream *s, const stream_piece *pieces, int64_t n)
{
    const stream_options *o = &s->options;
    int64_t first = o->n_first + s->appended.n;
    assert(o->n_cycle == 0 && n <= o->most_appended);
    if (s->appended.n + n > o->most_appended)
        await_tail(s, first + n - o->most_appended);
    for (int64_t i = 0; i < n; i++) {
        assert(STREAM_ROOM_BYTES(pieces[i].n_bytes) <= o->ring_bytes / 2);
        s->appended.piece[s->appended.n++ % o->most_appended] = pieces[i];
    }
    report_moved(s, n > 0);
    return first;
}

int64_t stream_append(stream *s, const stream_piece *pieces, int64_t n)
{
    pthread_mutex_lock(&s->lock);
    int64_t first = append(s, pieces, n);
    pthread_mutex_unlock(&s->lock);
    return first;
}

int64_t stream_guess(stream *s, const stream_piece *pieces, int64_t n)
{
    pthread_mutex_lock(&s->lock);
    assert(s->guessed == INT64_MAX);
    s->guessed = s->options.n_first + s->appended.n;
    int64_t first = append(s, pieces, n);
    pthread_mutex_unlock(&s->lock);
    return first;
}

void stream_end_guesses(stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->guessed = INT64_MAX;
    report_moved(s, true);
    pthread_mutex_unlock(&s->lock);
}

bool stream_lost(stream *s, int64_t from, int64_t to)
{
    bool lost = false;
    for (; from < to; from++)
        lost = lost || is(s, from, LOST);
    return lost;
}

void stream_release(stream *s, int64_t seq)
{
    pthread_mutex_lock(&s->lock);
    assert(is(s, seq, ARRIVED));
    set(s, seq, GIVEN);
    report_moved(s, advance_tail(s));
    assert(valid(s));
    pthread_mutex_unlock(&s->lock);
}

void stream_skip(stream *s, int64_t from, int64_t to)
{
    pthread_mutex_lock(&s->lock);
    for (int64_t seq = from; seq < to; seq++) {
        if (seq >= s->tail + s->n_entries)
            await_tail(s, seq - s->n_entries + 1);
        if (has_failed(s))
            break;
        assert(!is(s, seq, DROPPED) && !is(s, seq, GIVEN));
        bool dropped = seq < s->head && is(s, seq, ASKED);
        if (seq < s->head && is(s, seq, ARRIVED))
            s->counters.vain_bytes += piece_at(s, seq)->n_bytes;
        set(s, seq, dropped ? DROPPED : GIVEN);
        /* At the head there is something to do for the thread: pass it by. */
        bool moved = advance_tail(s);
        report_moved(s, moved || seq == s->head);
    }
    pthread_mutex_unlock(&s->lock);
}

void stream_limit(stream *s, int64_t limit)
{
    pthread_mutex_lock(&s->lock);
    bool raised = limit > s->limit;
    s->limit = max_i64(limit, s->head);
    report_moved(s, raised);
    assert(valid(s));
    pthread_mutex_unlock(&s->lock);
}

drey_status stream_status(stream *s, drey_error *err)
{
    pthread_mutex_lock(&s->lock);
    drey_status status = has_failed(s) ? s->failure.error.code : DREY_OK;
    if (status != DREY_OK && err)
        *err = s->failure.error;
    pthread_mutex_unlock(&s->lock);
    return status;
}

bool stream_failed_piece(stream *s, stream_piece *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->failure.piece;
    pthread_mutex_unlock(&s->lock);
    return out->n_bytes > 0;
}

drey_status stream_check_files(const stream *s, drey_error *err)
{
    for (int32_t i = 0; i < s->options.n_paths; i++)
        TRY(file_check(&s->files[i], s->options.paths[i], &s->files[i].stamp, err));
    return DREY_OK;
}

/* Ring space between the head and the tail, as far as the limit allows it to be filled. */
static size_t room_bytes(const stream *s)
{
    uint32_t tail = s->tail == s->head ? 0 : entry_at(s, s->tail)->page;
    uint32_t head = s->tail == s->head ? 0 : s->head_page;
    bool wrapped = s->tail != s->head && head <= tail;
    size_t room = (size_t)(wrapped ? tail - head : s->ring_pages - head + tail) * PAGE, held = 0;
    if (s->limit == INT64_MAX)
        return room;
    for (int64_t seq = s->head; exists(s, seq) && seq < s->limit && held < room; seq++)
        held += (size_t)pages_of(piece_at(s, seq)) * PAGE;
    return min_size(room, held);
}

void stream_count(stream *s, stream_counters *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->counters;
    out->room_bytes = room_bytes(s) + s->reads.bytes;
    if (s->reads.n > 0)
        out->busy_ns += clock_ns() - s->reads.busy_since_ns;
    pthread_mutex_unlock(&s->lock);
}

void stream_hold(stream *s)
{
    pthread_mutex_lock(&s->lock);
}

void stream_let_go(stream *s)
{
    pthread_mutex_unlock(&s->lock);
}
