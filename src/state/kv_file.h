/* Keys and values that memory has no room for, in a file: the first positions of caches.
 *
 *   positions | 0 ............ n_disk - 1 | n_disk ........ n_committed - 1 | pending | free |
 *             |   in the file, by chunks  |    in memory: slot = position - n_disk           |
 *
 * A cache with a file has slots for a window of positions. When it is full, its oldest chunks are
 * written out and the others moved to the front (cache_make_room); attention reads what is away
 * chunk by chunk, in the order of positions, and continues with what is in memory (kernel.h:
 * attention's base and end), so that its bits are those of a cache that has room for all.
 *
 * A chunk is some positions of one layer, the keys of all heads and then the values, each as in
 * memory; it is read with one request. Chunks of a layer follow each other:
 *
 *   [caches][layers][chunks] x { [n_heads_kv] keys | [n_heads_kv] values }, in whole pages
 *
 * (of a latent store keys alone).
 *
 * One file, one ring and one stream serve all caches of an engine, whose passes take turns. The
 * file has no name and is gone with the engine. A write that fails loses nothing: the positions
 * stay in memory. After a read that failed, the next pass reads again. */
#pragma once

#include "base/arena.h"
#include "os/temp_file.h"
#include "state/state_store.h"
#include "weights/stream.h"
#include "state/kv.h"

typedef struct kv_file kv_file;
typedef struct kv_store kv_store;

typedef struct kv_file_options {
    const char *folder; /* borrowed while open */
    bool may_be_memory; /* for tests: it may be in tmpfs */
    int32_t n_caches;
    store_shape shape;
    int32_t n_context; /* positions of a cache, at most */
    int32_t chunk;     /* positions, whole blocks of attention */
    drey_io io;
    stream_fault_fn *fault; /* NULL outside tests */
    void *fault_user;
} kv_file_options;

struct kv_file {
    kv_file_options options;
    size_t chunk_bytes, stride; /* bytes of a chunk; from one to the next */
    int32_t n_chunks;           /* chunks of a layer */
    int32_t most_asked;         /* chunks that have room in the ring */
    uint64_t in_use;            /* a bit for each text_cache */
    temp_file file;
    const char *path;
    stream *stream; /* NULL: to be opened */
    stream_counters earlier;
    void *ring;
    uint8_t *bounce;           /* a chunk on its way to the disk */
    int64_t next_seq, end_seq; /* chunks asked for and not given back */
    uint64_t written_bytes;
};

enum { KV_LEAST_WINDOW = 4 * ATTEND_BLOCK }; /* positions, whatever is read */
/* The size of chunks for a window of so many positions: reads of about 256 KiB if that leaves
 * several of them in the window; and the least window for such reads. */
int32_t kv_chunk_of(const store_shape *s, int32_t window);
int32_t kv_default_window(const store_shape *s);
/* Memory of an open one, with what the kernel takes for its reads. */
size_t kv_file_bytes(const kv_file_options *o);
/* DREY_ERR_IO: the folder; DREY_ERR_MEMORY. */
drey_status kv_file_open(kv_file *f, const kv_file_options *o, arena *a, drey_error *err);
/* Accepts a zeroed one. */
void kv_file_close(kv_file *f);
/* Gives an empty cache a place in it, or takes that away. */
void kv_file_lend(kv_file *f, text_cache *c);
void kv_file_take_back(text_cache *c);

/* Gives n more pending rows their slots: reads back what was cut to, and writes out the oldest
 * positions. DREY_ERR_IO: the disk is full or fails; the cache is as it was. */
drey_status kv_file_make_room(kv_store *kv, const text_cache *c, int32_t n, drey_error *err);
/* The cache is about to be cut to n committed positions: those before n that memory should have are
 * to be read back. */
void kv_file_cut(kv_store *kv, const text_cache *c, int32_t n);

/* Asks for a layer's chunk of a cache; at most most_asked are under way, which kv_file_has_room
 * says. They come back in this order. DREY_ERR_IO. */
drey_status kv_file_ask(kv_file *f, const kv_store *kv, int32_t layer, int32_t chunk,
                        drey_error *err);
static inline bool kv_file_has_room(const kv_file *f)
{
    return f->end_seq - f->next_seq < f->most_asked;
}
/* Waits for the next one: the keys of all heads, then the values, until kv_file_next. */
drey_status kv_file_wait(kv_file *f, const uint8_t **keys, drey_error *err);
void kv_file_next(kv_file *f);
/* Gives up all that were asked for. */
void kv_file_skip(kv_file *f);
void kv_file_count(const kv_file *f, stream_counters *out);

/* Bytes of one head's keys (values) in a chunk. */
static inline size_t kv_file_head_bytes(const kv_file *f, int32_t side)
{
    return kv_bytes(&f->options.shape, side, f->options.chunk);
}
