/* One planner plans one drafter after another as a planner of each would; a choice takes what
 * promises most; and what was measured comes back from a folder as it was stored, or not at all. */
#include "drey/tune.h"
#include "engine/engine.h"
#include "support/bytes_file.h"
#include "support/toy_models.h"

static int open_toys(void **state)
{
    toy_options toy = toy_default();
    toy.n_layers = 12;
    toys_open_pair(&toy);
    return 0;
}

/* Compares plans. The memory of a process differs by some pages; all else is the same. */
static void assert_same_plan(const drey_plan *a, const drey_plan *b)
{
    assert_true(a->expected_tokens_per_s == b->expected_tokens_per_s);
    assert_true(a->ceiling_tokens_per_s == b->ceiling_tokens_per_s);
    assert_int_equal(a->pinned_bytes, b->pinned_bytes);
    assert_int_equal(a->draft_bytes, b->draft_bytes);
    assert_int_equal(a->draft_kv_bytes, b->draft_kv_bytes);
    assert_int_equal(a->kv_bytes, b->kv_bytes);
    assert_int_equal(a->work_bytes, b->work_bytes);
    assert_int_equal(a->session_bytes, b->session_bytes);
    assert_int_equal(a->tokenizer_bytes, b->tokenizer_bytes);
    assert_int_equal(a->target_bytes, b->target_bytes);
    assert_int_equal(a->tree_rows, b->tree_rows);
}

TEST(one_planner)
{
    static const drey_drafter ways[] = {
        DREY_DRAFTER_MODEL,  DREY_DRAFTER_NONE,  DREY_DRAFTER_LOOKUP, DREY_DRAFTER_SELF,
        DREY_DRAFTER_MEDUSA, DREY_DRAFTER_MODEL, DREY_DRAFTER_LOOKUP};
    const drey_engine_options alone = toys_options(DREY_DRAFTER_NONE, 256, 1);
    drey_planner *planner;
    drey_error err;
    int n_failed = 0;
    MUST(planner_open_target, &planner, &alone);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const drey_engine_options o = toys_options(ways[i], 256, 1);
        drey_plan one, own;
        drey_status status = planner_take_draft(planner, &o, &err);
        assert_int_equal(status, drey_plan_make(&o, NULL, &own, NULL));
        n_failed += status != DREY_OK; /* there are no planes and no heads */
        if (status != DREY_OK)
            continue;
        MUST(drey_planner_make, planner, 0, NULL, &one);
        assert_same_plan(&one, &own);
    }
    assert_int_equal(n_failed, 2);
    drey_planner_close(&planner);
}

/* A tree of two nodes that wrote so many tokens. */
static drey_pair_report report_of(double tokens)
{
    drey_pair_report r = {.n_threads = 1, .seconds = 1, .n_tokens = 96, .n_places = 90};
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        r.profile.pass_s[i] = 0.01;
    r.trees.n_trees = 1;
    r.trees.share[0][0] = tokens - 1;
    r.trees.tree[0] = (drey_static_tree){.width = 2,
                                         .n = 2,
                                         .expected_tokens = tokens,
                                         .measured_tokens = tokens,
                                         .pass_s = 0.01,
                                         .tokens_per_s = 100 * tokens,
                                         .parent = {-1, 0}};
    return r;
}

static void expect_choice(drey_policy policy, drey_drafter which, drey_draft_reason reason,
                          const char *why)
{
    drey_draft_choice choice;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    o.policy = policy;
    MUST(drey_choose_draft, &o, temp_path("kept"), &choice);
    assert_int_equal(o.drafter, which);
    assert_ptr_equal(o.draft, choice.draft);
    assert_int_equal(choice.draft != NULL, which == DREY_DRAFTER_MODEL);
    assert_int_equal(choice.reason, reason);
    assert_true(choice.expected_tokens_per_s > 0);
    if (!strstr(choice.why, why))
        fail_msg("\"%s\" is not in: %s", why, choice.why);
    drey_draft_choice_close(&choice);
}

TEST(choices)
{
    drey_draft_choice choice;
    drey_error err;
    const char *folder = temp_path("kept");
    const drey_engine_options lookup = toys_options(DREY_DRAFTER_LOOKUP, 256, 1),
                              model = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    const drey_pair_report good = report_of(1.5), bad = report_of(1);
    expect_choice(DREY_POLICY_AUTO, DREY_DRAFTER_MODEL, DREY_DRAFT_CHOSEN,
                  "draft.gguf, which is next to the target");
    MUST(drey_profile_store, &model, folder, &bad);
    MUST(drey_profile_store, &lookup, folder, &good);
    expect_choice(DREY_POLICY_AUTO, DREY_DRAFTER_LOOKUP, DREY_DRAFT_NOT_FASTER,
                  "lookup: by what was measured about 150 tokens/s, the model next to it 100");
    MUST(drey_profile_store, &lookup, folder, &bad);
    expect_choice(DREY_POLICY_AUTO, DREY_DRAFTER_NONE, DREY_DRAFT_NOT_FASTER,
                  "none: about 100 tokens/s");
    expect_choice(DREY_POLICY_SPECINFER, DREY_DRAFTER_LOOKUP, DREY_DRAFT_NOT_FASTER,
                  "lookup: by what was measured");

    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    o.memory_bytes = 1;
    MUST(drey_choose_draft, &o, NULL, &choice);
    assert_true(choice.expected_tokens_per_s == 0 && !choice.draft && !choice.why[0]);
    o.policy = DREY_POLICY_DRAFT;
    assert_int_equal(drey_choose_draft(&o, NULL, &choice, &err), DREY_ERR_USAGE);
    o.target = NULL;
    o.policy = DREY_POLICY_AUTO;
    assert_int_equal(drey_choose_draft(&o, NULL, &choice, &err), DREY_ERR_USAGE);
}

TEST(profiles)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    drey_pair_report stored = report_of(1.25), loaded;
    drey_error err;
    const char *folder = temp_path("a/new folder");
    assert_int_equal(drey_profile_load(&o, folder, &loaded, &err), DREY_ERR_IO);
    assert_int_equal(drey_profile_load(&o, NULL, &loaded, &err), DREY_ERR_IO);
    assert_int_equal(drey_profile_store(&o, NULL, &stored, &err), DREY_ERR_USAGE);
    MUST(drey_profile_store, &o, folder, &stored);
    MUST(drey_profile_load, &o, folder, &loaded);
    assert_ptr_equal(loaded.profile.trees, &loaded.trees);
    assert_memory_equal(loaded.profile.pass_s, stored.profile.pass_s, sizeof loaded.profile.pass_s);
    assert_memory_equal(&loaded.trees, &stored.trees, sizeof loaded.trees);
    assert_int_equal(loaded.n_tokens, 96);
    o.n_threads = 2;
    assert_int_equal(drey_profile_load(&o, folder, &loaded, &err), DREY_ERR_IO);
    o = toys_options(DREY_DRAFTER_LOOKUP, 256, 1);
    assert_int_equal(drey_profile_load(&o, folder, &loaded, &err), DREY_ERR_IO);
}

TEST(tunings)
{
    const drey_tuning stored = {.fetch = DREY_FETCH_FAR, .tile = DREY_TILE_CHAINS};
    drey_tuning loaded;
    drey_error err;
    MUST(drey_tuning_store, NULL, temp_path("tuned"), &stored);
    MUST(drey_tuning_load, NULL, temp_path("tuned"), &loaded);
    assert_true(loaded.fetch == DREY_FETCH_FAR && loaded.tile == DREY_TILE_CHAINS &&
                !loaded.early_amx);
    assert_int_equal(drey_tuning_load("ref", temp_path("tuned"), &loaded, &err), DREY_ERR_IO);
    bytes_file_write(temp_path("tuned/tuning.json"),
                     "{\"fetch\": \"near\", \"tile\": \"lines\", \"early_amx\": false}", 54);
    assert_int_equal(drey_tuning_load(NULL, temp_path("tuned"), &loaded, &err), DREY_ERR_MISMATCH);
    bytes_file_write(temp_path("tuned/tuning.json"), "[]", 2);
    REFUSED(DREY_ERR_FORMAT, "tuning.json is not what drey tune writes", drey_tuning_load, NULL,
            temp_path("tuned"), &loaded);
}

TEST_GROUP(open_toys, toys_close)
