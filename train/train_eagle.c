/* drey_train_eagle: texts, steps, judgement, the file. See drey/train.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/new_file.h"
#include "common/num.h"
#include "common/path.h"
#include "drey/train.h"
#include "gguf/gguf.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/float_mode.h"
#include "os/memory.h"
#include "train/checkpoint.h"
#include "train/eagle_trainer.h"
#include "train/encode.h"
#include "train/prompt_check.h"
#include "train/slice_rows.h"
#include "weights/weights.h"

enum {
    USUAL_IDS = 12288,
    USUAL_POSITIONS = 500000,
    USUAL_EPOCHS = 2,
    N_WINDOWS = 8,
    N_WINDOW = 64,
    WIDTHS_OF_FFN = 4, /* of the feed-forward part at most, in widths of the model */
    MOST_JUDGED = 8192,
    STEPS_BETWEEN = 10 /* looks at the clock */
};
static const float usual_rate = 0.001f, usual_temperature = 0.3f, soft = 0.7f, pull = 4;
static const float rope_base = 10000;
static const int64_t save_every_ns = INT64_C(60000000000);
#define MOST_POSITIONS (INT64_C(1) << 40)

typedef struct training {
    const drey_train_eagle_options *o;
    drey_train_eagle_report *report;
    const drey_model *target;
    char *output, *texts, *checkpoint; /* paths; separately allocated */
    uint64_t identity, budget_bytes;   /* 0: no budget */
    eagle_training about;              /* without texts and rows */
    int64_t n_positions;
    int32_t n_epochs;
    arena slice_memory, memory;
    token_slice slice;
    uint16_t *head_rows, *embeddings; /* of the slice's places; the same where tied */
    float *final_norm;
    self_texts data;
    eagle_trainer trainer;
    pool *pool;
} training;

void drey_train_eagle_options_init(drey_train_eagle_options *options)
{
    *options = (drey_train_eagle_options){0};
}

/* ---- Options ---- */

static drey_status check_options(const drey_train_eagle_options *o, drey_error *err)
{
    if (!o->engine || !o->engine->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    const model_shape *s = &o->engine->target->shape;
    if (s->arch->layer_norm || s->taps.n)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a layer after a model of the architecture %s cannot be trained; train heads instead",
             s->arch->name);
    if (o->n_ids < 0 || o->n_ids > s->n_vocab)
        FAIL(err, DREY_ERR_USAGE, "a vocabulary of %d tokens is not possible (1 to %d)", o->n_ids,
             s->n_vocab);
    if (o->n_positions > MOST_POSITIONS)
        FAIL(err, DREY_ERR_USAGE, "%lld tokens of text are too many", (long long)o->n_positions);
    if (o->n_positions < 0 || o->n_epochs < 0 || o->rate < 0 || !isfinite(o->rate) ||
        o->temperature < 0 || !isfinite(o->temperature))
        FAIL(err, DREY_ERR_USAGE, "tokens, epochs, rate and temperature are not negative");
    return o->n_prompts ? train_check_prompts(o->prompts, o->n_prompts, s->n_vocab, err) : DREY_OK;
}

/* A wrong name could destroy a model. */
static drey_status check_place(const char *path, drey_error *err)
{
    gguf *g;
    TRY(new_file_check(path, err));
    if (access(path, F_OK) != 0)
        return DREY_OK;
    bool own = false;
    if (gguf_open(&g, path, NULL) == DREY_OK) {
        own = gguf_find_key(g, EAGLE_TARGET_KEY) != NULL;
        gguf_close(&g);
    }
    if (!own)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT,
                  "%s is there and is no layer that drey trained; name another file",
                  SHOWN_PATH(path));
    return DREY_OK;
}

static drey_status settle_paths(training *t, drey_error *err)
{
    t->output = t->o->output ? strdup(t->o->output)
                             : path_with(gguf_part_path(t->target->file, 0), ".eagle.gguf");
    t->texts = t->output ? path_with(t->output, ".texts") : NULL;
    t->checkpoint = t->output ? path_with(t->output, ".checkpoint") : NULL;
    if (!t->texts || !t->checkpoint)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the names of files");
    TRY(check_place(t->output, err));
    return new_file_check(t->checkpoint, err);
}

static drey_status settle(training *t, drey_error *err)
{
    const drey_train_eagle_options *o = t->o;
    t->target = o->engine->target;
    const model_shape *s = &t->target->shape;
    TRY(settle_paths(t, err));
    t->n_positions = o->n_positions ? o->n_positions : USUAL_POSITIONS;
    t->n_epochs = o->n_epochs ? o->n_epochs : USUAL_EPOCHS;
    bool estimate;
    t->budget_bytes = o->engine->memory_bytes == DREY_MEMORY_AUTO ? memory_auto_budget(&estimate)
                                                                  : o->engine->memory_bytes;
    const kernel_table *kernels = kernel_select(o->engine->cpu_tier);
    if (!kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED, "the CPU tier \"%s\" does not run on this machine",
             o->engine->cpu_tier);
    t->about = (eagle_training){.n_embd = s->n_embd,
                                .n_heads = s->n_heads,
                                .n_heads_kv = s->n_heads_kv,
                                .head_dim = s->head_dim,
                                .n_ff = min_i32(s->n_ff, WIDTHS_OF_FFN * s->n_embd),
                                .norm_eps = s->norm_eps,
                                .rope_base = rope_base,
                                .n_ids = o->n_ids ? o->n_ids : min_i32(USUAL_IDS, s->n_vocab),
                                .kernels = kernels,
                                .n_windows = N_WINDOWS,
                                .n_window = N_WINDOW,
                                .n_passes = DREY_EAGLE_PASSES,
                                .rate = o->rate > 0 ? o->rate : usual_rate,
                                .soft = soft,
                                .pull = pull,
                                .seed = o->seed};
    return model_identity(t->target->file, &t->identity, err);
}

/* ---- Memory ---- */

static bool is_tied(const training *t)
{
    return gguf_find_tensor(t->target->file, "output.weight") == NULL;
}

static size_t row_bytes(const training *t, int32_t n_rows)
{
    return (size_t)n_rows * (size_t)t->about.n_embd * sizeof(uint16_t);
}

/* Of the trainer's arena. */
static size_t trainer_bytes(const training *t, int64_t n, int32_t n_rows)
{
    const self_texts texts = {.n = n};
    eagle_training about = t->about;
    about.texts = &texts;
    return self_texts_bytes(n, about.n_embd) +
           (is_tied(t) ? 1 : 2) * arena_size(row_bytes(t, n_rows)) +
           arena_size((size_t)about.n_embd * sizeof(float)) + eagle_trainer_bytes(&about);
}

/* The file's matrices are at most half as large as they are in training. Before texts are written,
 * each token may be a different one that is not guessed, and needs a row. */
static drey_status check_memory(const training *t, drey_error *err)
{
    const double mib = 1 << 20;
    int32_t n_vocab = t->target->shape.n_vocab;
    int32_t n_rows = (int32_t)min_i64(n_vocab, t->about.n_ids + t->n_positions);
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&t->about, all);
    uint64_t file_bytes = (uint64_t)(all[EAGLE_MATRICES - 1].at * 2) +
                          2 * (uint64_t)row_bytes(t, t->about.n_embd + t->about.n_ids);
    uint64_t bytes = trainer_bytes(t, t->n_positions, n_rows) + token_slice_bytes(n_vocab) +
                     file_bytes + memory_program();
    if (t->budget_bytes != DREY_MEMORY_UNLIMITED && bytes > t->budget_bytes)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "training a layer with %lld tokens takes up to %.0f MiB, and the budget is %.0f "
                  "MiB; take fewer tokens, a smaller vocabulary, or a larger budget",
                  (long long)t->n_positions, ceil((double)bytes / mib),
                  (double)t->budget_bytes / mib);
    return DREY_OK;
}

/* ---- Texts ---- */

static drey_status write_texts(training *t, drey_error *err)
{
    drey_engine_options engine = *t->o->engine;
    engine.memory_bytes = t->budget_bytes;
    const self_texts_job job = {.engine = &engine,
                                .path = t->texts,
                                .n_positions = t->n_positions,
                                .seed = t->o->seed,
                                .temperature = t->o->greedy            ? 0
                                               : t->o->temperature > 0 ? t->o->temperature
                                                                       : usual_temperature,
                                .prompts = t->o->prompts,
                                .n_prompts = t->o->n_prompts,
                                .progress = t->o->progress,
                                .go_on = t->o->go_on,
                                .user = t->o->user};
    return self_texts_write(&job, &t->report->n_kept, err);
}

static drey_status choose_slice(training *t, drey_error *err)
{
    int32_t n_vocab = t->target->shape.n_vocab;
    TRY(arena_init(&t->slice_memory, token_slice_bytes(n_vocab), false, err));
    token_slice_init(&t->slice, n_vocab, &t->slice_memory);
    TRY(arena_check(&t->slice_memory, err));
    TRY(self_texts_count(t->texts, t->n_positions, &t->slice, &t->data.n, err));
    token_slice_choose(&t->slice, t->about.n_ids);
    return DREY_OK;
}

static drey_status read_final_norm(training *t, drey_error *err)
{
    const gguf *g = t->target->file;
    const gguf_tensor *tensor = gguf_find_tensor(g, "output_norm.weight");
    int64_t d = t->about.n_embd;
    if (!tensor || tensor->type != TYPE_F32 || tensor->dims[0] != d || tensor->dims[1] != 1)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's output_norm.weight is not of type F32; convert it again");
    const char *path = gguf_part_path(g, tensor->part);
    file f;
    TRY(file_open(&f, path, false, err));
    drey_status status =
        file_read(&f, path, tensor->offset, (size_t)d * sizeof(float), t->final_norm, NULL, 0, err);
    file_close(&f);
    return status;
}

/* ---- The checkpoint ---- */

static checkpoint_about checkpoint_of(const training *t)
{
    return (checkpoint_about){
        .magic = {'d', 'r', 'e', 'y', 'e', 'g', 'l', '1'},
        .identity = t->identity,
        .seed = t->o->seed,
        .texts = hash64_of(t->slice.learnt, (size_t)t->slice.n_vocab * sizeof *t->slice.learnt),
        .n_parameters = t->trainer.n_parameters,
        .n_positions = t->data.n,
        .n_steps = t->trainer.about.n_steps,
        .n_ids = t->about.n_ids,
        .shape = DREY_EAGLE_PASSES};
}

static drey_status save(const training *t, drey_error *err)
{
    const checkpoint_about about = checkpoint_of(t);
    return checkpoint_save(t->checkpoint, &about, t->trainer.step, t->trainer.parameters,
                           &t->trainer.adam, err);
}

/* One that belongs to this training is continued; any other is ignored. */
static void restore(training *t)
{
    eagle_trainer *m = &t->trainer;
    const checkpoint_about about = checkpoint_of(t);
    size_t n = (size_t)m->n_parameters * sizeof(float);
    if (checkpoint_restore(t->checkpoint, &about, &m->step, m->parameters, &m->adam))
        return;
    eagle_trainer_begin(m);
    memset(m->adam.first, 0, n);
    memset(m->adam.second, 0, n);
}

/* ---- Training ---- */

static drey_status open_trainer(training *t, drey_error *err)
{
    const gguf *g = t->target->file;
    int32_t d = t->about.n_embd, n_threads = t->o->engine->n_threads;
    TRY(choose_slice(t, err));
    TRY(pool_open(&t->pool, n_threads ? n_threads : pool_default_threads(), err));
    TRY(arena_init(&t->memory, trainer_bytes(t, t->data.n, t->slice.n_rows), true, err));
    t->head_rows = arena_take(&t->memory, row_bytes(t, t->slice.n_rows));
    t->embeddings =
        is_tied(t) ? t->head_rows : arena_take(&t->memory, row_bytes(t, t->slice.n_rows));
    t->final_norm = arena_take(&t->memory, (size_t)d * sizeof(float));
    TRY(arena_check(&t->memory, err));
    TRY(read_final_norm(t, err));
    TRY(slice_rows_read(g, model_head_tensor(g), &t->slice, t->about.kernels, t->head_rows, err));
    if (!is_tied(t))
        TRY(slice_rows_read(g, gguf_find_tensor(g, "token_embd.weight"), &t->slice,
                            t->about.kernels, t->embeddings, err));
    TRY(self_texts_read(&t->data, t->texts, t->data.n, d, &t->slice, &t->memory, err));
    t->about.n_rows = t->slice.n_rows;
    t->about.head_rows = t->head_rows;
    t->about.embeddings = t->embeddings;
    t->about.final_norm = t->final_norm;
    t->about.texts = &t->data;
    t->about.pool = t->pool;
    t->about.n_steps = max_i64(t->data.n * t->n_epochs / (N_WINDOWS * N_WINDOW), 1);
    TRY(eagle_trainer_init(&t->trainer, &t->about, &t->memory, err));
    restore(t);
    return DREY_OK;
}

static drey_status run_steps(training *t, drey_error *err)
{
    const drey_train_eagle_options *o = t->o;
    eagle_trainer *m = &t->trainer;
    int64_t saved_ns = clock_ns();
    double loss = 0;
    while (m->step < m->about.n_steps) {
        eagle_trainer_step(m);
        loss += (m->loss - loss) * (loss > 0 ? 0.02 : 1);
        if (m->step % STEPS_BETWEEN != 0 && m->step != m->about.n_steps)
            continue;
        t->report->loss = loss;
        if (o->progress)
            o->progress(o->user, DREY_PROGRESS_TRAIN, (uint64_t)m->step,
                        (uint64_t)m->about.n_steps);
        bool stop = o->go_on && !o->go_on(o->user);
        if (stop || clock_ns() - saved_ns > save_every_ns) {
            TRY(save(t, err));
            saved_ns = clock_ns();
        }
        if (stop)
            FAIL(err, DREY_ERR_CANCELLED, "interrupted; the next training continues from %s",
                 SHOWN_PATH(t->checkpoint));
    }
    return DREY_OK;
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
static drey_status copy_head(const training *t, uint8_t *out, drey_error *err)
{
    const gguf_tensor *head = model_head_tensor(t->target->file);
    const char *path = gguf_part_path(t->target->file, head->part);
    uint64_t n = head_row_bytes(head);
    file f;
    TRY(file_open(&f, path, false, err));
    drey_status status = file_check(&f, path, gguf_part_stamp(t->target->file, head->part), err);
    for (int32_t i = 0; i < t->about.n_ids && status == DREY_OK; i++)
        status = file_read(&f, path, head->offset + (uint64_t)t->slice.id[i] * n, (size_t)n,
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

static drey_status make_parts(training *t, file_parts *p, drey_error *err)
{
    const gguf_tensor *head = model_head_tensor(t->target->file);
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
        p->ids[i] = t->slice.id[i];
    return copy_head(t, p->head, err);
}

static void put_keys(const training *t, new_gguf *g)
{
    const eagle_training *a = &t->about;
    const gguf *target = t->target->file;
    const uint32_t tap = (uint32_t)t->target->shape.n_layers;
    new_gguf_begin(g, "eagle3");
    new_gguf_u64(g, EAGLE_TARGET_KEY, t->identity);
    new_gguf_text(g, "drey.target_name", t->target->name);
    new_gguf_u32(g, "eagle3.block_count", 1);
    new_gguf_u32(g, "eagle3.context_length", (uint32_t)t->target->shape.n_context_train);
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

static void put_tensors(const training *t, const file_parts *p, new_gguf *g)
{
    static const char *const names[EAGLE_MATRICES] = {
        "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    static const char *const norms[] = {"blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight",
                                        "blk.0.ffn_norm.weight"};
    const gguf_tensor *head = model_head_tensor(t->target->file);
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

static drey_status write_file(training *t, drey_error *err)
{
    file_parts parts = {.fuse = NULL};
    new_gguf g = {.n_keys = 0};
    drey_status status = make_parts(t, &parts, err);
    if (status == DREY_OK) {
        eagle_trainer_judge(&t->trainer, true, MOST_JUDGED, t->report->accuracy, t->report->n_held);
        put_keys(t, &g);
        put_tensors(t, &parts, &g);
        status = new_gguf_save(&g, t->output, err);
    }
    new_gguf_free(&g);
    free_parts(&parts);
    return status;
}

/* ---- All of it ---- */

static drey_status train(training *t, drey_error *err)
{
    int64_t start = clock_ns();
    TRY(settle(t, err));
    TRY(check_memory(t, err));
    TRY(write_texts(t, err));
    int64_t written = clock_ns();
    TRY(open_trainer(t, err));
    t->report->n_ids = t->about.n_ids;
    t->report->n_texts = t->data.n;
    t->report->n_positions = t->trainer.taught.n;
    TRY(run_steps(t, err));
    int64_t trained = clock_ns();
    TRY(write_file(t, err));
    t->report->write_s = (double)(written - start) * 1e-9;
    t->report->train_s = (double)(trained - written) * 1e-9;
    if (!t->o->keep_texts)
        unlink(t->texts);
    unlink(t->checkpoint);
    return DREY_OK;
}

drey_status drey_train_eagle(const drey_train_eagle_options *options,
                             drey_train_eagle_report *report, drey_error *err)
{
    drey_train_eagle_report own;
    training t = {.o = options, .report = report ? report : &own};
    *t.report = (drey_train_eagle_report){0};
    TRY(check_options(options, err));
    float_mode caller = float_mode_enter();
    drey_status status = train(&t, err);
    float_mode_leave(caller);
    pool_close(&t.pool);
    arena_free(&t.memory);
    arena_free(&t.slice_memory);
    free(t.output);
    free(t.texts);
    free(t.checkpoint);
    return status;
}
