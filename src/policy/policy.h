/* Policies: how a tree grows. A policy says which nodes the drafter expands next, which of the
 * guesses become children, when the tree is ready, and which of its nodes the target shall verify;
 * after each verification it hears what became of the tree.
 *
 *        next --nodes--> expand (the drafter's) --guesses--> push
 *         ^ |                                                  |
 *         | +-- none: the tree is ready -> submit -> verify -> observe
 *         +----------------------------------------------------+
 *
 * A node's confidence in the tree is what the policy pushed; what the drafter said stays in its
 * parent's guesses. The tree may hold more than is submitted: what is left over is there for the
 * next turn, if the text goes that way.
 *
 * Each is a file policy_*.c with one policy_class, and a line in POLICIES. */
#ifndef DREY_POLICY_POLICY_H
#define DREY_POLICY_POLICY_H

#include "policy/cost.h"

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

/* Which of the engine's options says how much is drafted for one verification. */
typedef enum policy_option { POLICY_DRAFT_TOKENS, POLICY_TREE_NODES } policy_option;

/* Ranks of guesses whose usual worth a policy knows. */
enum { POLICY_RANKS = 3 };

/* What a tree would have expanded next, where trees compete for a pass that they share. */
typedef struct policy_wish {
    int32_t node[DRAFT_MAX_BATCH]; /* [n]: the best ones, by falling value */
    int32_t n;
    int32_t n_ranks;           /* guesses of a node that become children, */
    float worth[POLICY_RANKS]; /* and what those are taken to be worth */
} policy_wish;

typedef struct policy_class {
    policy_option option;
    int32_t standard; /* its value where none is given; 1 to TREE_MAX_DRAFTED are possible */
    int32_t step;     /* nodes that a step brings to the tree, about: for predictions; 0: 1 */
    size_t bytes;     /* of the policy's state, `draft_policy` first */
    float rollback; /* the target lets pass what it gives more than exp(-rollback): the text is not
                         its own then. 0: its own choices alone */
    bool alone; /* submits the root alone: guesses are for others, and may be made at any time */
    void (*init)(draft_policy *p); /* the state behind `draft_policy`; NULL: there is none */
    /* Begins with what is known of this pair of models. NULL: it makes no use of it. */
    void (*seed)(draft_policy *p, const drey_profile *known);
    /* How much to draft where no option says it and this is known; below 0: `standard`. NULL: that
     * always. */
    int32_t (*fitting)(const drey_profile *known);
    /* The drafter knows how often its guesses of each rank are right, right[n], and its confidences
     * say little more, unless somebody has weighed them for it; before seed. NULL: it makes no use
     * of it. */
    void (*expect)(draft_policy *p, const float *right, int32_t n, bool weighed);
    /* Nodes to expand in one step, none of them expanded, all with their parents: returns how many
     * (at most policy_batch), 0: the tree is ready. Nodes of max_depth get no children. */
    int32_t (*next)(draft_policy *p, const token_tree *tree, int32_t max_depth, int32_t *nodes);
    /* `node` has its guesses: makes those children that the tree shall have. */
    void (*push)(draft_policy *p, token_tree *tree, int32_t node);
    /* Of policies that size trees by what they cost: instead of `next` and `submit` for trees that
     * share a pass, which then competes for steps and rows by the nodes' values
     * (shared_drafting.h). False: it wants nothing drafted or submitted now. NULL: each tree grows
     * for itself. */
    bool (*wish)(const draft_policy *p, const token_tree *tree, int32_t max_depth, policy_wish *w);
    /* Marks the root and at most `most` drafted nodes submitted. NULL: the best of them. */
    void (*submit)(draft_policy *p, token_tree *tree, int32_t most);
    /* What a drafter's confidence in its guess number `rank` (0: the best) is worth. NULL: what it
     * says. */
    float (*calibrate)(const draft_policy *p, int32_t rank, float confidence);
    /* The target has accepted path[0..n_path) of the submitted nodes and said `next`; the tree is
     * still as it was. NULL: the policy does not learn. */
    void (*observe)(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                    int32_t next);
} policy_class;

struct draft_policy { /* first member of every policy's state */
    const policy_class *class;
    int32_t size;     /* most drafted nodes of a verification */
    float alpha;      /* the fallback's threshold as it stands; 0: there is none */
    uint64_t without; /* DREY_WITHOUT of parts that are left out */
    turn_cost *cost;  /* what turns cost, borrowed; NULL: not known, and `size` alone decides */
    int64_t (*now_ns)(void); /* times steps for it; NULL: nobody does */
    bool sampled;            /* the text is sampled, not greedy */
};

#define POLICY(value, name) extern const policy_class policy_##name;
POLICIES(POLICY)
#undef POLICY

/* Whether drafting may depend on times and on the budget: not with DREY_EXIT_FAST, where what is
 * guessed decides about the text, which no measurement may change. */
static inline bool drafting_may_be_timed(drey_exit exit)
{
    return exit != DREY_EXIT_FAST;
}

/* NULL: AUTO, NONE and what does not exist. */
const policy_class *policy_class_of(drey_policy which);
/* The most that these options let a tree grow to: their own value, what fits the profile, or the
 * policy's standard; 0 for policies that draft nothing. */
int32_t policy_size(const drey_engine_options *options);
/* The draft's steps for a tree of that size, about. */
int32_t policy_steps(const drey_engine_options *options);
/* Makes a policy in memory of class->bytes, aligned for anything. */
draft_policy *policy_init(void *memory, const policy_class *class, int32_t size, uint64_t without);

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
 * without trees it alone. */
void policy_push(draft_policy *p, token_tree *tree, int32_t node, int32_t n, float confidence);

/* As provisional_rules.calibrate; policy: a draft_policy. */
float policy_calibrate(const void *policy, int32_t rank, float confidence);

/* What stayed of a tree has guesses that were judged below another root, or that nobody has looked
 * at: before the tree grows on. */
void draft_look_again(draft_policy *p, token_tree *tree);
/* Expands what takes no step. */
void draft_expand_free(drafter *d, draft_policy *p, token_tree *tree, int32_t max_depth);
/* Grows the tree until the policy finds it ready. max_depth: room left in context and in what may
 * still be written. */
drey_status draft_grow(drafter *d, draft_policy *p, token_tree *tree, int32_t max_depth,
                       drey_error *err);
/* Marks the root and what the policy wants verified as submitted, `most` drafted nodes at most. */
void draft_submit(draft_policy *p, token_tree *tree, int32_t most);
void draft_observe(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next);

#endif
