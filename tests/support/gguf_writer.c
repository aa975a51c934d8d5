/* A growing buffer with GGUF's few shapes: see gguf_writer.h. */
#include "support/gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void writer_free(gguf_writer *w)
{
    free(w->bytes);
    *w = (gguf_writer){0};
}

void writer_put(gguf_writer *w, const void *bytes, size_t n)
{
    if (n > w->capacity - w->n) {
        size_t capacity = (w->n + n) * 2 + 256;
        uint8_t *grown = realloc(w->bytes, capacity);
        if (!grown)
            abort();
        w->bytes = grown;
        w->capacity = capacity;
    }
    if (n)
        memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

void writer_u32(gguf_writer *w, uint32_t value)
{
    writer_put(w, &value, sizeof value);
}

void writer_u64(gguf_writer *w, uint64_t value)
{
    writer_put(w, &value, sizeof value);
}

void writer_string(gguf_writer *w, const char *text)
{
    writer_u64(w, strlen(text));
    writer_put(w, text, strlen(text));
}

void writer_begin(gguf_writer *w, uint64_t n_tensors, uint64_t n_keys)
{
    writer_put(w, "GGUF", 4);
    writer_u32(w, 3);
    writer_u64(w, n_tensors);
    writer_u64(w, n_keys);
}

void writer_patch_u32(gguf_writer *w, size_t at, uint32_t value)
{
    memcpy(w->bytes + at, &value, sizeof value);
}

void writer_patch_u64(gguf_writer *w, size_t at, uint64_t value)
{
    memcpy(w->bytes + at, &value, sizeof value);
}

void writer_key(gguf_writer *w, const char *name, gguf_kind kind)
{
    writer_string(w, name);
    writer_u32(w, (uint32_t)kind);
}

void writer_key_u16(gguf_writer *w, const char *name, uint16_t value)
{
    writer_key(w, name, GGUF_U16);
    writer_put(w, &value, sizeof value);
}

void writer_key_u32(gguf_writer *w, const char *name, uint32_t value)
{
    writer_key(w, name, GGUF_U32);
    writer_u32(w, value);
}

void writer_key_i32(gguf_writer *w, const char *name, int32_t value)
{
    writer_key(w, name, GGUF_I32);
    writer_put(w, &value, sizeof value);
}

void writer_key_f32(gguf_writer *w, const char *name, float value)
{
    writer_key(w, name, GGUF_F32);
    writer_put(w, &value, sizeof value);
}

void writer_key_bool(gguf_writer *w, const char *name, bool value)
{
    writer_key(w, name, GGUF_BOOL);
    writer_put(w, &(uint8_t){value}, 1);
}

void writer_key_text(gguf_writer *w, const char *name, const char *value)
{
    writer_key(w, name, GGUF_STRING);
    writer_string(w, value);
}

void writer_key_array(gguf_writer *w, const char *name, gguf_kind item_kind, uint64_t n)
{
    writer_key(w, name, GGUF_ARRAY);
    writer_u32(w, (uint32_t)item_kind);
    writer_u64(w, n);
}

void writer_tensor(gguf_writer *w, const char *name, uint32_t type, const int64_t *dims,
                   uint32_t n_dims, uint64_t offset)
{
    writer_string(w, name);
    writer_u32(w, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        writer_u64(w, (uint64_t)dims[i]);
    writer_u32(w, type);
    writer_u64(w, offset);
}

void writer_align(gguf_writer *w, size_t alignment)
{
    while (w->n % alignment != 0)
        writer_put(w, "", 1);
}

bool writer_save(const gguf_writer *w, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool written = w->n == 0 || fwrite(w->bytes, 1, w->n, f) == w->n;
    return fclose(f) == 0 && written;
}
