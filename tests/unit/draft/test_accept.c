/* Acceptance against brute force over random trees; then the promise itself on scripted models:
 * whatever is drafted, by whom and by which policy, the text is the one of choosing token by token.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tree/accept.h"
#include "draft/lookup_drafter.h"
#include "policy/policy.h"
#include "support/policy_memory.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/test.h"
#include "support/tree_path.h"

enum { V = 40, LD = 48, LENGTH = 80, START = 4 };

static sampler sampler_make(arena *a, drey_sampling settings)
{
    sampler s;
    MUST(arena_init, a, sampler_bytes(V), false);
    MUST(sampler_init, &s, &settings, V, kernel_select("ref"), a);
    return s;
}

/* ---- Random trees with random logits ---- */

/* Of all nodes whose every step from the root was the target's choice the deepest: looked for node
 * by node from the leaves up, without walking. */
static int32_t deepest_right_node(const token_tree *t, const int32_t *row_of, sampler *s,
                                  const float *logits, int64_t root_position)
{
    int32_t best = 0;
    for (int32_t leaf = 0; leaf < t->n_nodes; leaf++) {
        bool right = row_of[leaf] >= 0;
        for (int32_t i = leaf; right && i > 0; i = t->nodes[i].parent) {
            int32_t parent = t->nodes[i].parent;
            right &= t->nodes[i].token == sampler_choose(s, logits + row_of[parent] * LD,
                                                         root_position + t->nodes[i].depth);
        }
        if (right && t->nodes[leaf].depth > t->nodes[best].depth)
            best = leaf;
    }
    return best;
}

/* Rows of a pass in any order: of all nodes every other time, else of some. */
static void submit_some(const token_tree *t, rng *r, int32_t *row_of)
{
    int32_t least_of_ten = rng_below(r, 2) ? 0 : 2, n = 0, place[TREE_MAX_NODES];
    for (int32_t i = 0; i < t->n_nodes; i++) {
        bool there = i == 0 || row_of[t->nodes[i].parent] >= 0;
        row_of[i] = there && (i == 0 || rng_below(r, 10) >= least_of_ten) ? n++ : -1;
    }
    for (int32_t i = 0; i < n; i++) { /* shuffled */
        int32_t j = rng_below(r, i + 1);
        place[i] = place[j];
        place[j] = i;
    }
    for (int32_t i = 0; i < t->n_nodes; i++)
        row_of[i] = row_of[i] < 0 ? -1 : place[row_of[i]];
}

TEST(the_longest_right_branch)
{
    static float logits[TREE_MAX_NODES * LD];
    rng r = {21};
    int32_t accepted_total = 0;
    for (int round = 0; round < 400; round++) {
        arena a;
        sampler s = sampler_make(&a, (drey_sampling){.temperature = (float)(round % 3) * 0.6f,
                                                     .top_p = 1,
                                                     .seed = (uint64_t)round});
        token_tree t;
        tree_reset(&t, 0);
        int32_t n = 1 + rng_below(&r, 60);
        while (t.n_nodes < n)
            tree_push(&t, rng_below(&r, t.n_nodes), rng_below(&r, 3), 0.5f);
        for (int32_t i = 0; i < n * LD; i++)
            logits[i] = (float)rng_normal(&r) + (i % LD < 3 ? 4.0f : i % LD >= V ? 1000.0f : 0);
        int64_t root = rng_below(&r, 1000);
        accepted got;
        int32_t row_of[TREE_MAX_NODES];
        submit_some(&t, &r, row_of);
        accept_path(&got, &t, &(node_logits){logits, LD, row_of}, &s, root, 0);
        int32_t last = deepest_right_node(&t, row_of, &s, logits, root);
        assert_int_equal(got.n_path, t.nodes[last].depth);
        for (int32_t i = last, d = got.n_path; d > 0; i = t.nodes[i].parent)
            assert_int_equal(got.path[--d], i);
        int64_t after = root + t.nodes[last].depth + 1;
        assert_int_equal(got.next, sampler_choose(&s, logits + row_of[last] * LD, after));
        int32_t beyond = tree_child(&t, last, got.next);
        assert_true(beyond < 0 || row_of[beyond] < 0);
        accepted_total += got.n_path;
        arena_free(&a);
    }
    assert_true(accepted_total > 400);
}

/* ---- Scripted models ---- */

/* Logits after tokens[0..n), a function of the last three. drift: how far the draft's are off. */
static void model_logits(float *logits, const int32_t *tokens, int32_t n, float drift)
{
    rng r = {88172645463325252u};
    for (int32_t i = n < 3 ? 0 : n - 3; i < n; i++)
        r.state = (rng_next(&r) ^ (uint64_t)(tokens[i] + 1) * 0x9E3779B97F4A7C15u) | 1;
    rng off = {r.state ^ 0x123456789u};
    for (int32_t i = 0; i < V; i++)
        logits[i] = (float)(2.5 * rng_normal(&r)) + drift * (float)rng_normal(&off);
}

/* A draft model: knows the timeline, guesses with a sampler of the same settings. */
typedef struct draft_model {
    drafter base;
    sampler s;
    int32_t tokens[LENGTH + TREE_MAX_NODES];
    int32_t n;
} draft_model;

static drey_status model_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    draft_model *d = (draft_model *)base;
    memcpy(d->tokens, tokens, (size_t)n * sizeof *tokens);
    d->n = n;
    return DREY_OK;
}

static drey_status model_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    draft_model *d = (draft_model *)base;
    for (int32_t i = 0; i < n; i++) {
        float logits[V];
        candidate guesses[TREE_MAX_GUESSES];
        int32_t length = d->n + tree_path(tree, nodes[i], d->tokens + d->n);
        model_logits(logits, d->tokens, length, 0.7f);
        tree_guess(tree, nodes[i], guesses,
                   sampler_guess(&d->s, logits, length, &(logit_ids){.n_first = V}, guesses,
                                 TREE_MAX_GUESSES));
    }
    return DREY_OK;
}

static void model_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next, const int32_t *moved)
{
    (void)moved;
    draft_model *d = (draft_model *)base;
    for (int32_t i = 0; i < n_path; i++)
        d->tokens[d->n++] = tree->nodes[path[i]].token;
    d->tokens[d->n++] = next;
}

static const drafter_class model_class = {
    .begin = model_begin, .expand = model_expand, .reroot = model_reroot};

/* One pass of the target over a share of the tree, in this order of rows. */
static void verify(float *logits, const int32_t *tokens, int32_t n, const token_tree *t, rng *r,
                   int32_t *row_of)
{
    int32_t path[LENGTH + TREE_MAX_NODES], n_rows = 0;
    memcpy(path, tokens, (size_t)n * sizeof *tokens);
    for (int32_t i = 0; i < t->n_nodes; i++) {
        bool there = i == 0 || (row_of[t->nodes[i].parent] >= 0 && rng_below(r, 16) > 0);
        row_of[i] = there ? n_rows++ : -1;
        if (there)
            model_logits(logits + row_of[i] * LD, path, n + tree_path(t, i, path + n), 0);
    }
}

static int n_kept; /* trees of which something stayed */

/* Writes tokens[START..LENGTH) with a drafter; returns the number of passes. */
static int write_with(drafter *d, draft_policy *p, sampler *s, int32_t *tokens)
{
    static float logits[TREE_MAX_NODES * LD];
    int passes = 0;
    int32_t n = START, row_of[TREE_MAX_NODES], moved[TREE_MAX_NODES];
    rng r = rng_from(s->settings.seed);
    token_tree tree;
    tree_reset(&tree, tokens[n - 1]);
    MUST(d->class->begin, d, tokens, n);
    while (n < LENGTH) {
        if (p)
            MUST(draft_grow, d, p, &tree, LENGTH - n - 1);
        verify(logits, tokens, n, &tree, &r, row_of);
        accepted got;
        accept_path(&got, &tree, &(node_logits){logits, LD, row_of}, s, n - 1, 0);
        n_kept += tree_moves(&tree, got.path, got.n_path, got.next, moved);
        d->class->reroot(d, &tree, got.path, got.n_path, got.next, moved);
        for (int32_t i = 0; i < got.n_path; i++)
            tokens[n++] = tree.nodes[got.path[i]].token;
        tokens[n++] = got.next;
        tree_reroot(&tree, got.next, moved);
        passes++;
    }
    assert_int_equal(n, LENGTH);
    return passes;
}

static void write_alone(sampler *s, int32_t *tokens)
{
    for (int32_t n = START; n < LENGTH; n++) {
        float logits[V];
        model_logits(logits, tokens, n, 0);
        tokens[n] = sampler_choose(s, logits, n);
    }
}

TEST(drafting_never_changes_the_text)
{
    const drey_sampling settings[] = {
        {.top_p = 1},
        {.temperature = 0.3f, .top_p = 1},
        {.temperature = 1, .top_p = 1},
        {.temperature = 1, .top_k = 6, .top_p = 0.9f, .min_p = 0.02f},
        {.temperature = 3, .top_p = 1},
    };
    const drey_policy policies[] = {DREY_POLICY_NONE, DREY_POLICY_SEQUENCE, DREY_POLICY_OPTIMAL};
    const int32_t prompt[START] = {3, 1, 4, 1};
    int passes[3] = {0}, lookup_passes = 0, texts = 0;
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        for (uint64_t seed = 0; seed < 12; seed++) {
            drey_sampling set = settings[k];
            set.seed = seed;
            arena a, b;
            sampler s = sampler_make(&a, set);
            draft_model model = {.base.class = &model_class, .s = sampler_make(&b, set)};
            void *memory_of_lookup = calloc(1, drafter_lookup_bytes(LENGTH));
            assert_non_null(memory_of_lookup);
            drafter *lookup = drafter_lookup_init(memory_of_lookup, LENGTH);
            int32_t alone[LENGTH], with[LENGTH];
            memcpy(alone, prompt, sizeof prompt);
            write_alone(&s, alone);
            for (int i = 0; i < 6; i++) {
                const policy_class *class = policy_class_of(policies[i % 3]);
                policy_memory memory;
                draft_policy *p =
                    class ? policy_init(&memory, class, i % 3 == 1 ? 5 : 16, 0) : NULL;
                memcpy(with, prompt, sizeof prompt);
                int n = write_with(i < 3 ? &model.base : lookup, p, &s, with);
                assert_memory_equal(with, alone, sizeof alone);
                if (i < 3)
                    passes[i] += n;
                else if (i == 5)
                    lookup_passes += n;
            }
            texts++;
            free(memory_of_lookup);
            arena_free(&a);
            arena_free(&b);
        }
    }
    /* And it helps: the draft shares the noise, so it guesses well at every temperature. */
    assert_int_equal(passes[0], texts * (LENGTH - START));
    assert_true(passes[1] < passes[0] * 2 / 3);
    assert_true(passes[2] < passes[1]);
    assert_true(lookup_passes < passes[0]);
    assert_true(n_kept > 100);
}
