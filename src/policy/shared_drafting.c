/* Drafting for several trees: see shared_drafting.h. */
#include "policy/shared_drafting.h"

#include <assert.h>

#include "base/usual.h"
#include "common/num.h"
#include "draft/drafter.h"
#include "policy/cost.h"
#include "policy/policy.h"
#include "tree/tree.h"
#include "tree/values.h"

static const turn_cost *cost_of(const shared_drafting *c)
{
    return c->trees[0].policy->cost;
}

/* Returns whether the trees compete. */
static bool competes(const shared_drafting *c)
{
    return c->trees[0].policy->class->wish && cost_of(c);
}

static bool is_alone(const shared_drafting *c)
{
    return c->n == 1 && c->n_plain == 0;
}

/* The part of tree i, if each grows separately. */
static int32_t share_of(const shared_drafting *c, int32_t i)
{
    return c->most / c->n + (i < c->most % c->n);
}

/* ---- A step ---- */

/* Nodes of several trees, by tree. */
typedef struct shared_step {
    int32_t nodes[DRAFT_MAX_BATCH];
    int32_t tree_of[DRAFT_MAX_BATCH]; /* ascends */
    int32_t n;
} shared_step;

/* Each tree's part of the step. Returns how many trees have one. */
static int32_t split(const shared_drafting *c, const shared_step *s, draft_step *parts)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++) {
        const shared_tree *t = &c->trees[s->tree_of[i]];
        if (i == 0 || s->tree_of[i] != s->tree_of[i - 1])
            parts[n++] = (draft_step){t->drafter, t->tree, &s->nodes[i], 0};
        parts[n - 1].n++;
    }
    return n;
}

static drey_status expand(const draft_step *parts, int32_t n, drey_error *err)
{
    const drafter_class *class = parts[0].drafter->class;
    if (n > 1 && class->expand_all)
        return class->expand_all(parts, n, err);
    for (int32_t i = 0; i < n; i++)
        TRY(class->expand(parts[i].drafter, parts[i].tree, parts[i].nodes, parts[i].n, err));
    return DREY_OK;
}

/* A step that also computes what was written since the draft's last one, which may be a prompt,
 * says nothing about the price of a step. */
static void saw_step(turn_cost *cost, const draft_step *parts, int32_t n, int32_t n_nodes,
                     double seconds)
{
    int32_t n_caught_up = 0;
    for (int32_t i = 0; i < n; i++)
        n_caught_up += parts[i].drafter->n_caught_up;
    if (n_caught_up > DRAFT_MAX_BATCH)
        cost_saw_catching_up(cost, seconds);
    else
        cost_saw_step(cost, n_nodes, seconds);
}

static drey_status run_step(shared_drafting *c, const shared_step *s, drey_error *err)
{
    draft_step parts[DRAFT_MAX_BATCH];
    draft_policy *p = c->trees[0].policy;
    int32_t n = split(c, s, parts);
    int64_t start = p->now_ns ? p->now_ns() : 0;
    for (int32_t i = 0; i < n; i++)
        parts[i].drafter->n_steps++;
    TRY(expand(parts, n, err));
    if (p->cost && p->now_ns)
        saw_step(p->cost, parts, n, s->n, (double)(p->now_ns() - start) * 1e-9);
    for (int32_t i = 0; i < s->n; i++) {
        shared_tree *t = &c->trees[s->tree_of[i]];
        assert(t->tree->nodes[s->nodes[i]].expanded);
        t->policy->class->push(t->policy, t->tree, s->nodes[i]);
        assert(tree_is_valid(t->tree));
    }
    return DREY_OK;
}

/* Expands the nodes that take no step, before all others. */
static void expand_free(shared_drafting *c)
{
    for (int32_t i = 0; i < c->n; i++) {
        shared_tree *t = &c->trees[i];
        draft_expand_free(t->drafter, t->policy, t->tree, t->max_depth);
    }
}

/* ---- Trees that grow separately, in shared steps ---- */

/* The nodes that the trees from `first` on request, as far as a step has room: the others come
 * first the next time. */
static void ask(shared_drafting *c, int32_t first, shared_step *s)
{
    int32_t asked[DREY_MAX_SESSIONS][DRAFT_MAX_BATCH], n[DREY_MAX_SESSIONS] = {0}, room;
    room = DRAFT_MAX_BATCH;
    for (int32_t k = 0; k < c->n && room > 0; k++) {
        int32_t i = (first + k) % c->n;
        shared_tree *t = &c->trees[i];
        if (t->ready)
            continue;
        n[i] = t->policy->class->next(t->policy, t->tree, t->max_depth, asked[i]);
        assert(n[i] <= policy_batch(t->policy));
        n[i] = min_i32(n[i], room);
        t->ready = n[i] == 0;
        room -= n[i];
    }
    s->n = 0;
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t k = 0; k < n[i]; k++) {
            s->tree_of[s->n] = i;
            s->nodes[s->n++] = asked[i][k];
        }
}

/* Each step expands at least one node, and a tree has at most so many: this ends with any
 * policy. */
static drey_status grow_apart(shared_drafting *c, drey_error *err)
{
    int32_t sizes[DREY_MAX_SESSIONS];
    drey_status status = DREY_OK;
    for (int32_t i = 0; i < c->n; i++) {
        sizes[i] = c->trees[i].policy->size;
        c->trees[i].policy->size = min_i32(sizes[i], share_of(c, i));
    }
    for (int32_t first = 0; status == DREY_OK;) {
        shared_step s;
        expand_free(c);
        ask(c, first, &s);
        if (s.n == 0)
            break;
        first = s.tree_of[s.n - 1] + 1;
        status = run_step(c, &s, err);
    }
    for (int32_t i = 0; i < c->n; i++)
        c->trees[i].policy->size = sizes[i];
    return status;
}

/* ---- Trees that compete ---- */

/* The best nodes of all trees that a step could expand. */
static ranked_nodes gather(const shared_drafting *c, policy_wish *wishes)
{
    ranked_nodes best = {.n = 0};
    const int32_t most = policy_batch(c->trees[0].policy);
    for (int32_t i = 0; i < c->n; i++) {
        shared_tree *t = &c->trees[i];
        t->ready = !t->policy->class->wish(t->policy, t->tree, t->max_depth, &wishes[i]);
        for (int32_t k = 0; k < wishes[i].n; k++) {
            int32_t node = wishes[i].node[k];
            ranked_insert(&best, (ranked_node){t->tree->nodes[node].cumulative, i, node, -1}, most);
        }
    }
    return best;
}

/* The best number of these nodes; *rate: in tokens per second. */
static int32_t choose(const shared_drafting *c, const values *v, double draft_s, double *rate)
{
    return cost_choose_among(cost_of(c), c->n + c->n_plain, v->value, v->n, draft_s, rate);
}

/* At first, and after a long time without drafting, full trust. */
static float trusted(const shared_drafting *c)
{
    const double given = USUAL_TRUST_NODES;
    const drafting_trust *t = c->trust;
    return t ? (float)min_f64((t->came + given) / (t->promised + given), 1) : 1;
}

void drafting_trust_learn(drafting_trust *t, const token_tree *tree, int32_t n_path)
{
    double promised = 0;
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].submitted)
            promised += (double)tree->nodes[i].cumulative;
    double fading = 1 - (promised > 0 ? USUAL_TRUST_FADING : USUAL_TRUST_IDLE_FADING);
    t->came = t->came * fading + n_path;
    t->promised = t->promised * fading + promised;
}

static values values_of(const shared_drafting *c)
{
    const float part = trusted(c);
    values v = {.n = 0};
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t k = 1; !c->trees[i].ready && k < c->trees[i].tree->n_nodes; k++)
            values_insert(&v, part * c->trees[i].tree->nodes[k].cumulative,
                          min_i32(c->most, TREE_MAX_DRAFTED));
    return v;
}

/* Returns how many of the best nodes to expand: as many as promise the highest rate of all trees
 * together. 0: no step raises it. *gain: the relative gain of the best step, negative if it is a
 * loss. */
static int32_t worth_a_step(const shared_drafting *c, const policy_wish *wishes,
                            const ranked_nodes *nodes, double *gain)
{
    const turn_cost *cost = cost_of(c);
    const int32_t most = min_i32(c->most, TREE_MAX_DRAFTED);
    const float part = trusted(c);
    values v = values_of(c);
    double without, rate, highest = 0;
    int32_t chosen = 0;
    choose(c, &v, cost->draft_s, &without);
    for (int32_t i = 0; i < nodes->n; i++) {
        const policy_wish *w = &wishes[nodes->best[i].tree];
        for (int32_t r = 0; r < w->n_ranks; r++)
            values_insert(&v, part * (nodes->best[i].value * w->worth[r]), most);
        choose(c, &v, cost->draft_s + cost_step(cost, 1 + i), &rate);
        if (rate > highest) {
            highest = rate;
            chosen = 1 + i;
        }
    }
    *gain = highest / without - 1;
    return *gain > 0 ? chosen : 0;
}

double shared_drafting_promise(const shared_drafting *c)
{
    policy_wish wishes[DREY_MAX_SESSIONS];
    double gain;
    if (!competes(c) || cost_steps_are_free(cost_of(c)))
        return 1;
    const ranked_nodes nodes = gather(c, wishes);
    worth_a_step(c, wishes, &nodes, &gain);
    return gain;
}

static drey_status grow_together(shared_drafting *c, drey_error *err)
{
    policy_wish wishes[DREY_MAX_SESSIONS];
    for (;;) {
        const turn_cost *cost = cost_of(c);
        expand_free(c);
        double gain;
        const ranked_nodes nodes = gather(c, wishes);
        int32_t n = nodes.n;
        if (cost->step_measured && !cost_steps_are_free(cost))
            n = worth_a_step(c, wishes, &nodes, &gain);
        if (n == 0)
            return DREY_OK;
        shared_step s = {.n = 0};
        for (int32_t i = 0; i < c->n; i++)
            for (int32_t k = 0; k < n; k++)
                if (nodes.best[k].tree == i) {
                    s.tree_of[s.n] = i;
                    s.nodes[s.n++] = nodes.best[k].node;
                }
        TRY(run_step(c, &s, err));
    }
}

/* ---- */

drey_status shared_drafting_grow(shared_drafting *c, drey_error *err)
{
    assert(c->n >= 1 && c->n <= DREY_MAX_SESSIONS && c->most >= 0);
    for (int32_t i = 0; i < c->n; i++) {
        shared_tree *t = &c->trees[i];
        t->ready = false;
        draft_look_again(t->policy, t->tree);
    }
    return !is_alone(c) && competes(c) ? grow_together(c, err) : grow_apart(c, err);
}

/* Each tree submits those of its nodes that are among the pass's best. Among equals the first
 * tree's are preferred. */
static void submit_best(shared_drafting *c)
{
    double rate;
    const float part = trusted(c);
    values v = values_of(c);
    int32_t n = choose(c, &v, cost_of(c)->draft_s, &rate);
    float least = n > 0 ? v.value[n - 1] : 2;
    for (int32_t i = 0; i < c->n; i++) {
        const shared_tree *t = &c->trees[i];
        int32_t count = 0, room = t->ready ? 0 : min_i32(n, t->policy->size);
        for (int32_t k = 1; k < t->tree->n_nodes; k++)
            count += part * t->tree->nodes[k].cumulative >= least;
        count = min_i32(count, room);
        tree_submit(t->tree, count);
        n -= count;
    }
}

void shared_drafting_submit(shared_drafting *c)
{
    policy_wish wish;
    if (is_alone(c) || !competes(c)) {
        for (int32_t i = 0; i < c->n; i++)
            draft_submit(c->trees[i].policy, c->trees[i].tree, share_of(c, i));
        return;
    }
    for (int32_t i = 0; i < c->n; i++) {
        shared_tree *t = &c->trees[i];
        t->ready = !t->policy->class->wish(t->policy, t->tree, t->max_depth, &wish);
    }
    submit_best(c);
}
