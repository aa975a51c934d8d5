/* What a plan is good for with its drafter: tokens a second on a machine and disk of today, with
 * texts of usual predictability. It ranks drafters before anything is measured; while a text is
 * written the policy measures for itself.
 *
 * Tokens a pass by the nodes of a tree, and the steps that such a tree takes, are what trees that
 * follow confidence got over code and chat. A larger draft guesses no better here: that it costs
 * more is known, how much more it knows is not. The target's own high bits guess like a model of a
 * tenth of its size. A tree of Medusa heads is no deeper than they are many. */
#include "base/num.h"
#include "draft/cost.h"
#include "engine/plan.h"

typedef struct tree_yield {
    int32_t n_nodes;
    double model_tokens, lookup_tokens, heads_tokens; /* that a pass writes */
    int32_t steps;                                    /* of a model, over up to 8 nodes each */
} tree_yield;

static const tree_yield yields[] = {{1, 1.8, 1.15, 1.4, 1},   {3, 2.9, 1.25, 1.6, 3},
                                    {7, 4.7, 1.35, 1.8, 5},   {15, 6.7, 1.45, 2.0, 9},
                                    {31, 8.8, 1.5, 2.05, 14}, {63, 10.3, 1.55, 2.1, 22}};

static double tokens_of(const plan_inputs *in, const tree_yield *y)
{
    if (in->drafter == DREY_DRAFTER_MEDUSA)
        return y->heads_tokens;
    return in->drafter == DREY_DRAFTER_LOOKUP ? y->lookup_tokens : y->model_tokens;
}

static int32_t steps_of(const plan_inputs *in, const tree_yield *y)
{
    if (in->drafter == DREY_DRAFTER_MEDUSA)
        return min_i32(y->steps, in->n_heads);
    return in->drafter == DREY_DRAFTER_LOOKUP ? 0 : y->steps;
}

double expect_best(const plan_inputs *in, expect_turn_fn *turn_s, const void *user)
{
    double best = 1 / turn_s(user, 0, 0); /* who speculates may always leave it */
    for (size_t i = 0; i < sizeof yields / sizeof *yields; i++) {
        const tree_yield *y = &yields[i];
        if (y->n_nodes > in->tree_nodes || in->drafter == DREY_DRAFTER_NONE)
            break;
        best = max_f64(best, tokens_of(in, y) / turn_s(user, y->n_nodes, steps_of(in, y)));
    }
    return best;
}

/* A step that reads much goes faster than a pass of its target, of whose time a part is
 * not reading: a draft of 0.31 GB took 12 ms, 2.45 GB of a target's planes 51, over one to
 * five nodes. */
static double step_s(double bytes)
{
    const double memory = 30e9, small = 0.3e9, memory_beyond = 55e9;
    return min_f64(bytes, small) / memory + max_f64(bytes - small, 0) / memory_beyond;
}

static double usual_turn(const void *user, int32_t n_nodes, int32_t n_steps)
{
    const turn_cost *cost = user;
    double draft_s = n_steps ? n_steps * cost_step(cost, ceil_div_i32(n_nodes, n_steps)) : 0;
    return cost_turn(cost, n_nodes, draft_s);
}

double plan_expect(const plan_inputs *in, const plan_result *r)
{
    const drey_plan *t = &r->report;
    turn_cost cost;
    uint64_t step_bytes = in->self_draft ? t->pinned_bytes : t->draft_bytes;
    cost_init(&cost, t->target_bytes, t->streamed_bytes_per_pass, step_bytes, t->ring_bytes);
    cost.step = step_s((double)step_bytes);
    return expect_best(in, usual_turn, &cost);
}
