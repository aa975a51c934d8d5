#include "support/drafts/eagle_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rng.h"

enum { MOST_TENSORS = 16, ALIGNMENT = 32 };

typedef struct eagle_tensor {
    const char *name;
    uint32_t type;
    int64_t dims[2];
    uint32_t n_dims;
    uint8_t *bytes;
    size_t n_bytes;
} eagle_tensor;

typedef struct eagle_tensors {
    const eagle_file *file;
    eagle_tensor list[MOST_TENSORS];
    int32_t n;
    int64_t n_vocab;
    rng r;
} eagle_tensors;

void eagle_file_init(eagle_file *e, const toy_options *toy, const gguf *target,
                     const model_shape *shape)
{
    const int32_t n = shape->n_layers;
    *e = (eagle_file){.toy = toy,
                      .target = target,
                      .taps = {.n = 3,
                               .layer = {n > 2 ? 1 : 0, n > 2 ? 2 : 1, n},
                               .width = shape->n_embd,
                               .n_ids = shape->n_vocab},
                      .n_embd = shape->n_embd,
                      .n_heads = 4,
                      .n_heads_kv = 2,
                      .head_dim = shape->n_embd / 4,
                      .n_ff = 128,
                      .seed = 7};
}

void eagle_file_init_knowing(eagle_file *e, const toy_options *toy, const gguf *target,
                             const model_shape *shape)
{
    eagle_file_init(e, toy, target, shape);
    e->knows = true;
    e->n_heads_kv = e->n_heads;
}

const char *eagle_toy(int i, toy_options *target)
{
    *target = toy_default();
    target->seed = 200 + (uint64_t)i;
    target->type = TYPE_F32;
    target->architecture = i ? "qwen2" : "llama";
    return i ? "eagle-wide" : "eagle";
}

/* The second: of another width than its target, which is looked at in one place; with an embedding;
 * the residual stream begins with the normed state. */
void eagle_toy_layer(int i, eagle_file *e, const toy_options *toy, const gguf *target,
                     const model_shape *shape)
{
    eagle_file_init(e, toy, target, shape);
    e->taps.n_ids = e->taps.n_ids * 5 / 6;
    if (i == 0)
        return;
    e->taps.n = 1;
    e->taps.layer[0] = shape->n_layers;
    e->taps.normed = e->own_embedding = e->old_name = true;
    e->n_embd = 96;
    e->head_dim = 32;
    e->n_heads_kv = 4;
}

/* The token of a row of its head: a fifth of those below are left out, if n_ids is below V. */
static int32_t eagle_file_id(const eagle_file *e, int32_t row)
{
    return e->first_id + row + row / 5;
}

static eagle_tensor *add(eagle_tensors *t, const char *name, uint32_t type, int64_t k, int64_t rows,
                         size_t n_bytes)
{
    eagle_tensor *to = &t->list[t->n++];
    *to = (eagle_tensor){name, type, {k, rows}, rows > 1 ? 2 : 1, calloc(1, n_bytes), n_bytes};
    if (!to->bytes || t->n > MOST_TENSORS)
        abort();
    return to;
}

static float *add_floats(eagle_tensors *t, const char *name, int64_t k, int64_t rows)
{
    size_t n_bytes = (size_t)(k * rows) * sizeof(float);
    return (float *)(void *)add(t, name, TYPE_F32, k, rows, n_bytes)->bytes;
}

static void add_random(eagle_tensors *t, const char *name, int64_t k, int64_t rows, double gain)
{
    float *out = add_floats(t, name, k, rows);
    for (int64_t i = 0; i < k * rows; i++)
        out[i] = (float)(gain / sqrt((double)k) * rng_normal(&t->r));
}

static void add_norm(eagle_tensors *t, const char *name)
{
    float *out = add_floats(t, name, t->file->n_embd, 1);
    for (int32_t i = 0; i < t->file->n_embd; i++)
        out[i] = t->file->knows ? 1 : 1 + (float)(0.1 * rng_normal(&t->r));
}

/* [d][2 d] or [d][d]: this much of the first half, and of the second. */
static void add_diagonal(eagle_tensors *t, const char *name, int64_t k, float first, float second)
{
    int64_t d = t->file->n_embd;
    float *out = add_floats(t, name, k, d);
    for (int64_t i = 0; i < d; i++) {
        out[i * k + i] = first;
        if (k > d)
            out[i * k + d + i] = second;
    }
}

/* Rows of a matrix of the target, as they are. */
static void copy_rows(eagle_tensors *t, const char *name, const char *from, int64_t rows, bool all)
{
    const gguf_tensor *of = gguf_find_tensor(t->file->target, from);
    size_t row_bytes = of->n_bytes / (size_t)of->dims[1];
    eagle_tensor *to = add(t, name, of->type, of->dims[0], rows, row_bytes * (size_t)rows);
    FILE *f = fopen(gguf_shard_path(t->file->target, of->part), "rb");
    for (int64_t i = 0; f && i < rows; i++) {
        int64_t row = all ? i : eagle_file_id(t->file, (int32_t)i);
        if (fseek(f, (long)(of->offset + (uint64_t)row * row_bytes), SEEK_SET) != 0 ||
            fread(to->bytes + (size_t)i * row_bytes, row_bytes, 1, f) != 1)
            abort();
    }
    if (!f || fclose(f) != 0)
        abort();
}

static void add_d2t(eagle_tensors *t)
{
    const eagle_file *e = t->file;
    int64_t n = e->taps.n_ids;
    int64_t *ids = (int64_t *)(void *)add(t, "d2t", TYPE_I64, n, 1, (size_t)n * 8)->bytes;
    for (int32_t i = 0; i < n; i++)
        ids[i] = eagle_file_id(e, i) - (e->differences ? i : 0);
}

static void add_layer(eagle_tensors *t)
{
    const eagle_file *e = t->file;
    int64_t d = e->n_embd, q = e->n_heads * e->head_dim, kv = e->n_heads_kv * e->head_dim;
    enum { SHARP = 4, SIZE = 8 };
    if (e->knows) {
        add_floats(t, "fc.weight", tapped_numbers(&(model_shape){.taps = e->taps}), d);
        add_diagonal(t, "blk.0.attn_q.weight", 2 * d, SHARP, 0);
        add_diagonal(t, "blk.0.attn_k.weight", 2 * d, SHARP, 0);
        add_diagonal(t, "blk.0.attn_v.weight", 2 * d, SIZE, -SIZE);
        add_diagonal(t, "blk.0.attn_output.weight", d, 1, 0);
    } else {
        add_random(t, "fc.weight", tapped_numbers(&(model_shape){.taps = e->taps}), d, 1);
        add_random(t, "blk.0.attn_q.weight", 2 * d, q, 1.5);
        add_random(t, "blk.0.attn_k.weight", 2 * d, kv, 1.5);
        add_random(t, "blk.0.attn_v.weight", 2 * d, kv, 1);
        add_random(t, "blk.0.attn_output.weight", q, d, 2);
    }
    add_norm(t, "blk.0.attn_norm.weight");
    add_norm(t, e->old_name ? "blk.0.hidden_norm.weight" : "blk.0.attn_norm_2.weight");
    add_norm(t, "blk.0.ffn_norm.weight");
    add_random(t, "blk.0.ffn_gate.weight", d, e->n_ff, 1);
    add_random(t, "blk.0.ffn_up.weight", d, e->n_ff, 1);
    add_random(t, "blk.0.ffn_down.weight", e->n_ff, d, e->knows ? 0 : 2);
}

static const char *last_norm(const eagle_file *e)
{
    const char *usual = "output_norm.weight";
    return gguf_find_tensor(e->target, usual) ? usual : "token_embd_norm.weight";
}

static void add_vocabulary(eagle_tensors *t)
{
    const eagle_file *e = t->file;
    bool cut = e->taps.n_ids < t->n_vocab;
    const char *head =
        gguf_find_tensor(e->target, "output.weight") ? "output.weight" : "token_embd.weight";
    if (e->own_embedding && e->n_embd == e->taps.width)
        copy_rows(t, "token_embd.weight", "token_embd.weight", t->n_vocab, true);
    else if (e->own_embedding)
        add_random(t, "token_embd.weight", e->n_embd, t->n_vocab, 4);
    if (e->knows)
        copy_rows(t, "output.weight", head, e->taps.n_ids, !cut);
    else
        add_random(t, "output.weight", e->n_embd, e->taps.n_ids, 4);
    if (cut)
        add_d2t(t);
    if (e->knows)
        copy_rows(t, "output_norm.weight", last_norm(e), 1, true);
    else
        add_norm(t, "output_norm.weight");
}

static uint64_t put_keys(gguf_writer *w, const eagle_file *e)
{
    writer_key_text(w, "general.architecture", "eagle3");
    writer_key_u32(w, "eagle3.block_count", 1);
    writer_key_u32(w, "eagle3.context_length", 2048);
    writer_key_u32(w, "eagle3.embedding_length", (uint32_t)e->n_embd);
    writer_key_u32(w, "eagle3.feed_forward_length", (uint32_t)e->n_ff);
    writer_key_u32(w, "eagle3.attention.head_count", (uint32_t)e->n_heads);
    writer_key_u32(w, "eagle3.attention.head_count_kv", (uint32_t)e->n_heads_kv);
    writer_key_u32(w, "eagle3.attention.key_length", (uint32_t)e->head_dim);
    writer_key_f32(w, "eagle3.attention.layer_norm_rms_epsilon", 1e-5f);
    writer_key_f32(w, "eagle3.rope.freq_base", 10000);
    writer_key_u32(w, "eagle3.target_hidden_size", (uint32_t)e->taps.width);
    writer_key_bool(w, "eagle3.norm_before_residual", e->taps.normed);
    writer_key_array(w, "eagle3.extract_layers", GGUF_I32, (uint64_t)e->taps.n);
    for (int32_t i = 0; i < e->taps.n; i++)
        writer_u32(w, (uint32_t)e->taps.layer[i]);
    return 13;
}

void eagle_file_write(const char *path, const eagle_file *e)
{
    gguf_writer w = {0}, vocabulary = {0};
    eagle_tensors t = {.file = e, .r = rng_from(e->seed)};
    uint64_t n_keys = toy_vocabulary(&vocabulary, e->toy, &t.n_vocab), offset = 0;
    add_layer(&t);
    add_vocabulary(&t);
    writer_begin(&w, (uint64_t)t.n, 0);
    n_keys += put_keys(&w, e);
    writer_put(&w, vocabulary.bytes, vocabulary.n);
    writer_patch_u64(&w, WRITER_AT_N_KEYS, n_keys);
    for (int32_t i = 0; i < t.n; i++) {
        const eagle_tensor *at = &t.list[i];
        writer_tensor(&w, at->name, at->type, at->dims, at->n_dims, offset);
        offset += (at->n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    writer_align(&w, ALIGNMENT);
    for (int32_t i = 0; i < t.n; i++) {
        writer_put(&w, t.list[i].bytes, t.list[i].n_bytes);
        writer_align(&w, ALIGNMENT);
        free(t.list[i].bytes);
    }
    if (!writer_save(&w, path)) {
        fprintf(stderr, "cannot write %s\n", path);
        abort();
    }
    writer_free(&w);
    writer_free(&vocabulary);
}
