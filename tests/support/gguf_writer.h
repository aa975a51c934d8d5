/* Writes GGUF bytes in memory, well-formed or not: what toys and hostile files are made of.
 *
 * Calls follow the file: writer_begin, keys, tensor infos, writer_data, tensor bytes. Nothing is
 * checked, so that a test can write any lie. Out of memory aborts: these are tests. */
#pragma once

#include "gguf/gguf.h"

typedef struct gguf_writer {
    uint8_t *bytes;
    size_t n, capacity;
} gguf_writer;

void writer_free(gguf_writer *w);

void writer_put(gguf_writer *w, const void *bytes, size_t n);
void writer_u32(gguf_writer *w, uint32_t value);
void writer_u64(gguf_writer *w, uint64_t value);
void writer_string(gguf_writer *w, const char *text); /* with its length in front */

/* Magic, version and counts; n_keys and n_tensors can be set later through the offsets below. */
void writer_begin(gguf_writer *w, uint64_t n_tensors, uint64_t n_keys);
enum { WRITER_AT_VERSION = 4, WRITER_AT_N_TENSORS = 8, WRITER_AT_N_KEYS = 16 };
void writer_patch_u32(gguf_writer *w, size_t at, uint32_t value);
void writer_patch_u64(gguf_writer *w, size_t at, uint64_t value);

/* The key's name and kind; its value is to follow. */
void writer_key(gguf_writer *w, const char *name, gguf_kind kind);
void writer_key_u16(gguf_writer *w, const char *name, uint16_t value);
void writer_key_u32(gguf_writer *w, const char *name, uint32_t value);
void writer_key_i32(gguf_writer *w, const char *name, int32_t value);
void writer_key_f32(gguf_writer *w, const char *name, float value);
void writer_key_bool(gguf_writer *w, const char *name, bool value);
void writer_key_text(gguf_writer *w, const char *name, const char *value);
/* The head of an array; n items are to follow. */
void writer_key_array(gguf_writer *w, const char *name, gguf_kind item_kind, uint64_t n);

void writer_tensor(gguf_writer *w, const char *name, uint32_t type, const int64_t *dims,
                   uint32_t n_dims, uint64_t offset);
/* Zeros up to a multiple of alignment. */
void writer_align(gguf_writer *w, size_t alignment);

/* Replaces the file at path; false when it cannot be written. */
bool writer_save(const gguf_writer *w, const char *path);
