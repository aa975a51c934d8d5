/* The parser. Every count is checked against the remaining bytes, and against what models have,
 * before it is used. So memory and time are bounded for any file: the header's bytes, plus 64 Ki
 * keys and tensors of about 200 bytes.
 *
 * Format: ggml docs/gguf.md, version 3. */
#include "gguf/header.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "gguf/types.h"

enum {
    n_max_dims = 4,
    longest_key = 65535, /* the format's own limit */
    default_alignment = 32,
    least_key_bytes = 8 + 1 + 4 + 1,            /* name's length, name, kind, value */
    least_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8, /* ..., n_dims, one dim, type, offset */
    greatest_alignment = 1 << 20,
};

uint32_t header_u32(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t header_u64(const uint8_t *b)
{
    return (uint64_t)header_u32(b) | (uint64_t)header_u32(b + 4) << 32;
}

size_t header_kind_bytes(uint32_t kind)
{
    static const uint8_t bytes[] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
        [GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
        [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
    };
    return kind < sizeof bytes ? bytes[kind] : 0;
}

const char *gguf_printable(char *out, size_t capacity, const char *text, size_t n_bytes)
{
    size_t n = n_bytes < capacity ? n_bytes : capacity - 4;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    memcpy(out + n, "...", n < n_bytes ? 4 : 0);
    if (n == n_bytes)
        out[n] = '\0';
    return out;
}

/* Order of names: by bytes, a prefix first. */
static int header_compare(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, min_size(n_a, n_b));
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

static drey_status take_u32(header *h, uint32_t *value, drey_error *err)
{
    const uint8_t *bytes;
    TRY(source_take(&h->source, 4, &bytes, err));
    *value = header_u32(bytes);
    return DREY_OK;
}

static drey_status take_u64(header *h, uint64_t *value, drey_error *err)
{
    const uint8_t *bytes;
    TRY(source_take(&h->source, 8, &bytes, err));
    *value = header_u64(bytes);
    return DREY_OK;
}

static drey_status take_string(header *h, gguf_string *string, drey_error *err)
{
    uint64_t n;
    const uint8_t *bytes;
    TRY(take_u64(h, &n, err));
    TRY(source_take(&h->source, n, &bytes, err));
    *string = (gguf_string){.text = (const char *)bytes, .n_bytes = (size_t)n};
    return DREY_OK;
}

/* For a file that is no GGUF: says what it seems to be, if that explains the mistake. */
static drey_status refuse_magic(const header *h, const uint8_t *magic, drey_error *err)
{
    const char *path = h->source.shown;
    static const struct {
        char magic[5];
        const char *what;
    } known[] = {
        {"lmgg", "is a GGML file from before GGUF"},
        {"tjgg", "is a GGML file from before GGUF"},
        {"fmgg", "is a GGML file from before GGUF"},
        {"algg", "is a GGML file from before GGUF"},
        {"vers", "is a Git LFS pointer, not the model itself"},
        {"<!DO", "is a web page, not a model"},
        {"<!do", "is a web page, not a model"},
        {"<htm", "is a web page, not a model"},
        {"PK\3\4", "is a ZIP or PyTorch file"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (memcmp(magic, known[i].magic, 4) == 0)
            FAIL(err, DREY_ERR_FORMAT, "%s %s; fetch the model as a GGUF file", path,
                 known[i].what);
    FAIL(err, DREY_ERR_FORMAT, "%s is not a GGUF file; fetch or convert the model as GGUF", path);
}

static drey_status parse_version(header *h, drey_error *err)
{
    const char *path = h->source.shown;
    const uint8_t *magic;
    if (source_left(&h->source) < 4)
        FAIL(err, DREY_ERR_FORMAT, "%s is not a GGUF file; fetch or convert the model as GGUF",
             path);
    TRY(source_take(&h->source, 4, &magic, err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return refuse_magic(h, magic, err);
    TRY(take_u32(h, &h->version, err));
    if (h->version == 1 || h->version == 2)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is GGUF version %u, and drey reads version 3; fetch a newer file of this model or "
             "convert it with a current llama.cpp (llama-quantize FILE NEW copy)",
             path, h->version);
    if ((h->version & 0xffff) == 0 && h->version != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is big-endian GGUF; fetch the little-endian file or convert it with "
             "gguf-convert-endian of the Python package gguf",
             path);
    if (h->version != 3)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is GGUF version %u, and drey reads version 3; fetch a version 3 file or a newer "
             "drey",
             path, h->version);
    return DREY_OK;
}

static drey_status parse_counts(header *h, drey_error *err)
{
    TRY(take_u64(h, &h->n_tensors, err));
    TRY(take_u64(h, &h->n_keys, err));
    uint64_t left = source_left(&h->source);
    if (h->n_keys > left / least_key_bytes)
        FAIL(err, DREY_ERR_FORMAT, "%s claims %llu keys, more than it has room for; " DAMAGED,
             h->source.shown, (unsigned long long)h->n_keys);
    if (h->n_tensors > left / least_tensor_bytes)
        FAIL(err, DREY_ERR_FORMAT, "%s claims %llu tensors, more than it has room for; " DAMAGED,
             h->source.shown, (unsigned long long)h->n_tensors);
    if (h->n_keys > HEADER_MOST_KEYS || h->n_tensors > HEADER_MOST_TENSORS)
        FAIL(err, DREY_ERR_FORMAT,
             "%s has %llu keys and %llu tensors, and no model has more than %d of either; " DAMAGED,
             h->source.shown, (unsigned long long)h->n_keys, (unsigned long long)h->n_tensors,
             HEADER_MOST_KEYS);
    return DREY_OK;
}

static drey_status check_bools(const header *h, const char *shown, const uint8_t *values, size_t n,
                               drey_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] > 1)
            FAIL(err, DREY_ERR_FORMAT, "%s: key %s is a boolean of value %d; " DAMAGED,
                 h->source.shown, shown, values[i]);
    return DREY_OK;
}

/* n values of a kind that is no array. */
static drey_status parse_values(header *h, gguf_key *key, const char *shown, gguf_kind kind,
                                uint64_t n, drey_error *err)
{
    key->value = h->source.base + h->source.at;
    if (kind == GGUF_STRING) {
        gguf_string string;
        for (uint64_t i = 0; i < n; i++)
            TRY(take_string(h, &string, err));
        return DREY_OK;
    }
    size_t size = header_kind_bytes(kind);
    if (n > source_left(&h->source) / size)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: key %s claims %llu values, more than the file has room for; " DAMAGED,
             h->source.shown, shown, (unsigned long long)n);
    TRY(source_take(&h->source, n * size, &key->value, err));
    return kind == GGUF_BOOL ? check_bools(h, shown, key->value, (size_t)n, err) : DREY_OK;
}

static drey_status parse_key(header *h, gguf_key *key, drey_error *err)
{
    char shown[80];
    uint32_t kind, item_kind;
    TRY(take_string(h, &key->name, err));
    gguf_printable(shown, sizeof shown, key->name.text, key->name.n_bytes);
    if (key->name.n_bytes == 0 || key->name.n_bytes > longest_key)
        FAIL(err, DREY_ERR_FORMAT, "%s has a key with a name of %zu bytes; " DAMAGED,
             h->source.shown, key->name.n_bytes);
    TRY(take_u32(h, &kind, err));
    key->kind = (gguf_kind)kind;
    key->n_items = 1;
    if (kind == GGUF_STRING || header_kind_bytes(kind))
        return parse_values(h, key, shown, key->kind, 1, err);
    if (kind != GGUF_ARRAY)
        FAIL(err, DREY_ERR_FORMAT, "%s: key %s has the unknown kind %u; " DAMAGED, h->source.shown,
             shown, kind);
    TRY(take_u32(h, &item_kind, err));
    TRY(take_u64(h, &key->n_items, err));
    key->item_kind = (gguf_kind)item_kind;
    if (item_kind == GGUF_ARRAY)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s: key %s is an array of arrays, which no known model has; fetch the model from "
             "another source",
             h->source.shown, shown);
    if (item_kind != GGUF_STRING && !header_kind_bytes(item_kind))
        FAIL(err, DREY_ERR_FORMAT, "%s: key %s is an array of the unknown kind %u; " DAMAGED,
             h->source.shown, shown, item_kind);
    return parse_values(h, key, shown, key->item_kind, key->n_items, err);
}

static int order_keys(const void *a, const void *b)
{
    const gguf_key *x = *(const gguf_key *const *)a, *y = *(const gguf_key *const *)b;
    return header_compare(x->name.text, x->name.n_bytes, y->name.text, y->name.n_bytes);
}

/* n zeroed things, at least one so that NULL always means failure. */
static drey_status take_memory(const header *h, void **out, uint64_t n, size_t size,
                               drey_error *err)
{
    *out = calloc((size_t)n + 1, size);
    if (!*out)
        FAIL(err, DREY_ERR_MEMORY,
             "the system refused memory for the header of %s; free some memory", h->source.shown);
    return DREY_OK;
}

static drey_status parse_keys(header *h, drey_error *err)
{
    TRY(take_memory(h, (void **)&h->keys, h->n_keys, sizeof *h->keys, err));
    for (uint64_t i = 0; i < h->n_keys; i++)
        TRY(parse_key(h, &h->keys[i], err));
    TRY(take_memory(h, (void **)&h->by_name, h->n_keys, sizeof *h->by_name, err));
    for (uint64_t i = 0; i < h->n_keys; i++)
        h->by_name[i] = &h->keys[i];
    qsort(h->by_name, h->n_keys, sizeof *h->by_name, order_keys);
    for (uint64_t i = 1; i < h->n_keys; i++) {
        if (order_keys(&h->by_name[i - 1], &h->by_name[i]) == 0) {
            char shown[80];
            gguf_string name = h->by_name[i]->name;
            FAIL(err, DREY_ERR_FORMAT, "%s has the key %s twice; " DAMAGED, h->source.shown,
                 gguf_printable(shown, sizeof shown, name.text, name.n_bytes));
        }
    }
    return DREY_OK;
}

const gguf_key *header_find(const header *h, const char *name)
{
    gguf_key wanted = {.name = {.text = name, .n_bytes = strlen(name)}};
    const gguf_key *pointer = &wanted;
    const gguf_key **found =
        bsearch(&pointer, h->by_name, h->n_keys, sizeof *h->by_name, order_keys);
    return found ? *found : NULL;
}

static drey_status parse_alignment(const header *h, uint64_t *alignment, drey_error *err)
{
    *alignment = default_alignment;
    const gguf_key *key = header_find(h, "general.alignment");
    if (!key)
        return DREY_OK;
    int64_t value = key->kind == GGUF_U32 ? header_u32(key->value) : 0;
    if (value < 8 || value > greatest_alignment || (value & (value - 1)) != 0)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: key general.alignment is not a 32-bit power of two from 8 to %d; " DAMAGED,
             h->source.shown, greatest_alignment);
    *alignment = (uint64_t)value;
    return DREY_OK;
}

/* A name becomes a C string that messages and tools print: so it must be printable ASCII. */
static drey_status parse_tensor_name(header *h, gguf_tensor *t, drey_error *err)
{
    char shown[80];
    gguf_string name;
    TRY(take_string(h, &name, err));
    bool good = name.n_bytes > 0 && name.n_bytes < sizeof t->name;
    for (size_t i = 0; good && i < name.n_bytes; i++)
        good = name.text[i] >= 0x20 && name.text[i] < 0x7f;
    if (!good)
        FAIL(err, DREY_ERR_FORMAT,
             "%s has a tensor named '%s', but names have 1 to %zu printable ASCII "
             "characters; " DAMAGED,
             h->source.shown, gguf_printable(shown, sizeof shown, name.text, name.n_bytes),
             sizeof t->name - 1);
    memcpy(t->name, name.text, name.n_bytes);
    return DREY_OK;
}

static drey_status parse_shape(header *h, gguf_tensor *t, int64_t *n_rows, drey_error *err)
{
    uint32_t n_dims;
    TRY(take_u32(h, &n_dims, err));
    if (n_dims < 1 || n_dims > n_max_dims)
        FAIL(err, DREY_ERR_FORMAT, "%s: tensor %s has %u dimensions instead of 1 to 4; " DAMAGED,
             h->source.shown, t->name, n_dims);
    t->n_dims = (int32_t)n_dims;
    int64_t n_elements = 1;
    *n_rows = 1;
    for (uint32_t i = 0; i < n_max_dims; i++) {
        uint64_t dim = 1;
        if (i < n_dims)
            TRY(take_u64(h, &dim, err));
        if (dim == 0 || dim > INT64_MAX ||
            __builtin_mul_overflow(n_elements, (int64_t)dim, &n_elements))
            FAIL(err, DREY_ERR_FORMAT, "%s: tensor %s has an impossible shape; " DAMAGED,
                 h->source.shown, t->name);
        t->dims[i] = (int64_t)dim;
        if (i > 0)
            *n_rows *= (int64_t)dim;
    }
    return DREY_OK;
}

static drey_status parse_tensor(header *h, gguf_tensor *t, drey_error *err)
{
    int64_t n_rows = 0, n_bytes;
    TRY(parse_tensor_name(h, t, err));
    TRY(parse_shape(h, t, &n_rows, err));
    TRY(take_u32(h, &t->type, err));
    TRY(take_u64(h, &t->offset, err));
    const type_traits *traits = type_find(t->type);
    if (type_is_dropped(t->type))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s: tensor %s has type %u, made for an old llama.cpp; take the file in Q4_0",
             h->source.shown, t->name, t->type);
    if (!traits)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s: tensor %s has the unknown type %u; fetch a file in a common type such as Q4_K_M, "
             "or a newer drey",
             h->source.shown, t->name, t->type);
    if (t->dims[0] % traits->block_elements != 0)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: tensor %s has rows of %lld elements, which do not divide into %s blocks of "
             "%d; " DAMAGED,
             h->source.shown, t->name, (long long)t->dims[0], traits->name, traits->block_elements);
    if (__builtin_mul_overflow(t->dims[0] / traits->block_elements, traits->block_bytes,
                               &n_bytes) ||
        __builtin_mul_overflow(n_bytes, n_rows, &n_bytes))
        FAIL(err, DREY_ERR_FORMAT, "%s: tensor %s has an impossible shape; " DAMAGED,
             h->source.shown, t->name);
    t->n_bytes = (uint64_t)n_bytes;
    return DREY_OK;
}

/* Converts an offset in the data part into one from the file's start. */
static drey_status place_tensor(const header *h, gguf_tensor *t, uint64_t data_start,
                                uint64_t alignment, drey_error *err)
{
    uint64_t file_bytes = h->source.file_bytes;
    if (t->offset % alignment != 0)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the offset of tensor %s is not a multiple of %llu bytes; " DAMAGED,
             h->source.shown, t->name, (unsigned long long)alignment);
    uint64_t room = file_bytes > data_start ? file_bytes - data_start : 0;
    if (t->offset > room || t->n_bytes > room - t->offset)
        FAIL(err, DREY_ERR_FORMAT,
             "%s ends before its tensor %s does (the file has %llu bytes); it is not all there, "
             "fetch it again",
             h->source.shown, t->name, (unsigned long long)file_bytes);
    t->offset += data_start;
    return DREY_OK;
}

static int order_offsets(const void *a, const void *b)
{
    const gguf_tensor *x = *(const gguf_tensor *const *)a, *y = *(const gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static drey_status check_overlap(const header *h, drey_error *err)
{
    const gguf_tensor **sorted;
    TRY(take_memory(h, (void **)&sorted, h->n_tensors, sizeof *sorted, err));
    for (uint64_t i = 0; i < h->n_tensors; i++)
        sorted[i] = &h->tensors[i];
    qsort(sorted, h->n_tensors, sizeof *sorted, order_offsets);
    drey_status status = DREY_OK;
    for (uint64_t i = 1; i < h->n_tensors && status == DREY_OK; i++)
        if (sorted[i]->offset - sorted[i - 1]->offset < sorted[i - 1]->n_bytes)
            status = error_set(err, DREY_ERR_FORMAT, "%s: the tensors %s and %s overlap; " DAMAGED,
                               h->source.shown, sorted[i - 1]->name, sorted[i]->name);
    free(sorted);
    return status;
}

static drey_status parse_tensors(header *h, drey_error *err)
{
    uint64_t alignment;
    TRY(parse_alignment(h, &alignment, err));
    TRY(take_memory(h, (void **)&h->tensors, h->n_tensors, sizeof *h->tensors, err));
    for (uint64_t i = 0; i < h->n_tensors; i++)
        TRY(parse_tensor(h, &h->tensors[i], err));
    uint64_t data_start = (h->source.at + alignment - 1) / alignment * alignment;
    for (uint64_t i = 0; i < h->n_tensors; i++)
        TRY(place_tensor(h, &h->tensors[i], data_start, alignment, err));
    return check_overlap(h, err);
}

drey_status header_parse(header *h, drey_error *err)
{
    TRY(parse_version(h, err));
    TRY(parse_counts(h, err));
    TRY(parse_keys(h, err));
    size_t keys_end = h->source.at;
    TRY(parse_tensors(h, err));
    source_finish(&h->source, keys_end); /* the tensors' names are copies */
    return DREY_OK;
}

void header_free(header *h)
{
    if (h->source.base)
        source_close(&h->source);
    free(h->keys);
    free(h->by_name);
    free(h->tensors);
    *h = (header){0};
}
