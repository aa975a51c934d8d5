/* A pass that pauses, waits, is left in the middle, shares its weights with another cache's rows or
 * takes turns with another model's pass computes the bits of one that runs through. */
#include <stdatomic.h>
#include <unistd.h>

#include "engine/engine.h"
#include "os/clock.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "support/toy_models.h"

#ifdef TESTS_SANITIZED
enum { N_ROUNDS = 1, N_LEFT = 8 };
#else
enum { N_ROUNDS = 4, N_LEFT = 25 };
#endif
enum { N_CACHES = 3, N_SLOTS = 120, MAX_PENDING = 40, N_TREE = 21, MAX_LOGITS = 16384 };

typedef struct bench {
    drey_engine *engine;
    arena memory;
    text_cache cache[N_CACHES], draft_cache;
    runner target, draft;
    _Atomic bool cancel;
    rng random;
    _Atomic bool gate_closed; /* reads wait until it opens */
    _Atomic uint32_t n_reads;
} bench;

static int slow_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    bench *b = user;
    while (atomic_load(&b->gate_closed))
        usleep(200);
    usleep(atomic_fetch_add(&b->n_reads, 1) % 3 * 100);
    return 0;
}

static runner runner_of(bench *b, engine_side *side, text_cache *cache)
{
    return (runner){.layout = &side->layout,
                    .weights = &side->weights,
                    .ws = &side->ws,
                    .pool = b->engine->pool,
                    .kernels = b->engine->kernels,
                    .cache = cache,
                    .cancel = &b->cancel};
}

/* share: of each of the target's matrices that is pinned. */
static void open_bench(bench *b, double share, int32_t n_threads)
{
    *b = (bench){.random = rng_from(7)};
    toy_options toy = toy_default();
    toy.type = TOY_TYPE_MIXED;
    toy.n_embd = 512; /* more than the ring holds */
    toy.n_ff = 4096;
    toys_open_pair(&toy);
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 100, n_threads);
    o.n_sessions = N_CACHES;
    o.read_bytes = 64 << 10;
    o.io = DREY_IO_PREAD;
    drey_plan plan; /* the least budget, and some: so that the ring is small */
    o.memory_bytes = 1;
    REFUSED(DREY_ERR_MEMORY, "", drey_plan_make, &o, NULL, &plan);
    o.memory_bytes = plan.smallest_budget_bytes + (64 << 20);
    engine_hooks hooks = {.least_logit_rows = 64,
                          .set_share = share < 1,
                          .share = share,
                          .fault = slow_read,
                          .fault_user = b};
    MUST(engine_open, &b->engine, &o, &hooks);
    const cache_spec large = model_cache_spec(&b->engine->target.layout.shape, KV_F16);
    const cache_spec small = model_cache_spec(&b->engine->draft.layout.shape, KV_F16);
    size_t bytes = N_CACHES * cache_bytes(&large, N_SLOTS, MAX_PENDING) +
                   cache_bytes(&small, N_SLOTS, MAX_PENDING) + 4096;
    MUST(arena_init, &b->memory, bytes, false);
    for (int i = 0; i < N_CACHES; i++)
        cache_init(&b->cache[i], &large, N_SLOTS, MAX_PENDING, &b->memory);
    cache_init(&b->draft_cache, &small, N_SLOTS, MAX_PENDING, &b->memory);
    b->target = runner_of(b, &b->engine->target, &b->cache[0]);
    b->draft = runner_of(b, &b->engine->draft, &b->draft_cache);
}

static void close_bench(bench *b)
{
    drey_engine_close(&b->engine);
    arena_free(&b->memory);
    toys_close(NULL);
}

/* Fills a cache with n committed tokens, of another text for every n. */
static void commit_text(bench *b, runner r, text_cache *cache, int32_t n)
{
    int32_t tokens[N_SLOTS];
    for (int32_t i = 0; i < n; i++)
        tokens[i] = (i * 31 + n * 7) % 256;
    r.cache = cache;
    cache_clear(cache);
    MUST(pass_prompt, &r, tokens, n, 20, HEAD_NONE, NULL, NULL);
}

/* A seeded tree, or a chain. */
static void make_rows(pass_row *rows, int32_t n, uint64_t seed, bool chain)
{
    rng r = rng_from(seed);
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = rng_below(&r, 256),
                             .parent = chain || i == 0 ? i - 1 : rng_below(&r, i)};
}

static void keep_logits(const runner *r, const float *logits, int32_t n, float *out)
{
    int32_t vocab = r->layout->shape.n_vocab;
    assert_true((int64_t)n * vocab <= MAX_LOGITS);
    for (int32_t i = 0; i < n; i++)
        memcpy(out + (int64_t)i * vocab, logits + i * pass_logits_stride(r),
               (size_t)vocab * sizeof(float));
}

static void same_logits(const runner *r, const float *logits, int32_t n, const float *want)
{
    int32_t vocab = r->layout->shape.n_vocab;
    for (int32_t i = 0; i < n; i++)
        assert_memory_equal(logits + i * pass_logits_stride(r), want + (int64_t)i * vocab,
                            (size_t)vocab * sizeof(float));
}

/* A pass over a cache's rows that runs through; they are dropped again. */
static void reference(const runner *r, text_cache *cache, const pass_row *rows, int32_t n,
                      pass_head head, float *out)
{
    runner own = *r;
    pass_group g = {.cache = cache, .rows = rows, .n = n, .head = head};
    MUST(pass_run, &own, &g, 1);
    keep_logits(r, g.logits, g.n_logits, out);
    cache_drop(cache);
}

/* Some microseconds from now, or no end at all. */
static int64_t random_end(bench *b)
{
    return rng_below(&b->random, 8) ? clock_ns() + rng_below(&b->random, 200 * 1000) : 0;
}

static float logits_a[MAX_LOGITS], logits_b[MAX_LOGITS], logits_c[MAX_LOGITS];

static const struct part_in_memory {
    double share;
    int32_t n_threads;
} residencies[] = {{0, 2}, {0.4, 3}, {0.7, 1}, {1, 2}};
enum { N_RESIDENCIES = sizeof residencies / sizeof *residencies };

TEST(slices_compute_the_same)
{
    int n_starved_in_all = 0;
    for (int c = 0; c < N_RESIDENCIES; c++) {
        bench b;
        pass_row rows[N_TREE];
        int n_starved = 0;
        open_bench(&b, residencies[c].share, residencies[c].n_threads);
        commit_text(&b, b.target, &b.cache[0], 37);
        make_rows(rows, N_TREE, 5, false);
        reference(&b.target, &b.cache[0], rows, N_TREE, HEAD_ALL, logits_a);
        for (int round = 0; round < N_ROUNDS; round++) {
            atomic_store(&b.gate_closed, c == 0); /* then the ring is used up */
            pass_group g = {.cache = &b.cache[0], .rows = rows, .n = N_TREE, .head = HEAD_ALL};
            model_pass p;
            pass_state now = PASS_CONTINUES;
            int32_t layers = 0;
            MUST(pass_begin, &p, &b.target, &g, 1);
            while (now != PASS_DONE) {
                MUST(pass_step, &p, random_end(&b), &now);
                assert_true(pass_layers_done(&p) >= layers);
                layers = pass_layers_done(&p);
                n_starved += now == PASS_STARVED;
                if (now == PASS_STARVED)
                    atomic_store(&b.gate_closed, false);
                if (now == PASS_STARVED && rng_below(&b.random, 2))
                    pass_wait(&p);
                assert_true(pass_room_ns(&p) >= 0);
            }
            assert_int_equal(layers, b.target.layout->shape.n_layers);
            assert_int_equal(cache_pending(&b.cache[0]), 0);
            MUST(pass_end, &p);
            assert_int_equal(cache_pending(&b.cache[0]), N_TREE);
            same_logits(&b.target, g.logits, N_TREE, logits_a);
            assert_int_equal(cache_cut(&b.cache[0], 37), 37);
        }
        assert_true(residencies[c].share < 1 || n_starved == 0);
        n_starved_in_all += n_starved;
        close_bench(&b);
    }
    assert_true(n_starved_in_all > 0);
}

/* With the disk at a standstill a step comes back, and says that there is nothing to do. */
TEST(a_step_never_waits)
{
    bench b;
    pass_row rows[2] = {{.token = 5, .parent = -1}, {.token = 6, .parent = 0}};
    open_bench(&b, 0.4, 2);
    commit_text(&b, b.target, &b.cache[0], 9);
    reference(&b.target, &b.cache[0], rows, 2, HEAD_ALL, logits_a);
    atomic_store(&b.gate_closed, true);
    pass_group g = {.cache = &b.cache[0], .rows = rows, .n = 2, .head = HEAD_ALL};
    model_pass p;
    pass_state now = PASS_CONTINUES;
    MUST(pass_begin, &p, &b.target, &g, 1);
    while (now == PASS_CONTINUES)
        MUST(pass_step, &p, 0, &now);
    assert_int_equal(now, PASS_STARVED);
    assert_false(pass_ready(&p));
    MUST(pass_step, &p, 0, &now);
    assert_int_equal(now, PASS_STARVED);
    atomic_store(&b.gate_closed, false);
    pass_wait(&p);
    assert_true(pass_ready(&p));
    while (now != PASS_DONE) {
        MUST(pass_step, &p, 0, &now);
        pass_wait(&p);
    }
    MUST(pass_end, &p);
    same_logits(&b.target, g.logits, 2, logits_a);
    close_bench(&b);
}

/* The draft's pass continues whenever the target's can not. */
TEST(two_models_take_turns)
{
    bench b;
    pass_row rows[N_TREE], guesses[4];
    open_bench(&b, 0.3, 2);
    commit_text(&b, b.target, &b.cache[0], 30);
    commit_text(&b, b.draft, &b.draft_cache, 30);
    make_rows(rows, N_TREE, 9, false);
    make_rows(guesses, 4, 10, false);
    reference(&b.target, &b.cache[0], rows, N_TREE, HEAD_ALL, logits_a);
    reference(&b.draft, &b.draft_cache, guesses, 4, HEAD_ALL, logits_b);
    pass_group g = {.cache = &b.cache[0], .rows = rows, .n = N_TREE, .head = HEAD_ALL};
    pass_group h = {.cache = &b.draft_cache, .rows = guesses, .n = 4, .head = HEAD_ALL};
    model_pass p, q;
    pass_state now = PASS_CONTINUES, drafting = PASS_DONE;
    int n_drafted = 0;
    MUST(pass_begin, &p, &b.target, &g, 1);
    while (now != PASS_DONE) {
        MUST(pass_step, &p, random_end(&b), &now);
        if (drafting == PASS_DONE) {
            MUST(pass_begin, &q, &b.draft, &h, 1);
            drafting = PASS_CONTINUES;
        }
        MUST(pass_step, &q, random_end(&b), &drafting);
        if (drafting == PASS_DONE) {
            MUST(pass_end, &q);
            same_logits(&b.draft, h.logits, 4, logits_b);
            assert_int_equal(cache_cut(&b.draft_cache, 30), 30);
            n_drafted++;
        }
    }
    MUST(pass_end, &p);
    same_logits(&b.target, g.logits, N_TREE, logits_a);
    assert_true(n_drafted > 0);
    if (drafting != PASS_DONE)
        pass_leave(&q);
    close_bench(&b);
}

/* Rows of three caches of different ages: a chain that asks for nothing, a tree, a single row. */
TEST(caches_share_a_pass)
{
    for (int c = 0; c < N_RESIDENCIES; c++) {
        bench b;
        pass_row chain[17], tree[11], one[1];
        open_bench(&b, residencies[c].share, residencies[c].n_threads);
        const int32_t ages[N_CACHES] = {70, 3, 41};
        for (int i = 0; i < N_CACHES; i++)
            commit_text(&b, b.target, &b.cache[i], ages[i]);
        make_rows(chain, 17, 1, true);
        make_rows(tree, 11, 2, false);
        make_rows(one, 1, 3, true);
        reference(&b.target, &b.cache[0], chain, 17, HEAD_LAST, logits_a);
        reference(&b.target, &b.cache[1], tree, 11, HEAD_ALL, logits_b);
        reference(&b.target, &b.cache[2], one, 1, HEAD_LAST, logits_c);
        for (int with_chain = 0; with_chain < 2; with_chain++) {
            pass_head asks = with_chain ? HEAD_LAST : HEAD_NONE;
            pass_group g[] = {{.cache = &b.cache[0], .rows = chain, .n = 17, .head = asks},
                              {.cache = &b.cache[1], .rows = tree, .n = 11, .head = HEAD_ALL},
                              {.cache = &b.cache[2], .rows = one, .n = 1, .head = HEAD_LAST}};
            MUST(pass_run, &b.target, g, N_CACHES);
            assert_true((g[0].logits != NULL) == with_chain);
            if (with_chain)
                same_logits(&b.target, g[0].logits, 1, logits_a);
            same_logits(&b.target, g[1].logits, 11, logits_b);
            same_logits(&b.target, g[2].logits, 1, logits_c);
            for (int i = 0; i < N_CACHES; i++) {
                assert_int_equal(cache_pending(&b.cache[i]), g[i].n);
                assert_int_equal(cache_cut(&b.cache[i], ages[i]), ages[i]);
            }
        }
        close_bench(&b);
    }
}

/* Also the first pass, which then is begun again. */
TEST(a_pass_may_be_left_anywhere)
{
    for (int c = 0; c < N_RESIDENCIES; c++) {
        bench b;
        pass_row rows[N_TREE];
        bool first = true;
        open_bench(&b, residencies[c].share, residencies[c].n_threads);
        make_rows(rows, N_TREE, 4, false);
        for (int round = 0; round < N_LEFT; round++) {
            pass_group g = {.cache = &b.cache[0], .rows = rows, .n = N_TREE, .head = HEAD_ALL};
            model_pass p;
            pass_state now = PASS_CONTINUES;
            MUST(pass_begin, &p, &b.target, &g, 1);
            for (int n = rng_below(&b.random, 30); n > 0 && now != PASS_DONE; n--) {
                MUST(pass_step, &p, random_end(&b), &now);
                if (now == PASS_STARVED)
                    pass_wait(&p);
            }
            pass_leave(&p);
            assert_int_equal(cache_pending(&b.cache[0]), 0);
            if (round % 4 != 3)
                continue;
            MUST(pass_run, &b.target, &g, 1);
            if (first)
                keep_logits(&b.target, g.logits, N_TREE, logits_a);
            else
                same_logits(&b.target, g.logits, N_TREE, logits_a);
            first = false;
            cache_clear(&b.cache[0]);
        }
        close_bench(&b);
    }
}

/* The hidden state after the final norm, with chosen rows of the head: the logits' own bits. */
TEST(chosen_rows_of_the_head)
{
    bench b;
    pass_row rows[5];
    open_bench(&b, 1, 2);
    commit_text(&b, b.target, &b.cache[0], 3); /* chosen rows want loaded weights */
    make_rows(rows, 5, 6, false);
    pass_group g = {.cache = &b.cache[0], .rows = rows, .n = 5, .head = HEAD_ALL};
    model_pass p;
    pass_state now = PASS_CONTINUES;
    MUST(pass_begin, &p, &b.target, &g, 1);
    while (now != PASS_DONE)
        MUST(pass_step, &p, 0, &now);
    MUST(pass_end, &p);
    const weight *head = b.target.layout->head;
    static uint8_t act[1 << 16];
    assert_true(act_bytes(head->form.kernel->act, 1, head->form.k) <= sizeof act);
    const int64_t chosen[] = {0, 3, 31, 32, 300, 301, 2, head->form.n_rows - 1};
    float got[8];
    for (int32_t i = 0; i < 5; i++) {
        b.engine->kernels->quantise[head->form.kernel->act](
            act, g.hidden + i * pass_hidden_stride(&b.target), head->form.k, 0, 1, 1, head->form.k);
        weights_dot_rows(b.target.weights, head, chosen, 8, act, got, 0);
        for (int j = 0; j < 8; j++)
            assert_memory_equal(&got[j],
                                b.target.ws->logits + i * pass_logits_stride(&b.target) + chosen[j],
                                sizeof(float));
    }
    close_bench(&b);
}
