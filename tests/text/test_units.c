/* Units: what is said of them, where their parts begin, who computes what of products and of
 * attention, and what becomes of it where a device fails. test_matrix.c combines units with all
 * else. */
#include "engine/engine.h"
#include "support/bytes_file.h"
#include "support/faults/fake_device.h"
#include "support/toy_models.h"
#include "support/writing.h"
#include "unit/units.h"

/* ---- Words ---- */

static void parse(unit_words *w, const char *text)
{
    drey_error err;
    if (unit_words_parse(w, text, &fake_device, 0, &err) != DREY_OK)
        fail_msg("%s: %s", text, err.message);
}

static void refuses(const char *text, int32_t n_threads, const char *why)
{
    unit_words w;
    drey_error err = {0};
    drey_status status = unit_words_parse(&w, text, &fake_device, n_threads, &err);
    must_refuse(status, DREY_ERR_USAGE, why, &err);
}

static int32_t first_core(void)
{
    core_set cores;
    int32_t core = 0;
    assert_true(cores_of_thread(&cores));
    while (!cores_has(&cores, core))
        core++;
    return core;
}

TEST(words)
{
    unit_words w;
    char text[64];
    assert_int_equal(unit_words_parse(&w, NULL, NULL, 3, NULL), DREY_OK);
    assert_true(unit_words_are_plain(&w) && unit_words_threads(&w) == 3);
    parse(&w, "cpu/threads=2");
    assert_true(unit_words_are_plain(&w) && w.unit[0].n_threads == 2);
    parse(&w, "fake:copies=0.5+cpu=2/ref/slow=1.5/threads=3+static+cpu=.25");
    assert_true(w.n == 3 && w.n_clusters == 2 && w.is_static && w.has_shares);
    assert_true(w.unit[0].share == 2 && w.unit[0].slow == 1.5 && w.unit[0].n_threads == 3);
    assert_string_equal(w.unit[0].tier, "ref");
    assert_true(w.unit[1].share == 0.25 && w.unit[1].slow == 1 && w.unit[1].n_threads == 1);
    assert_true(w.unit[2].device == &fake_device && w.unit[2].share == 0.5);
    assert_string_equal(w.unit[2].which, "copies");
    assert_int_equal(unit_words_threads(&w), 4);
    snprintf(text, sizeof text, "cpu:%d", first_core());
    parse(&w, text);
    assert_true(!unit_words_are_plain(&w) && cores_has(&w.unit[0].cores, first_core()));
    assert_int_equal(cores_count(&w.unit[0].cores), 1);
}

TEST(words_that_cannot_be)
{
    char text[600];
    refuses("", 0, "\"\" is no unit; there are cpu");
    refuses("gpu", 0, "\"gpu\" is no unit");
    refuses("cpu+", 0, "is no unit");
    refuses("static", 0, "a CPU cluster has to be among the units");
    refuses("fake", 0, "a CPU cluster has to be among the units");
    refuses("cpu:", 0, "follows \"cpu:\"");
    refuses("cpu:3-1", 0, "\"3-1\" are no cores");
    refuses("cpu:0,", 0, "are no cores");
    refuses("cpu:-1", 0, "are no cores");
    refuses("cpu:99999999999999999999", 0, "are no cores");
    refuses("cpu:1023", 0, "core 1023 is none of this process's");
    snprintf(text, sizeof text, "cpu:%d+cpu:%d", first_core(), first_core());
    refuses(text, 0, "is in two units");
    snprintf(text, sizeof text, "cpu:%d/threads=2", first_core());
    refuses(text, 0, "a unit of 1 cores cannot have 2 threads");
    refuses("cpu=1+cpu", 0, "some units have a share and some have not");
    refuses("cpu+cpu=1", 0, "some units have a share and some have not");
    refuses("cpu=-1", 0, "\"-1\" is no share");
    refuses("cpu=nan", 0, "\"nan\" is no share");
    refuses("cpu=1e99", 0, "is no share");
    refuses("cpu=0+cpu=0", 0, "all units have a share of 0");
    refuses("cpu/slow=0.5", 0, "slowed by a factor from 1");
    refuses("cpu/threads=0", 0, "1 to 1024 threads");
    refuses("cpu/threads=1.5", 0, "1 to 1024 threads");
    refuses("cpu/abacus", 0, "\"abacus\" is no word about a unit");
    refuses("cpu/", 0, "\"\" is no word about a unit");
    refuses("cpu+fake/slow=2", 0, "said of CPU clusters alone, not of fake");
    refuses("cpu+cpu+cpu+cpu+cpu", 0, "4 units at most");
    refuses("cpu+cpu", 3, "have 2 threads together, not 3");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    refuses(text, 0, "too many");
}

/* ---- Cores of different speeds ---- */

static void put_line(const char *name, const char *value)
{
    bytes_file_write(temp_path(name), value, strlen(value));
}

TEST(speeds_of_cores)
{
    core_set among = {{0}}, sets[4];
    int32_t speed[4];
    static const char *const of[] = {"446\n", "446\n", "1024\n", "871\n", "1024\n", "200\n"};
    for (int32_t core = 0; core < 6; core++) {
        char name[64];
        snprintf(name, sizeof name, "arm/system/cpu/cpu%d/cpu_capacity", core);
        put_line(name, of[core]);
        cores_add(&among, core);
    }
    char folder[300];
    snprintf(folder, sizeof folder, "%s", temp_path("arm"));
    assert_int_equal(cores_by_speed(folder, &among, sets, speed, 4), 4);
    assert_true(speed[0] == 1024 && speed[1] == 871 && speed[2] == 446);
    assert_true(sets[0].bits[0] == (1 << 2 | 1 << 4) && sets[1].bits[0] == 1 << 3);
    assert_true(sets[2].bits[0] == 3 && sets[3].bits[0] == 1 << 5);
    assert_int_equal(cores_by_speed(folder, &among, sets, speed, 2), 2);
    assert_true(sets[0].bits[0] == (1 << 2 | 1 << 4) && cores_count(&sets[1]) == 4);
    cores_add(&among, 6); /* whose speed is not known */
    assert_int_equal(cores_by_speed(folder, &among, sets, speed, 4), 0);
    unit_words w;
    unit_words_auto(&w, temp_path("arm"), 2); /* a number of threads is no number of clusters */
    assert_true(unit_words_are_plain(&w) && w.unit[0].n_threads == 2);
}

TEST(performance_and_efficiency_cores)
{
    core_set among = {{0}}, sets[4];
    int32_t speed[4];
    put_line("hybrid/cpu_core/cpus", "0-3\n");
    put_line("hybrid/cpu_atom/cpus", "4-6,8\n");
    for (int32_t core = 1; core < 7; core++)
        cores_add(&among, core);
    char folder[300];
    snprintf(folder, sizeof folder, "%s", temp_path("hybrid"));
    assert_int_equal(cores_by_speed(folder, &among, sets, speed, 4), 2);
    assert_true(speed[0] == 1024 && speed[1] == EFFICIENCY_SPEED);
    assert_true(sets[0].bits[0] == 0x0e && sets[1].bits[0] == 0x70);
    cores_add(&among, 7); /* which is of neither kind */
    assert_int_equal(cores_by_speed(folder, &among, sets, speed, 4), 0);
}

/* ---- Parts ---- */

static unit_set *open_words(const unit_words *w, const drey_unit_shares *shares)
{
    unit_set *us;
    drey_error err;
    if (units_open(&us, w, kernel_select_shape("ref", 0), shares, &err) != DREY_OK)
        fail_msg("%s", err.message);
    return us;
}

static unit_set *open_set(const char *text, const drey_unit_shares *shares)
{
    unit_words w;
    parse(&w, text);
    return open_words(&w, shares);
}

/* What "auto" expects holds until shares are measured. */
TEST(expected_shares_give_way)
{
    core_set own;
    char line[16];
    if (!cores_of_thread(&own) || cores_count(&own) < 2)
        NOT_RUN("shares of clusters: this process has one core");
    snprintf(line, sizeof line, "%d\n", first_core());
    put_line("pair/cpu_core/cpus", line);
    put_line("pair/cpu_atom/cpus", "0-1023\n");
    unit_words w;
    drey_unit_shares even = {.n_units = 2};
    for (int32_t width = 0; width < DREY_UNIT_WIDTHS; width++)
        even.share[width][0] = even.share[width][1] = 1;
    unit_words_auto(&w, temp_path("pair"), 0);
    assert_int_equal(w.n_clusters, 2);
    double small = EFFICIENCY_SPEED * (cores_count(&own) - 1);
    unit_set *us = open_words(&w, NULL);
    assert_true(fabs(units_share(us, 8, 0) - 1024 / (1024 + small)) < 1e-9);
    units_close(&us);
    us = open_words(&w, &even);
    assert_true(units_share(us, 8, 0) == 0.5);
    units_close(&us);
}

TEST(parts)
{
    unit_set *us = open_set("cpu=3/threads=2+cpu=1", NULL);
    static const int32_t begins[] = {0, 15, 30, 40};
    for (int32_t slot = 0; slot <= 3; slot++)
        assert_int_equal(units_from(us, slot, 1, 40, false), begins[slot]);
    assert_true(units_share(us, 1, 0) == 0.75 && units_share(us, 64, 1) == 0.25);
    units_set_shares(us, 8, (const double[]){1, 3});
    assert_int_equal(units_from(us, 2, 5, 40, false), 10);
    assert_int_equal(units_from(us, 2, 4, 40, false), 30);
    assert_true(units_may_take(us, 0, 2));
    assert_int_equal(units_take_over(us, 0, 2, 8, 10), 1); /* speeds of 1/8 and 3/4 */
    assert_int_equal(units_take_over(us, 0, 2, 8, 6), 0);
    assert_int_equal(units_take_over(us, 2, 0, 8, 6), 6);
    assert_int_equal(units_take_over(us, 0, 1, 8, 1), 1); /* alike */
    assert_int_equal(units_take_over(us, 0, 1, 8, 6), 3);
    units_close(&us);

    us = open_set("cpu/threads=3+fake", NULL);            /* a thread's worth each */
    assert_int_equal(units_from(us, 3, 1, 40, true), 40); /* it has no weights yet */
    us->attached = true;
    assert_int_equal(units_from(us, 3, 1, 40, true), 30);
    assert_int_equal(units_from(us, 3, 1, 40, false), 40);
    units_fail(us, 3, &(drey_error){.message = "gone"});
    assert_int_equal(units_take_over(us, 0, 3, 1, 7), 7);
    assert_int_equal(units_from(us, 3, 1, 40, true), 40);
    units_close(&us);

    drey_unit_shares measured = {.n_units = 2};
    for (int w = 0; w < DREY_UNIT_WIDTHS; w++) {
        measured.share[w][0] = 1;
        measured.share[w][1] = w;
    }
    us = open_set("cpu+cpu+static", &measured);
    assert_int_equal(units_from(us, 1, 1, 12, false), 12);
    assert_int_equal(units_from(us, 1, 2, 12, false), 6);
    assert_int_equal(units_from(us, 1, 3, 12, false), 4);
    assert_int_equal(units_from(us, 1, 1000, 14, false), 2);
    assert_true(!units_may_take(us, 0, 1) && units_may_take(us, 1, 1));
    units_close(&us);
    unit_words w;
    drey_error err;
    parse(&w, "cpu");
    assert_int_equal(units_open(&us, &w, kernel_select("ref"), &measured, &err), DREY_ERR_USAGE);
    assert_null(us);
}

/* ---- Texts ---- */

#ifdef TESTS_SANITIZED
enum { N_TEXT = 4 };
#else
enum { N_TEXT = 8 };
#endif
enum { N_SHORT = 60, N_LONG = 300 }; /* tokens of a long prompt, for which attention is divided */

static int32_t prompt[N_LONG];
static writing plain, plain_long;

static drey_engine_options options_of(const char *units)
{
    drey_engine_options o = plain_options(target, N_LONG + N_TEXT + 4, 0);
    o.units = units;
    return o;
}

static int set_up(void **state)
{
    rng r = rng_from(4);
    toy_options toy = toy_default();
    toy.architecture = "qwen2";
    toy.type = TOY_TYPE_MIXED;
    toy.n_embd = toy.n_ff = 256;
    toys_open_pair(&toy);
    setenv("POCL_CACHE_DIR", temp_path("pocl"), 1); /* PoCL keeps what it compiles */
    for (int32_t i = 0; i < N_LONG; i++)
        prompt[i] = i < 8 ? 60 + i : prompt[i - 8 + rng_below(&r, 8)];
    drey_engine_options o = options_of(NULL);
    o.n_threads = 1;
    o.cpu_tier = "ref";
    writing_run(&plain, &o, -1, prompt, N_SHORT, N_TEXT, NULL);
    writing_run(&plain_long, &o, -1, prompt, N_LONG, N_TEXT, NULL);
    return 0;
}

/* Writes a text. who: 0 nobody drafts, 1 lookup, 2 a model. */
static const writing *write_text(drey_engine_options *o, int who, double share, bool is_long)
{
    static writing got;
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_MODEL};
    const engine_hooks hooks = {
        .set_share = share >= 0, .share = share, .untimed = true, .device = &fake_device};
    o->drafter = drafters[who];
    o->draft = who == 2 ? draft : NULL;
    writing_run_tuned(&got, o, &hooks, prompt, is_long ? N_LONG : N_SHORT, N_TEXT, NULL);
    if (got.status == DREY_OK)
        must_be_same(is_long ? &plain_long : &plain, &got, o->units);
    return &got;
}

static const writing *same(const char *units, const char *tier, int who, double share)
{
    drey_engine_options o = options_of(units);
    o.cpu_tier = tier;
    const writing *w = write_text(&o, who, share, false);
    must(w->status, &w->error);
    return w;
}

/* Splits that name this machine's tiers and cores; test_matrix.c has the others. */
TEST(same_text)
{
    char mixed[64], core[64];
    snprintf(mixed, sizeof mixed, "cpu/%s+cpu/ref", drey_cpu_tiers()[0]);
    snprintf(core, sizeof core, "cpu:%d=1/slow=2+cpu=2", first_core());
    static const double shares[] = {-1, 0.6, 0.25, 0};
    for (int i = 0; i < 6; i++)
        same(i % 2 ? core : mixed, i % 2 ? "ref" : NULL, i / 2, shares[(i + i / 2) % 4]);
}

/* Who was given what, where nobody takes over anything. */
TEST(parts_are_computed_where_they_belong)
{
    const writing *w = same("cpu=1+cpu=3+fake=4+static", "ref", 0, -1);
    assert_int_equal(w->n_units, 3);
    assert_string_equal(w->units[2].name, "fake");
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(w->units[i].failed, "");
        sum += (double)w->units[i].n_groups;
    }
    assert_true(w->units[0].share[0] == 0.125 && w->units[2].share[6] == 0.5);
    /* In the pass that loads, any thread that is free takes what has arrived. */
    const double loading = 1.0 / N_TEXT, most = (1 - loading) / 8 + loading + 0.02;
    assert_in_range(w->units[0].n_groups, (uint64_t)(0.06 * sum), (uint64_t)(most * sum));
    assert_in_range(w->units[2].n_groups, (uint64_t)(0.35 * sum), (uint64_t)(0.6 * sum));
    w = same("cpu", NULL, 0, -1);
    assert_true(w->n_units == 1 && w->units[0].share[0] == 1 && w->units[0].n_groups == 0);
}

/* A device that goes, at any call, leaves its groups to the threads. */
TEST(devices_that_fail)
{
    static const char *const ways[] = {"fail", "wait"};
    static const char *const forms[] = {"cpu=1+fake:%s%d=3", "cpu=1+fake:%s%d=3+static",
                                        "cpu=1+fake:copies.%s%d=3"};
    for (int way = 0; way < 2; way++)
        for (int call = 1; call <= 9; call += 2)
            for (int form = 0; form < 3; form++) {
                char text[64];
                snprintf(text, sizeof text, forms[form], ways[way], call);
                const writing *w = same(text, NULL, call % 3, form == 1 ? 0.6 : -1);
                if (form == 1) /* otherwise a thread may have been quicker each time */
                    assert_non_null(strstr(w->units[1].failed, "the fake device"));
            }
    const writing *w = same("cpu=1+fake:foreign=3+static", NULL, 0, -1);
    assert_non_null(strstr(w->units[1].failed, "no kernel for these weights"));
    assert_int_equal(w->units[1].n_groups, 0);
    w = same("cpu=1+fake:copies.poor=3+static", NULL, 1, -1);
    assert_non_null(strstr(w->units[1].failed, "no memory for these weights"));
    assert_int_equal(w->units[1].n_groups, 0);
}

TEST(what_is_refused)
{
    static const drey_unit_shares shares = {.n_units = 2, .share = {{1, -1}}};
    static const struct {
        const char *units, *tier, *why;
        drey_status status;
    } cases[] = {{"cpu+fake:refuse", NULL, "flushes denormals", DREY_ERR_UNSUPPORTED},
                 {"cpu/float+cpu/ref", "ref", "cannot mix", DREY_ERR_USAGE},
                 {"cpu+cpu/float", NULL, "cannot mix", DREY_ERR_USAGE},
                 {"gpu", NULL, "\"gpu\" is no unit", DREY_ERR_USAGE}};
    const engine_hooks hooks = {.device = &fake_device};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drey_engine_options o = options_of(cases[i].units);
        o.cpu_tier = cases[i].tier;
        must_refuse_engine(&o, &hooks, cases[i].status, cases[i].why);
    }
    drey_engine_options o = options_of("cpu+cpu");
    o.unit_shares = &shares;
    must_refuse_engine(&o, &hooks, DREY_ERR_USAGE, "");
}

/* What a device takes of this machine's memory is in the budget. */
TEST(memory_is_counted)
{
    uint64_t smallest[2];
    for (int i = 0; i < 2; i++) {
        drey_planner planner = {0};
        const engine_hooks hooks = {.device = &fake_device};
        drey_engine_options o = options_of(i ? "cpu+fake:copies" : "cpu+fake");
        MUST(engine_configure, &planner.engine, &o, &hooks);
        MUST(engine_gather, &planner.engine);
        MUST(planner_make, &planner, 0);
        smallest[i] = planner.engine.plan.report.work_bytes +
                      planner.engine.inputs.model[PLAN_TARGET].overhead_bytes;
        engine_release(&planner.engine);
    }
    assert_true(smallest[1] > smallest[0] + 500000);
}

/* ---- Attention ---- */

/* boundary: of attention; the first is what the shares say. Skips the test where the machine has no
 * such device. */
static const writing *attend_so(const char *units, int boundary)
{
    static const float boundaries[] = {0, -0.6f, 0, 0.3f, 0.75f, 1};
    drey_unit_shares shares = {.n_boundaries = boundary > 0, .boundary = {boundaries[boundary]}};
    shares.n_units = 1;
    for (const char *c = units; *c; c++)
        shares.n_units += *c == '+' && strncmp(c, "+static", 7) != 0;
    for (int32_t i = 0; i < DREY_UNIT_WIDTHS * DREY_MAX_UNITS; i++)
        shares.share[i / DREY_MAX_UNITS][i % DREY_MAX_UNITS] = 1 + i % DREY_MAX_UNITS;
    drey_engine_options o = options_of(units);
    o.unit_shares = &shares;
    o.tree_nodes = 24;
    const writing *w = write_text(&o, 2, boundary % 2 ? 0.5 : -1, true);
    if (w->status == DREY_ERR_UNSUPPORTED && strstr(units, "opencl")) {
        NOT_RUN("no device is tested: %s", w->error.message);
    }
    must(w->status, &w->error);
    return w;
}

/* Where nobody takes over, the boundary says who has what; where one cluster is, nothing is
 * divided. */
TEST(the_boundary_decides)
{
    const writing *w = attend_so("cpu+cpu+static", 2); /* 0 */
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[0].n_tails == 0);
    assert_true(w->units[1].n_dense_blocks == 0 && w->units[1].n_tails > 0);
    w = attend_so("cpu+cpu+static", 5); /* 1 */
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails == 0);
    assert_true(w->units[1].n_dense_blocks > 0 && w->units[1].n_tails > 0);
    w = attend_so("cpu", 5);
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails == 0);
}

/* A device is a wide unit; what it fails with is the clusters'. */
TEST(devices_attend)
{
    const writing *w = attend_so("cpu+fake+static", 2); /* 0 */
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails > 0);
    assert_true(w->units[1].n_dense_blocks > 0 && w->units[1].n_tails == 0);
    assert_true(w->units[0].attends && w->units[1].attends);
    w = attend_so("cpu+fake+static", 5); /* 1 */
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[1].n_dense_blocks == 0);
    w = attend_so("cpu+fake:attend1+static", 2);
    assert_non_null(strstr(w->units[1].failed, "the fake device looked away"));
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[1].n_dense_blocks == 0);
    assert_true(w->units[0].attends && !w->units[1].attends);
    w = attend_so("cpu+fake:plain+static", 2);
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[1].n_dense_blocks == 0);
    assert_true(!w->units[1].attends && w->units[1].failed[0] == 0);
}

#ifndef TESTS_SANITIZED /* drivers leak and race as they like */
/* A device together with clusters, if there is one. */
TEST(with_a_device)
{
    static const char *const units[] = {"cpu+cpu+opencl", "cpu+opencl+static"};
    for (int i = 0; i < 2; i++)
        for (int boundary = 0; boundary < 6; boundary++) {
            const writing *w = attend_so(units[i], boundary);
            const drey_unit *d = &w->units[w->n_units - 1];
            assert_string_equal(d->failed, "");
            if (i == 1 && boundary < 5)
                assert_true(!d->attends || d->n_dense_blocks > 0);
        }
}
#endif

TEST_GROUP(set_up, toys_close)
