/* Reading a header: see safetensors.h. */
#include "convert/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_value.h"

#define BROKEN "; fetch the file again"

/* ---- One tensor ---- */

static drey_status read_type(safetensor *t, const json_value *about, size_t *bytes, drey_error *err)
{
    static const struct {
        const char *name;
        number_type type;
        size_t bytes;
    } types[] = {
        {"F32", NUMBER_F32, 4},    {"F16", NUMBER_F16, 2},       {"BF16", NUMBER_BF16, 2},
        {"F64", NUMBER_OTHER, 8},  {"I64", NUMBER_OTHER, 8},     {"U64", NUMBER_OTHER, 8},
        {"I32", NUMBER_OTHER, 4},  {"U32", NUMBER_OTHER, 4},     {"I16", NUMBER_OTHER, 2},
        {"U16", NUMBER_OTHER, 2},  {"I8", NUMBER_OTHER, 1},      {"U8", NUMBER_OTHER, 1},
        {"BOOL", NUMBER_OTHER, 1}, {"F8_E4M3", NUMBER_OTHER, 1}, {"F8_E5M2", NUMBER_OTHER, 1}};
    const char *name = json_member_text(about, "dtype");
    if (!name)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s has no dtype" BROKEN, t->name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            t->type = types[i].type;
            *bytes = types[i].bytes;
            strcpy(t->type_name, name);
            return DREY_OK;
        }
    FAIL(err, DREY_ERR_FORMAT,
         "tensor %s has a dtype that drey does not know: fetch the model in "
         "F32, F16 or BF16",
         t->name);
}

/* A number that is no more than `most`; false: it is none. */
static bool read_size(const json_value *v, uint64_t most, uint64_t *out)
{
    if (v->type != JSON_NUMBER || !v->is_integer || v->integer < 0 || (uint64_t)v->integer > most)
        return false;
    *out = (uint64_t)v->integer;
    return true;
}

/* *n_bytes: what numbers of so many bytes take in this shape. */
static drey_status read_shape(safetensor *t, const json_value *about, size_t bytes,
                              uint64_t *n_bytes, drey_error *err)
{
    const json_value *shape = json_member_array(about, "shape");
    if (!shape)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s has no shape" BROKEN, t->name);
    *n_bytes = bytes;
    for (const json_value *v = shape->first; v; v = v->next) {
        uint64_t dim;
        if (t->n_dims == SAFETENSORS_MOST_DIMS || !read_size(v, INT64_MAX, &dim))
            FAIL(err, DREY_ERR_FORMAT, "the shape of tensor %s is none" BROKEN, t->name);
        if (dim == 0 || *n_bytes > (uint64_t)INT64_MAX / dim)
            FAIL(err, DREY_ERR_FORMAT, "the shape of tensor %s is %s" BROKEN, t->name,
                 dim == 0 ? "empty" : "larger than any file");
        t->dims[t->n_dims++] = (int64_t)dim;
        *n_bytes *= dim;
    }
    return DREY_OK;
}

static drey_status read_tensor(safetensor *t, const json_value *about, uint64_t data,
                               uint64_t data_bytes, drey_error *err)
{
    uint64_t begin = 0, end = 0, n_bytes = 0;
    size_t bytes = 0;
    if (about->type != JSON_OBJECT)
        FAIL(err, DREY_ERR_FORMAT, "what the header says of %s is no object" BROKEN, t->name);
    TRY(read_type(t, about, &bytes, err));
    TRY(read_shape(t, about, bytes, &n_bytes, err));
    const json_value *offsets = json_member_array(about, "data_offsets");
    if (!offsets || offsets->n != 2 || !read_size(offsets->first, INT64_MAX, &begin) ||
        !read_size(offsets->first->next, INT64_MAX, &end) || begin > end)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s has no data_offsets" BROKEN, t->name);
    if (end > data_bytes)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s ends after the file" BROKEN, t->name);
    if (end - begin != n_bytes)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s has %llu bytes, and its shape %llu" BROKEN, t->name,
             (unsigned long long)(end - begin), (unsigned long long)n_bytes);
    t->offset = data + begin;
    t->n_bytes = n_bytes;
    return DREY_OK;
}

/* ---- All ---- */

static bool is_printable(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return n > 0 && n < SAFETENSORS_MOST_NAME;
}

static bool is_metadata(const json_value *v)
{
    return strcmp(v->key, "__metadata__") == 0;
}

static drey_status read_all(safetensors *s, const json_value *root, uint64_t data,
                            uint64_t data_bytes, drey_error *err)
{
    char *name = s->names;
    for (const json_value *v = root->first; v; v = v->next) {
        if (is_metadata(v))
            continue;
        if (!is_printable(v->key, v->n_key))
            FAIL(err, DREY_ERR_FORMAT, "tensor %llu has a name that is none" BROKEN,
                 (unsigned long long)s->n);
        safetensor *t = &s->tensors[s->n++];
        t->name = memcpy(name, v->key, v->n_key + 1);
        name += v->n_key + 1;
        TRY(read_tensor(t, v, data, data_bytes, err));
    }
    return DREY_OK;
}

static int by_offset(const void *a, const void *b)
{
    const safetensor *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const safetensor *)a)->name, ((const safetensor *)b)->name);
}

/* One tensor follows the other, up to the file's end; no two have the same name. */
static drey_status check_order(safetensors *s, uint64_t data, uint64_t file_bytes, drey_error *err)
{
    qsort(s->tensors, s->n, sizeof *s->tensors, by_offset);
    uint64_t end = data;
    for (uint64_t i = 0; i < s->n; i++) {
        const safetensor *t = &s->tensors[i];
        if (t->offset != end)
            FAIL(err, DREY_ERR_FORMAT, "tensor %s %s" BROKEN, t->name,
                 t->offset < end ? "overlaps another one"
                                 : "comes after bytes that are no tensor's");
        end += t->n_bytes;
    }
    if (end != file_bytes)
        FAIL(err, DREY_ERR_FORMAT, "the file does not end with its last tensor" BROKEN);
    qsort(s->tensors, s->n, sizeof *s->tensors, by_name);
    for (uint64_t i = 1; i < s->n; i++)
        if (strcmp(s->tensors[i - 1].name, s->tensors[i].name) == 0)
            FAIL(err, DREY_ERR_FORMAT, "tensor %s is there twice" BROKEN, s->tensors[i].name);
    return DREY_OK;
}

static drey_status parse_root(safetensors *s, const json_value *root, size_t n_header,
                              uint64_t file_bytes, drey_error *err)
{
    size_t n_names = 0, n = 0;
    uint64_t data = 8 + (uint64_t)n_header;
    for (const json_value *v = root->first; v; v = v->next, n++)
        n_names += v->n_key + 1;
    s->tensors = calloc(n + 1, sizeof *s->tensors);
    s->names = malloc(n_names + 1);
    if (!s->tensors || !s->names)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a list of %zu tensors", n);
    TRY(read_all(s, root, data, file_bytes - data, err));
    return check_order(s, data, file_bytes, err);
}

drey_status safetensors_parse(safetensors *s, const char *json, size_t n, uint64_t file_bytes,
                              drey_error *err)
{
    *s = (safetensors){0};
    json_document d;
    if (n > SAFETENSORS_MOST_HEADER || file_bytes < 8 || n > file_bytes - 8)
        FAIL(err, DREY_ERR_FORMAT, "the header is longer than the file, or than any header" BROKEN);
    const json_value *root = n > 0 ? json_load(&d, json, n) : NULL;
    if (!root)
        FAIL(err, DREY_ERR_FORMAT, "the header is no JSON, or too deep" BROKEN);
    drey_status status = root->type == JSON_OBJECT
                             ? parse_root(s, root, n, file_bytes, err)
                             : error_set(err, DREY_ERR_FORMAT, "the header is no object" BROKEN);
    json_free(&d);
    if (status != DREY_OK)
        safetensors_free(s);
    return status;
}

void safetensors_free(safetensors *s)
{
    free(s->tensors);
    free(s->names);
    *s = (safetensors){0};
}

safetensor *safetensors_find(const safetensors *s, const char *name)
{
    const safetensor key = {.name = (char *)(uintptr_t)name};
    return s->n ? bsearch(&key, s->tensors, s->n, sizeof *s->tensors, by_name) : NULL;
}

void safetensors_rename(safetensors *s, const char *part)
{
    const size_t n = strlen(part);
    for (uint64_t i = 0; i < s->n; i++) {
        char *at = strstr(s->tensors[i].name, part);
        if (at)
            memmove(at, at + n, strlen(at + n) + 1);
    }
    qsort(s->tensors, s->n, sizeof *s->tensors, by_name);
}
