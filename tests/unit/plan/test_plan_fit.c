/* plan_make as a pure function: made-up inputs, no file, no engine. Its parts are the budget, more
 * budget is never less in memory, sessions add up, and the order of pinning holds. */
#include "draft/drafter_kind.h"
#include "drey/tune.h"
#include "model/arch.h"
#include "model/deferred.h"
#include "model/workspace.h"
#include "plan/plan.h"
#include "model/block/block.h"
#include "common/size_text.h"
#include "support/scene.h"

enum { N_TARGET = 22, N_DRAFT = 6, HEAD = N_TARGET - 1 };
static const uint64_t mib = 1 << 20;

/* Layers, width, heads, those of keys, their size, n_ff. */
#define SHAPE(l, d, h, hk, dim, ff)                                                                \
    {                                                                                              \
        .n_layers = l, .n_embd = d, .n_vocab = 4096,                                               \
        .attention = {{.n_heads = h, .n_heads_kv = hk, .head_dim = dim, .v_dim = dim}},            \
        .n_attentions = 1, .n_angles = dim, .layer = {                                             \
            {.n_ff = ff},                                                                          \
            {.n_ff = ff}                                                                           \
        }                                                                                          \
    }
static const model_shape target_shape = SHAPE(5, 512, 8, 4, 64, 2048);
static const model_shape draft_shape = SHAPE(1, 64, 2, 2, 32, 128);
static const block_list blocks = {.class = {&ends_block, &attention_block, &feed_forward_block},
                                  .n = 3};

typedef struct example {
    plan_matrix target[N_TARGET], draft[N_DRAFT];
    residency residency[N_TARGET], draft_residency[N_DRAFT];
    plan_inputs in;
    plan_result result;
} example;

static plan_matrix matrix(int32_t n_groups, uint64_t group_bytes)
{
    return (plan_matrix){.groups = {.n_groups = n_groups,
                                    .group_bytes = group_bytes,
                                    .group_read_bytes = group_bytes - 100,
                                    .last_read_bytes = group_bytes / 2,
                                    .in_pass = true},
                         .numbers = (double)n_groups};
}

/* A target of an embedding, matrices of two sizes, every fourth of them small, and a head. */
static void make_example(example *x, bool with_draft)
{
    *x = (example){0};
    for (int32_t i = 0; i < N_TARGET; i++)
        x->target[i] = i % 4 == 3 ? matrix(4, 20000) : matrix(100 + 20 * (i % 3), 54000);
    x->target[0] = matrix(128, 51000);
    x->target[0].groups.in_pass = false;
    x->target[HEAD] = matrix(128, 57000);
    for (int32_t i = 0; i < N_DRAFT; i++) {
        x->draft[i] = matrix(10, 3000);
        x->draft[i].groups.in_pass = x->draft[i].must_stay = i > 0;
    }
    x->in = (plan_inputs){.n_units = 1,
                          .n_sessions = 1,
                          .session_state_bytes = 70000,
                          .n_context = 200,
                          .n_threads = 2,
                          .draft.tree_nodes = with_draft ? 32 : 0,
                          .spare_rows = 8,
                          .kv = KV_F16,
                          .kv_plain = KV_F16,
                          .process.program_bytes = 3 * mib,
                          .process.reserve_bytes = 2 * mib,
                          .facts.sidecar_refused = ""};
    x->in.model[PLAN_TARGET] = (plan_model){.shape = &target_shape,
                                            .blocks = &blocks,
                                            .matrix = x->target,
                                            .n_matrices = N_TARGET,
                                            .overhead_bytes = 300000,
                                            .queue_bytes = 100000,
                                            .ring_least_bytes = 80 << 10};
    if (with_draft)
        x->in.model[PLAN_DRAFT] = (plan_model){.shape = &draft_shape,
                                               .blocks = &blocks,
                                               .matrix = x->draft,
                                               .n_matrices = N_DRAFT,
                                               .overhead_bytes = 30000,
                                               .queue_bytes = 10000,
                                               .ring_least_bytes = 40 << 10};
    x->result.residency[PLAN_TARGET] = x->residency;
    x->result.residency[PLAN_DRAFT] = x->draft_residency;
}

static const drey_plan *plan_of(example *x, uint64_t budget)
{
    MUST(plan_make, &x->in, budget, &x->result);
    return &x->result.report;
}

static uint64_t least_of(example *x)
{
    drey_error err = {0};
    assert_int_equal(plan_make(&x->in, 1, &x->result, &err), DREY_ERR_MEMORY);
    return x->result.report.smallest_budget_bytes;
}

static uint64_t pinned_bytes(const residency *stays, int32_t n)
{
    uint64_t total = 0;
    for (int32_t i = 0; i < n; i++)
        total += residency_pinned_bytes(&stays[i]);
    return total;
}

static void assert_same_pins(const residency *a, const residency *b)
{
    for (int32_t i = 0; i < N_TARGET; i++)
        assert_int_equal(a[i].n_pinned, b[i].n_pinned);
}

TEST(parts_are_the_budget)
{
    for (int with_draft = 0; with_draft < 2; with_draft++) {
        example x;
        make_example(&x, with_draft);
        uint64_t least = least_of(&x);
        for (uint64_t budget = least; budget < least + 160 * mib; budget += 600001) {
            const drey_plan *t = plan_of(&x, budget);
            assert_int_equal(t->program_bytes + t->tokenizer_bytes + t->stack_bytes +
                                 t->queue_bytes + t->reserve_bytes,
                             t->process_bytes);
            assert_int_equal(t->pinned_bytes + t->draft_bytes + t->ring_bytes + t->kv_bytes +
                                 t->work_bytes + t->process_bytes + t->spare_bytes,
                             budget);
            assert_int_equal(t->pinned_bytes, pinned_bytes(x.residency, N_TARGET));
            assert_int_equal(t->draft_bytes,
                             with_draft ? pinned_bytes(x.draft_residency, N_DRAFT) : 0);
            assert_int_equal(t->smallest_budget_bytes, least);
            assert_true(t->spare_bytes < mib || t->streamed_bytes_per_pass == 0);
        }
    }
}

/* Where rows and ring are settled, more budget never pins less. Where they are not, prompt passes
 * widen by steps and the ring grows, but the larger part goes to weights. */
TEST(more_budget_pins_more)
{
    for (int with_draft = 0; with_draft < 2; with_draft++) {
        example x;
        make_example(&x, with_draft);
        uint64_t least = least_of(&x), first = plan_of(&x, least)->pinned_bytes, most = 0;
        uint64_t before = 0, work = 0, ring = 0;
        int32_t chunk = 32;
        for (uint64_t budget = least; budget < least + 160 * mib; budget += mib / 4) {
            const drey_plan *t = plan_of(&x, budget);
            uint64_t taken = budget - least < budget / 6 ? (budget - least) / 2 : budget / 12;
            assert_true(t->pinned_bytes + taken >= most);
            assert_true(t->prompt_chunk >= chunk && t->ring_bytes >= ring);
            bool settled = t->work_bytes == work && t->ring_bytes == ring;
            assert_true(!settled || t->pinned_bytes >= before);
            work = t->work_bytes;
            ring = t->ring_bytes;
            chunk = t->prompt_chunk;
            before = t->pinned_bytes;
            most = before > most ? before : most;
        }
        assert_true(chunk > 32 && most > first + 20 * mib);
        const drey_plan *t = plan_of(&x, DREY_MEMORY_UNLIMITED);
        assert_int_equal(t->streamed_bytes_per_pass + t->lookup_bytes + t->spare_bytes, 0);
    }
}

TEST(sessions_add_up)
{
    for (int with_draft = 0; with_draft < 2; with_draft++) {
        example x;
        make_example(&x, with_draft);
        x.in.least_logit_rows = 64; /* a row of each session fits */
        x.in.prompt_chunk = 64;
        const uint64_t budget = 400 * mib;
        drey_plan one = *plan_of(&x, budget);
        uint64_t least = least_of(&x);
        assert_true(one.session_bytes > one.kv_bytes + 70000 - 1);
        const int32_t many[] = {2, 5, DREY_MAX_SESSIONS};
        for (int i = 0; i < 3; i++) {
            x.in.n_sessions = many[i];
            uint64_t n = (uint64_t)many[i], more = (n - 1) * one.session_bytes;
            uint64_t own = one.session_bytes - one.kv_bytes;
            drey_plan t = *plan_of(&x, budget);
            assert_int_equal(t.session_bytes, one.session_bytes);
            assert_int_equal(t.kv_bytes, n * one.kv_bytes);
            assert_int_equal(t.draft_kv_bytes, n * one.draft_kv_bytes);
            /* A shared pass keeps less than a KiB about each session's cache. */
            uint64_t shared = t.work_bytes - one.work_bytes - (n - 1) * own;
            assert_true(shared < (n - 1) * 1024);
            more += shared;

            uint64_t now = least_of(&x), grown = least + more + more / 512;
            assert_true(now + mib >= grown && now <= grown + mib);
        }
    }
    /* The rows of a shared pass get logits, however small the tree is. */
    example x;
    make_example(&x, false);
    x.in.n_sessions = 50;
    plan_of(&x, least_of(&x));
    assert_true(x.result.logit_rows >= 50 && x.result.max_rows >= 50);
}

TEST(the_head_is_pinned_first)
{
    example x;
    make_example(&x, false);
    uint64_t least = least_of(&x);
    int n_parts_of_head = 0, n_shares = 0;
    for (uint64_t budget = least; budget < least + 140 * mib; budget += 100000) {
        const drey_plan *t = plan_of(&x, budget);
        bool all_small = true, some_large = false, all_large = true;
        uint64_t small = 0;
        double low = 1, high = 0;
        for (int32_t i = 1; i < HEAD; i++) {
            if (x.target[i].groups.n_groups == 4) {
                small += (uint64_t)x.residency[i].n_pinned * x.target[i].groups.group_bytes;
                all_small &= x.residency[i].n_pinned > 0;
                continue;
            }
            double share = (double)x.residency[i].n_pinned / x.target[i].groups.n_groups;
            low = share < low ? share : low;
            high = share > high ? share : high;
            some_large |= x.residency[i].n_pinned > 0;
            all_large &= x.residency[i].n_pinned == x.target[i].groups.n_groups;
        }
        bool head = x.residency[HEAD].n_pinned == x.target[HEAD].groups.n_groups;
        n_parts_of_head += !head && x.residency[HEAD].n_pinned > 0;
        n_shares += some_large && !all_large;
        uint64_t others = pinned_bytes(x.residency, HEAD);
        assert_true(head ||
                    others < x.target[HEAD].groups.group_bytes); /* what a group more left over */
        assert_true(all_small || others - small < 80000);
        assert_true(high - low <= 0.02001); /* a group rounded off, and one that was left over */
        assert_true(x.residency[0].n_pinned == 0 ||
                    (x.residency[0].n_pinned == x.target[0].groups.n_groups && all_large));
        assert_int_equal(t->lookup_bytes > 0, x.residency[0].n_pinned == 0);
    }
    assert_true(n_parts_of_head > 10 && n_shares > 10);
}

/* Rows of an embedding are looked up until all that passes use is in memory. */
TEST(embeddings_come_last)
{
    example x;
    make_example(&x, true);
    uint64_t least = least_of(&x);
    int n_draft_only = 0;
    for (uint64_t budget = least; budget < least + 200 * mib; budget += 20000) {
        const drey_plan *t = plan_of(&x, budget);
        for (int32_t i = 1; i < N_DRAFT; i++)
            assert_int_equal(x.draft_residency[i].n_pinned, x.draft[i].groups.n_groups);
        assert_true(x.draft_residency[0].n_pinned == 0 || t->streamed_bytes_per_pass == 0);
        assert_true(x.residency[0].n_pinned == 0 ||
                    x.draft_residency[0].n_pinned == x.draft[0].groups.n_groups);
        n_draft_only += x.draft_residency[0].n_pinned > 0 && x.residency[0].n_pinned == 0;
    }
    assert_true(n_draft_only > 0);
    assert_true(x.residency[0].n_pinned > 0);
}

TEST(each_unit_has_room_in_the_ring)
{
    example x;
    make_example(&x, true);
    x.in.n_units = 3;
    plan_of(&x, least_of(&x));
    assert_true(x.result.ring_bytes[PLAN_TARGET] >= 3 * (80u << 10));
    assert_int_equal(x.result.ring_bytes[PLAN_DRAFT], 3 * (40u << 10));
}

/* The same inputs and budget give the same result, whatever was asked for in between. */
TEST(a_plan_remembers_nothing)
{
    example x;
    make_example(&x, true);
    uint64_t budget = least_of(&x) + 20 * mib;
    drey_plan first = *plan_of(&x, budget);
    residency before[N_TARGET];
    memcpy(before, x.residency, sizeof before);
    plan_of(&x, DREY_MEMORY_UNLIMITED);
    least_of(&x);
    drey_plan again = *plan_of(&x, budget);
    assert_memory_equal(&first, &again, sizeof first);
    assert_same_pins(before, x.residency);
}

TEST(a_small_budget_names_the_least)
{
    example x;
    make_example(&x, true);
    uint64_t least = least_of(&x);
    drey_error err = {0};
    char says[100];
    assert_int_equal(plan_make(&x.in, 3 * mib, &x.result, &err), DREY_ERR_MEMORY);
    snprintf(says, sizeof says, "budget of 3.00M is too small; the smallest that works here is %s",
             SIZE_TEXT(least));
    assert_non_null(strstr(err.message, says));
    MUST(plan_make, &x.in, least, &x.result);
    assert_int_equal(plan_make(&x.in, least - 2 * mib, &x.result, &err), DREY_ERR_MEMORY);
}

/* Rows of taps are part of the budget, and cost nothing where there are none. */
TEST(taps_are_counted)
{
    example x, tapped;
    make_example(&x, false);
    make_example(&tapped, false);
    tapped.in.tap_rows = 2000;
    uint64_t least = least_of(&x), more = least_of(&tapped);
    uint64_t bytes = 2000 * (uint64_t)row_stride(target_shape.n_embd) * sizeof(float);
    assert_true(more >= least + bytes - mib && more <= least + bytes + 2 * mib);
    assert_int_equal(plan_of(&tapped, least + 20 * mib)->work_bytes,
                     plan_of(&x, least + 20 * mib)->work_bytes + bytes);
}

/* Two layers of a matrix each, and a head: what a pass takes, worked out by hand. Of 10 bytes a
 * second from the disk and 100 from memory. */
TEST(a_pass_may_end_early)
{
    const model_shape shape = {.n_layers = 2};
    const int32_t n_groups[] = {0, 10, 20, 5}, n_pinned[] = {0, 10, 0, 5};
    plan_matrix target[4];
    residency stays[4];
    for (int i = 0; i < 4; i++) {
        target[i] = matrix(n_groups[i], 100);
        target[i].groups.in_pass = i > 0;
        target[i].groups.group_read_bytes = target[i].groups.last_read_bytes = 20;
        stays[i] = target[i].groups;
        stays[i].n_pinned = n_pinned[i];
    }
    plan_inputs in = {.model[PLAN_TARGET] = {.shape = &shape, .matrix = target, .n_matrices = 4}};
    plan_result r = {.residency = {stays}};
    /* The first layer stays and computes for 10 s, while the disk fills a ring of 3 s; the second
     * is read for 40 s and computes for 20 s meanwhile; the head computes for 5 s. */
    r.ring_bytes[PLAN_TARGET] = 30;
    assert_true(plan_pass_s(&in, &r, 2, 10, 100) == 10 - 3 + 40 + 5);
    assert_true(plan_pass_s(&in, &r, 1.5, 10, 100) == 10 - 3 + 20 + 5);
    assert_true(plan_pass_s(&in, &r, 1, 10, 100) == 10 + 5);
    assert_true(plan_pass_s(&in, &r, 0.5, 10, 100) == 5 + 5);
    /* A quarter of the passes ends after the first layer. */
    in.exit_layers = 1.75;
    assert_true(plan_mean_pass_s(&in, &r, 10, 100) == 10 - 3 + 30 + 5);
    in.exit_shares = (const float[]){0, 0.25f, 0.75f};
    assert_true(plan_mean_pass_s(&in, &r, 10, 100) == 0.25 * 15 + 0.75 * 52);
    /* A fast disk waits for the threads. */
    assert_true(plan_pass_s(&in, &r, 2, 1000, 100) > 35 - 1e-9);
    assert_int_equal(plan_leading_layers(&in, &r), 1);
    stays[2].n_pinned = 9;
    assert_int_equal(plan_leading_layers(&in, &r), 1);
    assert_int_equal(residency_streamed_bytes(&stays[2]), 11 * 20);
    stays[1].n_pinned = 4;
    assert_int_equal(plan_leading_layers(&in, &r), 0);
    stays[1].n_pinned = 10;
    stays[2].n_pinned = 20;
    assert_int_equal(plan_leading_layers(&in, &r), 2);
    assert_true(plan_pass_s(&in, &r, 2, 10, 100) == 35);
}

/* The front is pinned where passes end early, and only there. */
TEST(the_front_may_be_pinned)
{
    example x, even;
    make_example(&x, false);
    make_example(&even, false);
    x.in.deferred_rows = even.in.deferred_rows = 8;
    x.target[HEAD].must_stay = even.target[HEAD].must_stay = true;
    uint64_t least = least_of(&x);
    int n_front = 0;
    for (uint64_t budget = least + 20 * mib; budget < least + 100 * mib; budget += 3 * mib) {
        x.in.exit_layers = 5;
        assert_int_equal(plan_of(&x, budget)->front_layers, 0);
        plan_of(&even, budget);
        assert_same_pins(x.residency, even.residency);
        x.in.exit_layers = 3.5;
        drey_plan t = *plan_of(&x, budget);
        assert_int_equal(x.residency[HEAD].n_pinned, x.target[HEAD].groups.n_groups);
        if (t.front_layers == 0)
            continue;
        n_front++;
        assert_true(plan_expected_pass_s(&x.in, &x.result) <
                    plan_expected_pass_s(&x.in, &even.result));
        /* One share of the first layers, nothing of the last ones, and a step in between. */
        double first = (double)x.residency[1].n_pinned / x.target[1].groups.n_groups, share = first;
        int n_steps = 0;
        for (int32_t i = 1; i < HEAD; i++) {
            double next = (double)x.residency[i].n_pinned / x.target[i].groups.n_groups;
            if (x.target[i].groups.n_groups == 4) /* small: it stays anyway */
                continue;
            bool like_first = next > first - 0.02, none = next < 0.02; /* a group rounded off */
            n_steps += !like_first && !none;
            assert_true(next < share + 0.02);
            share = next;
        }
        assert_true(n_steps <= 1 && first > 0.58 && t.spare_bytes < mib);
    }
    assert_true(n_front > 10);
    /* Passes that end at many layers: the later a layer, the fewer reach it, though the mean is one
     * where nothing is gained. */
    x.in.exit_layers = 5;
    x.in.exit_shares = (const float[]){0, 0, 0.1f, 0.15f, 0.15f, 0.15f, 0.45f};
    uint64_t budget = least + 60 * mib;
    assert_true(plan_of(&x, budget)->front_layers > 0);
    plan_of(&even, budget);
    assert_true(plan_expected_pass_s(&x.in, &x.result) < plan_expected_pass_s(&x.in, &even.result));
}

/* What is deferred is counted: rows of the workspace with their logits, and each session's list. */
TEST(deferred_rows_are_counted)
{
    example x;
    make_example(&x, false);
    x.in.prompt_chunk = 64;
    drey_plan without = *plan_of(&x, 400 * mib);
    size_t work = x.result.work_bytes;
    x.in.deferred_rows = 8;
    drey_plan with = *plan_of(&x, 400 * mib);
    size_t row = (size_t)(2 * 512 + 2 * 512 + 2 * 256 + 2 * 2048 + 4096) * sizeof(float);
    size_t more = x.result.work_bytes - work; /* what is quantised of a row comes to that */
    assert_true(more >= 8 * row && more < 12 * row);
    assert_int_equal(with.session_bytes - without.session_bytes, deferred_bytes(&target_shape, 8));
    assert_true(deferred_bytes(&target_shape, 8) >= 8 * 512 * sizeof(float));
    assert_int_equal(deferred_bytes(&target_shape, 0), 0);
}

/* By hand: where 1.085 GB are streamed a plain turn takes .434 s. Nodes, steps, tokens of a tree
 * and its turn: 6, 3, 3.4, .561 s; 15, 5, 5, .679 s; 31, 7, 6.7, .814 s. Of a draft of 0.31 GB, 31
 * nodes: .498 s, as the pass over them takes .415 s. An EAGLE layer guesses less well. */
TEST(what_drafters_promise)
{
    plan_result r = {.report = {.target_bytes = 3800000000,
                                .streamed_bytes_per_pass = 1085000000,
                                .pinned_bytes = 2450000000,
                                .ring_bytes = 48 << 20}};
    plan_inputs in = {.draft.tree_nodes = 47};
    assert_true(fabs(plan_expect(&in, &r) - 1 / .434) < .001);
    in.draft.kind = &drafter_self;
    in.model[PLAN_DRAFT].is_view = true;
    assert_true(fabs(plan_expect(&in, &r) - 6.7 / .8135) < .01);
    in = (plan_inputs){.draft.tree_nodes = 47, .draft.kind = &drafter_model};
    r.report.draft_bytes = 310000000;
    assert_true(fabs(plan_expect(&in, &r) - 6.7 / (7 * .01018 * 1.16 + .41483)) < .01);
    in.draft.kind = &drafter_eagle;
    assert_true(plan_expect(&in, &r) < 2.5 / .43);
    in.draft.kind = &drafter_lookup;
    assert_true(fabs(plan_expect(&in, &r) - 1.5 / .434) < .01);
}

/* By hand: in memory, 3 GB a pass take .1 s, .105 over 2 rows, .115 over 4, .135 over 8; 60 MB a
 * step 2 ms. What the file says of the best guesses counts 0.6 times: of shares .36 .2 .1, then .3
 * .1 .05, trees of 2, 4 and 8 write 1.36, 1.668 and 1.894 tokens, in 1, 2 and 2 steps. A profile
 * with such shares is believed. */
TEST(what_heads_promise)
{
    drey_static_trees known = {.share = {{0.6, 0.2, 0.1}, {0.5, 0.1, 0.05}}};
    plan_result r = {.report = {.target_bytes = 3000000000, .draft_bytes = 60000000}};
    plan_inputs in = {.draft.tree_nodes = 32, .draft.kind = &drafter_medusa, .draft.trees = &known};
    assert_true(fabs(plan_expect(&in, &r) - 1.668 / (.115 + 2 * .002 * 1.04)) < .01);
    const drey_profile measured = {.trees = &known};
    in.draft.profile = &measured;
    assert_true(fabs(plan_expect(&in, &r) - 2.1 / (.115 + 2 * .002 * 1.04)) < .01);
    in.draft.profile = NULL;
    in.n_threads = 2; /* .1075 s over 2 rows, .1225 over 4, .1525 over 8 */
    assert_true(fabs(plan_expect(&in, &r) - 1.668 / (.1225 + 2 * .002 * 1.04)) < .01);
    in.n_threads = 8;
    in.draft.tree_nodes = 2; /* none of four rows, then */
    assert_true(fabs(plan_expect(&in, &r) - 1.36 / (.105 + .002)) < .01);
    memset(known.share, 0, sizeof known.share); /* never right: who speculates may leave it */
    assert_true(fabs(plan_expect(&in, &r) - 10) < .001);
}

/* A 1.5B in memory on two threads, with the 0.5B (tokens/s measured: 1.5 to 1.8 times no draft) and
 * with its heads (1.3 to 1.6): docs/lab/2026-11-papers.md, 2026-11-zen5-heads.md. Where the 0.5B
 * makes the target stream, and the heads do not, the heads are faster. */
TEST(the_small_model_before_heads)
{
    const drey_static_trees heads = {.share = {{.659, .0996, .0472, .026, .0167, .0132, .0085},
                                               {.524, .112, .0566, .0339, .0246, .0194, .016},
                                               {.454, .116, .0576, .0387, .0289, .0169, .0174},
                                               {.415, .115, .0595, .0375, .0292, .0239, .0174}}};
    plan_inputs in = {.draft.tree_nodes = 47, .n_threads = 2};
    plan_result r = {.report = {.target_bytes = 1040 * mib, .ring_bytes = 32 * mib}};
    double none = plan_expect(&in, &r);
    in.draft.kind = &drafter_model;
    r.report.draft_bytes = 310 * mib;
    double model = plan_expect(&in, &r) / none;
    r.report.streamed_bytes_per_pass = 350 * mib;
    double streamed = plan_expect(&in, &r) / none;
    r.report.streamed_bytes_per_pass = 0;
    in.draft.kind = &drafter_medusa;
    in.draft.trees = &heads;
    r.report.draft_bytes = 24 * mib;
    double with_heads = plan_expect(&in, &r) / none;
    assert_true(model > 1.3 && model < 1.7 && with_heads > 1.2 && with_heads < 1.5);
    assert_true(model > with_heads && with_heads > streamed);
}

/* By hand: passes of .01 s over a row and of .01 more for each other, steps of .001 s: trees of 2
 * and 4 rows that wrote 1.9 and 3 tokens, in 1 and 2 steps. */
TEST(what_was_measured_is_expected)
{
    drey_profile p;
    drey_static_trees known = {.n_trees = 2};
    drey_profile_init(&p);
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        p.pass_s[i] = .01 * (1 + i);
    for (int i = 0; i < DREY_PROFILE_NODES; i++)
        p.step_s[i] = .001 * (1 + .04 * i);
    known.tree[0] = (drey_static_tree){.width = 2, .n = 2, .measured_tokens = 1.9};
    known.tree[1] = (drey_static_tree){
        .width = 4, .n = 4, .measured_tokens = 3, .parent = {-1, 0, 0, 1}, .rank = {0, 0, 1, 0}};
    plan_result r = {.report = {.target_bytes = 3000000000, .draft_bytes = 60000000}};
    plan_inputs in = {.draft.tree_nodes = 47, .draft.kind = &drafter_model, .draft.profile = &p};
    assert_true(fabs(plan_expect(&in, &r) - 100) <
                .01); /* as of a usual model: nothing is worth it */
    in.draft.trees = &known;
    assert_true(fabs(plan_expect(&in, &r) - 100) < .01); /* 3 / .042 and 1.9 / .021 are less */
    known.tree[1].measured_tokens = 4.4;
    assert_true(fabs(plan_expect(&in, &r) - 4.4 / (.04 + 2 * .001 * 1.04)) < .01);
    in.draft.kind = &drafter_lookup; /* whose steps take no time */
    assert_true(fabs(plan_expect(&in, &r) - 110) < .01);
}
