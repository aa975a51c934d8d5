/* Configurations made of public options: each contradiction with its sentence, what is taken where
 * nothing was asked for, and that nothing of the caller's is kept but the models. */
#include "draft/drafter_kind.h"
#include "engine/config.h"
#include "support/toy_models.h"

typedef struct row { /* options, and what is said of them */
    drey_engine_options o;
    const char *says; /* NULL: they are fine */
} row;

static drey_status resolve(drey_engine_options o, const drey_model *m, engine_config *c,
                           drey_error *err)
{
    o.target = m;
    if (!o.n_context)
        o.n_context = 64;
    return config_resolve(&o, NULL, c, err);
}

static void check(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        engine_config c;
        drey_error err = {0};
        drey_status status = resolve(rows[i].o, target, &c, &err);
        config_free(&c);
        if (!rows[i].says && status != DREY_OK)
            fail_msg("row %zu: %s", i, err.message);
        if (rows[i].says && (status != DREY_ERR_USAGE || !strstr(err.message, rows[i].says)))
            fail_msg("row %zu says \"%s\", not \"%s\"", i, err.message, rows[i].says);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof *(rows))

TEST(what_contradicts_is_refused)
{
    static const char both[] =
        "a draft model and the drafter \"model\", \"eagle\" or \"mtp\" go together";
    static const char heads[] = "a file of heads and the drafter \"medusa\" go together";
    static const char none[] = "a drafting policy needs a draft: a model, or \"lookup\"";
    static const char unknown[] =
        "policy, drafter, io, kv, exit, fallback, fetch or tile is not one of those in drey.h";
    static const char part[] =
        "the part \"lookup\" alone can be asked for, and not be left out at the same time";
    const drey_exit on = DREY_EXIT_EXACT;
    const drey_tuning tuned = {.fetch = DREY_FETCH_FAR}, odd = {.fetch = (drey_fetch)99};
    const drey_research both_ways = {.with = looked_up.with, .without = not_looked_up.without};
    const drey_tuning odd_tile = {.tile = (drey_tile)99};
    const row rows[] = {
        {{.io = DREY_IO_AUTO}, NULL},
        {{.drafter = DREY_DRAFTER_LOOKUP}, NULL},
        {{.drafter = DREY_DRAFTER_MODEL, .draft = draft}, NULL},
        {{.drafter = DREY_DRAFTER_MODEL}, both},
        {{.draft = draft}, both},
        {{.drafter = DREY_DRAFTER_SELF, .draft = draft}, both},
        {{.heads = "x"}, heads},
        {{.drafter = DREY_DRAFTER_LOOKUP, .heads = "x"}, heads},
        {{.drafter = DREY_DRAFTER_MEDUSA, .heads = "x"}, NULL},
        {{.policy = DREY_POLICY_OPTIMAL}, none},
        {{.policy = DREY_POLICY_SEQUENCE}, none},
        {{.policy = DREY_POLICY_NONE, .drafter = DREY_DRAFTER_LOOKUP}, NULL},
        {{.policy = DREY_POLICY_DRAFT},
         "the policy \"draft\" lets the draft model write; give one"},
        {{.policy = DREY_POLICY_DRAFT, .drafter = DREY_DRAFTER_MODEL, .draft = draft}, NULL},
        {{.policy = (drey_policy)99}, unknown},
        {{.drafter = (drey_drafter)99}, unknown},
        {{.io = (drey_io)99}, unknown},
        {{.kv = (drey_kv)99}, unknown},
        {{.exit = (drey_exit)99}, unknown},
        {{.tuning = &odd}, unknown},
        {{.tuning = &odd_tile}, unknown},
        {{.tuning = &tuned}, NULL},
        {{.research = &(drey_research){.without = UINT64_C(1) << 40}},
         "what is to be left out is not one of the parts"},
        {{.research = &(drey_research){.with = DREY_WITH(DREY_PART_TREE)}}, part},
        {{.research = &both_ways}, part},
        {{.exit = on}, NULL},
        {{.exit = on, .drafter = DREY_DRAFTER_LOOKUP}, NULL},
        {{.exit = on, .exit_threshold = 1}, NULL},
        {{.exit = on, .exit_threshold = 2}, "a threshold of 2 is not possible for early exits"},
        {{.exit = on, .exit_threshold = -1}, "a threshold of -1 is not possible"},
        {{.exit = on, .policy = DREY_POLICY_BLD, .drafter = DREY_DRAFTER_LOOKUP},
         "early exits and the policy \"bld\" do not go together; take another policy"},
        {{.exit = on, .policy = DREY_POLICY_STD},
         "early exits and the policy \"std\" do not go together; take another policy"},
        {{.exit = on, .drafter = DREY_DRAFTER_SELF},
         "early exits and the drafter \"self\" do not go together: it would draft with what exits "
         "leave undone; choose another draft, or none"},
        {{.exit = on, .drafter = DREY_DRAFTER_MEDUSA}, NULL},
        {{.exit = on, .drafter = DREY_DRAFTER_SELF, .policy = DREY_POLICY_NONE}, NULL},
    };
    CHECK(rows);
    drey_error err;
    engine_config c;
    assert_int_equal(resolve((drey_engine_options){.io = DREY_IO_AUTO}, NULL, &c, &err),
                     DREY_ERR_USAGE);
    assert_string_equal(err.message, "no target model was given");
    config_free(&c);
}

/* Lookup knows the text for the leaves of trees that may leave a pass early. */
TEST(leaves_of_exits_are_looked_up)
{
    const drey_exit on = DREY_EXIT_EXACT;
    const drey_drafter model = DREY_DRAFTER_MODEL, medusa = DREY_DRAFTER_MEDUSA;
    const drey_research no_hyper = {.without = DREY_WITHOUT(DREY_PART_HYPER)};
    const struct {
        drey_engine_options o;
        bool peeks;
    } table[] = {
        {{.drafter = model, .draft = draft, .exit = on}, true},
        {{.drafter = model, .draft = draft}, false},
        {{.drafter = model, .draft = draft, .exit = on, .policy = DREY_POLICY_SINGLE}, false},
        {{.drafter = model, .draft = draft, .exit = on, .research = &looked_up}, false},
        {{.drafter = model, .draft = draft, .exit = on, .research = &no_hyper}, false},
        {{.drafter = DREY_DRAFTER_LOOKUP, .exit = on}, false},
        {{.drafter = medusa, .exit = on}, false}, /* it is in its trees */
        {{.drafter = medusa, .exit = on, .policy = DREY_POLICY_EDGELLM}, true},
        {{.exit = on}, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        engine_config c;
        MUST(resolve, table[i].o, target, &c);
        if ((c.lookup == LOOKUP_PEEKS) != table[i].peeks)
            fail_msg("row %zu is settled otherwise", i);
        config_free(&c);
    }
}

TEST(numbers_have_bounds)
{
    const row rows[] = {
        {{.n_context = -1}, "a context of -1 tokens is not possible (1 to "},
        {{.n_context = DREY_MAX_CONTEXT + 1}, " tokens is not possible (1 to "},
        {{.n_threads = -1}, "-1 threads are not possible (1 to "},
        {{.n_threads = DREY_MAX_THREADS + 1}, " threads are not possible (1 to "},
        {{.draft_tokens = -1}, "a draft of -1 tokens is not possible (1 to "},
        {{.tree_nodes = 1 << 20}, "a tree of 1048576 nodes is not possible (1 to "},
        {{.prompt_chunk = -1}, "a prompt chunk of -1 rows is not possible (1 to "},
        {{.n_sessions = -1}, "-1 sessions are not possible (1 to "},
        {{.n_sessions = DREY_MAX_SESSIONS + 1}, " sessions are not possible (1 to "},
        {{.trace_spans = -1}, "a trace of -1 spans is not possible (0 to "},
        {{.n_threads = 1, .n_sessions = 1, .prompt_chunk = 1, .trace_spans = 1}, NULL},
        {{.research = &(drey_research){.alpha = 1}},
         "a first alpha of 1 is not possible (above 0, below 1)"},
        {{.research = &(drey_research){.ahead = 2}}, "drafting ahead from 2 is not possible"},
        {{.research = &(drey_research){.fallback_step = -1}},
         "an alpha that changes by -1 is not possible"},
        {{.research = &(drey_research){.bld_fallback = 1.5f}},
         "a bld that hands over below 1.5 is not possible"},
        {{.research = &(drey_research){.bld_rollback = NAN}}, "a bld that takes tokens back from"},
        {{.research = &(drey_research){.ahead = 1, .fallback_step = 1, .bld_fallback = 1}}, NULL},
    };
    CHECK(rows);
}

TEST(units_have_shares)
{
    drey_unit_shares none = {.n_units = 1}, far, many;
    for (int w = 0; w < DREY_UNIT_WIDTHS; w++)
        none.share[w][0] = 1;
    far = many = none;
    none.share[1][0] = 0;
    many.n_boundaries = DREY_UNIT_CONTEXTS + 1;
    far.n_boundaries = 1;
    far.boundary[0] = 2;
    drey_unit_shares below = many;
    below.share[0][0] = -1;
    const row rows[] = {
        {{.unit_shares = &none}, "the units' shares of passes of 2 rows have no sum"},
        {{.unit_shares = &below}, "a unit's share is -1; it is 0 or more"},
        {{.unit_shares = &many}, "attention has boundaries for up to"},
        {{.unit_shares = &far}, "attention's boundary is 2; it is between -1 and 1"},
        {{.units = "gpu?"}, "gpu?"},
    };
    CHECK(rows);
}

typedef struct taken { /* settings that come of a choice */
    drey_engine_options o;
    const drafter_kind *drafter;
    drey_policy policy;
    bool drafts, has_model, blends;
} taken;

TEST(defaults_are_filled_in)
{
    const drey_drafter lookup = DREY_DRAFTER_LOOKUP, model = DREY_DRAFTER_MODEL;
    const drey_drafter self = DREY_DRAFTER_SELF, medusa = DREY_DRAFTER_MEDUSA;
    const drey_policy optimal = DREY_POLICY_OPTIMAL, chain = DREY_POLICY_SEQUENCE;
    const drey_policy std = DREY_POLICY_STD;
    const taken table[] = {
        {{.io = DREY_IO_AUTO}, NULL, DREY_POLICY_NONE, 0, 0, 0},
        {{.drafter = lookup}, &drafter_lookup, optimal, 1, 0, 0},
        {{.drafter = lookup, .research = &looked_up}, &drafter_lookup, optimal, 1, 0, 0},
        {{.drafter = model, .draft = draft}, &drafter_model, optimal, 1, 1, 0},
        {{.drafter = model, .draft = draft, .research = &looked_up},
         &drafter_model,
         optimal,
         1,
         1,
         1},
        {{.drafter = model, .draft = draft, .research = &looked_up, .exit = DREY_EXIT_EXACT},
         &drafter_model,
         optimal,
         1,
         1,
         1},
        {{.drafter = model, .draft = draft, .repeats = true}, &drafter_model, optimal, 1, 1, 1},
        {{.drafter = lookup, .repeats = true}, &drafter_lookup, optimal, 1, 0, 0},
        {{.drafter = model, .draft = draft, .policy = std}, NULL, std, 0, 0, 0},
        {{.drafter = self}, &drafter_self, optimal, 1, 0, 0},
        {{.drafter = medusa}, &drafter_medusa, optimal, 1, 0, 1},
        {{.drafter = medusa, .research = &not_looked_up}, &drafter_medusa, optimal, 1, 0, 0},
        {{.drafter = medusa, .policy = chain}, &drafter_medusa, chain, 1, 0, 0},
        {{.drafter = medusa, .exit = DREY_EXIT_FAST}, &drafter_medusa, optimal, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const taken *t = &table[i];
        engine_config c;
        MUST(resolve, t->o, target, &c);
        if (c.drafter != t->drafter || c.policy_id != t->policy ||
            (c.lookup == LOOKUP_BLENDS) != t->blends || (c.policy != NULL) != t->drafts ||
            (c.draft != NULL) != t->has_model || c.n_sessions != 1 || c.n_threads < 1 ||
            (c.drafted.nodes > 0) != t->drafts)
            fail_msg("row %zu is settled otherwise", i);
        config_free(&c);
    }
}

/* The policy "draft" lets the other model write, with nothing of the target's. */
TEST(the_draft_writes_alone)
{
    engine_config c;
    const drey_engine_options o = {.drafter = DREY_DRAFTER_MODEL,
                                   .draft = draft,
                                   .policy = DREY_POLICY_DRAFT,
                                   .sidecar = "of the target"};
    MUST(resolve, o, target, &c);
    assert_true(c.target == draft && !c.draft && !c.drafter && !c.files.sidecar);
    config_free(&c);
}

TEST(nothing_of_the_callers_is_kept)
{
    char texts[5][16] = {"side", "heads", "exits", "folder", "cpu"};
    drey_static_trees trees = {.share = {{0.5}}};
    drey_profile profile;
    drey_profile_init(&profile);
    profile.trees = &trees;
    drey_prefix_options prefixes = {.memory_bytes = 1 << 20, .folder = texts[3]};
    drey_engine_options o = {.target = target,
                             .n_context = 64,
                             .drafter = DREY_DRAFTER_MEDUSA,
                             .sidecar = texts[0],
                             .heads = texts[1],
                             .exit_file = texts[2],
                             .units = texts[4],
                             .profile = &profile,
                             .prefixes = &prefixes};
    engine_config c;
    MUST(config_resolve, &o, NULL, &c);
    memset(texts, 'x', sizeof texts);
    memset(&trees, 0, sizeof trees);
    memset(&profile, 0, sizeof profile);
    memset(&prefixes, 0, sizeof prefixes);
    memset(&o, 0, sizeof o);
    assert_string_equal(c.files.sidecar, "side");
    assert_string_equal(c.files.draft, "heads");
    assert_string_equal(c.files.exit, "exits");
    assert_string_equal(c.prefixes.folder, "folder");
    assert_true(c.prefixes.memory_bytes == 1 << 20 && c.units.words.n == 1);
    assert_true(config_known(&c)->trees->share[0][0] > 0.4);
    config_free(&c);
}

TEST_GROUP(toys_open, toys_close)
