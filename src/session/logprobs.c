/* What the target thought of the tokens it wrote, and of those it might have written. */
#include <assert.h>

#include "base/fmath.h"
#include "session/session.h"

/* The logarithm of the sum of exp(logit) over the vocabulary. */
static double log_sum(const drey_session *s, const float *logits)
{
    const kernel_table *kernels = s->engine->kernels;
    int64_t n = s->engine->target.layout.shape.n_vocab;
    float top = logits[kernels->arg_max(logits, n)];
    return (double)top + log_f64((double)kernels->sum_exp(logits, n, top, 1.0f));
}

float logprob_of(const drey_session *s, const float *logits, int32_t id)
{
    return (float)((double)logits[id] - log_sum(s, logits));
}

/* The n largest, falling; of equal ones the lower id first. Returns how many there are. */
static int32_t take_top(const float *logits, int32_t n_vocab, int32_t n, drey_logprob *top)
{
    int32_t n_top = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        float logit = logits[id];
        if (n_top == n && (n == 0 || !(logit > top[n - 1].logprob)))
            continue;
        int32_t at = n_top < n ? n_top++ : n - 1;
        for (; at > 0 && logit > top[at - 1].logprob; at--)
            top[at] = top[at - 1];
        top[at] = (drey_logprob){.id = id, .logprob = logit};
    }
    return n_top;
}

void logprobs_tell(const drey_session *s, const float *logits)
{
    const drey_generate_options *o = &s->text.options;
    int32_t id = s->timeline[s->n_timeline - 1];
    if (!o->ignore_eos && tokenizer_is_end(s->engine->options.target->tokenizer, id))
        return;
    drey_logprob top[DREY_MAX_TOP];
    assert(o->n_top >= 0 && o->n_top <= DREY_MAX_TOP);
    int32_t n = take_top(logits, s->engine->target.layout.shape.n_vocab, o->n_top, top);
    double sum = log_sum(s, logits);
    for (int32_t i = 0; i < n; i++)
        top[i].logprob = (float)((double)top[i].logprob - sum);
    const drey_logprob written = {.id = id, .logprob = (float)((double)logits[id] - sum)};
    o->on_logprobs(o->user, &written, top, n);
}
