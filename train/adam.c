/* Adam: see adam.h. */
#include "train/adam.h"

#include <math.h>
#include <string.h>

void adam_options_init(adam_options *o)
{
    *o = (adam_options){.rate = 0.001f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
}

size_t adam_bytes(int64_t n)
{
    return 2 * arena_size((size_t)n * sizeof(float));
}

void adam_init(adam *o, int64_t n, const adam_options *options, arena *a)
{
    size_t bytes = (size_t)n * sizeof(float);
    *o = (adam){.options = *options, .n = n, .power1 = 1, .power2 = 1};
    o->first = arena_take(a, bytes);
    o->second = arena_take(a, bytes);
    if (o->first && o->second) { /* the arena may have been used before */
        memset(o->first, 0, bytes);
        memset(o->second, 0, bytes);
    }
}

void adam_begin(adam *o)
{
    o->power1 *= (double)o->options.beta1;
    o->power2 *= (double)o->options.beta2;
    o->step = (float)((double)o->options.rate / (1 - o->power1));
    o->scale2 = (float)(1 / (1 - o->power2));
}

void adam_apply(const adam *o, float *w, const float *gradient, int64_t from, int64_t to)
{
    const adam_options *p = &o->options;
    float keep1 = p->beta1, keep2 = p->beta2, shrink = p->rate * p->decay;
    for (int64_t i = from; i < to; i++) {
        float g = gradient[i];
        o->first[i] = keep1 * o->first[i] + (1 - keep1) * g;
        o->second[i] = keep2 * o->second[i] + (1 - keep2) * (g * g);
        w[i] -=
            o->step * o->first[i] / (sqrtf(o->second[i] * o->scale2) + p->epsilon) + shrink * w[i];
    }
}
