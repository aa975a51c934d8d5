/* Learning: a predictor for each layer, see exit_samples.h. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/pool.h"
#include "train/exit_samples.h"
#include "train/mlp.h"

enum { N_EPOCHS = 60, N_BATCH = 64 };
static const float learning_rate = 0.003f, weight_decay = 0.01f;

typedef struct fitting {
    const exit_training *t;
    arena *memory; /* [n_threads] */
    int32_t n_samples;
    _Atomic int32_t next, n_done;
    _Atomic bool stopped;
} fitting;

/* A position that can teach p something. */
static bool teaches(const exit_samples *s, const exit_predictors *p, int32_t i)
{
    exit_walk w;
    exit_walk_begin(&w, s, p, i);
    return !exit_is_held_out(s, i) && (p->kind == EXIT_CONFIDENCE || w.candidates->n > 0);
}

/* All layers before it are looked at, too: a change is since the one before. */
static void take_samples(const exit_training *t, int32_t layer, float *x, uint8_t *label)
{
    const exit_samples *s = t->samples;
    const exit_predictors *p = t->p;
    float all[EXIT_FEATURES];
    for (int32_t i = 0; i < s->n; i++) {
        exit_walk w;
        if (!teaches(s, p, i))
            continue;
        exit_walk_begin(&w, s, p, i);
        for (int32_t before = p->first; before <= layer; before++)
            exit_walk_next(&w, before, all);
        memcpy(x, all, (size_t)p->n_features * sizeof *x);
        x += p->n_features;
        int32_t head = exit_look_at(s, i, layer)->head;
        *label++ = head == s->position[i].final && exit_walk_takes(&w, head);
    }
}

static mlp_training training_of(const exit_training *t, int32_t layer)
{
    return (mlp_training){.n_hidden = t->p->n_hidden,
                          .n_epochs = N_EPOCHS,
                          .n_batch = N_BATCH,
                          .rate = learning_rate,
                          .decay = weight_decay,
                          .seed = t->seed * EXIT_LAYERS + (uint64_t)layer};
}

static size_t thread_bytes(const exit_training *t, int32_t n_samples)
{
    mlp_samples s = {.n = n_samples, .n_features = t->p->n_features};
    mlp_training training = training_of(t, 0);
    size_t n = (size_t)n_samples;
    return arena_size(n * (size_t)s.n_features * sizeof(float)) + arena_size(n) +
           arena_size((size_t)mlp_n_parameters(s.n_features, t->p->n_hidden) * sizeof(float)) +
           mlp_train_bytes(&s, &training);
}

static void fit_layer(const fitting *f, int32_t layer, arena *a)
{
    const exit_training *t = f->t;
    const exit_predictors *p = t->p;
    size_t mark = arena_mark(a), n = (size_t)f->n_samples;
    int64_t n_w1 = (int64_t)p->n_features * p->n_hidden, i = layer - p->first;
    float *x = arena_take(a, n * (size_t)p->n_features * sizeof *x);
    uint8_t *label = arena_take(a, n);
    float *numbers =
        arena_take(a, (size_t)mlp_n_parameters(p->n_features, p->n_hidden) * sizeof *numbers);
    take_samples(t, layer, x, label);
    mlp_samples s = {.n = f->n_samples, .n_features = p->n_features, .x = x, .label = label};
    mlp_training training = training_of(t, layer);
    mlp_train(&s, &training, numbers, a);
    size_t hidden_bytes = (size_t)p->n_hidden * sizeof *numbers;
    memcpy(t->numbers[0] + i * n_w1, numbers, (size_t)n_w1 * sizeof *numbers);
    memcpy(t->numbers[1] + i * p->n_hidden, numbers + n_w1, hidden_bytes);
    memcpy(t->numbers[2] + i * p->n_hidden, numbers + n_w1 + p->n_hidden, hidden_bytes);
    t->numbers[3][i] = numbers[n_w1 + 2 * p->n_hidden];
    arena_rewind(a, mark);
}

static void fit_layers(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    fitting *f = arg;
    const exit_training *t = f->t;
    for (int32_t layer; (layer = atomic_fetch_add(&f->next, 1)) < t->p->n_layers;) {
        fit_layer(f, layer, &f->memory[thread]);
        int32_t n_done = atomic_fetch_add(&f->n_done, 1) + 1;
        if (thread == 0 && t->tell && !t->tell(t->user, n_done))
            atomic_store(&f->stopped, true);
        if (atomic_load(&f->stopped))
            return;
    }
}

drey_status exit_fit(const exit_training *t, drey_error *err)
{
    fitting f = {.t = t};
    pool *threads = NULL;
    for (int32_t i = 0; i < t->samples->n; i++)
        f.n_samples += teaches(t->samples, t->p, i);
    if (f.n_samples == 0)
        FAIL(err, DREY_ERR_USAGE,
             "there is nothing to learn from: no candidates for any token of the texts; give more "
             "prompts, or longer texts");
    atomic_store(&f.next, t->p->first);
    f.memory = calloc((size_t)t->n_threads, sizeof *f.memory);
    drey_status status =
        f.memory ? pool_open(&threads, t->n_threads, err)
                 : error_set(err, DREY_ERR_MEMORY, "no memory to train predictors with");
    for (int32_t i = 0; i < t->n_threads && status == DREY_OK; i++)
        status = arena_init(&f.memory[i], thread_bytes(t, f.n_samples), false, err);
    if (status == DREY_OK) {
        pool_run(threads, fit_layers, &f);
        exit_point(t->p, t->numbers);
    }
    for (int32_t i = 0; i < t->n_threads && status == DREY_OK; i++)
        status = arena_check(&f.memory[i], err);
    for (int32_t i = 0; i < t->n_threads && f.memory; i++)
        arena_free(&f.memory[i]);
    pool_close(&threads);
    free(f.memory);
    if (status == DREY_OK && f.stopped)
        FAIL(err, DREY_ERR_CANCELLED, "interrupted; nothing was written");
    return status;
}

void exit_fit_schedule(exit_predictors *p, const exit_samples *s)
{
    exit_judgement j;
    exit_rule rule = {.p = p, .layers = EXIT_EVERY_LAYER, .threshold = p->threshold};
    exit_judge(s, &rule, false, &j);
    for (int32_t layer = 0; layer <= s->n_layers; layer++)
        p->expected[layer] =
            j.n > 0 ? (float)((double)j.exits[layer] / (double)j.n) : (float)(layer == s->n_layers);
    exit_choose_layers(j.exits, p->first, p->n_layers, (p->n_layers - p->first + 1) / 2,
                       p->offline);
}
