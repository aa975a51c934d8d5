/* drey_train_medusa: texts, steps, judgement, the file. See drey/train.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/num.h"
#include "common/path.h"
#include "drey/train.h"
#include "gguf/gguf.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "os/memory.h"
#include "common/new_file.h"
#include "train/checkpoint.h"
#include "train/encode.h"
#include "train/medusa_trainer.h"
#include "train/prompt_check.h"
#include "train/slice_rows.h"
#include "weights/weights.h"

enum {
    USUAL_HEADS = 4,
    USUAL_IDS = 12288,
    USUAL_POSITIONS = 500000,
    USUAL_EPOCHS = 2,
    N_BATCH = 256,
    N_DRAWN = 1536,
    MOST_JUDGED = 8192,
    LEAST_POSITIONS = 1000, /* the least that a budget has to allow */
    STEPS_BETWEEN = 20,     /* looks at the clock */
};
static const float usual_rate = 0.002f, usual_temperature = 0.3f, soft = 0.7f, pull = 16;
static const int64_t save_every_ns = INT64_C(60000000000);
#define MOST_POSITIONS (INT64_C(1) << 40)

typedef struct training {
    const drey_train_medusa_options *o;
    drey_train_medusa_report *report;
    const drey_model *target;
    char *output, *texts, *checkpoint; /* paths; separately allocated */
    uint64_t identity, budget_bytes;   /* 0: no budget */
    int32_t n_heads, n_ids;
    int64_t n_positions;
    int32_t n_epochs;
    float rate;
    arena slice_memory, memory;
    token_slice slice;
    uint16_t *head_rows; /* of the slice's places */
    self_texts data;
    medusa_trainer trainer;
    pool *pool;
    const kernel_table *kernels;
} training;

void drey_train_medusa_options_init(drey_train_medusa_options *options)
{
    *options = (drey_train_medusa_options){0};
}

/* ---- Options ---- */

static drey_status check_options(const drey_train_medusa_options *o, drey_error *err)
{
    if (!o->engine || !o->engine->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    if (o->n_heads < 0 || o->n_heads > MEDUSA_MAX_HEADS)
        FAIL(err, DREY_ERR_USAGE, "%d heads are not possible (1 to %d)", o->n_heads,
             MEDUSA_MAX_HEADS);
    int32_t n_vocab = o->engine->target->shape.n_vocab;
    if (o->n_ids < 0 || o->n_ids > n_vocab)
        FAIL(err, DREY_ERR_USAGE, "a vocabulary of %d tokens is not possible (1 to %d)", o->n_ids,
             n_vocab);
    if (o->n_positions > MOST_POSITIONS)
        FAIL(err, DREY_ERR_USAGE, "%lld tokens of text are too many", (long long)o->n_positions);
    if (o->n_positions < 0 || o->n_epochs < 0 || o->rate < 0 || !isfinite(o->rate) ||
        o->temperature < 0 || !isfinite(o->temperature))
        FAIL(err, DREY_ERR_USAGE, "tokens, epochs, rate and temperature are not negative");
    return o->n_prompts ? train_check_prompts(o->prompts, o->n_prompts, n_vocab, err) : DREY_OK;
}

/* A wrong name could destroy a model. */
static drey_status check_place(const char *path, drey_error *err)
{
    struct stat about;
    TRY(new_file_check(path, err));
    if (stat(path, &about) == 0 && about.st_size > 0 && !drey_is_heads_file(path))
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT,
                  "%s is there and holds no heads; name another file", SHOWN_PATH(path));
    return DREY_OK;
}

static drey_status settle(training *t, drey_error *err)
{
    const drey_train_medusa_options *o = t->o;
    t->target = o->engine->target;
    t->output = o->output ? strdup(o->output)
                          : path_with(gguf_part_path(t->target->file, 0), MEDUSA_FILE_ENDING);
    t->texts = t->output ? path_with(t->output, ".texts") : NULL;
    t->checkpoint = t->output ? path_with(t->output, ".checkpoint") : NULL;
    if (!t->texts || !t->checkpoint)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the names of files");
    TRY(check_place(t->output, err));
    TRY(new_file_check(t->checkpoint, err));
    t->n_heads = o->n_heads ? o->n_heads : USUAL_HEADS;
    t->n_ids = o->n_ids ? o->n_ids : min_i32(USUAL_IDS, t->target->shape.n_vocab);
    t->n_positions = o->n_positions ? o->n_positions : USUAL_POSITIONS;
    t->n_epochs = o->n_epochs ? o->n_epochs : USUAL_EPOCHS;
    t->rate = o->rate > 0 ? o->rate : usual_rate;
    bool estimate;
    t->budget_bytes = o->engine->memory_bytes == DREY_MEMORY_AUTO ? memory_auto_budget(&estimate)
                                                                  : o->engine->memory_bytes;
    t->kernels = kernel_select(o->engine->cpu_tier);
    if (!t->kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED, "the CPU tier \"%s\" does not run on this machine",
             o->engine->cpu_tier);
    return model_identity(t->target->file, &t->identity, err);
}

/* ---- Memory ---- */

static size_t row_bytes(const training *t, int32_t n_rows)
{
    return (size_t)n_rows * (size_t)t->target->shape.n_embd * sizeof(uint16_t);
}

static uint32_t encoded_type(const training *t)
{
    return encode_type(t->target->shape.n_embd);
}

static uint64_t encoded_row_bytes(const training *t)
{
    return (uint64_t)type_row_bytes(type_find(encoded_type(t)),
                                    2 * (int64_t)t->target->shape.n_embd);
}

static uint64_t encoded_bytes(const training *t)
{
    return (uint64_t)t->n_heads * (uint64_t)t->target->shape.n_embd * encoded_row_bytes(t);
}

/* texts: their number counts; n_rows: of the head. */
static medusa_training about_training(const training *t, const self_texts *texts, int32_t n_rows)
{
    return (medusa_training){.n_heads = t->n_heads,
                             .n_embd = t->target->shape.n_embd,
                             .n_ids = t->n_ids,
                             .n_rows = n_rows,
                             .head_rows = t->head_rows,
                             .texts = texts,
                             .kernels = t->kernels,
                             .pool = t->pool,
                             .n_batch = N_BATCH,
                             .n_drawn = N_DRAWN,
                             .n_steps = max_i64(texts->n * t->n_epochs / N_BATCH, 1),
                             .rate = t->rate,
                             .soft = soft,
                             .pull = pull,
                             .seed = t->o->seed};
}

/* Of the trainer's arena. */
static size_t trainer_bytes(const training *t, int64_t n, int32_t n_rows)
{
    const self_texts texts = {.n = n};
    const medusa_training about = about_training(t, &texts, n_rows);
    return self_texts_bytes(n, about.n_embd) + arena_size(row_bytes(t, n_rows)) +
           medusa_trainer_bytes(&about);
}

/* Memory of training with n tokens. Before they are written, each of them may be a different one
 * that is not guessed, and needs a row. */
static uint64_t most_bytes(const training *t, int64_t n)
{
    int32_t n_vocab = t->target->shape.n_vocab;
    int32_t n_rows = (int32_t)min_i64(n_vocab, t->n_ids + n);
    return trainer_bytes(t, n, n_rows) + token_slice_bytes(n_vocab) + encoded_bytes(t) +
           memory_program();
}

/* Checked before texts are written, which takes longer than training. */
static drey_status check_memory(const training *t, drey_error *err)
{
    const double mib = 1 << 20;
    int64_t low = 0, high = t->n_positions; /* the most tokens that fit */
    uint64_t all = most_bytes(t, high);
    if (t->budget_bytes == DREY_MEMORY_UNLIMITED || all <= t->budget_bytes)
        return DREY_OK;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (most_bytes(t, middle) <= t->budget_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    if (low < LEAST_POSITIONS)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "training %d heads takes %.0f MiB, and the budget is %.0f MiB; take a larger "
                  "budget, fewer heads, or a smaller vocabulary for them",
                  t->n_heads, ceil((double)most_bytes(t, LEAST_POSITIONS) / mib),
                  (double)t->budget_bytes / mib);
    FAIL_HINT(
        err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
        "training %d heads with %lld tokens takes up to %.0f MiB, and the budget is %.0f MiB; "
        "take at most %lld tokens, fewer heads, or a larger budget",
        t->n_heads, (long long)t->n_positions, ceil((double)all / mib),
        (double)t->budget_bytes / mib, (long long)low);
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
    token_slice_choose(&t->slice, t->n_ids);
    return DREY_OK;
}

/* ---- The checkpoint ---- */

static checkpoint_about checkpoint_of(const training *t)
{
    return (checkpoint_about){
        .magic = {'d', 'r', 'e', 'y', 's', 't', 'p', '6'},
        .identity = t->identity,
        .seed = t->o->seed,
        .texts = hash64_of(t->slice.learnt, (size_t)t->slice.n_vocab * sizeof *t->slice.learnt),
        .n_parameters = t->trainer.n_parameters,
        .n_positions = t->data.n,
        .n_steps = t->trainer.about.n_steps,
        .n_ids = t->n_ids,
        .shape = t->n_heads};
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
    medusa_trainer *m = &t->trainer;
    const checkpoint_about about = checkpoint_of(t);
    float *parts[] = {m->parameters, m->adam.first, m->adam.second};
    if (checkpoint_restore(t->checkpoint, &about, &m->step, m->parameters, &m->adam))
        return;
    for (int i = 0; i < 3; i++)
        memset(parts[i], 0, (size_t)m->n_parameters * sizeof(float));
}

/* ---- Training ---- */

static drey_status open_trainer(training *t, drey_error *err)
{
    int32_t d = t->target->shape.n_embd, n_threads = t->o->engine->n_threads;
    TRY(choose_slice(t, err));
    const int32_t n_rows = t->slice.n_rows;
    const int64_t n = t->data.n;
    TRY(pool_open(&t->pool, n_threads ? n_threads : pool_default_threads(), err));
    TRY(arena_init(&t->memory, trainer_bytes(t, n, n_rows), true, err));
    t->head_rows = arena_take(&t->memory, row_bytes(t, n_rows));
    TRY(arena_check(&t->memory, err));
    TRY(slice_rows_read(t->target->file, model_head_tensor(t->target->file), &t->slice, t->kernels,
                        t->head_rows, err));
    TRY(self_texts_read(&t->data, t->texts, n, d, &t->slice, &t->memory, err));
    const medusa_training about = about_training(t, &t->data, n_rows);
    TRY(medusa_trainer_init(&t->trainer, &about, &t->memory, err));
    restore(t);
    return DREY_OK;
}

static drey_status run_steps(training *t, drey_error *err)
{
    const drey_train_medusa_options *o = t->o;
    medusa_trainer *m = &t->trainer;
    int64_t saved_ns = clock_ns();
    double loss = 0;
    while (m->step < m->about.n_steps) {
        medusa_trainer_step(m);
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

/* Converts the parameters to the file's types. */
static void *encode_blocks(training *t)
{
    int64_t n = 2 * (int64_t)t->target->shape.n_embd, rows = t->n_heads * n / 2;
    uint8_t *out = malloc((size_t)encoded_bytes(t));
    for (int64_t i = 0; out && i < rows; i++)
        encode_row(encoded_type(t), out + (uint64_t)i * encoded_row_bytes(t),
                   t->trainer.parameters + i * n, n);
    return out;
}

static drey_status write_file(training *t, drey_error *err)
{
    const drey_train_medusa_report *r = t->report;
    int64_t d = t->target->shape.n_embd, block[] = {2 * d, d}, n_bias = t->n_heads * d;
    uint64_t block_bytes = encoded_bytes(t) / (uint64_t)t->n_heads;
    float accuracy[MEDUSA_MAX_HEADS * MEDUSA_RANKS];
    void *blocks = encode_blocks(t);
    if (!blocks)
        FAIL(err, DREY_ERR_MEMORY, "no memory to write the heads");
    medusa_trainer_judge(&t->trainer, true, MOST_JUDGED, t->report->accuracy, t->report->n_held);
    for (int32_t i = 0; i < t->n_heads * MEDUSA_RANKS; i++)
        accuracy[i] = r->accuracy[i / MEDUSA_RANKS][i % MEDUSA_RANKS];
    new_gguf g;
    new_gguf_begin(&g, MEDUSA_ARCHITECTURE);
    new_gguf_u32(&g, "drey-medusa.version", MEDUSA_VERSION);
    new_gguf_u64(&g, "drey-medusa.target", t->identity);
    new_gguf_text(&g, "drey-medusa.target_name", t->target->name);
    new_gguf_u32(&g, "drey-medusa.head_count", (uint32_t)t->n_heads);
    new_gguf_u32(&g, "drey-medusa.embedding_length", (uint32_t)d);
    new_gguf_u32s(&g, "drey-medusa.tokens", (const uint32_t *)t->slice.id, (uint64_t)t->n_ids);
    new_gguf_f32(&g, "drey-medusa.scale", 1);
    new_gguf_f32s(&g, "drey-medusa.accuracy", accuracy, (uint64_t)t->n_heads * MEDUSA_RANKS);
    for (int32_t k = 0; k < t->n_heads; k++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d.weight", k);
        new_gguf_tensor(&g, name, encoded_type(t), block, 2,
                        (uint8_t *)blocks + (uint64_t)k * block_bytes, block_bytes);
    }
    new_gguf_tensor(&g, "blocks.bias", TYPE_F32, &n_bias, 1, t->trainer.parameters + n_bias * 2 * d,
                    (uint64_t)n_bias * sizeof(float));
    drey_status status = new_gguf_save(&g, t->output, err);
    new_gguf_free(&g);
    free(blocks);
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
    t->report->n_heads = t->n_heads;
    t->report->n_ids = t->n_ids;
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

drey_status drey_train_medusa(const drey_train_medusa_options *options,
                              drey_train_medusa_report *report, drey_error *err)
{
    drey_train_medusa_report own;
    training t = {.o = options, .report = report ? report : &own};
    *t.report = (drey_train_medusa_report){0};
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
