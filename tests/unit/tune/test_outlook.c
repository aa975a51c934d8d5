/* Outlook on a budget, as a person reads it: shares, bytes and speeds are the plan's own, numbers
 * that are not known are left out; and speeds that were measured are kept for a day. */
#include <unistd.h>

#include "common/json_value.h"
#include "common/size_text.h"
#include "common/utf8.h"
#include "drey/tune.h"
#include "engine/engine.h"
#include "support/toy_models.h"
#include "tune/kept_speeds.h"

static const uint64_t mib = 1 << 20;
static const drey_speeds known = {.disk_bytes_per_s = 2e6,
                                  .memory_bytes_per_s = 1e10,
                                  .one_ops_per_s = 1e10,
                                  .tree_ops_per_s = 4e10};

static int open_toys(void **state)
{
    toy_options toy = toy_default();
    toy.n_layers = 200;
    toys_open_pair(&toy);
    return 0;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in: %s", part, text);
}

static drey_outlook look(const drey_engine_options *o, drey_speeds speeds)
{
    drey_outlook out;
    MUST(drey_look_ahead, o, DREY_MEASURE_NOTHING, NULL, &speeds, &out);
    return out;
}

TEST(all_in_memory)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    drey_outlook x = look(&o, known);
    has(x.verdict, "Without a limit all of it stays in memory. About ");
    has(x.verdict, " tokens/s without a draft.");
    lacks(x.verdict, "disk");
    lacks(x.verdict, "would hold");
    assert_true(x.tokens_per_s == x.plan.expected_tokens_per_s);
    assert_true(x.alone_tokens_per_s == x.tokens_per_s);
    x = look(&o, (drey_speeds){.disk_bytes_per_s = 0});
    assert_true(x.tokens_per_s == 0 && x.alone_tokens_per_s == 0);
    has(x.verdict, "stays in memory.");
    lacks(x.verdict, "bout ");
}

TEST(part_on_a_disk)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    drey_plan least;
    char size[16];
    o.memory_bytes = 1;
    drey_plan_make(&o, NULL, &least, NULL);
    o.memory_bytes = least.smallest_budget_bytes + mib;
    drey_outlook x = look(&o, known);
    assert_true(x.plan.streamed_bytes_per_pass > 0);
    has(x.verdict, " of it stays in memory, and ");
    has(x.verdict, format_bytes(size, (double)x.plan.streamed_bytes_per_pass));
    has(x.verdict, "On a disk of 1.91M/s about ");
    has(x.verdict, " as draft, ");
    has(x.verdict, " without.");
    assert_true(x.tokens_per_s > 0 && x.alone_tokens_per_s > 0);
    if (x.better_bytes) { /* the machine has the memory now */
        has(x.verdict, " would hold all of it: about ");
        assert_true(x.better_is_whole && x.better_bytes > o.memory_bytes);
        o.memory_bytes = x.better_bytes;
        assert_int_equal(look(&o, known).plan.streamed_bytes_per_pass, 0);
        o.memory_bytes = least.smallest_budget_bytes + mib;
    }
    drey_speeds measured = known;
    measured.disk_measured = 1;
    x = look(&o, measured);
    has(x.verdict, "On this disk (1.91M/s) about ");
    lacks(x.verdict, "busy");
    assert_true(x.alone_smallest_bytes > 0 &&
                x.alone_smallest_bytes < x.plan.smallest_budget_bytes);
    measured.measured_busy = 1;
    has(look(&o, measured).verdict, " It was measured while the machine was busy.");
    measured.disk_bytes_per_s = 0;
    x = look(&o, measured);
    has(x.verdict, "It drafts with ");
    lacks(x.verdict, "disk");
}

/* Bounds of what a process holds, which moves by pages between two plans, by some MiB where a
 * sanitizer keeps what was freed: there the budget holds the whole model. */
#ifdef TESTS_SANITIZED
static const uint64_t room = 64 << 20;
#else
static const uint64_t room = 3 << 20;
#endif

/* What the choice expects is what the plan of the chosen draft has, and so the verdict. */
TEST(one_number)
{
    static const double disks[] = {1e5, 1e7, 1e9};
    drey_draft_choice choice;
    drey_plan least;
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, 256, 1);
    o.memory_bytes = 1;
    drey_plan_make(&o, NULL, &least, NULL);
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        drey_speeds speeds = known;
        speeds.disk_bytes_per_s = disks[i];
        o = toys_options(DREY_DRAFTER_NONE, 256, 1);
        o.memory_bytes = least.smallest_budget_bytes + room;
        MUST(drey_choose_draft_at, &o, &speeds, DREY_MEASURE_NOTHING, NULL, &choice);
        drey_outlook x = look(&o, speeds);
        double ratio = x.tokens_per_s / choice.expected_tokens_per_s;
        assert_true(ratio > 0.8 && ratio < 1.25);
        drey_draft_choice_close(&choice);
    }
}

/* A file may have any name; the verdict is one line of UTF-8. */
TEST(odd_names)
{
    char name[200] = "a\nb\x1b[31m\xff";
    size_t n = strlen(name);
    drey_model *model = NULL;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    for (int i = 0; i < 50; i++, n += 2)
        memcpy(name + n, "\xc3\xa9", 3);
    memcpy(name + n, ".gguf", 6);
    const char *path = temp_path(name);
    assert_int_equal(link(temp_path("target.gguf"), path), 0);
    MUST(drey_model_open, &model, path);
    o.target = model;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    const drey_outlook x = look(&o, known);
    has(x.verdict, "a?b?[31m?\xc3\xa9");
    lacks(x.verdict, "\n");
    assert_true(utf8_is_whole(x.verdict, strlen(x.verdict)));
    drey_model_close(&model);
}

TEST(more_than_there_is)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 256, 1);
    o.memory_bytes = UINT64_C(1) << 49;
    has(look(&o, known).warning, "; the budget of 512T is more than that: ");
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    assert_string_equal(look(&o, known).warning, "");
    o.memory_bytes = DREY_MEMORY_AUTO;
    assert_string_equal(look(&o, known).warning, "");
}

/* ---- Kept ---- */

static drey_speeds found(drey_planner *p, const char *folder)
{
    drey_speeds s = {.disk_bytes_per_s = 0};
    MUST(drey_planner_speeds, p, DREY_MEASURE_KEPT, folder, &s);
    return s;
}

TEST(speeds_are_kept)
{
    const drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, 256, 1);
    const char *folder = temp_path("kept");
    drey_planner *p;
    drey_speeds s = {.disk_bytes_per_s = 0};
    MUST(drey_planner_open, &p, &o);
    assert_true(found(p, folder).memory_bytes_per_s == 0);
    assert_true(found(p, NULL).memory_bytes_per_s == 0);
    MUST(drey_planner_speeds, p, DREY_MEASURE_MISSING, folder, &s); /* a toy is not measured */
    assert_true(s.memory_bytes_per_s == 0);
    MUST(drey_planner_speeds, p, DREY_MEASURE_NOW, folder, &s);
    assert_true(s.memory_bytes_per_s > 0 && s.one_ops_per_s > 0 && s.tree_ops_per_s > 0);
    const drey_speeds again = found(p, folder);
    assert_true(again.memory_bytes_per_s > 0.99 * s.memory_bytes_per_s &&
                again.memory_bytes_per_s < 1.01 * s.memory_bytes_per_s);
    assert_true(again.tree_ops_per_s > 0 && again.disk_bytes_per_s == 0);
    const drey_speeds stated = {.memory_bytes_per_s = 7};
    s = stated;
    MUST(drey_planner_speeds, p, DREY_MEASURE_KEPT, folder, &s);
    assert_true(s.memory_bytes_per_s == 7 && s.one_ops_per_s > 0);
    kept_speeds_keep_disk(&p->engine, folder, 5e8, true);
    s = found(p, folder);
    assert_true(s.disk_bytes_per_s == 5e8 && s.disk_measured == 1 && s.measured_busy == 1);
    s = stated; /* the machine's own is kept as it was */
    MUST(drey_planner_speeds, p, DREY_MEASURE_NOW, folder, &s);
    assert_true(s.memory_bytes_per_s == 7 && s.one_ops_per_s > 0);
    assert_true(found(p, folder).memory_bytes_per_s == again.memory_bytes_per_s);
    drey_planner_close(&p);
}

static bool parses(const char *text, kept_speeds *k)
{
    json_document json;
    bool good = kept_speeds_parse(json_load(&json, text, strlen(text)), k);
    json_free(&json);
    return good;
}

TEST(odd_files_are_refused)
{
    kept_speeds k;
    assert_true(parses("{\"disk_bytes_per_s\": 5, \"memory_bytes_per_s\": 0, \"one_ops_per_s\": 0,"
                       "\"tree_ops_per_s\": 0, \"until\": 9}",
                       &k));
    assert_true(k.speeds.disk_bytes_per_s == 5 && k.until == 9);
    assert_false(
        parses("{\"disk_bytes_per_s\": -5, \"memory_bytes_per_s\": 0, \"one_ops_per_s\": 0,"
               "\"tree_ops_per_s\": 0, \"until\": 9}",
               &k));
    assert_false(parses("{\"disk_bytes_per_s\": 5}", &k));
    assert_false(parses("[]", &k));
}

TEST_GROUP(open_toys, toys_close)
