/* drey_train_eagle: what is trained, and the file. See drey/train.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "draft/eagle_drafter.h"
#include "engine/config.h"
#include "gguf/gguf.h"
#include "gguf/new_gguf.h"
#include "model/arch.h"
#include "model/layout.h"
#include "os/file.h"
#include "train/draft_training.h"
#include "train/eagle_trainer.h"
#include "train/encode.h"

enum {
    N_WINDOWS = 8,
    N_WINDOW = 64,
    WIDTHS_OF_FFN = 4 /* the most widths of the model in the feed-forward part */
};
static const float soft = 0.7f, pull = 4;
static const float rope_base = 10000;

typedef struct eagle_run {
    draft_training base;
    eagle_training about; /* without texts and rows until they are there */
    eagle_trainer trainer;
    uint16_t *embeddings; /* embeddings of the slice's tokens; base.head_rows where tied */
    float *final_norm;
} eagle_run;

static eagle_run *run_of(draft_training *t)
{
    return (eagle_run *)t;
}

static bool may_replace(const char *path)
{
    gguf *g;
    bool own = false;
    if (gguf_open(&g, path, NULL) == DREY_OK) {
        own = gguf_find_key(g, EAGLE_TARGET_KEY) != NULL;
        gguf_close(&g);
    }
    return own;
}

static drey_status resolve_options(draft_training *t, drey_error *err)
{
    const model_shape *s = &t->target->shape;
    const attention_shape *a = &s->attention[0];
    if (s->arch->layer_norm || s->taps.n || s->streams.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a layer after a model of the architecture %s cannot be trained; train heads instead",
             s->arch->name);
    t->shape = DREY_EAGLE_PASSES;
    run_of(t)->about =
        (eagle_training){.n_embd = s->n_embd,
                         .n_heads = a->n_heads,
                         .n_heads_kv = a->n_heads_kv,
                         .head_dim = a->head_dim,
                         .n_ff = min_i32(s->layer[0].n_ff, WIDTHS_OF_FFN * s->n_embd),
                         .norm_eps = s->norm_eps,
                         .rope_base = rope_base,
                         .n_ids = t->n_ids,
                         .kernels = t->kernels,
                         .n_windows = N_WINDOWS,
                         .n_window = N_WINDOW,
                         .n_passes = DREY_EAGLE_PASSES,
                         .rate = t->rate,
                         .soft = soft,
                         .pull = pull,
                         .seed = t->o->seed};
    return DREY_OK;
}

/* ---- Memory ---- */

static bool is_tied(const draft_training *t)
{
    return gguf_find_tensor(t->target->file, "output.weight") == NULL;
}

static int64_t steps_of(const draft_training *t, int64_t n)
{
    return max_i64(n * t->n_epochs / (N_WINDOWS * N_WINDOW), 1);
}

static size_t bytes(const draft_training *t, int64_t n, int32_t n_rows)
{
    const self_texts texts = {.n = n};
    eagle_training about = ((const eagle_run *)t)->about;
    about.texts = &texts;
    about.n_rows = n_rows;
    about.n_steps = steps_of(t, n);
    return (is_tied(t) ? 0 : arena_size(draft_training_row_bytes(t, n_rows))) +
           arena_size((size_t)about.n_embd * sizeof(float)) + eagle_trainer_bytes(&about);
}

/* The file's matrices are at most half as large as they are in training. */
static uint64_t file_bytes(const draft_training *t)
{
    eagle_matrix all[EAGLE_MATRICES];
    const eagle_training *about = &((const eagle_run *)t)->about;
    eagle_matrices(about, all);
    return (uint64_t)(all[EAGLE_MATRICES - 1].at * 2) +
           2 * (uint64_t)draft_training_row_bytes(t, about->n_embd + about->n_ids);
}

/* ---- Training ---- */

static drey_status read_final_norm(const eagle_run *t, drey_error *err)
{
    const gguf *g = t->base.target->file;
    const gguf_tensor *tensor = gguf_find_tensor(g, "output_norm.weight");
    int64_t d = t->about.n_embd;
    if (!tensor)
        tensor = gguf_find_tensor(g, "token_embd_norm.weight"); /* lfm2's name of it */
    if (!tensor || tensor->type != TYPE_F32 || tensor->dims[0] != d || tensor->dims[1] != 1)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's output_norm.weight is not of type F32; convert it again");
    const char *path = gguf_shard_path(g, tensor->part);
    file f;
    TRY(file_open(&f, path, false, err));
    drey_status status =
        file_read(&f, path, tensor->offset, (size_t)d * sizeof(float), t->final_norm, NULL, 0, err);
    file_close(&f);
    return status;
}

static drey_status read_rows(eagle_run *t, drey_error *err)
{
    draft_training *base = &t->base;
    t->embeddings = base->head_rows;
    t->final_norm = arena_take(&base->memory, (size_t)t->about.n_embd * sizeof(float));
    if (!is_tied(base))
        t->embeddings =
            arena_take(&base->memory, draft_training_row_bytes(base, base->slice.n_rows));
    TRY(arena_check(&base->memory, err));
    TRY(read_final_norm(t, err));
    if (!is_tied(base))
        TRY(token_slice_read(&base->slice, base->target->file,
                             gguf_find_tensor(base->target->file, "token_embd.weight"),
                             base->kernels, t->embeddings, err));
    return DREY_OK;
}

static drey_status open_trainer(draft_training *t, drey_error *err)
{
    eagle_training *about = &run_of(t)->about;
    eagle_trainer *m = &run_of(t)->trainer;
    TRY(read_rows(run_of(t), err));
    about->n_rows = t->slice.n_rows;
    about->head_rows = t->head_rows;
    about->embeddings = run_of(t)->embeddings;
    about->final_norm = run_of(t)->final_norm;
    about->texts = &t->data;
    about->pool = t->pool;
    about->n_steps = steps_of(t, t->data.n);
    TRY(eagle_trainer_init(m, about, &t->memory, err));
    t->state = (trained_state){.parameters = m->parameters,
                               .n_parameters = m->n_parameters,
                               .adam = &m->adam,
                               .step = &m->step,
                               .n_steps = about->n_steps,
                               .loss = &m->loss,
                               .n_taught = m->taught.n};
    return DREY_OK;
}

static void begin(draft_training *t)
{
    eagle_trainer_begin(&run_of(t)->trainer);
}

static void step(draft_training *t)
{
    eagle_trainer_step(&run_of(t)->trainer);
}

/* ---- The file ---- */

/* Bytes of the file's tensors that are not the trainer's. */
typedef struct file_parts {
    uint8_t *matrix[EAGLE_MATRICES], *fuse, *head;
    int64_t *ids;
    float *ones;
} file_parts;

static void free_parts(file_parts *p)
{
    for (int i = 0; i < EAGLE_MATRICES; i++)
        free(p->matrix[i]);
    free(p->fuse);
    free(p->head);
    free(p->ids);
    free(p->ones);
}

static uint64_t head_row_bytes(const gguf_tensor *head)
{
    return head->n_bytes / (uint64_t)head->dims[1];
}

/* Rows of the target's head, as they are. */
static drey_status copy_head(const eagle_run *t, uint8_t *out, drey_error *err)
{
    const gguf_tensor *head = model_head_tensor(t->base.target->file);
    const char *path = gguf_shard_path(t->base.target->file, head->part);
    uint64_t n = head_row_bytes(head);
    file f;
    TRY(file_open(&f, path, false, err));
    drey_status status =
        file_check(&f, path, gguf_part_stamp(t->base.target->file, head->part), err);
    for (int32_t i = 0; i < t->about.n_ids && status == DREY_OK; i++)
        status = file_read(&f, path, head->offset + (uint64_t)t->base.slice.id[i] * n, (size_t)n,
                           out + (uint64_t)i * n, NULL, 0, err);
    file_close(&f);
    return status;
}

/* The identity, in halves. */
static void fill_identity(uint16_t *out, int64_t d)
{
    memset(out, 0, (size_t)(d * d) * sizeof *out);
    for (int64_t i = 0; i < d; i++)
        out[i * d + i] = 0x3c00;
}

static drey_status make_parts(eagle_run *t, file_parts *p, drey_error *err)
{
    const gguf_tensor *head = model_head_tensor(t->base.target->file);
    const int64_t d = t->about.n_embd, n = t->about.n_ids;
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&t->about, all);
    p->fuse = malloc((size_t)(d * d) * sizeof(uint16_t));
    p->head = malloc((size_t)(head_row_bytes(head) * (uint64_t)n));
    p->ids = malloc((size_t)n * sizeof *p->ids);
    p->ones = malloc((size_t)d * sizeof *p->ones);
    bool there = p->fuse && p->head && p->ids && p->ones;
    for (int i = 0; i < EAGLE_MATRICES; i++) {
        int64_t bytes = type_row_bytes(type_find(encode_type(all[i].k)), all[i].k);
        p->matrix[i] = malloc((size_t)(all[i].rows * bytes));
        there = there && p->matrix[i];
        for (int64_t row = 0; p->matrix[i] && row < all[i].rows; row++)
            encode_row(encode_type(all[i].k), p->matrix[i] + row * bytes,
                       t->trainer.parameters + all[i].at + row * all[i].k, all[i].k);
    }
    if (!there)
        FAIL(err, DREY_ERR_MEMORY, "no memory to write the layer");
    fill_identity((uint16_t *)(void *)p->fuse, d);
    for (int64_t i = 0; i < d; i++)
        p->ones[i] = 1;
    for (int64_t i = 0; i < n; i++)
        p->ids[i] = t->base.slice.id[i];
    return copy_head(t, p->head, err);
}

static void put_keys(const eagle_run *t, new_gguf *g)
{
    const eagle_training *a = &t->about;
    const gguf *target = t->base.target->file;
    const uint32_t tap = (uint32_t)t->base.target->shape.n_layers;
    new_gguf_begin(g, "eagle3");
    new_gguf_u64(g, EAGLE_TARGET_KEY, t->base.identity);
    new_gguf_text(g, "drey.target_name", t->base.target->name);
    new_gguf_u32(g, "eagle3.block_count", 1);
    new_gguf_u32(g, "eagle3.context_length", (uint32_t)t->base.target->shape.n_context_train);
    new_gguf_u32(g, "eagle3.embedding_length", (uint32_t)a->n_embd);
    new_gguf_u32(g, "eagle3.feed_forward_length", (uint32_t)a->n_ff);
    new_gguf_u32(g, "eagle3.attention.head_count", (uint32_t)a->n_heads);
    new_gguf_u32(g, "eagle3.attention.head_count_kv", (uint32_t)a->n_heads_kv);
    new_gguf_u32(g, "eagle3.attention.key_length", (uint32_t)a->head_dim);
    new_gguf_u32(g, "eagle3.attention.value_length", (uint32_t)a->head_dim);
    new_gguf_f32(g, "eagle3.attention.layer_norm_rms_epsilon", a->norm_eps);
    new_gguf_f32(g, "eagle3.rope.freq_base", a->rope_base);
    new_gguf_u32(g, "eagle3.target_hidden_size", (uint32_t)a->n_embd);
    new_gguf_bool(g, "eagle3.norm_before_residual", true);
    new_gguf_u32s(g, "eagle3.extract_layers", &tap, 1);
    for (uint64_t i = 0; i < gguf_n_keys(target); i++) {
        const gguf_key *key = gguf_key_at(target, i);
        if (key->name.n_bytes > 10 && memcmp(key->name.text, "tokenizer.", 10) == 0)
            new_gguf_copy_key(g, key);
    }
}

static void put_tensors(const eagle_run *t, const file_parts *p, new_gguf *g)
{
    static const char *const names[EAGLE_MATRICES] = {
        "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    static const char *const norms[] = {"blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight",
                                        "blk.0.ffn_norm.weight"};
    const gguf_tensor *head = model_head_tensor(t->base.target->file);
    const int64_t d = t->about.n_embd, n = t->about.n_ids;
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&t->about, all);
    new_gguf_tensor(g, "fc.weight", TYPE_F16, (const int64_t[]){d, d}, 2, p->fuse,
                    (uint64_t)(d * d) * sizeof(uint16_t));
    for (int i = 0; i < EAGLE_MATRICES; i++) {
        char name[64];
        uint32_t type = encode_type(all[i].k);
        snprintf(name, sizeof name, "blk.0.%s.weight", names[i]);
        new_gguf_tensor(g, name, type, (const int64_t[]){all[i].k, all[i].rows}, 2, p->matrix[i],
                        (uint64_t)(all[i].rows * type_row_bytes(type_find(type), all[i].k)));
    }
    for (int i = 0; i < 3; i++)
        new_gguf_tensor(g, norms[i], TYPE_F32, &d, 1, p->ones, (uint64_t)d * sizeof(float));
    new_gguf_tensor(g, "output_norm.weight", TYPE_F32, &d, 1, t->final_norm,
                    (uint64_t)d * sizeof(float));
    new_gguf_tensor(g, "output.weight", head->type, (const int64_t[]){d, n}, 2, p->head,
                    head_row_bytes(head) * (uint64_t)n);
    new_gguf_tensor(g, "d2t", TYPE_I64, &n, 1, p->ids, (uint64_t)n * sizeof(int64_t));
}

static drey_status write_file(draft_training *base, drey_error *err)
{
    eagle_run *t = run_of(base);
    drey_train_draft_report *r = base->report;
    file_parts parts = {.fuse = NULL};
    new_gguf g = {.n_keys = 0};
    drey_status status = make_parts(t, &parts, err);
    if (status == DREY_OK) {
        eagle_trainer_judge(&t->trainer, true, DRAFT_MOST_JUDGED, r->accuracy, r->n_held);
        put_keys(t, &g);
        put_tensors(t, &parts, &g);
        status = new_gguf_save(&g, t->base.output, err);
    }
    new_gguf_free(&g);
    free_parts(&parts);
    return status;
}

static const draft_training_kind layer = {.ending = ".eagle.gguf",
                                          .what = "a layer",
                                          .lacks = "is no layer that drey trained",
                                          .magic = {'d', 'r', 'e', 'y', 'e', 'g', 'l', '1'},
                                          .rate = 0.001f,
                                          .steps_between = 10,
                                          .may_replace = may_replace,
                                          .resolve_options = resolve_options,
                                          .bytes = bytes,
                                          .file_bytes = file_bytes,
                                          .open = open_trainer,
                                          .begin = begin,
                                          .step = step,
                                          .write = write_file};

drey_status drey_train_eagle(const drey_train_draft_options *options,
                             drey_train_draft_report *report, drey_error *err)
{
    eagle_run run = {.base.kind = &layer};
    return draft_training_run(&run.base, options, report, err);
}
