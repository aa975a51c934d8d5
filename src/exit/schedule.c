/* Two levels of scheduling (SpecEE, section 5.3): the layers where most tokens of the training
 * prompts left, and those near the layers where the latest tokens of this text left. */
#include "exit/exit.h"

#include <assert.h>

#include "common/hash.h"

void exit_choose_layers(const int64_t *counts, int32_t first, int32_t n_layers, int32_t n,
                        bool *chosen)
{
    for (int32_t layer = 0; layer <= n_layers; layer++)
        chosen[layer] = false;
    for (int32_t i = 0; i < n && i < n_layers - first; i++) {
        int32_t best = -1;
        for (int32_t layer = first; layer < n_layers; layer++)
            if (!chosen[layer] && (best < 0 || counts[layer] >= counts[best]))
                best = layer;
        chosen[best] = true;
    }
}

static void choose_randomly(exit_schedule *s, const exit_predictors *p, uint64_t seed)
{
    int64_t rank[EXIT_LAYERS + 1];
    int32_t n = 0;
    for (int32_t layer = p->first; layer < p->n_layers; layer++) {
        uint64_t key[2] = {seed, (uint64_t)layer};
        rank[layer] = (int64_t)(hash64_of(key, sizeof key) >> 1);
        n += p->offline[layer];
    }
    exit_choose_layers(rank, p->first, p->n_layers, n, s->fixed);
}

void exit_schedule_init(exit_schedule *s, const exit_predictors *p, exit_layers which,
                        uint64_t seed)
{
    *s = (exit_schedule){
        .first = p->first, .n_layers = p->n_layers, .follows = which == EXIT_TWO_LEVELS};
    if (which == EXIT_RANDOM_LAYERS)
        choose_randomly(s, p, seed);
    for (int32_t layer = p->first; layer < p->n_layers && which != EXIT_RANDOM_LAYERS; layer++)
        s->fixed[layer] = which == EXIT_EVERY_LAYER || p->offline[layer];
}

bool exit_schedule_active(const exit_schedule *s, int32_t layer)
{
    if (layer < s->first || layer >= s->n_layers)
        return false;
    return s->fixed[layer] || s->n_near[layer] > 0;
}

static void count_near(exit_schedule *s, int32_t exit, int by)
{
    for (int32_t layer = exit - EXIT_NEAR; layer <= exit + EXIT_NEAR; layer++)
        if (layer >= s->first && layer < s->n_layers)
            s->n_near[layer] = (uint8_t)(s->n_near[layer] + by);
}

void exit_schedule_note(exit_schedule *s, int32_t layer)
{
    assert(layer >= 1 && layer <= s->n_layers);
    if (!s->follows)
        return;
    if (s->n_latest == EXIT_QUEUE)
        count_near(s, s->latest[s->oldest], -1);
    else
        s->n_latest++;
    s->latest[s->oldest] = layer;
    s->oldest = (s->oldest + 1) % EXIT_QUEUE;
    count_near(s, layer, 1);
}
