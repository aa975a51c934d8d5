/* A model's file or files as one: opening the parts of a split model, and looking things up.
 *
 * Keys come from the first part. The others are parsed for their tensors, then their headers are
 * freed. Names are found by binary search in sorted pointers: no file can make that slow. */
#include "gguf/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
    char *path;
    uint64_t file_bytes;
    file_stamp stamp; /* when its header was read */
} part;

struct gguf {
    header front; /* header of the first part; its tensors have moved to `tensors` */
    gguf_tensor *tensors;
    const gguf_tensor **by_name; /* [n_tensors], sorted */
    uint64_t n_tensors;
    part *parts;
    int32_t n_parts;
};

/* ---- Opening ---- */

static drey_status refuse_memory(const gguf *g, drey_error *err)
{
    FAIL(err, DREY_ERR_MEMORY, "the system refused memory for the header of %s; free some memory",
         g->front.source.shown);
}

static int order_tensors(const void *a, const void *b)
{
    return strcmp((*(const gguf_tensor *const *)a)->name, (*(const gguf_tensor *const *)b)->name);
}

static drey_status index_tensors(gguf *g, drey_error *err)
{
    g->by_name = calloc(g->n_tensors + 1, sizeof *g->by_name);
    if (!g->by_name)
        return refuse_memory(g, err);
    for (uint64_t i = 0; i < g->n_tensors; i++)
        g->by_name[i] = &g->tensors[i];
    qsort(g->by_name, g->n_tensors, sizeof *g->by_name, order_tensors);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if (strcmp(g->by_name[i - 1]->name, g->by_name[i]->name) == 0)
            FAIL(err, DREY_ERR_FORMAT, "%s has the tensor %s twice; " DAMAGED,
                 g->front.source.shown, g->by_name[i]->name);
    return DREY_OK;
}

/* Appends h's tensors to those of g. */
static drey_status take_tensors(gguf *g, header *h, int32_t number, drey_error *err)
{
    for (uint64_t i = 0; i < h->n_tensors; i++)
        h->tensors[i].part = number;
    if (!g->tensors) {
        g->tensors = h->tensors;
        g->n_tensors = h->n_tensors;
        h->tensors = NULL;
        return DREY_OK;
    }
    uint64_t n = g->n_tensors + h->n_tensors;
    if (n > HEADER_MOST_TENSORS)
        FAIL(err, DREY_ERR_FORMAT, "%s and its other parts have more than %d tensors; " DAMAGED,
             g->front.source.shown, HEADER_MOST_TENSORS);
    /* One more than needed: a size of 0 would free the memory that g still uses. */
    gguf_tensor *grown = realloc(g->tensors, (n + 1) * sizeof *grown);
    if (!grown)
        return refuse_memory(g, err);
    memcpy(grown + g->n_tensors, h->tensors, h->n_tensors * sizeof *grown);
    g->tensors = grown;
    g->n_tensors = n;
    return DREY_OK;
}

/* A split model's parts are called NAME-00001-of-00003.gguf and so on: returns the length of
 * NAME, or 0 when path is not part `number` (from 0) of `count`. */
static size_t split_stem(const char *path, int64_t number, int64_t count)
{
    char suffix[64];
    int n_suffix = snprintf(suffix, sizeof suffix, "-%05lld-of-%05lld.gguf", (long long)number + 1,
                            (long long)count);
    size_t n = strlen(path);
    if (n <= (size_t)n_suffix || strcmp(path + n - n_suffix, suffix) != 0)
        return 0;
    return n - (size_t)n_suffix;
}

static char *part_path(const char *path, size_t n_stem, int64_t number, int64_t count)
{
    size_t capacity = n_stem + 64;
    char *out = malloc(capacity);
    if (out)
        snprintf(out, capacity, "%.*s-%05lld-of-%05lld.gguf", (int)n_stem, path,
                 (long long)number + 1, (long long)count);
    return out;
}

static int64_t header_int(const header *h, const char *name, int64_t fallback)
{
    const gguf_key *key = header_find(h, name);
    return key && gguf_is_int(key->kind) ? gguf_item_int(key, 0) : fallback;
}

static drey_status open_part(gguf *g, int32_t number, drey_error *err)
{
    header h = {0};
    const char *path = g->parts[number].path, *first = g->front.source.shown;
    drey_status status = source_open(&h.source, path, err);
    if (status == DREY_ERR_IO)
        status = error_set(err, DREY_ERR_IO,
                           "%s cannot be opened, and it is part %d of %d of a split model; put all "
                           "parts into one folder",
                           h.source.shown, number + 1, g->n_parts);
    if (status == DREY_OK)
        status = header_parse(&h, err);
    if (status == DREY_OK && (header_int(&h, "split.no", -1) != number ||
                              header_int(&h, "split.count", -1) != g->n_parts))
        status = error_set(err, DREY_ERR_FORMAT,
                           "%s is not part %d of %d of %s, as its name says; fetch it again",
                           h.source.shown, number + 1, g->n_parts, first);
    if (status == DREY_OK) {
        g->parts[number].file_bytes = h.source.file_bytes;
        g->parts[number].stamp = h.source.file.stamp;
        status = take_tensors(g, &h, number, err);
    }
    header_free(&h);
    return status;
}

/* The parts after the first, which is parsed already. */
static drey_status open_parts(gguf *g, const char *path, drey_error *err)
{
    const char *shown = g->front.source.shown;
    int64_t count = header_int(&g->front, "split.count", 1);
    int64_t number = header_int(&g->front, "split.no", 0);
    if (count == 0) /* as llama-gguf-split --merge writes it */
        count = 1;
    if (count < 1 || count > 99999 || number < 0 || number >= count)
        FAIL(err, DREY_ERR_FORMAT, "%s says that it is part %lld of %lld; " DAMAGED, shown,
             (long long)number + 1, (long long)count);
    if (number != 0)
        FAIL(err, DREY_ERR_FORMAT,
             "%s is part %lld of %lld of a split model; name the first part, whose name ends in "
             "-00001-of-%05lld.gguf",
             shown, (long long)number + 1, (long long)count, (long long)count);
    if (count == 1)
        return DREY_OK;
    size_t n_stem = split_stem(path, 0, count);
    if (n_stem == 0)
        FAIL(err, DREY_ERR_FORMAT,
             "%s is the first of %lld parts; name them NAME-00001-of-%05lld.gguf and so on, so "
             "that they find each other",
             shown, (long long)count, (long long)count);
    part *parts = realloc(g->parts, (size_t)count * sizeof *parts);
    if (!parts)
        return refuse_memory(g, err);
    g->parts = parts;
    memset(parts + 1, 0, (size_t)(count - 1) * sizeof *parts);
    g->n_parts = (int32_t)count;
    for (int32_t i = 1; i < g->n_parts; i++) {
        parts[i].path = part_path(path, n_stem, i, count);
        if (!parts[i].path)
            return refuse_memory(g, err);
        TRY(open_part(g, i, err));
    }
    int64_t expected = header_int(&g->front, "split.tensors.count", (int64_t)g->n_tensors);
    if (expected != (int64_t)g->n_tensors)
        FAIL(err, DREY_ERR_FORMAT,
             "%s and its other parts have %llu tensors instead of %lld; "
             "fetch all parts again from one source",
             shown, (unsigned long long)g->n_tensors, (long long)expected);
    return DREY_OK;
}

/* Parses the open source and makes it the first part. path: NULL for a file in memory. */
static drey_status load(gguf *g, const char *path, drey_error *err)
{
    TRY(header_parse(&g->front, err));
    g->parts = calloc(1, sizeof *g->parts);
    if (!g->parts)
        return refuse_memory(g, err);
    g->n_parts = 1;
    g->parts[0].file_bytes = g->front.source.file_bytes;
    g->parts[0].stamp = g->front.source.file.stamp;
    g->parts[0].path = strdup(path ? path : g->front.source.shown);
    if (!g->parts[0].path)
        return refuse_memory(g, err);
    TRY(take_tensors(g, &g->front, 0, err));
    if (path)
        TRY(open_parts(g, path, err));
    return index_tensors(g, err);
}

static drey_status finish(gguf **out, gguf *g, drey_status status)
{
    if (status != DREY_OK)
        gguf_close(&g);
    *out = g;
    return status;
}

static drey_status make(gguf **out, drey_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        FAIL(err, DREY_ERR_MEMORY, "the system refused memory; free some memory");
    return DREY_OK;
}

drey_status gguf_open(gguf **out, const char *path, drey_error *err)
{
    gguf *g;
    *out = NULL;
    TRY(make(&g, err));
    drey_status status = source_open(&g->front.source, path, err);
    if (status == DREY_OK)
        status = load(g, path, err);
    return finish(out, g, status);
}

drey_status gguf_parse(gguf **out, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                       drey_error *err)
{
    gguf *g;
    *out = NULL;
    TRY(make(&g, err));
    drey_status status = source_from_memory(&g->front.source, bytes, n_bytes, file_bytes, err);
    if (status == DREY_OK)
        status = load(g, NULL, err);
    return finish(out, g, status);
}

void gguf_close(gguf **g)
{
    gguf *old = *g;
    if (!old)
        return;
    header_free(&old->front);
    free(old->tensors);
    free(old->by_name);
    for (int32_t i = 0; i < old->n_parts; i++)
        free(old->parts[i].path);
    free(old->parts);
    free(old);
    *g = NULL;
}

/* ---- What is in it ---- */

int32_t gguf_n_shards(const gguf *g)
{
    return g->n_parts;
}

const char *gguf_shard_path(const gguf *g, int32_t number)
{
    return g->parts[number].path;
}

const file_stamp *gguf_part_stamp(const gguf *g, int32_t number)
{
    return &g->parts[number].stamp;
}

uint64_t gguf_file_bytes(const gguf *g)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < g->n_parts; i++)
        sum += g->parts[i].file_bytes;
    return sum;
}

size_t gguf_header_bytes(const gguf *g)
{
    return sizeof *g + g->front.source.capacity +
           g->front.n_keys * (sizeof *g->front.keys + sizeof *g->front.by_name) +
           g->n_tensors * (sizeof *g->tensors + sizeof *g->by_name);
}

uint32_t gguf_version(const gguf *g)
{
    return g->front.version;
}

uint64_t gguf_n_keys(const gguf *g)
{
    return g->front.n_keys;
}

const gguf_key *gguf_key_at(const gguf *g, uint64_t i)
{
    return &g->front.keys[i];
}

uint64_t gguf_n_tensors(const gguf *g)
{
    return g->n_tensors;
}

const gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t i)
{
    return &g->tensors[i];
}

const gguf_key *gguf_find_key(const gguf *g, const char *name)
{
    return header_find(&g->front, name);
}

static int compare_name(const void *name, const void *tensor)
{
    return strcmp(name, (*(const gguf_tensor *const *)tensor)->name);
}

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name)
{
    const gguf_tensor **found =
        bsearch(name, g->by_name, g->n_tensors, sizeof *g->by_name, compare_name);
    return found ? *found : NULL;
}

/* ---- Typed reads of keys ---- */

/* NULL: it is missing, empty or something else. */
static const gguf_key *find_as(const gguf *g, const char *name, gguf_want want)
{
    const gguf_key *key = gguf_find_key(g, name);
    return key && key->n_items > 0 && gguf_key_is(key, want) ? key : NULL;
}

int64_t gguf_int(const gguf *g, const char *name, int64_t fallback)
{
    const gguf_key *key = find_as(g, name, GGUF_WANT_INT);
    return key ? gguf_item_int(key, 0) : fallback;
}

double gguf_number(const gguf *g, const char *name, double fallback)
{
    const gguf_key *key = find_as(g, name, GGUF_WANT_NUMBER);
    return key ? gguf_item_number(key, 0) : fallback;
}

bool gguf_bool(const gguf *g, const char *name, bool fallback)
{
    const gguf_key *key = find_as(g, name, GGUF_WANT_BOOL);
    return key ? gguf_item_int(key, 0) != 0 : fallback;
}

drey_status gguf_check_key(const gguf *g, const char *name, gguf_want want, drey_error *err)
{
    const gguf_key *key = gguf_find_key(g, name);
    return key ? gguf_check_kind(key, want, err) : DREY_OK;
}

gguf_string gguf_text(const gguf *g, const char *name)
{
    const gguf_key *key = gguf_find_key(g, name);
    return key ? gguf_text_of(key) : (gguf_string){0};
}

bool gguf_is_text(gguf_string s, const char *text)
{
    return s.text && s.n_bytes == strlen(text) && memcmp(s.text, text, s.n_bytes) == 0;
}

drey_status gguf_require_int(const gguf *g, const char *name, int64_t low, int64_t high,
                             int64_t *value, drey_error *err)
{
    const gguf_key *key = gguf_find_key(g, name);
    if (!key || key->n_items == 0)
        FAIL(err, DREY_ERR_FORMAT,
             "the key %s is missing; convert the model again or fetch another file of it", name);
    if (!gguf_key_is(key, GGUF_WANT_INT))
        FAIL(err, DREY_ERR_FORMAT,
             "key %s is not a whole number; convert the model again or fetch another file of it",
             name);
    *value = gguf_item_int(key, 0);
    if (*value < low || *value > high)
        FAIL(err, DREY_ERR_FORMAT,
             "key %s is %lld, not in %lld to %lld; convert the model again or fetch another "
             "file of it",
             name, (long long)*value, (long long)low, (long long)high);
    return DREY_OK;
}
