/* The lookup drafter: its automaton against a search of the whole text, what it recycles, and what
 * its guesses are worth. */
#include "draft/lookup_drafter.h"
#include "support/scene.h"

enum { CAPACITY = 300 };

typedef struct text {
    int32_t token[CAPACITY + TREE_MAX_NODES];
    int32_t n;
} text;

/* ---- The automaton ---- */

/* Does the word end at `end` (tokens before it) in t? */
static bool ends_at(const text *t, int32_t end, const int32_t *word, int32_t n)
{
    return end >= n && memcmp(t->token + end - n, word, (size_t)n * sizeof *word) == 0;
}

/* The longest suffix of the word that ends in t before `limit`. */
static int32_t longest(const text *t, int32_t limit, const text *word)
{
    for (int32_t n = word->n; n > 0; n--)
        for (int32_t end = n; end < limit; end++)
            if (ends_at(t, end, word->token + word->n - n, n))
                return n;
    return 0;
}

/* Places where the word's last n tokens are followed by `next`, and the last of them. */
static int32_t count_next(const text *t, const text *word, int32_t n, int32_t next, int32_t *latest)
{
    int32_t count = 0;
    for (int32_t end = n; end < t->n; end++)
        if (t->token[end] == next && ends_at(t, end, word->token + word->n - n, n)) {
            count++;
            *latest = end + 1;
        }
    return count;
}

static void check_edges(const suffix_automaton *a, const text *t, const text *word, suffix_match m,
                        int32_t n_letters)
{
    for (int32_t next = 0; next < n_letters; next++) {
        int32_t latest = 0, edge = suffix_automaton_edge(a, m.state, next);
        int32_t count = count_next(t, word, m.length, next, &latest);
        assert_int_equal(edge >= 0, count > 0);
        if (edge < 0 || m.length == 0)
            continue;
        assert_int_equal(a->state[a->edge[edge].to].count, count);
        assert_int_equal(a->state[a->edge[edge].to].latest, latest);
    }
}

TEST(the_automaton)
{
    rng r = rng_from(4);
    suffix_automaton a;
    void *memory = calloc(1, suffix_automaton_bytes(CAPACITY));
    assert_non_null(memory);
    suffix_automaton_init(&a, memory, CAPACITY);
    for (int32_t round = 0; round < 12; round++) {
        int32_t n_letters = 2 + round % 5;
        text t = {.n = 0};
        suffix_automaton_clear(&a);
        /* Few letters repeat within the words that hear of a place: all counts are exact. */
        for (int32_t i = 0; i < 60 + 10 * round; i++) {
            bool again = i > 20 && rng_below(&r, 3) == 0;
            int32_t token = again ? t.token[t.n - 17] : rng_below(&r, n_letters);
            t.token[t.n++] = token;
            suffix_automaton_add(&a, token);
            assert_int_equal(suffix_automaton_end(&a).length, longest(&t, t.n, &t));
        }
        check_edges(&a, &t, &t, suffix_automaton_end(&a), n_letters);
        for (int32_t walk = 0; walk < 20; walk++) {
            text word = t;
            suffix_match m = suffix_automaton_end(&a);
            for (int32_t i = 0; i < 10; i++) {
                word.token[word.n++] = rng_below(&r, n_letters + 1); /* one that never occurred */
                m = suffix_automaton_step(&a, m, word.token[word.n - 1]);
                int32_t want = 0;
                for (int32_t n = m.length; n <= m.length + 1 && n <= word.n; n++)
                    for (int32_t end = n; end <= t.n; end++)
                        if (ends_at(&t, end, word.token + word.n - n, n))
                            want = n;
                assert_int_equal(m.length, want);
                check_edges(&a, &t, &word, m, n_letters);
            }
        }
    }
    free(memory);
}

/* As many states as a text can have, and as many edges; and the longest chains of links. */
TEST(texts_that_fill_it)
{
    suffix_automaton a;
    void *memory = calloc(1, suffix_automaton_bytes(CAPACITY));
    assert_non_null(memory);
    suffix_automaton_init(&a, memory, CAPACITY);
    for (int kind = 0; kind < 3; kind++) {
        suffix_automaton_clear(&a);
        for (int32_t i = 0; i < CAPACITY; i++)
            suffix_automaton_add(&a, kind == 0 ? 0 : kind == 1 ? i > 0 : i > 0 && i < CAPACITY - 1);
        assert_true(a.n_states <= 2 * CAPACITY && a.n_edges <= 3 * CAPACITY);
        int32_t want = kind == 0 ? CAPACITY - 1 : kind == 1 ? CAPACITY - 2 : 1;
        assert_int_equal(suffix_automaton_end(&a).length, want);
    }
    free(memory);
}

/* ---- The drafter ---- */

typedef struct bench {
    void *memory;
    lookup_drafter *d;
    token_tree tree;
} bench;

static bench b; /* its memory stays until the next one opens */

static void open_bench(const int32_t *tokens, int32_t n)
{
    free(b.memory);
    memset(&b, 0, sizeof b);
    b.memory = calloc(1, drafter_lookup_bytes(CAPACITY));
    assert_non_null(b.memory);
    b.d = (lookup_drafter *)drafter_lookup_init(b.memory, CAPACITY);
    MUST(drafter_lookup_class.begin, &b.d->base, tokens, n);
    tree_reset(&b.tree, tokens[n - 1]);
}

static const tree_node *expand(int32_t node)
{
    MUST(drafter_lookup_class.expand, &b.d->base, &b.tree, &node, 1);
    return &b.tree.nodes[node];
}

static void check_guesses(const tree_node *node, const int32_t *tokens, int32_t n)
{
    float sum = 0;
    assert_true(node->expanded);
    assert_int_equal(node->n_guesses, n);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(node->guess[i].token, tokens[i]);
        assert_true(node->guess[i].confidence > 0);
        assert_true(i == 0 || node->guess[i].confidence <= node->guess[i - 1].confidence);
        sum += node->guess[i].confidence;
    }
    assert_true(sum <= 1.0001f);
}

/* "1 2 3 7 | 1 2 3 8 | 1 2 3 8 | 5 2 3 9 | 1 2 3" */
static const int32_t repeated[] = {1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3, 8, 5, 2, 3, 9, 1, 2, 3};

TEST(candidates)
{
    open_bench(repeated, sizeof repeated / sizeof *repeated);
    /* After 1 2 3: 8 twice and 7; after 2 3: also 9. */
    check_guesses(expand(0), (int32_t[]){8, 7, 9}, 3);
    /* After 1 2 3 8: 1 and 5, once each, the later one first. */
    int32_t child = tree_push(&b.tree, 0, 8, 0.5f);
    check_guesses(expand(child), (int32_t[]){5, 1}, 2);
    /* After 2 3 9 came 1; the path's 3 9 is a suffix of that. */
    child = tree_push(&b.tree, 0, 9, 0.5f);
    check_guesses(expand(child), (int32_t[]){1}, 1);
    /* A token that never was: nothing. */
    child = tree_push(&b.tree, 0, 77, 0.5f);
    check_guesses(expand(child), NULL, 0);
}

/* An encoder's input is in front of the timeline, whatever that is. */
TEST(copies_an_input)
{
    static const int32_t start[] = {60}, other[] = {60, 3}, input[] = {1, 2, 3, 7, 61},
                         next[] = {4};
    open_bench(start, 1);
    drafter_lookup_class.listener->take_input(&b.d->base, input, 5);
    MUST(drafter_lookup_class.begin, &b.d->base, start, 1);
    assert_int_equal(expand(0)->n_guesses, 0);
    int32_t child = tree_push(&b.tree, 0, 2, 0.5f);
    check_guesses(expand(child), (int32_t[]){3}, 1);
    MUST(drafter_lookup_class.begin, &b.d->base, other, 2);
    tree_reset(&b.tree, 3);
    check_guesses(expand(0), (int32_t[]){7}, 1);
    MUST(drafter_lookup_class.begin, &b.d->base, start, 1); /* shorter: the input stays */
    tree_reset(&b.tree, 60);
    child = tree_push(&b.tree, 0, 2, 0.5f);
    check_guesses(expand(child), (int32_t[]){3}, 1);
    drafter_lookup_class.listener->take_input(&b.d->base, next, 1);
    MUST(drafter_lookup_class.begin, &b.d->base, start, 1);
    tree_reset(&b.tree, 60);
    child = tree_push(&b.tree, 0, 2, 0.5f);
    assert_int_equal(expand(child)->n_guesses, 0);
}

TEST(what_the_target_thought)
{
    const int32_t tokens[] = {4, 5, 6};
    open_bench(tokens, 3);
    drafter *d = &b.d->base;
    int32_t child = tree_push(&b.tree, 0, 30, 0.5f);
    d->class->listener->take_target_top(d, &b.tree, 0, (int32_t[]){30, 31}, 2);
    d->class->listener->take_target_top(d, &b.tree, child, (int32_t[]){6, 41, 42}, 3);
    /* After 5 6; after 6 30, and after any 30. */
    check_guesses(expand(0), (int32_t[]){30, 31}, 2);
    check_guesses(expand(child), (int32_t[]){6, 41, 42}, 3);
    int32_t other = tree_push(&b.tree, 0, 31, 0.5f);
    int32_t deep = tree_push(&b.tree, other, 30, 0.5f);
    check_guesses(expand(other), NULL, 0);
    check_guesses(expand(deep), (int32_t[]){6, 41, 42}, 3);
    assert_true(b.tree.nodes[child].guess[0].confidence > b.tree.nodes[deep].guess[0].confidence);
    /* The newest row stays. */
    d->class->listener->take_target_top(d, &b.tree, deep, (int32_t[]){43}, 1);
    int32_t last = tree_push(&b.tree, deep, 30, 0.5f);
    check_guesses(expand(last), (int32_t[]){43}, 1);
}

/* While the text continues, a kind that is right gains, and one that is wrong loses. */
TEST(confidence_follows_the_text)
{
    for (int right = 0; right < 2; right++) {
        open_bench(repeated, sizeof repeated / sizeof *repeated);
        drafter *d = &b.d->base;
        float before = expand(0)->guess[0].confidence, after = before;
        for (int32_t i = 0; i < 12; i++) {
            int32_t moved[TREE_MAX_NODES];
            tree_moves(&b.tree, NULL, 0, right ? 8 : 66 + i, moved);
            d->class->reroot(d, &b.tree, NULL, 0, right ? 8 : 66 + i, moved);
            MUST(d->class->begin, d, repeated, sizeof repeated / sizeof *repeated);
            tree_reset(&b.tree, 3);
            after = expand(0)->guess[0].confidence;
        }
        assert_true(right ? after > before : after < 0.5f * before);
    }
}

/* A text after another one, and the same text with more tokens at its end. */
TEST(beginning_again)
{
    const int32_t n = sizeof repeated / sizeof *repeated;
    open_bench(repeated, n - 4);
    drafter *d = &b.d->base;
    MUST(d->class->begin, d, repeated, n);
    tree_reset(&b.tree, 3);
    check_guesses(expand(0), (int32_t[]){8, 7, 9}, 3);
    MUST(d->class->begin, d, repeated + 4, n - 4);
    tree_reset(&b.tree, 3);
    check_guesses(expand(0), (int32_t[]){8, 9}, 2);
    int32_t many[CAPACITY + 1] = {0};
    drey_error err;
    assert_int_equal(d->class->begin(d, many, CAPACITY + 1, &err), DREY_ERR_CONTEXT);
}
