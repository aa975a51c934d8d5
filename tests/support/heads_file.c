#include "support/heads_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/arch.h"
#include "support/rng.h"
#include "support/toy.h"
#include "weights/identity.h"

void heads_file_init(heads_file *h, const gguf *target, const model_shape *shape)
{
    drey_error err = {0};
    *h = (heads_file){
        .architecture = MEDUSA_ARCHITECTURE,
        .version = MEDUSA_VERSION,
        .shape = {.n_heads = 2, .n_embd = shape->n_embd, .n_ids = shape->n_vocab, .scale = 1},
        .type = TYPE_F32,
        .spread = 0.02f,
        .seed = 5};
    for (int32_t i = 0; i < MEDUSA_MAX_HEADS * MEDUSA_RANKS; i++)
        h->shape.accuracy[i / MEDUSA_RANKS][i % MEDUSA_RANKS] =
            0.5f / (float)(1 + i % MEDUSA_RANKS);
    if (model_identity(target, &h->target, &err) != DREY_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

static void put_weights(gguf_writer *w, const heads_file *h, int64_t n, uint64_t seed)
{
    uint8_t block[34];
    rng r = rng_from(seed);
    for (int64_t i = 0; i < n && h->type == TYPE_F32; i++) {
        float x = h->spread * (float)rng_normal(&r);
        writer_put(w, &x, sizeof x);
    }
    for (int64_t i = 0; i < n / 32 && h->type == TYPE_Q8_0; i++) {
        toy_blocks(block, TYPE_Q8_0, 1, h->spread, seed + (uint64_t)i);
        writer_put(w, block, sizeof block);
    }
}

/* Builds the file in memory; the caller frees the writer. */
static void heads_file_build(gguf_writer *w, const heads_file *h)
{
    const medusa_shape *s = &h->shape;
    int64_t d = s->n_embd, rows = s->n_heads * d, dims[] = {2 * d, d};
    int64_t block = h->type == TYPE_F32 ? 2 * d * d * 4 : 2 * d * d / 32 * 34;
    int64_t bytes = (block + 31) / 32 * 32;
    writer_begin(w, (uint64_t)s->n_heads + 1, 8);
    writer_key_text(w, "general.architecture", h->architecture);
    writer_key_u32(w, "drey-medusa.version", h->version);
    writer_key(w, "drey-medusa.target", GGUF_U64);
    writer_u64(w, h->target);
    writer_key_u32(w, "drey-medusa.head_count", (uint32_t)s->n_heads);
    writer_key_u32(w, "drey-medusa.embedding_length", (uint32_t)s->n_embd);
    writer_key_array(w, "drey-medusa.tokens", GGUF_U32, (uint64_t)s->n_ids);
    for (int32_t i = 0; i < s->n_ids; i++)
        writer_u32(w, (uint32_t)(h->ids ? h->ids[i] : i));
    writer_key_f32(w, "drey-medusa.scale", s->scale);
    writer_key_array(w, "drey-medusa.accuracy", GGUF_F32, (uint64_t)s->n_heads * MEDUSA_RANKS);
    for (int32_t i = 0; i < s->n_heads; i++)
        writer_put(w, s->accuracy[i], sizeof s->accuracy[i]);
    for (int32_t k = 0; k < s->n_heads; k++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d.weight", k);
        writer_tensor(w, name, h->type, dims, 2, (uint64_t)(k * bytes));
    }
    writer_tensor(w, "blocks.bias", TYPE_F32, &rows, 1, (uint64_t)(s->n_heads * bytes));
    writer_align(w, 32);
    for (int32_t k = 0; k < s->n_heads; k++) {
        put_weights(w, h, 2 * d * d, h->seed + (uint64_t)k * 1000000);
        writer_align(w, 32);
    }
    rng r = rng_from(h->seed + 1);
    for (int64_t i = 0; i < rows; i++) {
        float x = h->spread * (float)rng_normal(&r);
        writer_put(w, &x, sizeof x);
    }
    writer_align(w, 32);
}

void heads_file_write(const char *path, const heads_file *h)
{
    gguf_writer w = {0};
    heads_file_build(&w, h);
    if (!writer_save(&w, path)) {
        fprintf(stderr, "cannot write %s\n", path);
        abort();
    }
    writer_free(&w);
}
