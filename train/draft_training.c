/* Training a drafter with the target's own texts: see draft_training.h. */
#include "train/draft_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/new_file.h"
#include "common/num.h"
#include "common/path.h"
#include "common/size_text.h"
#include "engine/config.h"
#include "gguf/gguf.h"
#include "model/layout.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "os/memory.h"
#include "train/checkpoint.h"
#include "train/prompt_check.h"
#include "weights/identity.h"

enum {
    USUAL_IDS = 12288,
    USUAL_POSITIONS = 500000,
    USUAL_EPOCHS = 2,
    LEAST_POSITIONS = 1000 /* the least that a budget has to allow */
};
static const float default_temperature = 0.3f;
static const int64_t save_every_ns = INT64_C(60000000000);
#define MOST_POSITIONS (INT64_C(1) << 40)

void drey_train_draft_options_init(drey_train_draft_options *options)
{
    *options = (drey_train_draft_options){0};
}

/* ---- Options ---- */

static drey_status check_options(const drey_train_draft_options *o, drey_error *err)
{
    if (!o->engine || !o->engine->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
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
static drey_status check_place(const draft_training *t, drey_error *err)
{
    TRY(new_file_check(t->output, err));
    if (access(t->output, F_OK) == 0 && !t->kind->may_replace(t->output))
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT, "%s is there and %s; name another file",
                  SHOWN_PATH(t->output), t->kind->lacks);
    return DREY_OK;
}

static drey_status resolve_paths(draft_training *t, drey_error *err)
{
    t->output = t->o->output ? strdup(t->o->output)
                             : path_with(gguf_shard_path(t->target->file, 0), t->kind->ending);
    t->texts = t->output ? path_with(t->output, ".texts") : NULL;
    t->checkpoint = t->output ? path_with(t->output, ".checkpoint") : NULL;
    if (!t->texts || !t->checkpoint)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the names of files");
    TRY(check_place(t, err));
    return new_file_check(t->checkpoint, err);
}

static drey_status resolve_options(draft_training *t, drey_error *err)
{
    const drey_train_draft_options *o = t->o;
    t->target = o->engine->target;
    TRY(resolve_paths(t, err));
    t->n_ids = o->n_ids ? o->n_ids : min_i32(USUAL_IDS, t->target->shape.n_vocab);
    t->n_positions = o->n_positions ? o->n_positions : USUAL_POSITIONS;
    t->n_epochs = o->n_epochs ? o->n_epochs : USUAL_EPOCHS;
    t->rate = o->rate > 0 ? o->rate : t->kind->rate;
    bool estimate;
    t->budget_bytes = o->engine->memory_bytes == DREY_MEMORY_AUTO ? memory_auto_budget(&estimate)
                                                                  : o->engine->memory_bytes;
    t->kernels = kernel_select(o->engine->cpu_tier);
    if (!t->kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED, "the CPU tier \"%s\" does not run on this machine",
             o->engine->cpu_tier);
    TRY(t->kind->resolve_options(t, err));
    return model_identity(t->target->file, &t->identity, err);
}

/* ---- Memory ---- */

size_t draft_training_row_bytes(const draft_training *t, int32_t n_rows)
{
    return (size_t)n_rows * (size_t)t->target->shape.n_embd * sizeof(uint16_t);
}

static size_t arena_bytes(const draft_training *t, int64_t n, int32_t n_rows)
{
    return self_texts_bytes(n, t->target->shape.n_embd) +
           arena_size(draft_training_row_bytes(t, n_rows)) + t->kind->bytes(t, n, n_rows);
}

/* Memory of training with n tokens. Before they are written, each of them may be a different one
 * that is not guessed, and needs a row. */
static uint64_t most_bytes(const draft_training *t, int64_t n)
{
    int32_t n_vocab = t->target->shape.n_vocab;
    int32_t n_rows = (int32_t)min_i64(n_vocab, t->n_ids + n);
    return arena_bytes(t, n, n_rows) + token_slice_bytes(n_vocab) + t->kind->file_bytes(t) +
           memory_program();
}

/* Checked before texts are written, which takes longer than training. */
static drey_status check_memory(const draft_training *t, drey_error *err)
{
    char needs[16];
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
                  "training %s takes %s, and the budget is %s; take a larger budget, or "
                  "a smaller vocabulary to guess from",
                  t->kind->what, format_bytes_up(needs, (double)most_bytes(t, LEAST_POSITIONS)),
                  SIZE_TEXT(t->budget_bytes));
    FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
              "training %s with %lld tokens takes up to %s, and the budget is %s; take at most "
              "%lld tokens, a smaller vocabulary, or a larger budget",
              t->kind->what, (long long)t->n_positions, format_bytes_up(needs, (double)all),
              SIZE_TEXT(t->budget_bytes), (long long)low);
}

/* ---- Texts ---- */

static drey_status write_texts(draft_training *t, drey_error *err)
{
    const drey_train_draft_options *o = t->o;
    drey_engine_options engine = *o->engine;
    engine.memory_bytes = t->budget_bytes;
    float temperature = o->temperature > 0 ? o->temperature : default_temperature;
    const self_texts_job job = {.engine = &engine,
                                .path = t->texts,
                                .n_positions = t->n_positions,
                                .seed = o->seed,
                                .temperature = o->greedy ? 0 : temperature,
                                .prompts = o->prompts,
                                .n_prompts = o->n_prompts,
                                .progress = o->progress,
                                .go_on = o->go_on,
                                .user = o->user};
    return self_texts_write(&job, &t->report->n_kept, err);
}

static drey_status choose_slice(draft_training *t, drey_error *err)
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

static checkpoint_about checkpoint_of(const draft_training *t)
{
    checkpoint_about about = {
        .identity = t->identity,
        .seed = t->o->seed,
        .texts = hash64_of(t->slice.learnt, (size_t)t->slice.n_vocab * sizeof *t->slice.learnt),
        .n_parameters = t->state.n_parameters,
        .n_positions = t->data.n,
        .n_steps = t->state.n_steps,
        .n_ids = t->n_ids,
        .shape = t->shape};
    memcpy(about.magic, t->kind->magic, sizeof about.magic);
    return about;
}

static drey_status save(const draft_training *t, drey_error *err)
{
    const checkpoint_about about = checkpoint_of(t);
    return checkpoint_save(t->checkpoint, &about, *t->state.step, t->state.parameters,
                           t->state.adam, err);
}

/* One that belongs to this training is continued; any other is ignored. */
static void restore(draft_training *t)
{
    const trained_state *s = &t->state;
    const checkpoint_about about = checkpoint_of(t);
    size_t bytes = (size_t)s->n_parameters * sizeof(float);
    if (checkpoint_restore(t->checkpoint, &about, s->step, s->parameters, s->adam))
        return;
    t->kind->begin(t);
    memset(s->adam->first, 0, bytes);
    memset(s->adam->second, 0, bytes);
}

/* ---- Training ---- */

static drey_status open_trainer(draft_training *t, drey_error *err)
{
    const gguf *g = t->target->file;
    int32_t d = t->target->shape.n_embd, n_threads = t->o->engine->n_threads;
    TRY(choose_slice(t, err));
    TRY(pool_open(&t->pool, n_threads ? n_threads : pool_default_threads(), err));
    TRY(arena_init(&t->memory, arena_bytes(t, t->data.n, t->slice.n_rows), true, err));
    t->head_rows = arena_take(&t->memory, draft_training_row_bytes(t, t->slice.n_rows));
    TRY(arena_check(&t->memory, err));
    TRY(token_slice_read(&t->slice, g, model_head_tensor(g), t->kernels, t->head_rows, err));
    TRY(self_texts_read(&t->data, t->texts, t->data.n, d, &t->slice, &t->memory, err));
    TRY(t->kind->open(t, err));
    restore(t);
    return DREY_OK;
}

static drey_status run_steps(draft_training *t, drey_error *err)
{
    const drey_train_draft_options *o = t->o;
    const trained_state *s = &t->state;
    int64_t saved_ns = clock_ns();
    double loss = 0;
    while (*s->step < s->n_steps) {
        t->kind->step(t);
        loss += (*s->loss - loss) * (loss > 0 ? 0.02 : 1);
        if (*s->step % t->kind->steps_between != 0 && *s->step != s->n_steps)
            continue;
        t->report->loss = loss;
        if (o->progress)
            o->progress(o->user, DREY_PROGRESS_TRAIN, (uint64_t)*s->step, (uint64_t)s->n_steps);
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

/* ---- All of it ---- */

static drey_status train(draft_training *t, drey_error *err)
{
    int64_t start = clock_ns();
    TRY(resolve_options(t, err));
    TRY(check_memory(t, err));
    TRY(write_texts(t, err));
    int64_t written = clock_ns();
    TRY(open_trainer(t, err));
    t->report->n_guesses = t->shape;
    t->report->n_ids = t->n_ids;
    t->report->n_texts = t->data.n;
    t->report->n_positions = t->state.n_taught;
    TRY(run_steps(t, err));
    int64_t trained = clock_ns();
    TRY(t->kind->write(t, err));
    t->report->write_s = (double)(written - start) * 1e-9;
    t->report->train_s = (double)(trained - written) * 1e-9;
    if (!t->o->keep_texts)
        unlink(t->texts);
    unlink(t->checkpoint);
    return DREY_OK;
}

drey_status draft_training_run(draft_training *t, const drey_train_draft_options *options,
                               drey_train_draft_report *report, drey_error *err)
{
    drey_train_draft_report own;
    t->o = options;
    t->report = report ? report : &own;
    *t->report = (drey_train_draft_report){0};
    TRY(check_options(options, err));
    float_mode caller = float_mode_enter();
    drey_status status = train(t, err);
    float_mode_leave(caller);
    pool_close(&t->pool);
    arena_free(&t->memory);
    arena_free(&t->slice_memory);
    free(t->output);
    free(t->texts);
    free(t->checkpoint);
    return status;
}
