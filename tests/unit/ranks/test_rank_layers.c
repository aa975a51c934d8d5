/* Layers of a rank: as the options say, where there is room, as plans without ranks say; and
 * mixtures of experts, whose slots each rank plans for its own layers. */
#include "base/usual.h"
#include "engine/engine.h"
#include "support/faults/rank_team.h"
#include "support/logit_toys.h"

static void divide(drey_engine_options *o, const int32_t *layers, int32_t n)
{
    o->rank_layers = layers;
    o->n_rank_layers = (uint64_t)n;
}

/* Rank 0 without layers has the head, the embedding, which may be the same, and the draft. */
TEST(layers_as_the_options_say)
{
    static const struct {
        int32_t layers[MOST_RANKS], n;
        drey_drafter drafter;
        bool tied, prepared;
    } table[] = {
        {{0, 5}, 2, DREY_DRAFTER_MODEL, false, false},
        {{0, 5}, 2, DREY_DRAFTER_NONE, true, false},
        {{0, 2, 3}, 3, DREY_DRAFTER_MODEL, true, true},
        {{0, 4, 1}, 3, DREY_DRAFTER_NONE, false, true},
        {{4, 1}, 2, DREY_DRAFTER_LOOKUP, false, false},
        {{0, 1, 4}, 3, DREY_DRAFTER_LOOKUP, true, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        toy_options toy = team_toy();
        toy.tied = table[i].tied;
        temp_dir();
        drey_model *m = toy_open("target.gguf", &toy), *draft = team_draft();
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = table[i].drafter;
        o.draft = o.drafter == DREY_DRAFTER_MODEL ? draft : NULL;
        o.policy = o.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_AUTO;
        if (table[i].prepared)
            toy_prepare(m, NULL, false);
        next_team.division = table[i].layers;
        team_compare(&o, table[i].n, team_target_path(), NULL, "layers as the options say");
        next_team.division = NULL;
        drey_model_close(&m);
        drey_model_close(&draft);
    }
}

/* Also with a rank whose layers have no experts, and sidecars. */
TEST(every_mixture)
{
    static const int32_t layers[][MOST_RANKS] = {{1, 3}, {1, 1, 2}, {0, 4}, {0, 1, 3}};
    for (int i = 0; i < N_EXPERT_TOYS; i++) {
        toy_options toy;
        temp_dir();
        const char *name = expert_toy(i, &toy);
        toy.n_layers = 4;
        toy.tied = i % 5 == 4;
        drey_model *m = toy_open("target.gguf", &toy);
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = i % 3 ? DREY_DRAFTER_LOOKUP : DREY_DRAFTER_NONE;
        o.policy = i % 3 ? DREY_POLICY_AUTO : DREY_POLICY_NONE;
        if (i % 3 == 2)
            toy_prepare(m, NULL, false);
        next_team.division = toy.experts.n_dense || i > 3 ? layers[i % 4] : NULL;
        team_compare(&o, 2 + i % 2, team_target_path(), NULL, name);
        next_team.division = NULL;
        drey_model_close(&m);
    }
}

/* Finds the needs of each rank for these layers, and two experts more in what MPI would take. */
static void little_memory(const drey_engine_options *o, const int32_t *layers)
{
    drey_engine_options divided_so = *o;
    drey_rank_machine machines[MOST_RANKS];
    drey_rank_plan plans[MOST_RANKS];
    for (int32_t i = 0; i < MOST_RANKS; i++)
        machines[i] = (drey_rank_machine){.host = "any", .memory_bytes = UINT64_C(1) << 40};
    divide(&divided_so, layers, MOST_RANKS);
    /* Twice: with much memory more rows have logits, which count as needed. */
    for (int32_t round = 0; round < 2; round++) {
        MUST(drey_ranks_plan, &divided_so, NULL, machines, MOST_RANKS, plans);
        for (int32_t i = 0; i < MOST_RANKS; i++) {
            next_team.budget[i] = plans[i].plan.smallest_budget_bytes;
            machines[i].memory_bytes = next_team.budget[i] + RANKS_MPI_BYTES;
        }
    }
    MUST(drey_ranks_plan, o, NULL, machines, MOST_RANKS, plans);
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        const drey_plan *plan = &plans[i].plan;
        assert_true(plan->expert_slots >= plan->expert_layers * plan->experts_used);
        assert_true(plan->expert_slots < plan->n_experts && plan->streamed_bytes_per_pass > 0);
    }
}

/* Experts of 3 MB, so many that those of one layer need more than reads of some of them do. */
TEST(mixtures_larger_than_memory)
{
    static const int32_t layers[MOST_RANKS] = {1, 2, 1};
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_MODEL};
    toy_options toy;
    temp_dir();
    expert_toy(0, &toy);
    toy.n_layers = 4;
    toy.type = TYPE_F16;
    toy.experts.n = 12;
    toy.experts.n_ff = 2048;
    drey_model *m = toy_open("target.gguf", &toy), *draft = team_draft();
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = drafters[i];
        o.draft = o.drafter == DREY_DRAFTER_MODEL ? draft : NULL;
        o.policy = i ? DREY_POLICY_AUTO : DREY_POLICY_NONE;
        little_memory(&o, layers);
        team_compare(&o, MOST_RANKS, team_target_path(), NULL, drey_drafter_name(drafters[i]));
    }
    memset(next_team.budget, 0, sizeof next_team.budget);
    drey_model_close(&m);
    drey_model_close(&draft);
}

TEST(layers_that_cannot_be_divided_so)
{
    static const struct {
        int32_t layers[4], n;
        const char *message;
    } table[] = {
        {{2, 2, 1, 0}, 4, "the layers of 4 ranks are given, and there are 3"},
        {{5, 0}, 2, "the layers of 2 ranks are given, and there are 3"},
        {{0, 2, 2}, 3, "the ranks' layers are 4 together, and the model has 5"},
        {{INT32_MAX, INT32_MAX, 7}, 3, "the ranks' layers are 4294967301 together"},
        {{-1, 3, 3}, 3, "rank 0 cannot have -1 layers"},
        {{0, 5, 0}, 3, "rank 2 cannot have 0 layers: rank 0 has 0 or more, each other one 1 or"},
    };
    drey_model *m = team_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    drey_rank_machine machines[3] = {{.host = "one", .memory_bytes = 1 << 30},
                                     {.host = "two", .memory_bytes = 1 << 30},
                                     {.host = "three", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[3];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        divide(&o, table[i].layers, table[i].n);
        REFUSED(DREY_ERR_USAGE, table[i].message, drey_ranks_plan, &o, NULL, machines, 3, plans);
    }
    divide(&o, table[0].layers, 1);
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "this is one process: start several with mpirun");
    divide(&o, table[0].layers, 0);
    REFUSED(DREY_ERR_USAGE, "0 numbers of layers are not possible", drey_ranks_plan, &o, NULL,
            machines, 3, plans);
    drey_model_close(&m);
}

enum { LONG = 160000 };

/* Layers consist of their caches here, so that a budget decides how many there may be. */
static uint64_t long_layer(const drey_engine_options *alone)
{
    drey_plan plan;
    MUST(drey_plan_make, alone, NULL, &plan);
    return plan.kv_bytes / (uint64_t)alone->target->shape.n_layers;
}

/* With almost no memory, rank 0 has room for no layer, but without one it works. */
TEST(no_layer_needs_the_least_memory)
{
    static const int32_t none[] = {0, 5}, one[] = {1, 4};
    drey_model *m = team_target();
    drey_engine_options o = plain_options(m, LONG, 1);
    ranks_hello hello;
    MUST(engine_rank_hello, &o, &hello);
    drey_rank_machine machines[2] = {{.host = "here", .disk_bytes_per_s = 1e6},
                                     {.host = "there", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[2];
    const drey_speeds speeds = {.memory_bytes_per_s = 1e9, .one_ops_per_s = 1e9};
    machines[0].memory_bytes = hello.fixed_bytes + long_layer(&o) / 2 + RANKS_MPI_BYTES;
    divide(&o, one, 2);
    REFUSED(DREY_ERR_MEMORY, "rank 0 (here): ", drey_ranks_plan, &o, NULL, machines, 2, plans);
    divide(&o, none, 2);
    MUST(drey_ranks_plan, &o, &speeds, machines, 2, plans);
    assert_int_equal(plans[0].rank.n_layers, 0);
    assert_int_equal(plans[1].rank.n_layers, 5);
    assert_true(plans[0].plan.pinned_bytes > 0 && plans[0].plan.alone_pass_s > 0);
    team_begin(2, team_target_path(), 0, NULL, 0);
    o.memory_bytes = machines[0].memory_bytes;
    o.ranks = team.ranks;
    drey_engine *e;
    MUST(drey_engine_open, &e, &o);
    drey_engine_close(&e);
    team_end();
    drey_model_close(&m);
}

TEST(layers_go_where_there_is_room)
{
    static const struct {
        ranks_means means[3];
        int32_t n_layers, n, want[3];
    } table[] = {
        {{{1000, 0}, {1000, 0}}, 12, 2, {6, 6}}, /* all fits: as room is, whatever the disks are */
        {{{UINT64_MAX, 9}, {UINT64_MAX, 1}}, 12, 2, {6, 6}},
        {{{80, 0}, {160, 0}}, 12, 2, {5, 7}},
        {{{80, 5}, {160, 1}}, 12, 2, {5, 7}},
        {{{40, 0}, {20, 0}}, 12, 2, {7, 5}}, /* 60 do not fit: 30 for each disk */
        {{{40, 7}, {20, 7}}, 12, 2, {7, 5}},
        {{{40, 1}, {20, 2}}, 12, 2, {6, 6}}, /* 20 and 40 */
        {{{40, 2}, {20, 1}}, 12, 2, {8, 4}},
        {{{0, 3}, {0, 1}}, 12, 2, {9, 3}},
        {{{0, 0}, {0, 3}, {0, 1}}, 12, 3, {4, 6, 2}}, /* not known: 2 */
        {{{0, 0}, {0, 0}, {0, 0}}, 12, 3, {4, 4, 4}},
        {{{1000, 1}, {0, 100}}, 12, 2, {11, 1}}, /* each has a layer */
        {{{0, 0}, {1000, 0}}, 12, 2, {1, 11}},
        {{{0, 0}, {0, 0}, {UINT64_MAX, 0}}, 3, 3, {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint64_t layers[16];
        int32_t n_of[3] = {0};
        for (int32_t j = 0; j < table[i].n_layers; j++)
            layers[j] = 10;
        ranks_divide(layers, table[i].n_layers, table[i].means, table[i].n, n_of);
        for (int32_t j = 0; j < table[i].n; j++)
            assert_int_equal(n_of[j], table[i].want[j]);
    }
}

/* Machines are planned as ranks with the same memory are, which have none of MPI here. */
static void compare_plan(const drey_engine_options *o, const uint64_t *budget)
{
    drey_rank_machine machines[MOST_RANKS];
    drey_rank_plan plans[MOST_RANKS];
    const drey_speeds speeds = {.memory_bytes_per_s = 1e9, .one_ops_per_s = 1e9};
    double around = 0;
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        machines[i] = (drey_rank_machine){.memory_bytes = budget[i] + RANKS_MPI_BYTES,
                                          .disk_bytes_per_s = 1e6};
        snprintf(machines[i].host, sizeof machines[i].host, "m%d", i);
    }
    MUST(drey_ranks_plan, o, &speeds, machines, MOST_RANKS, plans);
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        drey_rank_info info;
        assert_true(drey_ranks_describe(team.ranks, i, &info));
        assert_int_equal(plans[i].rank.first_layer, info.first_layer);
        assert_int_equal(plans[i].rank.n_layers, info.n_layers);
        assert_string_equal(plans[i].rank.host, machines[i].host);
        assert_true(plans[i].plan.alone_pass_s > 0);
        around += i ? plans[i].plan.alone_pass_s : 0;
    }
    const drey_plan *lead = &plans[0].plan;
    double own = lead->read_s > lead->compute_s ? lead->read_s : lead->compute_s;
    assert_true(lead->alone_pass_s > around);
    assert_true(lead->alone_pass_s <= 1.0001 * (around + own));
    assert_true(lead->expected_tokens_per_s > 0);
}

TEST(plans_divide_as_runs_do)
{
    if (getenv("DREY_TEST_STATES")) /* its layers with states are too small for these budgets */
        return;
    drey_model *m = team_target();
    drey_engine_options o = plain_options(m, LONG / 2, 1), alone;
    ranks_hello hello;
    o.n_sessions = 2; /* their caches together are those of one session in the other tests */
    alone = o;
    MUST(engine_rank_hello, &alone, &hello);
    const uint64_t layer = long_layer(&alone);
    /* Almost half a layer to spare, 7 MiB: the process grows, with a sanitizer by more. */
    assert_true(layer >= 16 << 20);
    const uint64_t narrow = hello.fixed_bytes + layer * 29 / 20,
                   wide = hello.fixed_bytes + layer * 7 / 2,
                   budget[MOST_RANKS] = {narrow, wide, narrow};
    memcpy(next_team.budget, budget, sizeof budget);
    team_begin(MOST_RANKS, team_target_path(), 0, NULL, 0);
    o.memory_bytes = budget[0];
    o.ranks = team.ranks;
    drey_engine *e;
    MUST(drey_engine_open, &e, &o);
    assert_int_equal(team.ranks->member[1].n_layers, 3);
    /* What the others read is part of a turn's expected cost. */
    double own_s = (double)e->plan.report.streamed_bytes_per_pass / USUAL_DISK_BYTES_PER_S;
    team.ranks->member[1].ready.streamed_bytes += (uint64_t)USUAL_DISK_BYTES_PER_S;
    engine_add_ranks_cost(e);
    assert_true(e->cost.read_s >= own_s + 1);
    compare_plan(&alone, budget);
    drey_engine_close(&e);
    team_end();
    memset(next_team.budget, 0, sizeof next_team.budget);
    drey_model_close(&m);
}

TEST(machines_that_cannot_be_planned)
{
    drey_model *m = team_target();
    const drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    drey_rank_machine machines[THREAD_RANKS] = {{.host = "large", .memory_bytes = 1 << 30},
                                                {.host = "small", .memory_bytes = 1 << 20},
                                                {.host = "third", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[THREAD_RANKS];
    REFUSED(DREY_ERR_USAGE, "cannot share", drey_ranks_plan, &o, NULL, machines, 1, plans);
    REFUSED(DREY_ERR_USAGE, "cannot share", drey_ranks_plan, &o, NULL, machines, 65, plans);
    REFUSED(DREY_ERR_USAGE, "more than the model has layers (5)", drey_ranks_plan, &o, NULL,
            machines, 6, plans);
    REFUSED(DREY_ERR_MEMORY, "rank 1 (small): ", drey_ranks_plan, &o, NULL, machines, 3, plans);
    drey_engine_options exits = o;
    exits.exit = DREY_EXIT_FAST;
    REFUSED(DREY_ERR_USAGE, "early exits", drey_ranks_plan, &exits, NULL, machines, 3, plans);
    drey_model_close(&m);
}
