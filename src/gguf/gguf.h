/* GGUF v3 files: the header, completely validated, and where each tensor is.
 *
 * Format: ggml docs/gguf.md. The header is read once into memory that the gguf owns (with O_DIRECT
 * if possible, so that the page cache is not charged for it as well); keys and tensor names point
 * into it. Every count, length and offset is checked against the file's size before use; names are
 * unique; arrays do not nest. Split files (NAME-00001-of-0000N.gguf) are opened by their first
 * part. */
#pragma once

#include "common/error.h"

typedef struct file_stamp file_stamp;

typedef enum gguf_kind {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
} gguf_kind;

/* Name as `inspect` prints it: "u32", "text", ... */
const char *gguf_kind_name(gguf_kind kind);
bool gguf_is_int(gguf_kind kind);

typedef struct gguf_string { /* not NUL-terminated; borrowed from the gguf */
    const char *text;
    size_t n_bytes;
} gguf_string;

typedef struct gguf_key {
    gguf_string name;
    gguf_kind kind;
    gguf_kind item_kind;  /* kind of an array's items */
    uint64_t n_items;     /* number of an array's items; 1 otherwise */
    const uint8_t *value; /* unaligned little-endian bytes in the header */
} gguf_key;

typedef struct gguf_tensor {
    char name[64]; /* NUL-terminated */
    uint32_t type; /* a tensor_type, or a type that only inspect understands */
    int32_t n_dims;
    int64_t dims[4]; /* dims[0] is the row length; missing ones are 1 */
    int32_t part;    /* the part's number in a split model */
    uint64_t offset; /* offset of the first byte, from the start of that file */
    uint64_t n_bytes;
} gguf_tensor;

typedef struct gguf gguf;

/* Opens and validates. path: the first part of a split file opens all of them. DREY_ERR_IO,
 * DREY_ERR_MEMORY; DREY_ERR_FORMAT: the header is damaged or exceeds a limit;
 * DREY_ERR_UNSUPPORTED: another version or byte order, or an unknown tensor type. */
drey_status gguf_open(gguf **out, const char *path, drey_error *err);
void gguf_close(gguf **g);

/* The same validation for bytes in memory (one part), for tests and fuzzing: file_bytes is the
 * claimed size of the whole file. The gguf copies what it keeps. */
drey_status gguf_parse(gguf **out, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                       drey_error *err);

int32_t gguf_n_shards(const gguf *g);
const char *gguf_shard_path(const gguf *g, int32_t part);
/* The state of the file when its header was read (not for gguf_parse). Borrowed. */
const file_stamp *gguf_part_stamp(const gguf *g, int32_t part);
uint64_t gguf_file_bytes(const gguf *g); /* all parts */
size_t gguf_header_bytes(const gguf *g); /* memory that the header takes */
uint32_t gguf_version(const gguf *g);

uint64_t gguf_n_keys(const gguf *g);
const gguf_key *gguf_key_at(const gguf *g, uint64_t i);
uint64_t gguf_n_tensors(const gguf *g);
const gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t i);

/* NULL if the file has none of that name. */
const gguf_key *gguf_find_key(const gguf *g, const char *name);
const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name);

/* Kinds that keys are read as: any integer kind for integers, f32 and f64 as well for numbers. An
 * array of numbers or of true and false that are all the same is one of them, as where a file
 * states one for each layer; an empty array is as if the key were missing. */
typedef enum gguf_want {
    GGUF_WANT_INT,
    GGUF_WANT_NUMBER,
    GGUF_WANT_BOOL,
    GGUF_WANT_TEXT
} gguf_want;
bool gguf_key_is(const gguf_key *key, gguf_want want);
/* DREY_ERR_FORMAT, with the key's name, where it is something else: a fallback would be another
 * model. gguf_check_key: of the key of that name, which may be missing. */
drey_status gguf_check_kind(const gguf_key *key, gguf_want want, drey_error *err);
drey_status gguf_check_key(const gguf *g, const char *name, gguf_want want, drey_error *err);

/* Typed reads: the key's value if it is there and such (a larger u64 becomes the largest int64),
 * otherwise the fallback. gguf_require_* fail with a message that names the key. */
int64_t gguf_int(const gguf *g, const char *name, int64_t fallback);
double gguf_number(const gguf *g, const char *name, double fallback);
bool gguf_bool(const gguf *g, const char *name, bool fallback);
gguf_string gguf_text(const gguf *g, const char *name); /* {NULL, 0} when missing */
bool gguf_is_text(gguf_string s, const char *text);     /* false for {NULL, 0} */
drey_status gguf_require_int(const gguf *g, const char *name, int64_t low, int64_t high,
                             int64_t *value, drey_error *err);

gguf_string gguf_text_of(const gguf_key *key); /* {NULL, 0} for other kinds */

/* Items of an array key. Strings can only be read in order, with a cursor. */
bool gguf_is_int_array(const gguf_key *key);
int64_t gguf_item_int(const gguf_key *key, uint64_t i);
double gguf_item_number(const gguf_key *key, uint64_t i);
typedef struct gguf_cursor {
    const uint8_t *at;
    uint64_t left;
} gguf_cursor;
/* Cursor over the strings of an array; left = 0 for any other */
gguf_cursor gguf_strings(const gguf_key *key);
bool gguf_next_string(gguf_cursor *cursor, gguf_string *out);

/* Text from a file for a message or a terminal: printable ASCII, '?' for all else, truncated with
 * "..." if it does not fit. Returns out. */
const char *gguf_printable(char *out, size_t capacity, const char *text, size_t n_bytes);

/* Shows a file's contents, for drey_inspect: always printable text only. */
struct drey_inspector; /* drey/drey_model.h */
void gguf_show(const gguf *g, const struct drey_inspector *to);
