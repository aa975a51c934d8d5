/* What a plan is good for with its drafter: tokens a second on a machine and disk of today, with
 * texts of usual predictability. It ranks drafters before anything is measured; while a text is
 * written the policy measures for itself.
 *
 * Tokens a pass by the nodes of a tree, and the steps that such a tree takes, are what trees that
 * follow confidence got over code and chat. A larger draft guesses no better here: that it costs
 * more is known, how much more it knows is not. The target's own high bits guess like a model of a
 * tenth of its size. Medusa heads are
 * all computed in one step. */
#include "draft/cost.h"
#include "engine/plan.h"

typedef struct tree_yield {
    int32_t n_nodes;
    double model_tokens, lookup_tokens, heads_tokens; /* that a pass writes */
    int32_t steps;                                    /* of a model, over up to 8 nodes each */
} tree_yield;

static const tree_yield yields[] = {{1, 1.8, 1.15, 1.5, 1},  {3, 2.9, 1.25, 1.8, 3},
                                    {7, 4.7, 1.35, 2.1, 5},  {15, 6.7, 1.45, 2.3, 9},
                                    {31, 8.8, 1.5, 2.4, 14}, {63, 10.3, 1.55, 2.5, 22}};

double plan_expect(const plan_inputs *in, const plan_result *r)
{
    const drey_plan *t = &r->report;
    turn_cost cost;
    uint64_t step_bytes = in->self_draft ? t->pinned_bytes : t->draft_bytes + in->slice_bytes;
    cost_init(&cost, t->target_bytes, t->streamed_bytes_per_pass, step_bytes, t->ring_bytes);
    double best = 1 / cost_turn(&cost, 0, 0); /* who speculates may always leave it */
    for (size_t i = 0; i < sizeof yields / sizeof *yields; i++) {
        const tree_yield *y = &yields[i];
        bool model = in->drafter == DREY_DRAFTER_MODEL || in->self_draft;
        if (y->n_nodes > in->tree_nodes || in->drafter == DREY_DRAFTER_NONE)
            break;
        bool heads = in->drafter == DREY_DRAFTER_MEDUSA;
        double tokens = model ? y->model_tokens : heads ? y->heads_tokens : y->lookup_tokens;
        double draft_s = model   ? y->steps * cost_step(&cost, DRAFT_MAX_BATCH)
                         : heads ? cost_step(&cost, 1)
                                 : 0;
        double per_s = tokens / cost_turn(&cost, y->n_nodes, draft_s);
        best = per_s > best ? per_s : best;
    }
    return best;
}
