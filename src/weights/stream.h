/* The stream: pieces of weight files, read in order into a ring, ahead of the computation.
 *
 * A piece is a run of whole packed groups' rows of one tensor, at most a few MiB, read with one
 * request. The order is fixed when the stream opens: `first` once (loading: the first pass), then
 * `cycle` for ever (each later pass reads the same tensors), so that the disk never idles while the
 * ring has room: the next pass's first pieces are read while the draft is at work. Where only a
 * pass itself knows what it needs (experts.h), there is no cycle: pieces are appended as they are
 * asked for.
 *
 *   seq   0 .. n_first-1 : first[seq]
 *   seq   n_first ..     : cycle[(seq - n_first) % n_cycle], or what was appended
 *
 *   ring  |####released####|==in use==|--arrived--|~~~under way~~~|   room   |
 *                          ^tail                                  ^head (wraps; no piece does)
 *
 * Invariants (those that one thread can see are checked by stream_is_valid): (1) pieces enter the
 * ring in order of seq, and space is given back in that order: a piece released early waits for
 * those before it; (2) a piece's bytes are valid from stream_wait to
 * stream_release; (3) each seq is either released or skipped, exactly once; (4) after a failure
 * every wait returns NULL at once; (5) a thread that waits for a piece holds none: in a small ring
 * the piece may need the room of those before it; (6) no piece from the limit on is requested:
 * where a pass may end early, what comes after is not read before it is known to be needed. The
 * stream's own thread submits reads and takes their results; it never computes. */
#pragma once

#include "base/trace.h"
#include "drey/choices.h"
#include "os/file.h"

typedef struct file_stamp file_stamp;

/* The usual size of a piece: reads of it reach a disk's full speed, as drey bench disk shows, and
 * keep the ring fine-grained. */
#define READ_BYTES ((uint32_t)1 << 20)

typedef struct stream_piece {
    int32_t part; /* index into paths */
    /* bytes that the caller needs; the read is rounded out to the file's alignment */
    uint32_t n_bytes;
    uint64_t offset; /* offset of its first byte, any alignment */
    trace_part of;   /* expert that it belongs to, for traces; 0: of none */
} stream_piece;

/* For tests: called before each read (and each continuation of a short one) is issued; returns 0 to
 * continue, a positive errno to fail it so, or minus a number of bytes to cut it to (rounded up to
 * 4096 for a direct read). May sleep. On the reading threads, several at once unless io_uring
 * reads. */
typedef int stream_fault_fn(void *user, int32_t part, uint64_t offset, uint32_t n_bytes);

typedef struct stream_options {
    const char *const *paths; /* borrowed while open */
    int32_t n_paths;
    const file_stamp *stamps;  /* [n_paths]: what the files have to be; NULL: what they are now.
                                  Borrowed while open */
    const stream_piece *first; /* borrowed while open */
    int64_t n_first;
    const stream_piece *cycle; /* borrowed while open */
    int64_t n_cycle;           /* 0: nothing after `first` but what is appended */
    int64_t most_appended;     /* pieces that are appended and not given back; only without cycle */
    void *ring;                /* 4096-aligned, borrowed while open */
    size_t ring_bytes;         /* at least twice STREAM_ROOM_BYTES of the largest piece */
    drey_io io;
    int32_t depth; /* most reads under way; 0: 16, or 4 where pieces are appended */
    bool in_turns; /* for comparison: a ring's worth is read, then used up, then the next */
    /* time that a wait spins before it sleeps: a piece may be about to arrive */
    int64_t spin_ns;
    trace *trace;           /* trace of reads, from the request to the arrival; NULL: none */
    int32_t trace_lane;     /* a ring of it that no other thread writes to */
    stream_fault_fn *fault; /* NULL outside tests */
    void *fault_user;
} stream_options;

/* Ring space that a piece may take: its bytes rounded out to 4096 at both ends. */
#define STREAM_ROOM_BYTES(n_bytes) (((size_t)(n_bytes) + 3 * 4096) & ~(size_t)4095)

/* DREY_ERR_USAGE for a size of reads that a user asks for and cannot have; 0 is none. */
drey_status stream_check_read_bytes(uint64_t read_bytes, drey_error *err);

typedef struct stream stream;

/* Opens the files, starts reading. io AUTO falls from io_uring to pread threads, from O_DIRECT to
 * buffered reads that drop what they read, from registered buffers to plain ones, each where the
 * system refuses. */
drey_status stream_open(stream **out, const stream_options *options, drey_error *err);
/* Waits for reads under way, then frees. Nobody may be waiting. */
void stream_close(stream **s);

/* Appends at most most_appended pieces, which are read as soon as the ring has room; returns the
 * first one's seq. Each has to have room in the ring, as those of `first` and `cycle`. Where too
 * many are not given back yet, blocks until the oldest are: none of those may be the caller's. */
int64_t stream_append(stream *s, const stream_piece *pieces, int64_t n);
/* The same of pieces that may turn out not to be needed: they are read only while no other is under
 * way, and one that cannot be read is lost, which is no failure. Nothing is appended, and none of
 * them waited for, until stream_end_guesses: from then on they are like the others, but for those
 * that are lost by then, which can only be skipped. */
int64_t stream_guess(stream *s, const stream_piece *pieces, int64_t n);
void stream_end_guesses(stream *s);
/* Returns whether one of the pieces is lost. After stream_end_guesses. */
bool stream_lost(stream *s, int64_t from, int64_t to);
/* Blocks until piece seq has arrived; its bytes, or NULL after a failure. Any thread. */
const uint8_t *stream_wait(stream *s, int64_t seq);
/* True if stream_wait would not block (arrived, with in_turns all that was requested,
 * or failed). */
bool stream_ready(stream *s, int64_t seq);
void stream_release(stream *s, int64_t seq);
/* Gives up pieces [from, to), none of them waited for: those not yet asked from the disk are never
 * read. `to` is at most the end of the pass after the one of the oldest piece in use; if that is
 * two passes past what was given up and is still being read, blocks until it is. */
void stream_skip(stream *s, int64_t from, int64_t to);
/* Pieces from `limit` on wait until it is raised; INT64_MAX, at first, holds none back. What has
 * been requested already stays so. Waiting for a piece raises it. */
void stream_limit(stream *s, int64_t limit);

/* DREY_OK, or the failure with its message: the path, the offset, the system's reason, what to do.
 */
drey_status stream_status(stream *s, drey_error *err);
/* The piece that could not be read; false: the failure is of none. */
bool stream_failed_piece(stream *s, stream_piece *out);

/* DREY_ERR_IO when a file has changed since it was stamped: what was read before may be wrong. Asks
 * the file system, once a file; the stream continues. */
drey_status stream_check_files(const stream *s, drey_error *err);

typedef struct stream_counters {
    uint64_t read_bytes;   /* arrived so far, as needed by the caller */
    uint64_t device_bytes; /* with rounding */
    uint64_t vain_bytes;   /* part of read_bytes that was not used: given up */
    int64_t busy_ns;       /* time with at least one read under way */
    size_t room_bytes;     /* bytes that may still arrive before ring or limit stop it, about */
    bool uring, direct, registered;
} stream_counters;
void stream_count(stream *s, stream_counters *out);

/* Keeps reads from ending and beginning until stream_let_go, so that the stream's lane of the trace
 * can be read. */
void stream_hold(stream *s);
void stream_let_go(stream *s);

/* True unless a bug has broken the table or the ring: every piece from the tail to the head has a
 * state of its own seq, the tail is still in use, live pieces are in the ring in the order of seq
 * and do not overlap, none is live after the limit, and each read under way belongs to one of
 * them. For asserts and tests. */
bool stream_is_valid(stream *s);

/* Memory of the stream itself, ring not counted, and what the kernel takes for it. */
size_t stream_overhead_bytes(const stream_options *options);
/* Returns the most bytes that its reads use of the page cache; 0 where all of the files allow
 * direct ones. Opens the files to see. */
size_t stream_cached_bytes(const char *const *paths, int32_t n_paths, drey_io io);
