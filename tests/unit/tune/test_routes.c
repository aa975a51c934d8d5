/* Routes of a mixture: what is counted is what slots would have held, a run has the hits that they
 * predict, plans go by them, and a folder keeps them. */
#include "engine/config.h"
#include "support/toy_models.h"
#include "support/writing.h"
#include "tune/route_log.h"

enum { LAYERS = 3, EXPERTS = 16, USED = 3, WIDTH = 256, N_PROMPT = 12, N_PREDICT = 60 };

static int32_t prompt[3][N_PROMPT];
static drey_tune_prompt prompts[3];

static int make_models(void **state)
{
    toy_options toy = toy_default();
    toy.n_layers = LAYERS;
    toy.n_embd = WIDTH;
    toy.experts = (toy_experts){.n = EXPERTS, .n_used = USED, .n_ff = WIDTH};
    toy.architecture = "qwen3moe";
    toys_open_pair(&toy);
    for (int32_t i = 0; i < 3; i++) {
        for (int32_t j = 0; j < N_PROMPT; j++)
            prompt[i][j] = 60 + (j * 7 + i * 31) % 100;
        prompts[i] = (drey_tune_prompt){prompt[i], N_PROMPT};
    }
    return 0;
}

/* ---- Counting ---- */

enum { TOKENS = 300, MANY = 24, TAKEN = 4 };

/* Ascending, some more often than others. */
static void choose(rng *r, int32_t *expert)
{
    for (int32_t e = 0, n = 0; e < MANY && n < TAKEN; e++)
        if (rng_below(r, 8) < (e % 5 == 0 ? 4 : 1) || MANY - e == TAKEN - n)
            expert[n++] = e;
}

/* Hits of a layer that keeps the experts that were used last; *used: [MANY], 0: it is not there. */
static int32_t use(int64_t *used, const int32_t *expert, int32_t n_slots, int64_t now)
{
    int32_t hits = 0, n_there = 0;
    for (int32_t i = 0; i < TAKEN; i++)
        hits += used[expert[i]] > 0;
    for (int32_t i = 0; i < TAKEN; i++)
        used[expert[i]] = now + i;
    for (int32_t e = 0; e < MANY; e++)
        n_there += used[e] > 0;
    for (; n_there > n_slots; n_there--) {
        int32_t oldest = -1;
        for (int32_t e = 0; e < MANY; e++)
            if (used[e] > 0 && (oldest < 0 || used[e] < used[oldest]))
                oldest = e;
        used[oldest] = 0;
    }
    return hits;
}

TEST(distances_are_what_slots_hold)
{
    static int32_t expert[2][TOKENS][TAKEN];
    drey_routes routes = {.n_experts = MANY, .n_tokens = TOKENS};
    route_log log;
    arena a;
    rng r = rng_from(7);
    MUST(arena_init, &a, route_log_bytes(2, MANY), false);
    route_log_init(&log, 2, MANY, routes.distance, &a);
    for (int32_t t = 0; t < TOKENS; t++)
        for (int32_t layer = 0; layer < 2; layer++) {
            choose(&r, expert[layer][t]);
            route_log_add(&log, layer, expert[layer][t], TAKEN);
        }
    for (int32_t n_slots = TAKEN; n_slots < MANY; n_slots++) {
        int64_t used[2][MANY] = {{0}}, hits = 0;
        for (int32_t t = 0; t < TOKENS; t++)
            for (int32_t layer = 0; layer < 2; layer++)
                hits += use(used[layer], expert[layer][t], n_slots, 1 + (int64_t)t * TAKEN);
        uint64_t counted = 0;
        for (int32_t d = 0; d < n_slots; d++)
            counted += routes.distance[d];
        assert_int_equal(counted, hits);
        assert_near(drey_routes_hits(&routes, n_slots), (double)hits / (2 * TOKENS * TAKEN), 1e-12);
    }
    arena_free(&a);
}

TEST(hits_between_and_beyond)
{
    drey_routes r = {.n_experts = 2000, .n_tokens = 1};
    assert_false(drey_routes_are_sound(&r));
    r.distance[0] = 1;
    r.distance[3] = 2;
    r.distance[DREY_ROUTE_SLOTS - 1] = 1;
    assert_true(drey_routes_are_sound(&r));
    static const double want[][2] = {{0, 0},     {0.5, 0.125}, {1, 0.25}, {3, 0.25},
                                     {3.5, 0.5}, {1999, 0.75}, {2000, 1}, {4000, 1}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_near(drey_routes_hits(&r, want[i][0]), want[i][1], 1e-12);
}

/* ---- A model's ---- */

static void measure(drey_routes *routes)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 128, 2);
    const drey_tune_options tune = {.prompts = prompts, .n_prompts = 3, .n_predict = N_PREDICT};
    MUST(drey_tune_routes, &o, &tune, routes);
}

/* Returns the hits of all three texts, one after the other, with so many slots in each layer. */
static double hits_of_a_run(int32_t n_slots)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    const engine_hooks hooks = {.set_share = true, .share = (n_slots + 0.1) / EXPERTS};
    drey_session *s = open_alone(&o, &hooks);
    uint64_t used = 0, read = 0;
    for (int32_t i = 0; i < 3; i++) {
        static writing w;
        w = (writing){0};
        drey_generate_options g = writing_into(&w, N_PREDICT);
        g.ignore_eos = false;
        MUST(drey_session_sync, s, prompt[i], N_PROMPT, NULL);
        MUST(drey_session_generate, s, NULL, 0, &g, &w.stats);
        used += w.stats.experts_used;
        read += w.stats.experts_read;
    }
    close_alone(&s);
    assert_true(used > 0);
    return 1 - (double)read / (double)used;
}

TEST(runs_have_the_hits_that_they_predict)
{
    drey_routes routes, again;
    measure(&routes);
    measure(&again);
    assert_memory_equal(&routes, &again, sizeof routes);
    uint64_t counted = 0;
    for (int d = 0; d < DREY_ROUTE_SLOTS; d++)
        counted += routes.distance[d];
    assert_int_equal(counted, (uint64_t)routes.n_tokens * LAYERS * USED);
    assert_true(routes.n_tokens > N_PREDICT && routes.n_experts == EXPERTS);
    double least = 1, most = 0;
    for (int32_t n = USED; n < EXPERTS; n += 3) {
        double want = drey_routes_hits(&routes, n), got = hits_of_a_run(n);
        if (fabs(want - got) > 0.03) /* what prompts bring in, and the order within a token */
            fail_msg("%d slots: %.3f of the experts were there, not %.3f", n, got, want);
        least = fmin(least, want);
        most = fmax(most, want);
    }
    assert_true(most > least + 0.2);
}

static double share_of(const drey_plan *p)
{
    assert_true(p->expert_slots < p->n_experts);
    return (double)p->expert_slots / p->n_experts;
}

/* What the process itself takes may grow between two plans, which may cost the second a slot. */
TEST(plans_go_by_them)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    drey_routes routes;
    drey_plan assumed, measured;
    measure(&routes);
    o.memory_bytes = smallest_budget(&o, NULL) + (1 << 20);
    MUST(drey_plan_make, &o, NULL, &assumed);
    o.routes = &routes;
    MUST(drey_plan_make, &o, NULL, &measured);
    assert_true(assumed.expert_layers == LAYERS && assumed.experts_used == USED);
    assert_true(assumed.route_tokens == 0 && measured.route_tokens == routes.n_tokens);
    assert_near(measured.expert_hits, drey_routes_hits(&routes, share_of(&measured) * EXPERTS),
                1e-9);
    assert_near(assumed.expert_hits, 1 - pow(1 - share_of(&assumed), 3), 1e-9);
    double ratio =
        (double)measured.streamed_bytes_per_pass / (double)assumed.streamed_bytes_per_pass;
    assert_near(ratio, (1 - measured.expert_hits) / (1 - assumed.expert_hits), 1e-3);
    routes.n_experts--;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "which has 16 experts in a layer");
}

TEST(a_folder_keeps_them)
{
    drey_routes routes, kept;
    const char *folder = temp_path("cache");
    REFUSED(DREY_ERR_IO, "nothing was measured", drey_routes_load, target, folder, &kept);
    measure(&routes);
    MUST(drey_routes_store, target, folder, &routes);
    MUST(drey_routes_load, target, folder, &kept);
    assert_memory_equal(&routes, &kept, sizeof routes);
    REFUSED(DREY_ERR_IO, "nothing was measured", drey_routes_load, target, NULL, &kept);
    REFUSED(DREY_ERR_IO, "nothing was measured", drey_routes_load, draft, folder, &kept);
}

TEST(refusals)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    drey_tune_options tune = {.prompts = prompts};
    drey_routes routes;
    REFUSED(DREY_ERR_USAGE, "there is no prompt", drey_tune_routes, &o, &tune, &routes);
    toy_options toy = toy_default();
    toy.experts.n = 0;
    drey_model *dense = toy_open("dense.gguf", &toy);
    o.target = dense;
    tune.n_prompts = 1;
    REFUSED(DREY_ERR_USAGE, "is no mixture", drey_tune_routes, &o, &tune, &routes);
    drey_model_close(&dense);
}

TEST_GROUP(make_models, toys_close)
