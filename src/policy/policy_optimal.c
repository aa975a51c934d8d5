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
 * A few turns do not show whether drafting pays: each writes one token or several, by chance. So
 * drafting has a credit, in plain turns: a turn that was faster than plain ones adds what it
 * gained, a slower one takes what it lost. Drafting continues as long as there is credit; so its
 * loss is bounded by what it was given.
 *
 *   DRAFTING --(no credit left, or no step pays even for good guesses)--> PAUSED: plain turns
 *       ^                                                                       |
 *       +---- 32 tokens were written, the next time 64, 128, then 256 each -----+ */
#include "common/num.h"
#include "base/usual.h"
#include "drey/tune.h"
#include "policy/cost.h"
#include "tree/calibration.h"
#include "tree/tree.h"
#include "policy/policy.h"
#include "tree/values.h"

enum {
    RANKS = POLICY_RANKS,
    FIRST_PAUSE = USUAL_FIRST_PAUSE, /* tokens */
    LAST_PAUSE = USUAL_LAST_PAUSE,
    OLD_TURNS = 32 /* after so many turns a plain turn's time is out of date */
};
/* Credit in plain turns: at first, after a pause, and at most. */
static const double first_credit = USUAL_FIRST_CREDIT, later_credit = USUAL_LATER_CREDIT,
                    most_credit = USUAL_MOST_CREDIT;
/* Not worth a row of any pass. */
static const float least_value = USUAL_LEAST_VALUE;
/* The worth of guesses before anything is known: high enough to try. */
static const double usual_worth[] = USUAL_RANK_SHARES;
_Static_assert(sizeof usual_worth / sizeof *usual_worth >= RANKS, "one for each rank");

typedef struct optimal {
    draft_policy base;
    calibration calibration[2]; /* of greedy texts, of sampled ones */
    float worth[RANKS];         /* of guesses of each rank lately */
    float first_worth[RANKS];   /* before any was seen, and after a pause */
    /* The controller. */
    double credit;          /* plain turns that drafting may still lose */
    double tokens, seconds; /* of turns that drafted, since the last pause */
    double plain_s;         /* a plain turn; 0: not seen */
    int32_t plain_age;      /* turns since the last one */
    bool asks;              /* the next turn is plain, to measure its time */
    bool is_warm;           /* a turn has drafted */
    int32_t pause;          /* tokens that it still takes; 0: none */
    int32_t next_pause;
} optimal;

static optimal *self_of(draft_policy *p)
{
    return (optimal *)p;
}

static void hope(optimal *o)
{
    for (int i = 0; i < RANKS; i++)
        o->worth[i] = o->first_worth[i];
    o->tokens = o->seconds = 0;
}

static void optimal_init(draft_policy *p)
{
    optimal *o = self_of(p);
    for (int i = 0; i < 2; i++)
        o->calibration[i] = (calibration){.sampled = i == 1};
    o->credit = first_credit;
    o->plain_s = 0;
    o->plain_age = 0;
    o->asks = o->is_warm = false;
    o->pause = 0;
    o->next_pause = FIRST_PAUSE;
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

/* How many of the nodes, the best first, to expand in one step, if guesses of each rank are worth
 * so much; 0: none, the tree is ready. */
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

static void begin_pause(optimal *o)
{
    o->pause = o->next_pause;
    o->next_pause = min_i32(2 * o->next_pause, LAST_PAUSE);
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
    if (p->size == 0 || o->pause > 0)
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
    if (p->size == 0 || o->pause > 0 || o->asks)
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
        begin_pause(o);
    return o->pause == 0;
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

/* In a pause, what is certain. */
static void optimal_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    const optimal *o = self_of(p);
    if (o->asks)
        most = 0;
    if (p->cost) {
        double rate;
        values v = o->pause > 0 ? certain_values(tree, most) : values_of(tree, most);
        most = cost_choose(p->cost, v.value, v.n, p->cost->draft_s, &rate);
    }
    tree_submit(tree, o->pause > 0 && !p->cost ? 0 : most);
}

/* ---- Learning, and whether it pays ---- */

/* What a turn with drafting gained, and whether the next one drafts. A turn that something else
 * held up counts as at most two lost turns. Before drafting is given up, it is compared with the
 * current speed of plain turns. */
static void weigh(optimal *o, int32_t n_tokens, double turn_s)
{
    const double worst = -2, doubtful = 1.5, enough = 6; /* plain turns, to judge by */
    double plain_s = o->plain_s > 0 ? o->plain_s : cost_turn(o->base.cost, 0, 0);
    double won = max_f64(n_tokens - turn_s / plain_s, worst);
    o->tokens += n_tokens;
    o->seconds += turn_s;
    o->credit = min_f64(o->credit + won, most_credit);
    if (o->credit >= most_credit)
        o->next_pause = FIRST_PAUSE;
    bool unknown = o->plain_s <= 0 && o->seconds > enough * plain_s &&
                   o->tokens * plain_s < doubtful * o->seconds;
    bool old = o->plain_age >= OLD_TURNS && o->credit < most_credit / 2;
    if (unknown || old)
        o->asks = true;
    else if (o->credit <= 0)
        begin_pause(o);
}

static void saw_plain(optimal *o, double turn_s)
{
    o->plain_s += (turn_s - o->plain_s) * (o->plain_s > 0 ? 0.25 : 1);
    o->plain_age = 0;
}

/* Called after each turn. The time of a pass that others shared says nothing about this turn. */
static void control(optimal *o, int32_t n_tokens, bool drafted, bool plain)
{
    double turn_s = o->base.cost->turn_s;
    o->plain_age++;
    if ((o->pause > 0 || o->asks) && turn_s > 0 && plain)
        saw_plain(o, turn_s);
    if (o->asks) {
        o->asks = false;
    } else if (o->pause > 0) {
        o->pause = max_i32(o->pause - n_tokens, 0);
        if (o->pause == 0) {
            hope(o);
            o->credit = later_credit;
        }
    } else if (!drafted && turn_s > 0) {
        saw_plain(o, turn_s);
    } else if (turn_s > 0) {
        bool warm = o->is_warm; /* the first turn is not used for comparison */
        o->is_warm = true;
        if (warm && !cost_steps_are_free(o->base.cost))
            weigh(o, n_tokens, turn_s);
    }
}

/* The guesses along the text's path give the assumed worth of the next ones. While no guesses are
 * made, this slowly returns to the first assumption. */
static void learn_worth(optimal *o, const token_tree *tree, const int32_t *path, int32_t n_path)
{
    for (int32_t r = 0; r < RANKS && !tree->nodes[0].expanded; r++)
        o->worth[r] += (o->first_worth[r] - o->worth[r]) / 128;
    for (int32_t i = 0; i <= n_path; i++) {
        const tree_node *node = &tree->nodes[i ? path[i - 1] : 0];
        for (int32_t r = 0; r < RANKS && node->expanded && !node->forced; r++) {
            bool guessed = r < node->n_guesses;
            float worth = guessed ? optimal_calibrate(&o->base, r, node->guess[r].confidence) : 0;
            o->worth[r] += (worth - o->worth[r]) / 8;
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
    if (p->cost)
        control(o, n_path + 1, tree->nodes[0].expanded, plain);
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
