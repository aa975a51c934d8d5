/* Caches that are larger than memory: see kv_file.h. */
#include "state/kv_file.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/num.h"
#include "os/reader.h"
#include "state/kv.h"

enum {
    PAGE = TEMP_FILE_ALIGN,
    USUAL_CHUNK_BYTES = 256 << 10,
    MOST_CHUNK = 1024,    /* positions */
    WINDOW_CHUNKS = 4,    /* a window has at least so many */
    RING_BYTES = 8 << 20, /* about */
    MOST_ASKED = 16,      /* reads under way */
};

/* Returns the bytes of one layer, keys and values. */
static size_t bytes_of(const store_shape *s, int32_t n)
{
    size_t head = 0;
    for (int32_t side = 0; side < kv_n_sides(s); side++)
        head += kv_bytes(s, side, n);
    return (size_t)s->n_heads * head;
}

static size_t whole_pages(size_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

int32_t kv_chunk_of(const store_shape *s, int32_t window)
{
    size_t usual = (size_t)USUAL_CHUNK_BYTES / bytes_of(s, ATTEND_BLOCK);
    int32_t n = (int32_t)min_size(usual, MOST_CHUNK / ATTEND_BLOCK);
    n = min_i32(n, window / (WINDOW_CHUNKS * ATTEND_BLOCK));
    return max_i32(n, 1) * ATTEND_BLOCK;
}

int32_t kv_default_window(const store_shape *s)
{
    return WINDOW_CHUNKS * kv_chunk_of(s, INT32_MAX);
}

static size_t stride_of(const kv_file_options *o)
{
    return whole_pages(bytes_of(&o->shape, o->chunk));
}

static int32_t asked_of(const kv_file_options *o)
{
    size_t n = RING_BYTES / STREAM_ROOM_BYTES(stride_of(o));
    return (int32_t)max_size(min_size(n, MOST_ASKED), 2);
}

static size_t ring_of(const kv_file_options *o)
{
    return (size_t)asked_of(o) * STREAM_ROOM_BYTES(stride_of(o));
}

/* Returns the chunks of one layer. */
static int32_t chunks_of(const kv_file_options *o)
{
    return ceil_div_i32(o->n_context, o->chunk);
}

static stream_options reading_of(const kv_file *f)
{
    const kv_file_options *o = &f->options;
    return (stream_options){.paths = &f->path,
                            .n_paths = 1,
                            .most_appended = asked_of(o),
                            .ring = f->ring,
                            .ring_bytes = ring_of(o),
                            .depth = asked_of(o),
                            .io = o->io,
                            .fault = o->fault,
                            .fault_user = o->fault_user};
}

size_t kv_file_bytes(const kv_file_options *o)
{
    kv_file f = {.options = *o};
    stream_options reading = reading_of(&f);
    size_t cached = (size_t)READER_MOST_THREADS * READER_CACHED_BYTES; /* without direct reads */
    return whole_pages(ring_of(o)) + stride_of(o) + 3 * PAGE + stream_overhead_bytes(&reading) +
           cached;
}

static uint8_t *take_pages(arena *a, size_t n)
{
    uintptr_t at = (uintptr_t)arena_take(a, n + PAGE);
    return (uint8_t *)((at + PAGE - 1) / PAGE * PAGE);
}

drey_status kv_file_open(kv_file *f, const kv_file_options *o, arena *a, drey_error *err)
{
    *f = (kv_file){.options = *o, .file = {.fd = -1}};
    f->stride = stride_of(o);
    f->chunk_bytes = bytes_of(&o->shape, o->chunk);
    f->n_chunks = chunks_of(o);
    f->most_asked = asked_of(o);
    uint64_t n = (uint64_t)o->n_caches * (uint64_t)o->shape.n_layers * (uint64_t)f->n_chunks;
    f->ring = take_pages(a, ring_of(o));
    f->bounce = take_pages(a, f->stride);
    TRY(arena_check(a, err));
    TRY(temp_file_open(&f->file, o->folder, o->may_be_memory, n * f->stride, err));
    f->path = f->file.path;
    return DREY_OK;
}

static void stop_reading(kv_file *f)
{
    stream_counters now;
    kv_file_count(f, &now);
    f->earlier = now;
    stream_close(&f->stream);
    f->next_seq = f->end_seq = 0;
}

void kv_file_close(kv_file *f)
{
    if (!f->path)
        return;
    stop_reading(f);
    temp_file_close(&f->file);
    f->path = NULL;
}

void kv_file_lend(kv_file *f, text_cache *c)
{
    kv_store *kv = kv_of(c);
    assert(cache_end(c) == 0 && !kv->file);
    int32_t i = 0;
    while (f->in_use & UINT64_C(1) << i)
        i++;
    assert(i < f->options.n_caches);
    f->in_use |= UINT64_C(1) << i;
    kv->file = f;
    kv->place = i;
    kv->chunk = f->options.chunk;
    kv->store.in_file = true;
}

void kv_file_take_back(text_cache *c)
{
    kv_store *kv = kv_of(c);
    if (!kv->file)
        return;
    kv->file->in_use &= ~(UINT64_C(1) << kv->place);
    kv->file = NULL;
}

static uint64_t offset_of(const kv_file *f, const kv_store *kv, int32_t layer, int32_t chunk)
{
    uint64_t row = (uint64_t)kv->place * (uint64_t)f->options.shape.n_layers + (uint64_t)layer;
    return (row * (uint64_t)f->n_chunks + (uint64_t)chunk) * f->stride;
}

/* ---- Reading ---- */

drey_status kv_file_ask(kv_file *f, const kv_store *kv, int32_t layer, int32_t chunk,
                        drey_error *err)
{
    assert(kv_file_has_room(f) && chunk < f->n_chunks);
    if (!f->stream) {
        stream_options reading = reading_of(f);
        TRY(stream_open(&f->stream, &reading, err));
        f->next_seq = f->end_seq = 0;
    }
    const stream_piece piece = {.n_bytes = (uint32_t)f->chunk_bytes,
                                .offset = offset_of(f, kv, layer, chunk)};
    f->end_seq = stream_append(f->stream, &piece, 1) + 1;
    return DREY_OK;
}

drey_status kv_file_wait(kv_file *f, const uint8_t **keys, drey_error *err)
{
    assert(f->next_seq < f->end_seq);
    *keys = stream_wait(f->stream, f->next_seq);
    if (*keys)
        return DREY_OK;
    stop_reading(f);
    FAIL(err, DREY_ERR_IO,
         "the keys and values of earlier tokens cannot be read back from a file in %s: check its "
         "disk, or name a folder on another one",
         SHOWN_PATH(f->options.folder));
}

void kv_file_next(kv_file *f)
{
    stream_release(f->stream, f->next_seq++);
}

void kv_file_skip(kv_file *f)
{
    if (f->stream)
        stream_skip(f->stream, f->next_seq, f->end_seq);
    f->next_seq = f->end_seq;
}

void kv_file_count(const kv_file *f, stream_counters *out)
{
    *out = f->earlier;
    if (!f->stream)
        return;
    stream_counters now;
    stream_count(f->stream, &now);
    now.read_bytes += out->read_bytes;
    now.device_bytes += out->device_bytes;
    now.vain_bytes += out->vain_bytes;
    now.busy_ns += out->busy_ns;
    *out = now;
}

/* ---- Moving positions between memory and file ---- */

/* A head's keys (values) from a position on, which is in memory and begins a group. */
static uint8_t *slots_at(const kv_store *kv, int32_t side, int32_t layer, int32_t head,
                         int32_t position)
{
    return kv_at(kv, side, layer, head) + kv_bytes(&kv->store.shape, side, position - kv->n_disk);
}

/* A chunk's heads between memory and bytes as the file has them. */
static void copy_chunk(const kv_store *kv, int32_t layer, int32_t position, uint8_t *bytes,
                       bool to_cache)
{
    for (int32_t side = 0; side < kv_n_sides(&kv->store.shape); side++) {
        const size_t n = kv_file_head_bytes(kv->file, side);
        for (int32_t head = 0; head < kv->store.shape.n_heads; head++, bytes += n) {
            uint8_t *slots = slots_at(kv, side, layer, head, position);
            memcpy(to_cache ? slots : bytes, to_cache ? bytes : slots, n);
        }
    }
}

/* The chunk that begins at a position. */
static drey_status write_chunk(kv_store *kv, int32_t position, drey_error *err)
{
    kv_file *f = kv->file;
    for (int32_t layer = 0; layer < kv->store.shape.n_layers; layer++) {
        copy_chunk(kv, layer, position, f->bounce, false);
        int why = temp_file_write(&f->file, offset_of(f, kv, layer, position / kv->chunk),
                                  f->bounce, f->stride);
        if (why)
            FAIL(err, DREY_ERR_IO,
                 "keys and values cannot be written to a file in %s: %s; make room there, or name "
                 "a folder on another disk. The text so far is kept",
                 SHOWN_PATH(f->options.folder), strerror(why));
        f->written_bytes += f->stride;
    }
    return DREY_OK;
}

/* The positions from `from` on become those of the first slots. */
static void move_down(kv_store *kv, const text_cache *c, int32_t from)
{
    const store_shape *shape = &kv->store.shape;
    int32_t end = kv_pending_slot(kv, c) + cache_pending(c), gone = from - kv->n_disk;
    for (int32_t side = 0; side < kv_n_sides(shape) && gone > 0; side++) {
        const size_t n = kv_bytes(shape, side, end - gone);
        for (int32_t layer = 0; layer < shape->n_layers; layer++)
            for (int32_t head = 0; head < shape->n_heads; head++)
                memmove(kv_at(kv, side, layer, head), slots_at(kv, side, layer, head, from), n);
    }
    kv->n_disk = from;
}

/* Half of what memory has room for, besides pending rows: so many positions stay in it. */
static int32_t kept_positions(const kv_store *kv, const text_cache *c)
{
    return (kv->store.size.n_slots - c->max_pending) / 2;
}

static drey_status spill(kv_store *kv, const text_cache *c, drey_error *err)
{
    int32_t at = kv->n_disk;
    drey_status status = DREY_OK;
    while (status == DREY_OK && cache_end(c) - at >= kv->chunk &&
           cache_end(c) - at > kept_positions(kv, c)) {
        status = write_chunk(kv, at, err);
        at += status == DREY_OK ? kv->chunk : 0;
    }
    move_down(kv, c, at);
    return status;
}

/* Reads what a cut has left to be read. */
static drey_status read_back(kv_store *kv, drey_error *err)
{
    kv_file *f = kv->file;
    const int32_t end = kv->n_back / kv->chunk, n_layers = kv->store.shape.n_layers;
    int32_t asked_chunk = kv->n_disk / kv->chunk, asked_layer = 0;
    kv_file_skip(f);
    for (int32_t chunk = asked_chunk; chunk < end; chunk++)
        for (int32_t layer = 0; layer < n_layers; layer++) {
            for (; asked_chunk < end && kv_file_has_room(f); asked_layer++) {
                if (asked_layer == n_layers) {
                    asked_layer = -1;
                    asked_chunk++;
                    continue;
                }
                TRY(kv_file_ask(f, kv, asked_layer, asked_chunk, err));
            }
            const uint8_t *bytes;
            TRY(kv_file_wait(f, &bytes, err));
            copy_chunk(kv, layer, chunk * kv->chunk, (uint8_t *)(uintptr_t)bytes, true);
            kv_file_next(f);
        }
    kv->n_back = 0;
    return DREY_OK;
}

drey_status kv_file_make_room(kv_store *kv, const text_cache *c, int32_t n, drey_error *err)
{
    if (kv->n_back > kv->n_disk)
        TRY(read_back(kv, err));
    if (kv_pending_slot(kv, c) + cache_pending(c) + n > kv->store.size.n_slots)
        TRY(spill(kv, c, err));
    return DREY_OK;
}

void kv_file_cut(kv_store *kv, const text_cache *c, int32_t n)
{
    int32_t whole = ceil_div_i32(n, kv->chunk) * kv->chunk;
    kv->n_back = min_i32(max_i32(kv->n_back, kv->n_disk), whole);
    if (n < kv->n_disk)
        kv->n_disk = max_i32(n - kept_positions(kv, c), 0) / kv->chunk * kv->chunk;
}
