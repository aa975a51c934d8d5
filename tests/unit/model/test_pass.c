/* The forward pass over trees: a row's logits have the same bits in a tree, in a chunk, and alone;
 * and taps. Trees in several passes, and caches after a path was committed, are compared in
 * test_deferred and test_reroot. */
#include "session/session.h"
#include "state/cache.h"
#include "support/toy_models.h"

enum { N_PROMPT = 70, N_TREE = 24, MAX_VOCAB = 2048 };

static drey_session *s;

static void open_toy(const char *architecture, uint32_t type)
{
    toy_options toy = toy_default();
    toy.architecture = architecture;
    toy.type = type;
    toy.biases = true;
    toy.n_embd = 256;
    toy.n_ff = 2048; /* wide enough that few rows of it are shared by all threads */
    target = toy_open("model.gguf", &toy);
    const drey_engine_options o = plain_options(target, 200, 2);
    s = open_alone(&o, &(engine_hooks){.least_logit_rows = 64, .tap_rows = 8});
    assert_true(s->engine->target.layout.shape.n_vocab <= MAX_VOCAB);
}

static void close_toy(void)
{
    close_alone(&s);
    toys_close(NULL);
}

static void compute(const pass_row *rows, int32_t n, pass_head head)
{
    MUST(pass_rows, &s->target, rows, n, head);
}

static void start(int32_t chunk)
{
    int32_t tokens[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++)
        tokens[i] = (i * 37 + 5) % 256;
    cache_clear(&s->target_cache);
    MUST(pass_prompt, &s->target, tokens, N_PROMPT, chunk, HEAD_NONE, NULL, NULL);
}

/* A seeded tree: node i hangs on one of the nodes before it. */
static void make_tree(pass_row *rows, uint64_t seed)
{
    for (int32_t i = 0; i < N_TREE; i++) {
        uint64_t r = toy_random(&seed);
        rows[i].parent = i == 0 ? -1 : (int32_t)(r % (uint64_t)i);
        if (r >> 60 < 10 && i > 0)
            rows[i].parent = i - 1; /* long branches too */
        rows[i].token = (int32_t)(toy_random(&seed) % 256);
    }
}

static int32_t path_to(const pass_row *rows, int32_t node, int32_t *path)
{
    int32_t n = 0, at[N_TREE];
    for (int32_t i = node; i >= 0; i = rows[i].parent)
        at[n++] = i;
    for (int32_t i = 0; i < n; i++)
        path[i] = at[n - 1 - i];
    return n;
}

static size_t logits_bytes(void)
{
    return (size_t)s->engine->target.layout.shape.n_vocab * sizeof(float);
}

static const float *logits_of(int32_t row)
{
    return s->target.ws->logits + row * pass_logits_stride(&s->target);
}

/* Every node's logits in the tree against its path computed alone, one token at a time. */
TEST(test_tree_equals_paths)
{
    static float tree[N_TREE][MAX_VOCAB];
    open_toy("qwen2", TOY_TYPE_MIXED);
    pass_row rows[N_TREE];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        make_tree(rows, seed);
        start(16);
        compute(rows, N_TREE, HEAD_ALL);
        for (int32_t i = 0; i < N_TREE; i++)
            memcpy(tree[i], logits_of(i), logits_bytes());
        for (int32_t node = N_TREE - 6; node < N_TREE; node++) {
            int32_t path[N_TREE], n = path_to(rows, node, path);
            start(33);
            for (int32_t i = 0; i < n; i++) {
                compute(&(pass_row){rows[path[i]].token, -1}, 1, HEAD_ALL);
                cache_commit(&s->target_cache, NULL, 1);
                assert_memory_equal(logits_of(0), tree[path[i]], logits_bytes());
            }
        }
    }
    close_toy();
}

/* Rows of the tree [N_TREE] at the layers where the test taps them, taken out of the workspace by
 * somebody who stops at each layer. */
enum { N_TAPS = 4 };
static const int32_t tapped_rows[] = {0, 7, N_TREE - 1};

static void look_at_layers(const pass_row *rows, const pass_tap *taps, float *const seen[N_TAPS])
{
    runner *r = &s->target;
    int64_t n_embd = r->layout->shape.n_embd, stride = pass_hidden_stride(r);
    pass_group group = {.cache = r->cache, .rows = rows, .n = N_TREE, .head = HEAD_ALL};
    model_pass p;
    pass_state state = PASS_CONTINUES;
    MUST(pass_begin, &p, r, &group, 1);
    while (state != PASS_DONE) {
        MUST(pass_step, &p, 0, &state);
        if (state == PASS_STARVED)
            pass_wait(&p);
        for (int t = 0; t < N_TAPS && pass_at_layer(&p); t++)
            for (int32_t i = 0; i < taps[t].n && taps[t].layer == pass_layers_done(&p); i++)
                memcpy(seen[t] + i * stride, r->ws->x + taps[t].rows[i] * stride,
                       (size_t)n_embd * sizeof(float));
    }
    MUST(pass_end, &p);
    for (int32_t i = 0; i < taps[0].n; i++)
        MUST(weights_row, r->weights, rows[taps[0].rows[i]].token, seen[0] + i * stride, 0);
}

/* What a pass hands out is what its rows held at each layer, and its logits are the same. */
TEST(test_taps)
{
    open_toy("qwen2", TYPE_Q4_K);
    runner *r = &s->target;
    int64_t n_embd = r->layout->shape.n_embd, stride = pass_hidden_stride(r);
    int32_t n_layers = r->layout->shape.n_layers;
    pass_tap taps[N_TAPS] = {{.layer = 0, .rows = tapped_rows, .n = 2},
                             {.layer = n_layers, .rows = tapped_rows, .n = 2},
                             {.layer = 1, .rows = tapped_rows, .n = 3},
                             {.layer = n_layers, .rows = tapped_rows + 2, .n = 1}};
    pass_row rows[N_TREE];
    make_tree(rows, 5);
    float *seen[N_TAPS];
    for (int t = 0; t < N_TAPS; t++) {
        seen[t] = calloc((size_t)(taps[t].n * stride), sizeof(float));
        assert_non_null(seen[t]);
    }
    start(16);
    look_at_layers(rows, taps, seen);
    size_t all_bytes = (size_t)(N_TREE * pass_logits_stride(r)) * sizeof(float);
    float *logits = malloc(all_bytes);
    assert_non_null(logits);
    memcpy(logits, r->ws->logits, all_bytes);

    start(16);
    pass_group group = {.cache = r->cache,
                        .rows = rows,
                        .n = N_TREE,
                        .head = HEAD_ALL,
                        .taps = taps,
                        .n_taps = N_TAPS};
    MUST(pass_run, r, &group, 1);
    for (int t = 0; t < N_TAPS; t++)
        for (int32_t i = 0; i < taps[t].n; i++)
            assert_memory_equal(taps[t].out + i * stride, seen[t] + i * stride,
                                (size_t)n_embd * sizeof(float));
    for (int32_t i = 0; i < N_TREE; i++)
        assert_memory_equal(logits_of(i), logits + i * pass_logits_stride(r), logits_bytes());

    model_pass p;
    pass_state now = PASS_CONTINUES;
    start(16);
    MUST(pass_begin, &p, r, &group, 1);
    while (!pass_at_layer(&p) || pass_layers_done(&p) == 0) {
        MUST(pass_step, &p, 0, &now);
        if (now == PASS_STARVED)
            pass_wait(&p);
    }
    assert_non_null(taps[2].out);
    assert_null(taps[1].out); /* its layer is not complete */
    pass_leave(&p);
    for (int t = 0; t < N_TAPS; t++)
        free(seen[t]);
    free(logits);
    close_toy();
}
