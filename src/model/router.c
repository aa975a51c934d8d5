/* Choosing experts: see router.h. */
#include "model/router.h"

#include <assert.h>
#include <math.h>

#include "base/fmath.h"

/* Sums of weights are at least this: a row whose sigmoids all vanish keeps numbers. As in
 * llama.cpp. */
static const double least_sum = 6.103515625e-5;

const char *router_gate_name(router_gate gate)
{
    static const char *const names[] = {[ROUTER_SOFTMAX] = "softmax",
                                        [ROUTER_SIGMOID] = "sigmoid",
                                        [ROUTER_SOFTMAX_CHOSEN] = "softmax of the chosen",
                                        [ROUTER_SQRT_SOFTPLUS] = "square root of softplus",
                                        [ROUTER_SPARSE_MIXER] = "sparse mixer"};
    return names[gate];
}

static float largest(const float *x, int32_t n)
{
    float most = x[0];
    for (int32_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* x becomes exp(x - max) / sum; in double, so that every tier has the same bits. */
static void softmax(float *x, int32_t n)
{
    float most = largest(x, n);
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += exp_f64((double)(x[i] - most));
    for (int32_t i = 0; i < n; i++)
        x[i] = (float)(exp_f64((double)(x[i] - most)) / sum);
}

static void sigmoid(float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        x[i] = (float)(1.0 / (1.0 + exp_f64(-(double)x[i])));
}

static void sqrt_softplus(float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const double v = (double)x[i], rest = log_f64(1.0 + exp_f64(v > 0 ? -v : v));
        x[i] = (float)sqrt(v > 0 ? v + rest : rest);
    }
}

static float choice_of(const float *weight, const float *bias, int32_t i)
{
    return bias ? weight[i] + bias[i] : weight[i];
}

/* The sum of the two best of a group, or its best. */
static double worth_of(const router_shape *s, const float *weight, const float *bias, int32_t group)
{
    int32_t n = s->n_experts / s->n_groups;
    float best = -INFINITY, second = -INFINITY;
    for (int32_t i = group * n; i < (group + 1) * n; i++) {
        float c = choice_of(weight, bias, i);
        second = c > best ? best : c > second ? c : second;
        best = c > best ? c : best;
    }
    return (double)best + (n > 1 && !s->by_best ? (double)second : 0.0);
}

/* A bit for each group whose experts may be chosen. */
static uint64_t choose_groups(const router_shape *s, const float *weight, const float *bias)
{
    uint64_t chosen = 0;
    for (int32_t i = 0; i < s->n_choices; i++) {
        int32_t best = -1;
        double most = 0;
        for (int32_t g = 0; g < s->n_groups; g++) {
            double worth = worth_of(s, weight, bias, g);
            if (!(chosen >> g & 1) && (best < 0 || worth > most)) {
                best = g;
                most = worth;
            }
        }
        chosen |= (uint64_t)1 << best;
    }
    return chosen;
}

/* Puts i among the n best so far, which fall and have room for `most`. Returns how many there are.
 */
static int32_t enter(int32_t *best, int32_t n, int32_t most, const float *weight, const float *bias,
                     int32_t i)
{
    float c = choice_of(weight, bias, i);
    int32_t at = n;
    while (at > 0 && c > choice_of(weight, bias, best[at - 1]))
        at--;
    if (at == most)
        return n;
    n = n < most ? n + 1 : most;
    for (int32_t j = n - 1; j > at; j--)
        best[j] = best[j - 1];
    best[at] = i;
    return n;
}

static void sort_rising(int32_t *x, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        for (int32_t j = i; j > 0 && x[j - 1] > x[j]; j--) {
            int32_t other = x[j];
            x[j] = x[j - 1];
            x[j - 1] = other;
        }
}

static void weigh(const router_shape *s, float *weight)
{
    if (s->gate == ROUTER_SOFTMAX_CHOSEN)
        softmax(weight, s->n_used);
    double sum = 0;
    for (int32_t i = 0; i < s->n_used; i++)
        sum += (double)weight[i];
    double by =
        s->normed ? (double)s->scale / (sum > least_sum ? sum : least_sum) : (double)s->scale;
    for (int32_t i = 0; i < s->n_used; i++)
        weight[i] = (float)((double)weight[i] * by);
}

/* Weighs the best logit among those that are not `chosen`: its softmax among them, where those that
 * are far from it do not count. */
static int32_t pick(const router_shape *s, const float *logits, const bool *chosen, float *weight)
{
    const float far = 0.02f; /* in parts of the larger of the best and of a logit's size */
    int32_t best = -1;
    double sum = 0;
    for (int32_t i = 0; i < s->n_experts; i++)
        if (!chosen[i] && (best < 0 || logits[i] > logits[best]))
            best = i;
    for (int32_t i = 0; i < s->n_experts; i++) {
        const float size = fabsf(logits[i]), below = logits[best] - logits[i];
        if (!chosen[i] && below <= far * (size > logits[best] ? size : logits[best]))
            sum += exp_f64(-(double)below);
    }
    *weight = (float)(1 / sum);
    return best;
}

static void mix_sparsely(const router_shape *s, float *logits, int32_t *expert)
{
    enum { MOST_EXPERTS = 4096 };
    bool chosen[MOST_EXPERTS] = {false};
    float weight[ROUTER_MOST];
    for (int32_t i = 0; i < s->n_used; i++) {
        expert[i] = pick(s, logits, chosen, &weight[i]);
        chosen[expert[i]] = true;
    }
    for (int32_t i = 0; i < s->n_used; i++)
        logits[expert[i]] = weight[i];
}

bool router_choose(const router_shape *s, float *logits, const float *bias, int32_t *expert,
                   float *weight)
{
    assert(s->n_used >= 1 && s->n_used <= s->n_experts && s->n_used <= ROUTER_MOST);
    for (int32_t i = 0; i < s->n_experts; i++)
        if (!isfinite(logits[i]))
            return false;
    if (s->gate == ROUTER_SOFTMAX)
        softmax(logits, s->n_experts);
    else if (s->gate == ROUTER_SIGMOID)
        sigmoid(logits, s->n_experts);
    else if (s->gate == ROUTER_SQRT_SOFTPLUS)
        sqrt_softplus(logits, s->n_experts);
    const bool mixes = s->gate == ROUTER_SPARSE_MIXER;
    if (mixes)
        mix_sparsely(s, logits, expert);
    bool grouped = s->n_groups > 1;
    uint64_t groups = grouped ? choose_groups(s, logits, bias) : 0;
    int32_t n = mixes ? s->n_used : 0, in_group = grouped ? s->n_experts / s->n_groups : 1;
    for (int32_t i = 0; i < s->n_experts && !mixes; i++)
        if (!grouped || groups >> (i / in_group) & 1)
            n = enter(expert, n, s->n_used, logits, bias, i);
    sort_rising(expert, n);
    for (int32_t i = 0; i < n; i++)
        weight[i] = logits[expert[i]];
    weigh(s, weight);
    return n == s->n_used;
}
