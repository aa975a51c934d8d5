/* The expected tokens per second of a plan with its drafter, on a usual machine and disk, for usual
 * texts. It ranks drafters before anything is measured; while a text is written the policy measures
 * the speed itself.
 *
 * If drey_tune_pair measured the drafter, that is expected: the tokens that its trees wrote, in the
 * times of its passes and steps. Files of heads contain how often they are right: for heads it is
 * the best static trees. For others it is what their kind says of trees that follow confidence
 * (drafter_kind.usual). */
#include <string.h>

#include "common/num.h"
#include "base/usual.h"
#include "draft/drafter_kind.h"
#include "drey/tune.h"
#include "policy/cost.h"
#include "tree/static_tree.h"
#include "plan/plan.h"

enum { MOST_YIELDS = 7 };

typedef struct tree_yields {
    tree_yield of[MOST_YIELDS]; /* by rising nodes */
    int32_t n;
} tree_yields;

static void add(tree_yields *y, const plan_inputs *in, const static_tree *shape, double tokens)
{
    int32_t nodes[STATIC_WIDEST], steps = static_tree_steps(shape, nodes);
    if (in->draft.kind->looks_up)
        steps = 0;
    y->of[y->n++] = (tree_yield){shape->n - 1, tokens, steps};
}

/* Lowers the shares of a file of heads, which are those of texts like the ones it learnt from. */
static bool heads_shares(rank_shares *shares, const plan_inputs *in)
{
    const drey_profile *profile = in->draft.profile;
    if (!static_shares(shares, in->draft.trees, STATIC_RANKS))
        return false;
    bool measured = profile && profile->trees == in->draft.trees;
    for (int32_t d = 0; d < shares->n_depths && !measured; d++)
        shares->share[d][0] *= (float)USUAL_HEADS_ELSEWHERE;
    return true;
}

/* Returns the yields of trees by tune's own count of tokens; else by the heads' shares. */
static tree_yields known_yields(const plan_inputs *in)
{
    tree_yields y = {.n = 0};
    static_tree shape;
    rank_shares shares;
    for (int32_t i = 0; i < in->draft.trees->n_trees; i++)
        if (static_tree_take(&shape, &in->draft.trees->tree[i]))
            add(&y, in, &shape, in->draft.trees->tree[i].measured_tokens);
    bool grown = y.n == 0 && heads_shares(&shares, in);
    for (int32_t width = 2; grown && width <= STATIC_WIDEST; width *= 2) {
        shape = static_tree_grow(&shares, width);
        add(&y, in, &shape, static_tree_expected(&shape, &shares));
    }
    return y;
}

static tree_yields yields_of(const plan_inputs *in)
{
    tree_yields y = {.n = 0};
    const drafter_kind *kind = in->draft.kind;
    if (!kind)
        return y;
    if (in->draft.trees)
        y = known_yields(in);
    if (y.n > 0 || !kind->usual)
        return y;
    y.n = DRAFT_YIELDS;
    memcpy(y.of, kind->usual, DRAFT_YIELDS * sizeof *y.of);
    return y;
}

double expect_best(const plan_inputs *in, expect_turn_fn *turn_s, const void *user)
{
    double best = 1 / turn_s(user, 0, 0); /* a policy may always draft nothing */
    tree_yields y = yields_of(in);
    for (int32_t i = 0; i < y.n && y.of[i].n_nodes <= in->draft.tree_nodes; i++)
        best = max_f64(best, y.of[i].tokens / turn_s(user, y.of[i].n_nodes, y.of[i].steps));
    return best;
}

/* A step that reads much does so faster than a pass of its target, part of whose time is not
 * reading: a draft of 0.31 GB took 12 ms, 2.45 GB of a target's planes 51 ms, over one to five
 * nodes. */
static double step_s(double bytes)
{
    const double memory = USUAL_MEMORY_BYTES_PER_S, small = USUAL_STEP_SMALL_BYTES;
    return min_f64(bytes, small) / memory +
           max_f64(bytes - small, 0) / USUAL_STEP_BEYOND_BYTES_PER_S;
}

static double usual_turn(const void *user, int32_t n_nodes, int32_t n_steps)
{
    const turn_cost *cost = user;
    double draft_s = n_steps ? n_steps * cost_step(cost, ceil_div_i32(n_nodes, n_steps)) : 0;
    return cost_turn(cost, n_nodes, draft_s);
}

double plan_row_price(int32_t n_threads)
{
    return n_threads > 0 ? max_f64(USUAL_ROW_THREADS / n_threads, 1) : 1;
}

static void share_rows(turn_cost *c, int32_t n_threads)
{
    double dearer = plan_row_price(n_threads);
    for (int32_t n = 1; n <= DREY_PROFILE_ROWS; n++)
        c->shape[n - 1] = 1 + (c->shape[n - 1] - 1) * dearer;
}

void plan_cost_of_mixture(const plan_inputs *in, const mixture_bytes *bytes, uint64_t step_bytes,
                          turn_cost *cost)
{
    /* Seconds as bytes that memory brings in them. */
    double read = (double)bytes->read / USUAL_DISK_BYTES_PER_S * USUAL_MEMORY_BYTES_PER_S;
    double experts = read + (double)bytes->token;
    double all = experts + (double)bytes->pinned;
    cost_init(cost, (uint64_t)all, 0, step_bytes, 0);
    cost_of_experts(cost, experts / all, plan_expert_ratio(in));
}

void plan_cost(const plan_inputs *in, const plan_result *r, turn_cost *cost)
{
    const drey_plan *t = &r->report;
    uint64_t step_bytes = plan_step_bytes(in, r);
    uint64_t streamed = t->streamed_bytes_per_pass + t->kv_read_bytes / 2;
    if (t->n_experts == 0) {
        cost_init(cost, t->target_bytes, streamed, step_bytes, t->ring_bytes);
        return;
    }
    const mixture_bytes bytes = {streamed, in->model[PLAN_TARGET].experts.token_bytes,
                                 t->pinned_bytes};
    plan_cost_of_mixture(in, &bytes, step_bytes, cost);
}

double plan_expect(const plan_inputs *in, const plan_result *r)
{
    turn_cost cost;
    uint64_t step_bytes = plan_step_bytes(in, r);
    plan_cost(in, r, &cost);
    cost.step = step_s((double)step_bytes);
    share_rows(&cost, in->n_threads);
    if (in->draft.profile)
        cost_seed(&cost, in->draft.profile);
    return expect_best(in, usual_turn, &cost);
}
