/* drey_train_medusa: what is trained, and the file. See drey/train.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/num.h"
#include "engine/config.h"
#include "gguf/new_gguf.h"
#include "train/draft_training.h"
#include "train/encode.h"
#include "train/medusa_trainer.h"

enum { USUAL_HEADS = 4, N_BATCH = 256, N_DRAWN = 1536 };
static const float soft = 0.7f, pull = 16;

typedef struct medusa_run {
    draft_training base;
    medusa_training about; /* without texts and rows until they are there */
    medusa_trainer trainer;
} medusa_run;

static medusa_run *run_of(draft_training *t)
{
    return (medusa_run *)t;
}

static bool may_replace(const char *path)
{
    struct stat about;
    return stat(path, &about) != 0 || about.st_size == 0 || drey_is_heads_file(path);
}

static drey_status resolve_options(draft_training *t, drey_error *err)
{
    const drey_train_draft_options *o = t->o;
    if (o->n_heads < 0 || o->n_heads > MEDUSA_MAX_HEADS)
        FAIL(err, DREY_ERR_USAGE, "%d heads are not possible (1 to %d)", o->n_heads,
             MEDUSA_MAX_HEADS);
    t->shape = o->n_heads ? o->n_heads : USUAL_HEADS;
    run_of(t)->about = (medusa_training){.n_heads = t->shape,
                                         .n_embd = t->target->shape.n_embd,
                                         .n_ids = t->n_ids,
                                         .kernels = t->kernels,
                                         .n_batch = N_BATCH,
                                         .n_drawn = N_DRAWN,
                                         .rate = t->rate,
                                         .soft = soft,
                                         .pull = pull,
                                         .seed = o->seed};
    return DREY_OK;
}

/* ---- Memory ---- */

static uint32_t encoded_type(const medusa_run *t)
{
    return encode_type(t->about.n_embd);
}

static uint64_t encoded_row_bytes(const medusa_run *t)
{
    return (uint64_t)type_row_bytes(type_find(encoded_type(t)), 2 * (int64_t)t->about.n_embd);
}

static uint64_t encoded_bytes(const medusa_run *t)
{
    return (uint64_t)t->about.n_heads * (uint64_t)t->about.n_embd * encoded_row_bytes(t);
}

static uint64_t file_bytes(const draft_training *t)
{
    return encoded_bytes((const medusa_run *)t);
}

static int64_t steps_of(const draft_training *t, int64_t n)
{
    return max_i64(n * t->n_epochs / N_BATCH, 1);
}

static size_t bytes(const draft_training *t, int64_t n, int32_t n_rows)
{
    const self_texts texts = {.n = n};
    medusa_training about = ((const medusa_run *)t)->about;
    about.texts = &texts;
    about.n_rows = n_rows;
    about.n_steps = steps_of(t, n);
    return medusa_trainer_bytes(&about);
}

/* ---- Training ---- */

static drey_status open_trainer(draft_training *t, drey_error *err)
{
    medusa_training *about = &run_of(t)->about;
    medusa_trainer *m = &run_of(t)->trainer;
    about->n_rows = t->slice.n_rows;
    about->head_rows = t->head_rows;
    about->texts = &t->data;
    about->pool = t->pool;
    about->n_steps = steps_of(t, t->data.n);
    TRY(medusa_trainer_init(m, about, &t->memory, err));
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
    memset(t->state.parameters, 0, (size_t)t->state.n_parameters * sizeof(float));
}

static void step(draft_training *t)
{
    medusa_trainer_step(&run_of(t)->trainer);
}

/* ---- The file ---- */

/* Converts the parameters to the file's types. */
static void *encode_blocks(const medusa_run *t)
{
    int64_t n = 2 * (int64_t)t->base.target->shape.n_embd, rows = t->about.n_heads * n / 2;
    uint8_t *out = malloc((size_t)encoded_bytes(t));
    for (int64_t i = 0; out && i < rows; i++)
        encode_row(encoded_type(t), out + (uint64_t)i * encoded_row_bytes(t),
                   t->trainer.parameters + i * n, n);
    return out;
}

static drey_status write_file(draft_training *base, drey_error *err)
{
    medusa_run *t = run_of(base);
    drey_train_draft_report *r = base->report;
    int64_t d = t->base.target->shape.n_embd, block[] = {2 * d, d}, n_bias = t->about.n_heads * d;
    uint64_t block_bytes = encoded_bytes(t) / (uint64_t)t->about.n_heads;
    float accuracy[MEDUSA_MAX_HEADS * MEDUSA_RANKS];
    void *blocks = encode_blocks(t);
    if (!blocks)
        FAIL(err, DREY_ERR_MEMORY, "no memory to write the heads");
    medusa_trainer_judge(&t->trainer, true, DRAFT_MOST_JUDGED, r->accuracy, r->n_held);
    for (int32_t i = 0; i < t->about.n_heads * MEDUSA_RANKS; i++)
        accuracy[i] = r->accuracy[i / MEDUSA_RANKS][i % MEDUSA_RANKS];
    new_gguf g;
    new_gguf_begin(&g, MEDUSA_ARCHITECTURE);
    new_gguf_u32(&g, "drey-medusa.version", MEDUSA_VERSION);
    new_gguf_u64(&g, "drey-medusa.target", base->identity);
    new_gguf_text(&g, "drey-medusa.target_name", base->target->name);
    new_gguf_u32(&g, "drey-medusa.head_count", (uint32_t)t->about.n_heads);
    new_gguf_u32(&g, "drey-medusa.embedding_length", (uint32_t)d);
    new_gguf_u32s(&g, "drey-medusa.tokens", (const uint32_t *)base->slice.id,
                  (uint64_t)base->n_ids);
    new_gguf_f32(&g, "drey-medusa.scale", 1);
    new_gguf_f32s(&g, "drey-medusa.accuracy", accuracy, (uint64_t)t->about.n_heads * MEDUSA_RANKS);
    for (int32_t k = 0; k < t->about.n_heads; k++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d.weight", k);
        new_gguf_tensor(&g, name, encoded_type(t), block, 2,
                        (uint8_t *)blocks + (uint64_t)k * block_bytes, block_bytes);
    }
    new_gguf_tensor(&g, "blocks.bias", TYPE_F32, &n_bias, 1, t->trainer.parameters + n_bias * 2 * d,
                    (uint64_t)n_bias * sizeof(float));
    drey_status status = new_gguf_save(&g, base->output, err);
    new_gguf_free(&g);
    free(blocks);
    return status;
}

static const draft_training_kind heads = {.ending = MEDUSA_FILE_ENDING,
                                          .what = "heads",
                                          .lacks = "holds no heads",
                                          .magic = {'d', 'r', 'e', 'y', 's', 't', 'p', '6'},
                                          .rate = 0.002f,
                                          .steps_between = 20,
                                          .may_replace = may_replace,
                                          .resolve_options = resolve_options,
                                          .bytes = bytes,
                                          .file_bytes = file_bytes,
                                          .open = open_trainer,
                                          .begin = begin,
                                          .step = step,
                                          .write = write_file};

drey_status drey_train_medusa(const drey_train_draft_options *options,
                              drey_train_draft_report *report, drey_error *err)
{
    medusa_run run = {.base.kind = &heads};
    return draft_training_run(&run.base, options, report, err);
}
