/* The choice of experts against its definition: who is better than how many, in double
 * precision. */
#include "model/router.h"
#include "support/rng.h"
#include "support/test.h"

enum { MOST = 24 };

/* Finds the `most` largest of n values; of equal ones those with lower numbers. Values of those
 * that are not allowed do not count. */
static void largest(const double *x, const bool *allowed, int n, int most, bool *chosen)
{
    for (int i = 0; i < n; i++) {
        int n_better = 0;
        for (int j = 0; j < n; j++)
            n_better += allowed[j] && (x[j] > x[i] || (x[j] == x[i] && j < i));
        chosen[i] = allowed[i] && n_better < most;
    }
}

static void groups_of(const router_shape *s, const double *choice, bool *allowed)
{
    bool all[MOST] = {0}, chosen[MOST] = {0};
    double worth[MOST] = {0};
    int size = s->n_experts / s->n_groups;
    for (int g = 0; g < s->n_groups; g++) {
        double best = -1e300;
        for (int i = g * size; i < (g + 1) * size; i++)
            for (int j = g * size; j < (g + 1) * size; j++)
                if (i != j || size == 1)
                    best = fmax(best, choice[i] + (size > 1 ? choice[j] : 0));
        worth[g] = best;
        all[g] = true;
    }
    largest(worth, all, s->n_groups, s->n_choices, chosen);
    for (int i = 0; i < s->n_experts; i++)
        allowed[i] = s->n_groups == 1 || chosen[i / size];
}

/* weight[i] of each expert; 0: it is not taken. */
static void definition(const router_shape *s, const float *logits, const float *bias,
                       double *weight)
{
    double choice[MOST], all = 0, sum = 0;
    bool allowed[MOST] = {0}, chosen[MOST] = {0};
    for (int i = 0; i < s->n_experts; i++)
        all += exp((double)logits[i]);
    for (int i = 0; i < s->n_experts; i++) {
        weight[i] = s->gate == ROUTER_SOFTMAX   ? exp((double)logits[i]) / all
                    : s->gate == ROUTER_SIGMOID ? 1 / (1 + exp(-(double)logits[i]))
                                                : (double)logits[i];
        choice[i] = weight[i] + (bias ? (double)bias[i] : 0);
    }
    groups_of(s, choice, allowed);
    largest(choice, allowed, s->n_experts, s->n_used, chosen);
    for (int i = 0; i < s->n_experts; i++) {
        weight[i] = s->gate == ROUTER_SOFTMAX_CHOSEN ? exp((double)logits[i]) : weight[i];
        weight[i] = chosen[i] ? weight[i] : 0;
        sum += weight[i];
    }
    for (int i = 0; i < s->n_experts; i++)
        weight[i] *= (double)s->scale / (s->gate == ROUTER_SOFTMAX_CHOSEN || s->normed ? sum : 1);
}

static void must_be_as_defined(const router_shape *s, const float *logits, const float *bias)
{
    double want[MOST];
    float x[MOST], weight[ROUTER_MOST];
    int32_t expert[ROUTER_MOST];
    memcpy(x, logits, sizeof x);
    assert_true(router_choose(s, x, bias, expert, weight));
    definition(s, logits, bias, want);
    int n = 0;
    for (int i = 0; i < s->n_experts; i++) {
        if (want[i] == 0)
            continue;
        assert_true(n < s->n_used);
        assert_int_equal(expert[n], i);
        assert_near(weight[n], want[i], 1e-6 * fmax(1, fabs(want[i])));
        n++;
    }
    assert_int_equal(n, s->n_used);
}

static const router_shape shapes[] = {
    {.n_experts = 8, .n_used = 2, .normed = true, .scale = 1, .n_groups = 1},
    {.n_experts = 8, .n_used = 8, .scale = 1, .n_groups = 1},
    {.n_experts = 24, .n_used = 6, .scale = 1, .n_groups = 1},
    {.n_experts = 1, .n_used = 1, .normed = true, .scale = 1, .n_groups = 1},
    {.n_experts = 12, .n_used = 4, .gate = ROUTER_SOFTMAX_CHOSEN, .scale = 1, .n_groups = 1},
    {.n_experts = 24, .n_used = 5, .gate = ROUTER_SIGMOID, .scale = 2.5f, .n_groups = 1},
    {.n_experts = 24,
     .n_used = 6,
     .gate = ROUTER_SIGMOID,
     .normed = true,
     .scale = 2.5f,
     .n_groups = 4,
     .n_choices = 2},
    {.n_experts = 6, .n_used = 2, .scale = 1, .n_groups = 6, .n_choices = 3},
};

TEST(as_defined)
{
    rng r = rng_from(1);
    for (int round = 0; round < 2000; round++) {
        const router_shape *s = &shapes[round % (int)(sizeof shapes / sizeof *shapes)];
        float logits[MOST], bias[MOST];
        for (int i = 0; i < MOST; i++) {
            logits[i] = (float)(8 * rng_unit(&r) - 4);
            bias[i] = (float)(rng_unit(&r) - 0.5);
        }
        must_be_as_defined(s, logits, NULL);
        if (s->gate != ROUTER_SOFTMAX_CHOSEN)
            must_be_as_defined(s, logits, bias);
    }
}

/* Ties: lower numbers; and logits far apart. */
TEST(edges)
{
    router_shape s = shapes[2];
    float equal[MOST] = {0}, apart[MOST], weight[ROUTER_MOST];
    int32_t expert[ROUTER_MOST];
    assert_true(router_choose(&s, equal, NULL, expert, weight));
    for (int32_t i = 0; i < s.n_used; i++) {
        assert_int_equal(expert[i], i);
        assert_near(weight[i], 1.0 / 24, 1e-7);
    }
    for (int i = 0; i < MOST; i++)
        apart[i] = i == 17 ? 1e30f : -1e30f;
    s.normed = true;
    assert_true(router_choose(&s, apart, NULL, expert, weight));
    for (int32_t i = 0; i < s.n_used; i++)
        assert_near(weight[i], expert[i] == 17, 1e-7);
}

TEST(no_numbers)
{
    for (int i = 0; i < 3; i++) {
        float logits[MOST] = {0}, weight[ROUTER_MOST];
        int32_t expert[ROUTER_MOST];
        logits[5] = (float[]){NAN, INFINITY, -INFINITY}[i];
        assert_false(router_choose(&shapes[0], logits, NULL, expert, weight));
    }
}
