/* Policies: how a tree grows. A policy says which nodes the drafter expands next, which of the
 * guesses become children, when the tree is ready, and which of its nodes the target shall verify;
 * after each verification it gets the result.
 *
 *        next --nodes--> expand (the drafter's) --guesses--> push
 *         ^ |                                                  |
 *         | +-- none: the tree is ready -> submit -> verify -> observe
 *         +----------------------------------------------------+
 *
 * A node's confidence in the tree is what the policy pushed; the drafter's own is kept in its
 * parent's guesses. The tree may have more nodes than are submitted: the others are used in the
 * next turn if the text reaches them.
 *
 * Each policy is a policy_class in a file policy_*.c, and a line in POLICIES. */
#pragma once

#include "draft/drafter.h"
#include "drey/research.h"
#include "policy/cost.h"
#include "policy/fallback.h"

typedef struct turn_cost turn_cost;

/* Value in drey_policy, name. */
#define POLICIES(POLICY)                                                                           \
    POLICY(SEQUENCE, sequence)                                                                     \
    POLICY(SPECINFER, specinfer)                                                                   \
    POLICY(LLMCAD, llmcad)                                                                         \
    POLICY(EDGELLM, edgellm)                                                                       \
    POLICY(OPTIMAL, optimal)                                                                       \
    POLICY(BLD, bld)                                                                               \
    POLICY(SINGLE, single)                                                                         \
    POLICY(STATIC, static)

typedef struct draft_policy draft_policy;

/* The engine's option that sets how much is drafted for one verification. */
typedef enum policy_option { POLICY_DRAFT_TOKENS, POLICY_TREE_NODES } policy_option;

/* Ranks of guesses for which a policy knows a usual worth. */
enum { POLICY_RANKS = 3 };

/* The nodes that a tree would expand next, if trees compete for a shared pass. */
typedef struct policy_wish {
    int32_t node[DRAFT_MAX_BATCH]; /* [n]: the best ones, by falling value */
    int32_t n;
    int32_t n_ranks;           /* guesses of a node that become children, */
    float worth[POLICY_RANKS]; /* and their assumed worth */
} policy_wish;

typedef struct policy_class {
    policy_option option;
    int32_t standard; /* its value if none is given; possible: 1 to TREE_MAX_DRAFTED */
    int32_t step;     /* about how many nodes one step adds to the tree; 0: 1 */
    size_t bytes;     /* bytes of the policy's state, `draft_policy` first */
    float rollback;   /* above 0: accept_path's as is usual, and the text is not the target's own */
    bool literal;     /* has its paper's numbers, also where others are faster */
    bool alone; /* submits only the root: guesses are for others, and may be made at any time */
    /* initialises the state after `draft_policy`; NULL: there is none */
    void (*init)(draft_policy *p);
    /* Begins with what is known of this pair of models. NULL: not used. */
    void (*seed)(draft_policy *p, const drey_profile *known);
    /* Returns how much to draft if no option says it and this is known; below 0: `standard`. NULL:
     * always `standard`. */
    int32_t (*fitting)(const drey_profile *known);
    /* The drafter knows how often its guesses of each rank are right, right[n]; its confidences say
     * little more, unless they are calibrated already. Called before seed. NULL: not used. */
    void (*expect)(draft_policy *p, const float *right, int32_t n, bool weighed);
    /* Chooses nodes to expand in one step: none of them is expanded, all of their parents are.
     * Returns how many (at most policy_batch); 0: the tree is ready. Nodes of max_depth get no
     * children. */
    int32_t (*next)(draft_policy *p, const token_tree *tree, int32_t max_depth, int32_t *nodes);
    /* `node` has its guesses: pushes those that become children. */
    void (*push)(draft_policy *p, token_tree *tree, int32_t node);
    /* For policies that size trees by their cost: replaces `next` and `submit` for trees that share
     * a pass, which then compete for steps and rows by their nodes' values (shared_drafting.h).
     * False: nothing is to be drafted or submitted now. NULL: each tree grows separately. */
    bool (*wish)(const draft_policy *p, const token_tree *tree, int32_t max_depth, policy_wish *w);
    /* Marks the root and at most `most` drafted nodes as submitted. NULL: the best ones. */
    void (*submit)(draft_policy *p, token_tree *tree, int32_t most);
    /* Returns the worth of a drafter's confidence in its guess number `rank` (0: the best) is
     * worth. NULL: the confidence itself. */
    float (*calibrate)(const draft_policy *p, int32_t rank, float confidence);
    /* The target has accepted path[0..n_path) of the submitted nodes and chosen `next`; the tree is
     * unchanged so far. NULL: the policy does not learn. */
    void (*observe)(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                    int32_t next);
} policy_class;

struct draft_policy { /* first member of every policy's state */
    const policy_class *class;
    int32_t size; /* most drafted nodes of a verification */
    fallback_state fallback;
    float ahead; /* nodes that the text reaches less often are not drafted during a pass */
    /* bld: below this confidence the draft hands over,: below this confidence the draft hands
     * over, */
    float sure;
    float rollback;   /* and accept_path's number; 0: the text is the target's own */
    uint64_t without; /* DREY_WITHOUT of parts that are left out */
    turn_cost *cost;  /* costs of turns, borrowed; NULL: not known, and only `size` decides */
    int64_t (*now_ns)(void); /* times steps for it; NULL: steps are not timed */
    bool sampled;            /* the text is sampled, not greedy */
};

#define POLICY(value, name) extern const policy_class policy_##name;
POLICIES(POLICY)
#undef POLICY

/* Returns whether drafting may depend on times and on the budget. Not with DREY_EXIT_FAST: there
 * the text depends on the guesses, and no measurement may change a text. */
static inline bool drafting_may_be_timed(drey_exit exit)
{
    return exit != DREY_EXIT_FAST;
}

struct drey_engine_options; /* drey/drey_engine.h */

/* NULL for AUTO, NONE and values that do not exist. */
const policy_class *policy_class_of(drey_policy which);
/* The largest tree with these options: their own value, what fits the profile, or the policy's
 * standard; 0 for policies that draft nothing. */
int32_t policy_size(const struct drey_engine_options *options);
/* About how many steps of the draft a tree of that size takes. */
int32_t policy_steps(const struct drey_engine_options *options);
/* Makes a policy in memory of class->bytes, aligned for any type. */
draft_policy *policy_init(void *memory, const policy_class *class, int32_t size, uint64_t without);

/* Sets numbers before the first turn. A policy takes those of the numbers that it has. */
void policy_set_numbers(draft_policy *p, const drey_research *numbers);

static inline bool policy_has(const draft_policy *p, drey_part part)
{
    return !(p->without & DREY_WITHOUT(part));
}

/* Most nodes of a step: one without batching. */
static inline int32_t policy_batch(const draft_policy *p)
{
    return policy_has(p, DREY_PART_BATCHING) ? DRAFT_MAX_BATCH : 1;
}

/* The first `n` guesses of `node` and, among those, all with at least this confidence become
 * children, as long as the tree has fewer than p->size drafted nodes. The first one always does;
 * without trees only that one. */
void policy_push(draft_policy *p, token_tree *tree, int32_t node, int32_t n, float confidence);

/* Does what provisional_rules.calibrate describes; policy is a draft_policy. */
float policy_calibrate(const void *policy, int32_t rank, float confidence);

/* Looks again at the guesses in what stayed of a tree: they were judged below another root, or
 * never. Called before the tree grows further. */
void draft_look_again(draft_policy *p, token_tree *tree);
/* Expands the nodes that take no step. */
void draft_expand_free(drafter *d, draft_policy *p, token_tree *tree, int32_t max_depth);
/* Marks the root and the nodes that the policy chooses as submitted, at most `most` drafted
 * ones. */
void draft_submit(draft_policy *p, token_tree *tree, int32_t most);
void draft_observe(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next);
