/* The table of policies, and the loop that they share: see policy.h. */
#include "policy/policy.h"
#include "base/usual.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "drey/drey_engine.h"

static const struct entry {
    const char *name;
    const policy_class *class; /* NULL: drafts nothing */
} table[] = {
    [DREY_POLICY_AUTO] = {"auto", NULL},
    [DREY_POLICY_NONE] = {"none", NULL},
#define POLICY(value, name) [DREY_POLICY_##value] = {#name, &policy_##name},
    POLICIES(POLICY)
#undef POLICY
        [DREY_POLICY_DRAFT] = {"draft", NULL},
    [DREY_POLICY_STD] = {"std", NULL},
};

enum { N_POLICIES = sizeof table / sizeof *table };

const char *drey_policy_name(drey_policy which)
{
    return (unsigned)which < N_POLICIES ? table[which].name : NULL;
}

/* The baselines as the papers' tables abbreviate them. */
static const struct alias {
    const char *name;
    drey_policy which;
} aliases[] = {{"sp", DREY_POLICY_SEQUENCE},
               {"si", DREY_POLICY_SPECINFER},
               {"spl", DREY_POLICY_NONE}}; /* it reads while it computes */

bool drey_policy_parse(const char *name, drey_policy *which)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(name, aliases[i].name) == 0) {
            *which = aliases[i].which;
            return true;
        }
    }
    for (unsigned i = 0; i < N_POLICIES; i++) {
        if (strcmp(name, table[i].name) == 0) {
            *which = (drey_policy)i;
            return true;
        }
    }
    return false;
}

bool drey_policy_is_lossy(drey_policy which)
{
    const policy_class *c = policy_class_of(which);
    return which == DREY_POLICY_DRAFT || (c && c->rollback > 0);
}

const policy_class *policy_class_of(drey_policy which)
{
    return (unsigned)which < N_POLICIES ? table[which].class : NULL;
}

int32_t policy_size(const drey_engine_options *options)
{
    const policy_class *c = policy_class_of(options->policy);
    if (!c)
        return 0;
    int32_t given = c->option == POLICY_DRAFT_TOKENS ? options->draft_tokens : options->tree_nodes;
    if (given)
        return given;
    bool known = c->fitting && options->profile && drafting_may_be_timed(options->exit);
    int32_t fitting = known ? c->fitting(options->profile) : -1;
    return fitting >= 0 ? fitting : c->standard;
}

int32_t policy_steps(const drey_engine_options *options)
{
    const policy_class *c = policy_class_of(options->policy);
    uint64_t without = options->research ? options->research->without : 0;
    bool one = !c || c->step == 0 || without & DREY_WITHOUT(DREY_PART_BATCHING);
    return ceil_div_i32(policy_size(options), one ? 1 : c->step);
}

draft_policy *policy_init(void *memory, const policy_class *class, int32_t size, uint64_t without)
{
    assert(class->bytes >= sizeof(draft_policy) && size >= 0);
    draft_policy *p = memory;
    *p =
        (draft_policy){.class = class, .size = min_i32(size, TREE_MAX_DRAFTED), .without = without};
    if (class->init)
        class->init(p);
    policy_set_numbers(p, &(drey_research){.alpha = 0});
    return p;
}

static float given_or(float given, float usual)
{
    return given > 0 ? given : usual;
}

void policy_set_numbers(draft_policy *p, const drey_research *given)
{
    bool falls_back = p->fallback.alpha > 0;
    bool literal = p->class->literal || (falls_back && given->fallback == DREY_FALLBACK_PRINTED);
    fallback_state *f = &p->fallback;
    f->rule = given->fallback;
    f->step = given_or(given->fallback_step, fallback_step);
    f->most = literal ? fallback_most_printed : fallback_most;
    if (falls_back && given->alpha > 0) {
        f->alpha = given->alpha;
        if (f->alpha > f->most)
            f->most = f->alpha;
    }
    p->ahead = given_or(given->ahead, literal ? USUAL_LEAST_AHEAD_PAPERS : USUAL_LEAST_AHEAD);
    p->sure = given_or(given->bld_fallback, USUAL_BLD_FALLBACK);
    if (p->class->rollback > 0)
        p->rollback = given_or(given->bld_rollback, p->class->rollback);
}

void policy_push(draft_policy *p, token_tree *tree, int32_t node, int32_t n, float confidence)
{
    const tree_node *parent = &tree->nodes[node];
    n = min_i32(parent->n_guesses, policy_has(p, DREY_PART_TREE) ? n : 1);
    for (int32_t i = 0; i < n && tree->n_nodes - 1 < p->size; i++)
        if (i == 0 || parent->guess[i].confidence >= confidence)
            tree_push(tree, node, parent->guess[i].token, parent->guess[i].confidence);
}

float policy_calibrate(const void *policy, int32_t rank, float confidence)
{
    const draft_policy *p = policy;
    return p->class->calibrate ? p->class->calibrate(p, rank, confidence) : confidence;
}

void draft_look_again(draft_policy *p, token_tree *tree)
{
    for (int32_t i = 0, n = tree->n_nodes; i < n; i++)
        if (tree->nodes[i].expanded)
            p->class->push(p, tree, i);
}

/* A tree has many leaves that the text hardly ever reaches. Those are left unexpanded, because even
 * a lookup takes microseconds. */
void draft_expand_free(drafter *d, draft_policy *p, token_tree *tree, int32_t max_depth)
{
    for (int32_t i = 0; i < tree->n_nodes && (d->class->expand_free || tree->grammar); i++) {
        tree_node *node = &tree->nodes[i];
        if (node->expanded || node->depth >= max_depth)
            continue;
        /* Those that guess from the root's own row compute it first, and a first step is timed. */
        bool computes = d->class->steps || d->class->can_guess;
        if (d->class->skips_forced_root && (!p->cost || p->cost->step_measured))
            computes = false;
        bool probable = node->cumulative >= USUAL_LEAST_FREE && d->class->expand_free;
        if (((i > 0 || !computes) && tree_expand_forced(tree, i)) ||
            (probable && d->class->expand_free(d, tree, i)))
            p->class->push(p, tree, i);
        else if (tree->grammar && i > 0 && d->class->can_guess && !d->class->can_guess(d, tree, i))
            node->expanded = true; /* below what the grammar forced */
    }
}

void draft_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    most = min_i32(most, p->size);
    if (p->class->submit)
        p->class->submit(p, tree, most);
    else
        tree_submit(tree, most);
    assert(tree_is_valid(tree));
}

void draft_observe(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next)
{
    if (p->class->observe)
        p->class->observe(p, tree, path, n_path, next);
}
