/* Best-first, sized by its cost: the tree that writes the most tokens per second.
 *
 * A node's value is the probability that it is accepted: the product along its path of what the
 * draft's confidences are worth (calibration.h), which the tree has as cumulative confidence. The
 * best tree of n nodes is the n nodes of the highest values; values fall along paths, so their
 * ancestors are among them. A turn writes one token plus the sum of its nodes' values.
 *
 * A step expands the best nodes that are not expanded, as many as promise the highest rate. The
 * values of their children are not known before: they are assumed to be what guesses of each rank
 * were worth lately. Drafting continues while another step raises the rate of the turn, tokens over
 * time (cost.h). Then as many nodes are submitted as make the rate highest: fallback and width are
 * one decision. Steps that cost almost nothing are taken while they find anything, and there is no
 * pause: copies come in bursts, which a pause would miss, and a turn without one submits nothing.
 *
 * Whether drafting pays is for the controller to say (controller.h). It also pauses where no step
 * pays even for good guesses. */
#include "common/num.h"
#include "base/usual.h"
#include "drey/tune.h"
#include "policy/controller.h"
#include "policy/cost.h"
#include "tree/calibration.h"
#include "tree/tree.h"
#include "policy/policy.h"
#include "tree/values.h"

enum { RANKS = POLICY_RANKS };
/* Not worth a row of any pass. */
static const float least_value = USUAL_LEAST_VALUE;
/* The worth of guesses before anything is known: high enough to try. */
static const double usual_worth[] = USUAL_RANK_SHARES;
_Static_assert(sizeof usual_worth / sizeof *usual_worth >= RANKS, "one for each rank");

typedef struct optimal {
    draft_policy base;
    calibration calibration[2]; /* calibrations of greedy texts, of sampled ones */
    float worth[RANKS];         /* recent worth of guesses of each rank */
    float first_worth[RANKS];   /* before any was seen, and after a pause */
    controller controller;
} optimal;

static optimal *self_of(draft_policy *p)
{
    return (optimal *)p;
}

static void hope(optimal *o)
{
    for (int i = 0; i < RANKS; i++)
        o->worth[i] = o->first_worth[i];
}

static void optimal_init(draft_policy *p)
{
    optimal *o = self_of(p);
    for (int i = 0; i < 2; i++)
        o->calibration[i] = (calibration){.sampled = i == 1};
    controller_init(&o->controller);
    for (int i = 0; i < RANKS; i++)
        o->first_worth[i] = (float)usual_worth[i];
    hope(o);
}

/* For greedy texts, because profiles are measured with those. It stays optimistic: a text may be
 * easier than the measured ones. */
static void optimal_seed(draft_policy *p, const drey_profile *known)
{
    optimal *o = self_of(p);
    calibration_seed(&o->calibration[0], known);
    for (int r = 0; r < RANKS; r++) {
        float right = 0, guessed = 0;
        for (int bin = 0; bin < DREY_PROFILE_BINS; bin++) {
            right += known->right[r][bin];
            guessed += known->guessed[r][bin];
        }
        if (guessed > 0 && right / guessed > o->first_worth[r])
            o->first_worth[r] = right / guessed;
    }
    hope(o);
}

static void optimal_expect(draft_policy *p, const float *right, int32_t n, bool weighed)
{
    optimal *o = self_of(p);
    for (int i = 0; i < 2 && !weighed; i++)
        calibration_expect(&o->calibration[i], right, n);
    for (int32_t r = 0; r < RANKS; r++)
        o->first_worth[r] = r < n ? right[r] : 0;
    hope(o);
}

static float optimal_calibrate(const draft_policy *p, int32_t rank, float confidence)
{
    const optimal *o = (const optimal *)p;
    return calibration_value(&o->calibration[p->sampled], rank, confidence);
}

/* ---- The best nodes ---- */

static values values_of(const token_tree *tree, int32_t most)
{
    values v = {.n = 0};
    for (int32_t i = 1; i < tree->n_nodes; i++)
        values_insert(&v, tree->nodes[i].cumulative, most);
    return v;
}

/* The lowest value of a node among the tree's best. */
static float value_to_enter(const draft_policy *p, const token_tree *tree)
{
    values v = values_of(tree, p->size);
    float least = v.n < p->size || v.n == 0 ? 0 : v.value[v.n - 1];
    return least > least_value ? least : least_value;
}

/* ---- Growing ---- */

/* Returns how many of the nodes, the best first, to expand in one step, if guesses of each rank are
 * worth so much; 0: none, the tree is ready. */
static int32_t worth_a_step(const optimal *o, const token_tree *tree, const int32_t *nodes,
                            int32_t n, const float worth[RANKS])
{
    const draft_policy *p = &o->base;
    const turn_cost *cost = p->cost;
    values v = values_of(tree, p->size);
    double best;
    int32_t chosen = 0, n_ranks = policy_has(p, DREY_PART_TREE) ? RANKS : 1;
    cost_choose(cost, v.value, v.n, cost->draft_s, &best);
    for (int32_t i = 0; i < n; i++) {
        double rate, draft_s = cost->draft_s + cost_step(cost, 1 + i);
        for (int32_t r = 0; r < n_ranks; r++)
            values_insert(&v, tree->nodes[nodes[i]].cumulative * worth[r], p->size);
        cost_choose(cost, v.value, v.n, draft_s, &rate);
        if (rate > best) {
            best = rate;
            chosen = 1 + i;
        }
    }
    return chosen;
}

/* After the root: its guesses may be better than they were lately, which only the step shows. So
 * the step is left out only if not even the guesses assumed at first would pay. */
static bool worth_the_root(const optimal *o, const token_tree *tree)
{
    float worth[RANKS];
    const int32_t root = 0;
    for (int32_t r = 0; r < RANKS; r++)
        worth[r] = o->worth[r] > o->first_worth[r] ? o->worth[r] : o->first_worth[r];
    return worth_a_step(o, tree, &root, 1, worth) > 0;
}

/* Nodes that a step may expand. */
static ranked_nodes best_to_expand(const draft_policy *p, const token_tree *tree, int32_t max_depth)
{
    ranked_nodes best = {.n = 0};
    float least = value_to_enter(p, tree);
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (!node->expanded && node->depth < max_depth && node->cumulative > least)
            ranked_insert(&best, (ranked_node){node->cumulative, 0, i, -1}, policy_batch(p));
    }
    return best;
}

static bool optimal_wish(const draft_policy *p, const token_tree *tree, int32_t max_depth,
                         policy_wish *w)
{
    const optimal *o = (const optimal *)p;
    *w = (policy_wish){.n_ranks = policy_has(p, DREY_PART_TREE) ? RANKS : 1};
    if (p->size == 0 || o->controller.pause > 0)
        return false;
    ranked_nodes best = best_to_expand(p, tree, max_depth);
    w->n = best.n;
    for (int32_t i = 0; i < best.n; i++)
        w->node[i] = best.best[i].node;
    for (int r = 0; r < RANKS; r++)
        w->worth[r] = o->worth[r];
    return true;
}

static int32_t optimal_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                            int32_t *nodes)
{
    optimal *o = self_of(p);
    if (p->size == 0 || o->controller.pause > 0 || o->controller.asks)
        return 0;
    ranked_nodes best = best_to_expand(p, tree, max_depth);
    for (int32_t i = 0; i < best.n; i++)
        nodes[i] = best.best[i].node;
    if (!p->cost || best.n == 0)
        return best.n;
    if (!p->cost->step_measured && nodes[0] == 0)
        return 1; /* to measure the time of a step */
    if (cost_steps_are_free(p->cost))
        return best.n;
    int32_t n = worth_a_step(o, tree, nodes, best.n, o->worth);
    if (n > 0 || nodes[0] != 0)
        return n;
    if (!worth_the_root(o, tree))
        controller_pause(&o->controller);
    return o->controller.pause == 0;
}

static void optimal_push(draft_policy *p, token_tree *tree, int32_t node)
{
    const tree_node *parent = &tree->nodes[node];
    float least = value_to_enter(p, tree);
    int32_t n = policy_has(p, DREY_PART_TREE) ? parent->n_guesses : parent->n_guesses > 0;
    for (int32_t i = 0; i < n; i++) {
        float worth = optimal_calibrate(p, i, parent->guess[i].confidence);
        if (parent->cumulative * worth > least && tree->n_nodes < TREE_MAX_NODES)
            tree_push(tree, node, parent->guess[i].token, worth);
    }
}

/* A chain from the root costs no guesses: the grammar says what comes. */
static values certain_values(const token_tree *tree, int32_t most)
{
    values v = {.n = 0};
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[tree->nodes[i].parent].forced && v.n == tree->nodes[i].depth - 1)
            values_insert(&v, tree->nodes[i].cumulative, most);
    return v;
}

/* Submits nodes; in a pause, those that are certain. */
static void optimal_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    const controller *c = &self_of(p)->controller;
    if (c->asks)
        most = 0;
    if (p->cost) {
        double rate;
        values v = c->pause > 0 ? certain_values(tree, most) : values_of(tree, most);
        most = cost_choose(p->cost, v.value, v.n, p->cost->draft_s, &rate);
    }
    tree_submit(tree, c->pause > 0 && !p->cost ? 0 : most);
}

/* ---- Learning, and whether it pays ---- */

/* The guesses along the text's path give the assumed worth of the next ones. While no guesses are
 * made, this slowly returns to the first assumption. */
static void learn_worth(optimal *o, const token_tree *tree, const int32_t *path, int32_t n_path)
{
    for (int32_t r = 0; r < RANKS && !tree->nodes[0].expanded; r++)
        o->worth[r] += (o->first_worth[r] - o->worth[r]) / USUAL_WORTH_FADING;
    for (int32_t i = 0; i <= n_path; i++) {
        const tree_node *node = &tree->nodes[i ? path[i - 1] : 0];
        for (int32_t r = 0; r < RANKS && node->expanded && !node->forced; r++) {
            bool guessed = r < node->n_guesses;
            float worth = guessed ? optimal_calibrate(&o->base, r, node->guess[r].confidence) : 0;
            o->worth[r] += (worth - o->worth[r]) * USUAL_WORTH_WEIGHT;
        }
    }
}

static void optimal_observe(draft_policy *p, const token_tree *tree, const int32_t *path,
                            int32_t n_path, int32_t next)
{
    optimal *o = self_of(p);
    learn_worth(o, tree, path, n_path);
    calibration_learn(&o->calibration[p->sampled], tree, path, n_path, next);
    bool plain = true;
    for (int32_t i = 1; i < tree->n_nodes; i++)
        plain = plain && !tree->nodes[i].submitted;
    if (!p->cost)
        return;
    const controlled_turn turn = {.n_tokens = n_path + 1,
                                  .turn_s = p->cost->turn_s,
                                  .expected_s = cost_turn(p->cost, 0, 0),
                                  .drafted = tree->nodes[0].expanded,
                                  .plain = plain,
                                  .free = cost_steps_are_free(p->cost)};
    if (controller_observe(&o->controller, &turn))
        hope(o);
}

const policy_class policy_optimal = {.option = POLICY_TREE_NODES,
                                     .standard = 47, /* 48 rows with the root: whole tiles */
                                     .step = 3,      /* 2 to 5 on texts of the 0.5B and wide6b */
                                     .bytes = sizeof(optimal),
                                     .init = optimal_init,
                                     .seed = optimal_seed,
                                     .expect = optimal_expect,
                                     .next = optimal_next,
                                     .push = optimal_push,
                                     .wish = optimal_wish,
                                     .submit = optimal_submit,
                                     .calibrate = optimal_calibrate,
                                     .observe = optimal_observe};
