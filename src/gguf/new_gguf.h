/* Writes a GGUF v3 file: a small one, whose tensors are in memory, such as the side files of a
 * model; or a model, whose tensors are made while they are written.
 *
 * new_gguf_begin, keys and tensors in any order, new_gguf_save or new_gguf_stream, new_gguf_free.
 * Nothing fails before the file is written, which also reports a lack of memory. */
#pragma once

#include "drey/drey_model.h"

typedef struct gguf gguf;
typedef struct gguf_key gguf_key;
typedef struct gguf_string gguf_string;
typedef struct new_file new_file;

typedef struct gguf_bytes { /* growing array of bytes */
    uint8_t *bytes;
    size_t n, capacity;
    bool failed; /* no memory */
} gguf_bytes;

typedef struct new_gguf {
    gguf_bytes keys, infos, data; /* data: the tensors', borrowed, with their sizes */
    uint64_t n_keys, n_tensors, data_bytes;
    /* alignment of tensors: 32; before the first one it may become another power of two, which
     * the key general.alignment then names */
    uint64_t alignment;
} new_gguf;

/* architecture: general.architecture; NULL: that key is not the first one. */
void new_gguf_begin(new_gguf *g, const char *architecture);
void new_gguf_free(new_gguf *g);

void new_gguf_u32(new_gguf *g, const char *name, uint32_t value);
void new_gguf_u64(new_gguf *g, const char *name, uint64_t value);
void new_gguf_f32(new_gguf *g, const char *name, float value);
void new_gguf_text(new_gguf *g, const char *name, const char *value);
void new_gguf_bool(new_gguf *g, const char *name, bool value);
/* A key of another file, as it is. */
void new_gguf_copy_key(new_gguf *g, const gguf_key *key);
/* Arrays. */
void new_gguf_u8s(new_gguf *g, const char *name, const uint8_t *values, uint64_t n);
void new_gguf_f32s(new_gguf *g, const char *name, const float *values, uint64_t n);
void new_gguf_u32s(new_gguf *g, const char *name, const uint32_t *values, uint64_t n);
void new_gguf_i32s(new_gguf *g, const char *name, const int32_t *values, uint64_t n);
void new_gguf_bools(new_gguf *g, const char *name, const bool *values, uint64_t n);
void new_gguf_texts(new_gguf *g, const char *name, const gguf_string *values, uint64_t n);
/* name: 63 bytes at most; dims: [n_dims], the row length first; bytes: n_bytes, borrowed until the
 * file is saved; NULL: they are made by new_gguf_stream. */
void new_gguf_tensor(new_gguf *g, const char *name, uint32_t type, const int64_t *dims,
                     uint32_t n_dims, const void *bytes, uint64_t n_bytes);
/* XXH64 of the tensors' bytes so far, one after another: for a key of the file. */
uint64_t new_gguf_data_hash(const new_gguf *g);
/* Checks that a file may be written there: the path and its .partial are no part of the model `of`
 * and not `read` (NULL: none), and no file is there unless `force`. DREY_ERR_USAGE. */
drey_status new_gguf_check_output(const char *path, const gguf *of, const char *read, bool force,
                                  drey_error *err);
/* Writes the file completely or not at all (common/new_file.h). DREY_ERR_IO, DREY_ERR_MEMORY. */
drey_status new_gguf_save(const new_gguf *g, const char *path, drey_error *err);

/* ---- Tensors that are made while they are written ---- */

/* Destination of a tensor's bytes. */
typedef struct gguf_sink {
    struct new_file *file;
    uint64_t at, end; /* bytes of the file */
} gguf_sink;
/* The tensor's next n bytes. */
drey_status gguf_sink_put(gguf_sink *sink, const void *bytes, size_t n, drey_error *err);
/* Puts all bytes of tensor i, which counts the calls of new_gguf_tensor from 0. */
typedef drey_status gguf_fill_fn(void *user, uint64_t i, gguf_sink *sink, drey_error *err);

/* Does the same as new_gguf_save, with the bytes of every tensor from `fill`, in the order of the
 * calls. The room on the disk is looked at first. */
drey_status new_gguf_stream(const new_gguf *g, const char *path, gguf_fill_fn *fill, void *user,
                            drey_error *err);
/* Makes the part of the file before its tensors; the caller frees. DREY_ERR_MEMORY. */
drey_status new_gguf_front(const new_gguf *g, uint8_t **bytes, size_t *n, drey_error *err);
