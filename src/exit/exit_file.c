/* The side file of predictors: GGUF of architecture "drey-exit", matched with its target by
 * model_identity, like a draft. Tensors have the predictors of layers [first, n_layers) one after
 * another:
 *
 *   w1 [n][K][H]   b1 [n][H]   w2 [n][H]   b2 [n]      n = n_layers - first, all F32
 *
 * The file is small and read as a whole, once. Nothing in it is trusted: each number is checked
 * against its bounds, and the tensors' hash detects damage. */
#include "exit/exit_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hash.h"
#include "gguf/gguf.h"
#include "common/new_file.h"
#include "gguf/new_gguf.h"
#include "gguf/types.h"
#include "os/file.h"
#include "weights/identity.h"

#define ARCHITECTURE "drey-exit"
#define KEY(name)    ARCHITECTURE "." name
#define AGAIN        "have predictors trained for this model again, or continue without them"

enum { VERSION = 2, N_TENSORS = 4, MOST_BYTES = 32 << 20 };

static const char *const tensor_names[N_TENSORS] = {"w1", "b1", "w2", "b2"};

/* Dims of the file's tensors, the row length first. */
typedef struct tensor_shape {
    int64_t dims[3];
    uint32_t n_dims;
    size_t n_bytes;
} tensor_shape;

static void shapes_of(const exit_predictors *p, tensor_shape shape[N_TENSORS])
{
    int64_t n = p->n_layers - p->first, hidden = p->n_hidden, features = p->n_features;
    shape[0] = (tensor_shape){{hidden, features, n}, 3, 0};
    shape[1] = (tensor_shape){{hidden, n, 1}, 2, 0};
    shape[2] = (tensor_shape){{hidden, n, 1}, 2, 0};
    shape[3] = (tensor_shape){{n, 1, 1}, 1, 0};
    for (int i = 0; i < N_TENSORS; i++)
        shape[i].n_bytes =
            (size_t)(shape[i].dims[0] * shape[i].dims[1] * shape[i].dims[2]) * sizeof(float);
}

/* ---- In memory ---- */

static size_t weights_bytes(const exit_predictors *p)
{
    tensor_shape shape[N_TENSORS];
    size_t total = 0;
    shapes_of(p, shape);
    for (int i = 0; i < N_TENSORS; i++)
        total += arena_size(shape[i].n_bytes);
    return total;
}

drey_status exit_take(exit_predictors *p, float *numbers[4], drey_error *err)
{
    tensor_shape shape[N_TENSORS];
    shapes_of(p, shape);
    TRY(arena_init(&p->memory, weights_bytes(p), false, err));
    for (int i = 0; i < N_TENSORS; i++)
        numbers[i] = arena_take(&p->memory, shape[i].n_bytes);
    return arena_check(&p->memory, err);
}

void exit_point(exit_predictors *p, float *const numbers[4])
{
    for (int32_t layer = p->first; layer < p->n_layers; layer++) {
        int64_t i = layer - p->first;
        p->mlp[layer] = (exit_mlp){.w1 = numbers[0] + i * p->n_features * p->n_hidden,
                                   .b1 = numbers[1] + i * p->n_hidden,
                                   .w2 = numbers[2] + i * p->n_hidden,
                                   .b2 = numbers[3][i]};
    }
}

void exit_close(exit_predictors *p)
{
    arena_free(&p->memory);
    *p = (exit_predictors){0};
}

size_t exit_memory_bytes(const exit_predictors *p)
{
    return p->memory.size_bytes;
}

/* ---- Reading ---- */

static drey_status refuse(const char *path, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT, "%s is damaged; " AGAIN, SHOWN_PATH(path));
}

static bool read_u64(const gguf *g, const char *name, uint64_t *out)
{
    const gguf_key *key = gguf_find_key(g, name);
    *out = 0;
    for (int i = 7; i >= 0 && key && key->kind == GGUF_U64; i--)
        *out = *out << 8 | key->value[i];
    return key && key->kind == GGUF_U64;
}

static bool key_is(const gguf *g, const char *name, uint64_t want)
{
    uint64_t value;
    return read_u64(g, name, &value) && value == want;
}

/* Checks that it is a file of predictors for this model. */
static drey_status check_owner(const gguf *g, uint64_t target, const char *path, drey_error *err)
{
    char name[96];
    if (!gguf_is_text(gguf_text(g, "general.architecture"), ARCHITECTURE))
        FAIL(err, DREY_ERR_FORMAT, "%s holds no predictors of early exits; name a file that does",
             SHOWN_PATH(path));
    if (gguf_int(g, KEY("version"), 0) != VERSION)
        FAIL(err, DREY_ERR_MISMATCH, "%s was written by another version of drey; " AGAIN,
             SHOWN_PATH(path));
    if (key_is(g, KEY("target_identity"), target))
        return DREY_OK;
    gguf_string other = gguf_text(g, KEY("target_name"));
    FAIL(err, DREY_ERR_MISMATCH, "%s holds predictors for another model (%s); " AGAIN,
         SHOWN_PATH(path),
         gguf_printable(name, sizeof name, other.text ? other.text : "without a name",
                        other.text ? other.n_bytes : strlen("without a name")));
}

static bool read_int(const gguf *g, const char *name, int64_t low, int64_t high, int32_t *out)
{
    const gguf_key *key = gguf_find_key(g, name);
    int64_t value = key && gguf_is_int(key->kind) ? gguf_item_int(key, 0) : low - 1;
    *out = (int32_t)value;
    return value >= low && value <= high;
}

static bool read_source(const gguf *g, exit_predictors *p)
{
    gguf_string text = gguf_text(g, KEY("candidates"));
    for (int i = 0; exit_source_name((drey_exit_source)i); i++)
        if (gguf_is_text(text, exit_source_name((drey_exit_source)i))) {
            p->source = (drey_exit_source)i;
            bool own = p->source == DREY_EXIT_FROM_TARGET;
            return read_int(g, KEY("source_layer"), own, own ? p->first : 0, &p->source_layer);
        }
    return false;
}

static void read_name(const gguf *g, const char *key, char *out, size_t size)
{
    gguf_string text = gguf_text(g, key);
    if (text.text)
        gguf_printable(out, size, text.text, text.n_bytes);
}

static bool read_numbers(const gguf *g, exit_predictors *p)
{
    if (!read_int(g, KEY("layers"), 2, EXIT_LAYERS, &p->n_layers) ||
        !read_int(g, KEY("first"), 1, p->n_layers - 1, &p->first) ||
        !read_int(g, KEY("features"), 2, EXIT_FEATURES, &p->n_features) ||
        !read_int(g, KEY("hidden"), 1, EXIT_HIDDEN, &p->n_hidden))
        return false;
    if (!read_source(g, p))
        return false;
    p->threshold = (float)gguf_number(g, KEY("threshold"), -1);
    read_name(g, KEY("drafter"), p->drafter, sizeof p->drafter);
    read_name(g, KEY("drafter_file"), p->drafter_file, sizeof p->drafter_file);
    return read_u64(g, KEY("drafter_identity"), &p->drafter_identity) &&
           (p->n_features == 12 || p->n_features == 16) && p->threshold >= 0 && p->threshold <= 1;
}

static bool read_layers(const gguf *g, exit_predictors *p)
{
    const gguf_key *offline = gguf_find_key(g, KEY("offline")),
                   *expected = gguf_find_key(g, KEY("expected"));
    uint64_t n = (uint64_t)p->n_layers + 1;
    double sum = 0;
    if (!offline || offline->kind != GGUF_ARRAY || offline->item_kind != GGUF_BOOL ||
        offline->n_items != n || !expected || expected->kind != GGUF_ARRAY ||
        expected->item_kind != GGUF_F32 || expected->n_items != n)
        return false;
    for (uint64_t layer = 0; layer < n; layer++) {
        double share = gguf_item_number(expected, layer);
        p->offline[layer] = offline->value[layer] != 0;
        p->expected[layer] = (float)share;
        if (!(share >= 0 && share <= 1))
            return false;
        sum += share;
    }
    return fabs(sum - 1) < 1e-3;
}

/* Copies the tensors to the arena and points the predictors at them. */
static drey_status read_tensors(const gguf *g, exit_predictors *p, const uint8_t *bytes,
                                const char *path, drey_error *err)
{
    tensor_shape shape[N_TENSORS];
    float *numbers[N_TENSORS];
    hash64 h;
    hash64_init(&h);
    shapes_of(p, shape);
    for (int i = 0; i < N_TENSORS; i++) {
        const gguf_tensor *t = gguf_find_tensor(g, tensor_names[i]);
        if (!t || t->type != TYPE_F32 || t->dims[3] != 1 || t->n_bytes != shape[i].n_bytes ||
            memcmp(t->dims, shape[i].dims, sizeof shape[i].dims) != 0)
            return refuse(path, err);
        hash64_add(&h, bytes + t->offset, shape[i].n_bytes);
    }
    if (!key_is(g, KEY("data_hash"), hash64_get(&h)))
        return refuse(path, err);
    TRY(exit_take(p, numbers, err));
    for (int i = 0; i < N_TENSORS; i++) {
        memcpy(numbers[i], bytes + gguf_find_tensor(g, tensor_names[i])->offset, shape[i].n_bytes);
        for (size_t j = 0; j < shape[i].n_bytes / sizeof(float); j++)
            if (!isfinite(numbers[i][j]))
                return refuse(path, err);
    }
    exit_point(p, numbers);
    return DREY_OK;
}

drey_status exit_parse(exit_predictors *p, const uint8_t *bytes, size_t n_bytes, uint64_t target,
                       const char *path, drey_error *err)
{
    gguf *g = NULL;
    *p = (exit_predictors){0};
    if (n_bytes < 4 || memcmp(bytes, "GGUF", 4) != 0)
        FAIL(err, DREY_ERR_FORMAT, "%s holds no predictors of early exits; name a file that does",
             SHOWN_PATH(path));
    drey_status status = gguf_parse(&g, bytes, n_bytes, n_bytes, NULL);
    if (status != DREY_OK)
        return status == DREY_ERR_MEMORY
                   ? error_set(err, status, "no memory to read %s", SHOWN_PATH(path))
                   : refuse(path, err);
    status = check_owner(g, target, path, err);
    if (status == DREY_OK && !(read_numbers(g, p) && read_layers(g, p)))
        status = refuse(path, err);
    if (status == DREY_OK)
        status = read_tensors(g, p, bytes, path, err);
    if (status != DREY_OK)
        exit_close(p);
    gguf_close(&g);
    return status;
}

drey_status exit_open(exit_predictors *p, const char *path, const gguf *target, drey_error *err)
{
    uint64_t identity;
    file f = {.fd = -1};
    uint8_t *bytes = NULL;
    *p = (exit_predictors){0};
    TRY(model_identity(target, &identity, err));
    TRY(file_open(&f, path, false, err));
    drey_status status = DREY_OK;
    if (f.n_bytes > MOST_BYTES)
        status = error_set(err, DREY_ERR_FORMAT,
                           "%s holds no predictors of early exits; name a file that does",
                           SHOWN_PATH(path));
    if (status == DREY_OK && !(bytes = malloc((size_t)f.n_bytes + 1)))
        status = error_set(err, DREY_ERR_MEMORY, "no memory to read %s", SHOWN_PATH(path));
    if (status == DREY_OK)
        status = file_read(&f, path, 0, (size_t)f.n_bytes, bytes, NULL, 0, err);
    if (status == DREY_OK)
        status = exit_parse(p, bytes, (size_t)f.n_bytes, identity, path, err);
    file_close(&f);
    free(bytes);
    return status;
}

/* ---- Writing ---- */

static void put_keys(new_gguf *g, const exit_predictors *p, uint64_t identity, const char *name)
{
    uint64_t n = (uint64_t)p->n_layers + 1;
    new_gguf_u32(g, KEY("version"), VERSION);
    new_gguf_u64(g, KEY("target_identity"), identity);
    new_gguf_text(g, KEY("target_name"), name);
    new_gguf_text(g, KEY("candidates"), exit_source_name(p->source));
    new_gguf_u32(g, KEY("source_layer"), (uint32_t)p->source_layer);
    new_gguf_text(g, KEY("drafter"), p->drafter);
    new_gguf_text(g, KEY("drafter_file"), p->drafter_file);
    new_gguf_u64(g, KEY("drafter_identity"), p->drafter_identity);
    new_gguf_u32(g, KEY("layers"), (uint32_t)p->n_layers);
    new_gguf_u32(g, KEY("first"), (uint32_t)p->first);
    new_gguf_u32(g, KEY("features"), (uint32_t)p->n_features);
    new_gguf_u32(g, KEY("hidden"), (uint32_t)p->n_hidden);
    new_gguf_f32(g, KEY("threshold"), p->threshold);
    new_gguf_bools(g, KEY("offline"), p->offline, n);
    new_gguf_f32s(g, KEY("expected"), p->expected, n);
}

drey_status exit_write_as(const exit_predictors *p, const char *path, uint64_t identity,
                          const char *name, drey_error *err)
{
    tensor_shape shape[N_TENSORS];
    const exit_mlp *first = &p->mlp[p->first];
    float b2[EXIT_LAYERS];
    new_gguf g;
    for (int32_t layer = p->first; layer < p->n_layers; layer++)
        b2[layer - p->first] = p->mlp[layer].b2;
    const float *numbers[N_TENSORS] = {first->w1, first->b1, first->w2, b2};
    shapes_of(p, shape);
    new_gguf_begin(&g, ARCHITECTURE);
    put_keys(&g, p, identity, name);
    for (int i = 0; i < N_TENSORS; i++)
        new_gguf_tensor(&g, tensor_names[i], TYPE_F32, shape[i].dims, shape[i].n_dims, numbers[i],
                        shape[i].n_bytes);
    new_gguf_u64(&g, KEY("data_hash"), new_gguf_data_hash(&g));
    drey_status status = new_gguf_save(&g, path, err);
    new_gguf_free(&g);
    return status;
}

drey_status exit_write(const exit_predictors *p, const char *path, const gguf *target,
                       drey_error *err)
{
    uint64_t identity;
    char name[96] = "";
    gguf_string text = gguf_text(target, "general.name");
    if (text.text)
        gguf_printable(name, sizeof name, text.text, text.n_bytes);
    TRY(model_identity(target, &identity, err));
    return exit_write_as(p, path, identity, name, err);
}

drey_status exit_check_place(const char *path, drey_error *err)
{
    struct stat about;
    gguf *g = NULL;
    if (stat(path, &about) == 0 && about.st_size > 0) {
        bool ours = gguf_open(&g, path, NULL) == DREY_OK &&
                    gguf_is_text(gguf_text(g, "general.architecture"), ARCHITECTURE);
        gguf_close(&g);
        if (!ours)
            FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT,
                      "%s is there and holds no predictors; name another file", SHOWN_PATH(path));
    }
    return new_file_check(path, err);
}
