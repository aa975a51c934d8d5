/* Training of predictors for all layers at once: see exit_samples.h and mlp.h.
 *
 * An MLP learns how likely the head's choice at a layer is the final token. Whether leaving pays is
 * another question: after layer l it saves n_layers - l layers, and it pays if those outweigh the
 * wrong tokens. With the price of a wrong token C layers, that is if
 *
 *   (1 - p) C < n_layers - l,   that is   logit(p) > log((C - (n_layers - l)) / (n_layers - l)),
 *
 * which is subtracted from b2: a score above a half means that leaving pays, at every layer. One
 * threshold on p itself for all layers, as in the paper, saves about a seventh less at the same
 * agreement. */
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "exit/exit_file.h"
#include "train/exit_samples.h"
#include "train/mlp.h"

enum { N_BATCH = 256, LEAST_STEPS = 2000, LEAST_EPOCHS = 10 };
static const float learning_rate = 0.003f, weight_decay = 0.01f;
static const double passes_of_a_mistake = 1; /* C, in passes through the whole model */

/* Returns whether the predictors can learn from a position. */
static bool teaches(const exit_training *t, int32_t i)
{
    exit_walk w;
    exit_walk_begin(&w, t->samples, t->p, i);
    return (t->all || !exit_is_held_out(t->samples, i)) && w.candidates->n > 0;
}

/* Rows of all layers: a position's changes are relative to the layer before. */
static void take_samples(const exit_training *t, float *x, uint8_t *label, uint8_t *group)
{
    const exit_samples *s = t->samples;
    const exit_predictors *p = t->p;
    float all[EXIT_FEATURES];
    for (int32_t i = 0; i < s->n; i++) {
        exit_walk w;
        if (!teaches(t, i))
            continue;
        exit_walk_begin(&w, s, p, i);
        for (int32_t layer = p->first; layer < p->n_layers; layer++) {
            exit_walk_next(&w, layer, all);
            memcpy(x, all, (size_t)p->n_features * sizeof *x);
            x += p->n_features;
            int32_t head = exit_look_at(s, i, layer)->head;
            *label++ = head == s->position[i].final && exit_walk_takes(&w, head);
            *group++ = (uint8_t)(layer - p->first);
        }
    }
}

float exit_price(const exit_predictors *p, int32_t layer)
{
    double saved = p->n_layers - layer, cost = passes_of_a_mistake * p->n_layers;
    return (float)log_f64((cost - saved) / saved);
}

drey_status exit_fit(const exit_training *t, drey_error *err)
{
    const exit_predictors *p = t->p;
    mlp_training training = {.n_hidden = p->n_hidden,
                             .n_batch = N_BATCH,
                             .rate = learning_rate,
                             .decay = weight_decay,
                             .seed = t->seed,
                             .progress = t->progress,
                             .user = t->user};
    mlp_samples s = {.n_features = p->n_features, .n_groups = p->n_layers - p->first};
    arena memory;
    _Static_assert(EXIT_LAYERS <= 256, "a group is a byte");
    for (int32_t i = 0; i < t->samples->n; i++)
        s.n += teaches(t, i) ? s.n_groups : 0;
    if (s.n == 0)
        FAIL(err, DREY_ERR_USAGE,
             "there is nothing to learn from: no candidates for any token of the texts; give more "
             "prompts, or longer texts");
    training.n_epochs =
        max_i32(LEAST_EPOCHS, ceil_div_i32(LEAST_STEPS, ceil_div_i32(s.n, N_BATCH)));
    size_t n = (size_t)s.n, x_bytes = n * (size_t)s.n_features * sizeof(float);
    size_t bytes = arena_size(x_bytes) + 2 * arena_size(n) + mlp_train_bytes(&s, &training);
    TRY(arena_init(&memory, bytes, false, err));
    float *x = arena_take(&memory, x_bytes);
    uint8_t *label = arena_take(&memory, n), *group = arena_take(&memory, n);
    take_samples(t, x, label, group);
    s.x = x;
    s.label = label;
    s.group = group;
    mlp_numbers out = {t->numbers[0], t->numbers[1], t->numbers[2], t->numbers[3]};
    bool whole = mlp_train(&s, &training, &out, &memory);
    for (int32_t layer = p->first; layer < p->n_layers; layer++)
        out.b2[layer - p->first] -= exit_price(p, layer);
    exit_point(t->p, t->numbers);
    drey_status status = arena_check(&memory, err);
    arena_free(&memory);
    if (status == DREY_OK && !whole)
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
    exit_choose_layers(j.exits, p->first, p->n_layers, (p->n_layers - p->first) * 3 / 4,
                       p->offline);
}
