/* Writing a GGUF file: see new_gguf.h. */
#include "gguf/new_gguf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/new_file.h"
#include "common/path.h"
#include "gguf/header.h"

enum { USUAL_ALIGN = 32, VERSION = 3 };

typedef struct tensor_data { /* bytes of one tensor; in new_gguf.data */
    const void *bytes;
    uint64_t n_bytes;
} tensor_data;

static void put(gguf_bytes *b, const void *bytes, size_t n)
{
    if (b->n + n > b->capacity && !b->failed) {
        size_t capacity = 2 * (b->n + n) + 256;
        uint8_t *grown = realloc(b->bytes, capacity);
        b->failed = !grown;
        if (grown) {
            b->bytes = grown;
            b->capacity = capacity;
        }
    }
    if (b->failed || n == 0)
        return;
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

/* Little-endian on any machine. */
static void put_int(gguf_bytes *b, uint64_t value, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    put(b, bytes, n_bytes);
}

static void put_f32(gguf_bytes *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_int(b, bits, sizeof bits);
}

static void put_text(gguf_bytes *b, const char *text)
{
    put_int(b, strlen(text), 8);
    put(b, text, strlen(text));
}

/* ---- Keys ---- */

static gguf_bytes *put_key(new_gguf *g, const char *name, gguf_kind kind)
{
    put_text(&g->keys, name);
    put_int(&g->keys, kind, 4);
    g->n_keys++;
    return &g->keys;
}

static gguf_bytes *put_array(new_gguf *g, const char *name, gguf_kind item_kind, uint64_t n)
{
    gguf_bytes *b = put_key(g, name, GGUF_ARRAY);
    put_int(b, item_kind, 4);
    put_int(b, n, 8);
    return b;
}

void new_gguf_begin(new_gguf *g, const char *architecture)
{
    *g = (new_gguf){.alignment = USUAL_ALIGN};
    if (architecture)
        new_gguf_text(g, "general.architecture", architecture);
}

void new_gguf_free(new_gguf *g)
{
    free(g->keys.bytes);
    free(g->infos.bytes);
    free(g->data.bytes);
    *g = (new_gguf){0};
}

void new_gguf_u32(new_gguf *g, const char *name, uint32_t value)
{
    put_int(put_key(g, name, GGUF_U32), value, 4);
}

void new_gguf_u64(new_gguf *g, const char *name, uint64_t value)
{
    put_int(put_key(g, name, GGUF_U64), value, 8);
}

void new_gguf_f32(new_gguf *g, const char *name, float value)
{
    put_f32(put_key(g, name, GGUF_F32), value);
}

void new_gguf_text(new_gguf *g, const char *name, const char *value)
{
    put_text(put_key(g, name, GGUF_STRING), value);
}

void new_gguf_bool(new_gguf *g, const char *name, bool value)
{
    put_int(put_key(g, name, GGUF_BOOL), value, 1);
}

static size_t value_bytes(const gguf_key *key)
{
    gguf_kind kind = key->kind == GGUF_ARRAY ? key->item_kind : key->kind;
    if (key->kind == GGUF_STRING)
        return 8 + gguf_text_of(key).n_bytes;
    if (kind != GGUF_STRING)
        return (size_t)key->n_items * header_kind_bytes(kind);
    size_t n = 0;
    gguf_string item;
    for (gguf_cursor c = gguf_strings(key); gguf_next_string(&c, &item);)
        n += 8 + item.n_bytes;
    return n;
}

void new_gguf_copy_key(new_gguf *g, const gguf_key *key)
{
    gguf_bytes *b = &g->keys;
    put_int(b, key->name.n_bytes, 8);
    put(b, key->name.text, key->name.n_bytes);
    put_int(b, key->kind, 4);
    if (key->kind == GGUF_ARRAY) {
        put_int(b, key->item_kind, 4);
        put_int(b, key->n_items, 8);
    }
    put(b, key->value, value_bytes(key));
    g->n_keys++;
}

void new_gguf_u8s(new_gguf *g, const char *name, const uint8_t *values, uint64_t n)
{
    put(put_array(g, name, GGUF_U8, n), values, n);
}

void new_gguf_f32s(new_gguf *g, const char *name, const float *values, uint64_t n)
{
    gguf_bytes *b = put_array(g, name, GGUF_F32, n);
    for (uint64_t i = 0; i < n; i++)
        put_f32(b, values[i]);
}

void new_gguf_u32s(new_gguf *g, const char *name, const uint32_t *values, uint64_t n)
{
    gguf_bytes *b = put_array(g, name, GGUF_U32, n);
    for (uint64_t i = 0; i < n; i++)
        put_int(b, values[i], sizeof *values);
}

void new_gguf_i32s(new_gguf *g, const char *name, const int32_t *values, uint64_t n)
{
    gguf_bytes *b = put_array(g, name, GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++)
        put_int(b, (uint32_t)values[i], sizeof *values);
}

void new_gguf_texts(new_gguf *g, const char *name, const gguf_string *values, uint64_t n)
{
    gguf_bytes *b = put_array(g, name, GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++) {
        put_int(b, values[i].n_bytes, 8);
        put(b, values[i].text, values[i].n_bytes);
    }
}

void new_gguf_bools(new_gguf *g, const char *name, const bool *values, uint64_t n)
{
    gguf_bytes *b = put_array(g, name, GGUF_BOOL, n);
    for (uint64_t i = 0; i < n; i++)
        put_int(b, values[i], 1);
}

/* ---- Tensors ---- */

static uint64_t aligned(const new_gguf *g, uint64_t n)
{
    return (n + g->alignment - 1) / g->alignment * g->alignment;
}

void new_gguf_tensor(new_gguf *g, const char *name, uint32_t type, const int64_t *dims,
                     uint32_t n_dims, const void *bytes, uint64_t n_bytes)
{
    put_text(&g->infos, name);
    put_int(&g->infos, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++)
        put_int(&g->infos, (uint64_t)dims[i], 8);
    put_int(&g->infos, type, 4);
    put_int(&g->infos, g->data_bytes, 8);
    put(&g->data, &(tensor_data){bytes, n_bytes}, sizeof(tensor_data));
    g->data_bytes = aligned(g, g->data_bytes + n_bytes);
    g->n_tensors++;
}

static tensor_data data_at(const new_gguf *g, uint64_t i)
{
    tensor_data d;
    memcpy(&d, g->data.bytes + i * sizeof d, sizeof d);
    return d;
}

uint64_t new_gguf_data_hash(const new_gguf *g)
{
    hash64 h;
    hash64_init(&h);
    for (uint64_t i = 0; i < g->n_tensors && !g->data.failed; i++)
        hash64_add(&h, data_at(g, i).bytes, data_at(g, i).n_bytes);
    return hash64_get(&h);
}

/* ---- The file ---- */

drey_status new_gguf_front(const new_gguf *g, uint8_t **bytes, size_t *n, drey_error *err)
{
    gguf_bytes front = {0};
    put(&front, "GGUF", 4);
    put_int(&front, VERSION, 4);
    put_int(&front, g->n_tensors, 8);
    put_int(&front, g->n_keys, 8);
    put(&front, g->keys.bytes, g->keys.n);
    put(&front, g->infos.bytes, g->infos.n);
    while (front.n % g->alignment != 0 && !front.failed)
        put_int(&front, 0, 1);
    if (front.failed || g->keys.failed || g->infos.failed || g->data.failed) {
        free(front.bytes);
        FAIL(err, DREY_ERR_MEMORY, "no memory for the header of a file");
    }
    *bytes = front.bytes;
    *n = front.n;
    return DREY_OK;
}

drey_status gguf_sink_put(gguf_sink *sink, const void *bytes, size_t n, drey_error *err)
{
    assert(n <= sink->end - sink->at);
    TRY(new_file_write(sink->file, sink->at, bytes, n, err));
    sink->at += n;
    return DREY_OK;
}

static drey_status write_tensor(const new_gguf *g, uint64_t i, gguf_fill_fn *fill, void *user,
                                gguf_sink *sink, drey_error *err)
{
    static const uint8_t zeros[USUAL_ALIGN];
    tensor_data d = data_at(g, i);
    sink->end = sink->at + d.n_bytes;
    TRY(fill ? fill(user, i, sink, err) : gguf_sink_put(sink, d.bytes, d.n_bytes, err));
    assert(sink->at == sink->end);
    sink->end += aligned(g, d.n_bytes) - d.n_bytes;
    while (sink->at < sink->end) {
        uint64_t left = sink->end - sink->at;
        TRY(gguf_sink_put(sink, zeros, left < sizeof zeros ? left : sizeof zeros, err));
    }
    return DREY_OK;
}

static drey_status write_all(const new_gguf *g, new_file *f, const uint8_t *front, size_t n_front,
                             gguf_fill_fn *fill, void *user, drey_error *err)
{
    uint64_t free_bytes, n_bytes = n_front + g->data_bytes;
    TRY(new_file_space(f, &free_bytes, err));
    TRY(new_file_check_room(f, n_bytes, free_bytes, err));
    TRY(new_file_reserve(f, n_bytes, err));
    TRY(new_file_write(f, 0, front, n_front, err));
    gguf_sink sink = {.file = f, .at = n_front};
    for (uint64_t i = 0; i < g->n_tensors; i++)
        TRY(write_tensor(g, i, fill, user, &sink, err));
    return DREY_OK;
}

drey_status new_gguf_stream(const new_gguf *g, const char *path, gguf_fill_fn *fill, void *user,
                            drey_error *err)
{
    new_file f = {.fd = -1};
    uint8_t *front;
    size_t n_front;
    TRY(new_gguf_front(g, &front, &n_front, err));
    drey_status status = new_file_open(&f, path, err);
    if (status == DREY_OK)
        status = new_file_end(&f, write_all(g, &f, front, n_front, fill, user, err), err);
    free(front);
    return status;
}

drey_status new_gguf_check_output(const char *path, const gguf *of, const char *read, bool force,
                                  drey_error *err)
{
    char *partial = new_file_partial(path);
    if (!partial)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a file's name");
    bool is_read = read && path_same_file(path, read);
    for (int32_t i = 0; i < gguf_n_shards(of); i++)
        is_read |= path_same_file(path, gguf_shard_path(of, i)) ||
                   path_same_file(partial, gguf_shard_path(of, i));
    free(partial);
    if (is_read)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT,
                  "%s, or %s.partial that it grows as, is what is read; name another file",
                  SHOWN_PATH(path), SHOWN_PATH(path));
    if (!force && access(path, F_OK) == 0)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_FORCE,
                  "%s exists; name another file, or have it overwritten", SHOWN_PATH(path));
    return DREY_OK;
}

drey_status new_gguf_save(const new_gguf *g, const char *path, drey_error *err)
{
    return new_gguf_stream(g, path, NULL, NULL, err);
}
