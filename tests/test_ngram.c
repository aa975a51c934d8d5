/* The n-gram drafter against a brute-force search of the whole text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draft/drafter.h"
#include "support/rng.h"
#include "support/tree_path.h"

enum { CAPACITY = 600, MAX_PLACES = 64 };

typedef struct text {
    int32_t token[CAPACITY + TREE_MAX_NODES];
    int32_t n;
} text;

/* How many tokens before `place` in t equal the last ones of path, at most 16. */
static int32_t agreement(const text *t, int32_t place, const text *path)
{
    int32_t n = 0;
    while (n < 16 && n < place && n < path->n &&
           t->token[place - 1 - n] == path->token[path->n - 1 - n])
        n++;
    return n;
}

/* The definition: for lengths 4, 3, 2, the latest 64 places that share as many tokens. */
static int32_t search(const text *t, const text *path, candidate *out, int32_t max)
{
    for (int32_t length = 4; length >= 2; length--) {
        int32_t seen[MAX_PLACES], count[MAX_PLACES], n = 0, total = 0, shared = 0;
        for (int32_t place = t->n - 1; place > 0 && total < MAX_PLACES; place--) {
            int32_t a = agreement(t, place, path);
            if (a < length)
                continue;
            total++;
            shared = a > shared ? a : shared;
            int32_t i = 0;
            while (i < n && seen[i] != t->token[place])
                i++;
            if (i == n) {
                seen[n] = t->token[place];
                count[n++] = 0;
            }
            count[i]++;
        }
        if (total == 0)
            continue;
        int32_t n_out = 0;
        for (int32_t c = total; c > 0; c--) {
            for (int32_t i = 0; i < n && n_out < max; i++) {
                if (count[i] == c)
                    out[n_out++] = (candidate){
                        seen[i], (float)c / ((float)total + 2.0f / (float)(shared - 1))};
            }
        }
        return n_out;
    }
    return 0;
}

static void compare(const text *t, const token_tree *tree, int32_t node)
{
    text path = *t;
    path.n += tree_path(tree, node, path.token + path.n);
    candidate expected[TREE_MAX_GUESSES];
    const candidate *got = tree->nodes[node].guess;
    int32_t n = search(t, &path, expected, TREE_MAX_GUESSES);
    assert_true(tree->nodes[node].expanded);
    assert_int_equal(tree->nodes[node].n_guesses, n);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(got[i].token, expected[i].token);
        assert_true(fabsf(got[i].confidence - expected[i].confidence) < 1e-6f);
        assert_true(got[i].confidence > 0 && got[i].confidence < 1);
    }
}

/* In memory of exactly its size; free takes it back. */
static drafter *open_ngram(int32_t capacity)
{
    void *memory = calloc(1, drafter_ngram_class.bytes(capacity));
    assert_non_null(memory);
    drafter *d = drafter_ngram_init(memory, capacity);
    assert_ptr_equal(d, memory);
    return d;
}

/* Random texts over few tokens, with passages that repeat; trees over them; any branch
 * is accepted, or none. The index must answer afterwards as the search in the longer text does. */
static void as_a_search_of_the_text(void **state)
{
    (void)state;
    rng r = {5};
    for (int round = 0; round < 60; round++) {
        drafter *d = open_ngram(CAPACITY);
        int32_t alphabet = 2 + rng_below(&r, round % 2 ? 4 : 100);
        text t = {.n = 1 + rng_below(&r, 200)};
        for (int32_t i = 0; i < t.n; i++)
            t.token[i] = i > 20 && rng_below(&r, 8) ? t.token[i - 17] : rng_below(&r, alphabet);
        assert_int_equal(d->class->begin(d, t.token, t.n, NULL), DREY_OK);
        while (t.n < CAPACITY - 40) {
            token_tree tree;
            tree_reset(&tree, t.token[t.n - 1]);
            while (tree.n_nodes < 12)
                tree_push(&tree, rng_below(&r, tree.n_nodes), rng_below(&r, alphabet), 0.5f);
            for (int32_t i = 0; i < tree.n_nodes;) { /* some nodes in a step */
                int32_t nodes[DRAFT_MAX_BATCH], n = 0, most = 1 + rng_below(&r, DRAFT_MAX_BATCH);
                while (n < most && i < tree.n_nodes)
                    nodes[n++] = i++;
                assert_int_equal(d->class->expand(d, &tree, nodes, n, NULL), DREY_OK);
            }
            for (int32_t i = 0; i < tree.n_nodes; i++)
                compare(&t, &tree, i);
            int32_t path[16], last = rng_below(&r, tree.n_nodes);
            int32_t n = tree_nodes_to(&tree, last, path);
            t.n += tree_path(&tree, last, t.token + t.n);
            int32_t next = t.n > 30 && rng_below(&r, 4) ? t.token[t.n - 17] : 1;
            t.token[t.n++] = next;
            d->class->reroot(d, &tree, path, n, next, NULL);
        }
        free(d);
    }
}

static int32_t guess_after(drafter *d, const int32_t *tokens, int32_t n, candidate *out)
{
    assert_int_equal(d->class->begin(d, tokens, n, NULL), DREY_OK);
    token_tree tree;
    tree_reset(&tree, tokens[n - 1]);
    assert_int_equal(d->class->expand(d, &tree, &(int32_t){0}, 1, NULL), DREY_OK);
    memcpy(out, tree.nodes[0].guess, sizeof tree.nodes[0].guess);
    return tree.nodes[0].n_guesses;
}

static void examples_by_hand(void **state)
{
    (void)state;
    drafter *d = open_ngram(16);
    candidate c[8];
    /* 1 2 was followed by 3, once. */
    const int32_t once[] = {1, 2, 3, 9, 1, 2};
    assert_int_equal(guess_after(d, once, 6, c), 1);
    assert_int_equal(c[0].token, 3);
    assert_true(fabsf(c[0].confidence - 1.0f / 3) < 1e-6f);
    /* 1 2 was followed by 3, by 4, by 3: the more frequent first, though older. */
    const int32_t thrice[] = {1, 2, 3, 1, 2, 3, 8, 1, 2, 4, 9, 1, 2};
    assert_int_equal(guess_after(d, thrice, 13, c), 2);
    assert_int_equal(c[0].token, 3);
    assert_int_equal(c[1].token, 4);
    assert_true(fabsf(c[0].confidence - 2.0f / 5) < 1e-6f);
    /* Equally frequent: the latest first. */
    const int32_t equal[] = {1, 2, 3, 8, 1, 2, 4, 9, 1, 2};
    assert_int_equal(guess_after(d, equal, 10, c), 2);
    assert_int_equal(c[0].token, 4);
    /* A longer match hides a shorter, more recent one. */
    const int32_t longer[] = {7, 1, 2, 5, 9, 1, 2, 6, 7, 1, 2};
    assert_int_equal(guess_after(d, longer, 11, c), 1);
    assert_int_equal(c[0].token, 5);
    assert_true(fabsf(c[0].confidence - 0.5f) < 1e-6f);
    /* Nothing of two tokens comes again; a single token is no clue; too short a text. */
    const int32_t fresh[] = {1, 2, 1, 3, 1};
    assert_int_equal(guess_after(d, fresh, 5, c), 0);
    assert_int_equal(guess_after(d, fresh, 1, c), 0);
    free(d);
}

static void a_text_beyond_its_capacity_is_refused(void **state)
{
    (void)state;
    drafter *d = open_ngram(16);
    drey_error err;
    const int32_t tokens[17] = {0};
    assert_int_equal(d->class->begin(d, tokens, 16, &err), DREY_OK);
    assert_int_equal(d->class->begin(d, tokens, 17, &err), DREY_ERR_CONTEXT);
    assert_non_null(strstr(err.message, "17"));
    free(d);
    assert_true(drafter_ngram_class.bytes(1000) >= 1000 * 4 * sizeof(int32_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_search_of_the_text),
        cmocka_unit_test(examples_by_hand),
        cmocka_unit_test(a_text_beyond_its_capacity_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
