/* Simulated machines: two units whose times can be added in one's head. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "drey/bench.h"

static void within(double got, double want, double most)
{
    if (!(fabs(got - want) <= most))
        fail_msg("%.6f instead of %.6f", got, want);
}

/* Matrices 3 and 6 s. Attention of four rows to 100 positions 1 and 2 s, to each other as dense
 * 0.04 and 0.08 s, as sparse 0.02 and 0.5 s. */
static drey_sim_machine two_units(void)
{
    return (drey_sim_machine){.n_units = 2,
                              .n_widths = 2,
                              .widths = {1, 4},
                              .units = {{.linear_s = {3, 3},
                                         .dense_s = {0.01, 0.01},
                                         .sparse_s = {0.01, 0.02},
                                         .contention = 1},
                                        {.linear_s = {6, 6},
                                         .dense_s = {0.02, 0.02},
                                         .sparse_s = {0.02, 0.5},
                                         .contention = 1}}};
}

static drey_sim_pass pass_of(const drey_sim_machine *m, drey_sim_strategy strategy)
{
    drey_sim_pass pass;
    drey_error err;
    if (drey_simulate(m, strategy, 1, 100, &pass, &err) != DREY_OK)
        fail_msg("%s", err.message);
    within(pass.seconds, pass.linear_s + pass.attention_s + pass.extra_s, 1e-12);
    return pass;
}

static void by_hand(void **state)
{
    (void)state;
    drey_sim_machine m = two_units();
    m.sync_s = 0.1;
    m.all_reduce_row_s = 0.05;
    drey_sim_pass p = pass_of(&m, DREY_SIM_SEQUENTIAL);
    within(p.seconds, 3 + 1.01, 1e-9);
    p = pass_of(&m, DREY_SIM_ONE_UNIT);
    within(p.seconds, 3 + 1.04, 1e-9);
    p = pass_of(&m, DREY_SIM_EVEN); /* the slow one decides: half of 6 and half of 2.08 */
    within(p.linear_s, 3, 1e-9);
    within(p.attention_s, 1.04, 1e-9);
    within(p.extra_s, 0.1 + 4 * 0.05, 1e-9);
    p = pass_of(&m, DREY_SIM_ALONE_RATIO);
    within(p.linear_s, 2, 1e-9);
    within(p.attention_s, 2.08 / 3, 1e-9);
    within(p.extra_s, 0.3, 1e-9);
    p = pass_of(&m, DREY_SIM_STATIC);
    within(p.linear_s, 2, 1e-9);
    within(p.attention_s, 1, 1e-9); /* 1 s of dense on the first, half a second on the last */
    within(p.extra_s, 0.1, 1e-9);
    p = pass_of(&m, DREY_SIM_DYNAMIC); /* 1 - x = 0.5 + 2 x */
    within(p.attention_s, 5 / 6., 0.01);
    within(p.boundary, 1 / 6., 0.01);
}

static void dense_takes_of_sparse(void **state)
{
    (void)state;
    drey_sim_machine m = two_units();
    m.units[1].sparse_s[1] = 2; /* 1 + 0.04 y = 2 (1 - y) */
    drey_sim_pass p = pass_of(&m, DREY_SIM_STATIC);
    within(p.attention_s, 2, 1e-9);
    p = pass_of(&m, DREY_SIM_DYNAMIC);
    within(p.boundary, -1 / 2.04, 0.01);
    within(p.attention_s, 1 + 0.04 / 2.04, 0.02);
}

/* The second is slowed by half while the first works: at 2 : 1 it has done 1.33 s of its 2 s when
 * the first is done, and needs 0.67 s more alone. At 3 : 1 both are done after 2.25 s. */
static void contention(void **state)
{
    (void)state;
    drey_sim_machine m = two_units();
    m.units[1].contention = 1.5;
    drey_sim_pass p = pass_of(&m, DREY_SIM_ALONE_RATIO);
    within(p.linear_s, 2 + 2 / 3., 1e-9);
    p = pass_of(&m, DREY_SIM_STATIC);
    within(p.linear_s, 2.25, 0.02);
    within(p.share[1], 0.25, 0.01);
}

static void one_unit_alone(void **state)
{
    (void)state;
    drey_sim_machine m = two_units();
    m.n_units = 1;
    m.sync_s = m.all_reduce_row_s = 7;
    for (drey_sim_strategy s = DREY_SIM_ONE_UNIT; s <= DREY_SIM_ALONE_RATIO; s++)
        within(pass_of(&m, s).seconds, 4.04, 1e-9);
    within(pass_of(&m, DREY_SIM_DYNAMIC).seconds, 3 + 1 + 0.02, 1e-9);
}

static void refuses(const drey_sim_machine *m, int32_t w, int32_t context, const char *part)
{
    drey_sim_pass pass;
    drey_error err = {0};
    assert_int_equal(drey_simulate(m, DREY_SIM_DYNAMIC, w, context, &pass, &err), DREY_ERR_USAGE);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" and not \"%s\"", err.message, part);
}

static void what_is_no_machine(void **state)
{
    (void)state;
    drey_sim_machine m = two_units();
    refuses(&m, 2, 0, "no such width");
    refuses(&m, 0, -1, "no such width");
    m.widths[1] = 1;
    refuses(&m, 0, 0, "ascend");
    m = two_units();
    m.units[1].dense_s[1] = NAN;
    refuses(&m, 0, 0, "unit 2");
    m = two_units();
    m.units[0].contention = 0.9;
    refuses(&m, 0, 0, "unit 1");
    m = two_units();
    m.sync_s = -1;
    refuses(&m, 0, 0, "0 or more");
    m.n_units = 5;
    refuses(&m, 0, 0, "1 to 4 units");
    assert_string_equal(drey_sim_strategy_name(DREY_SIM_EVEN), "even split");
    assert_null(drey_sim_strategy_name(DREY_SIM_DYNAMIC + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(dense_takes_of_sparse),
        cmocka_unit_test(contention),
        cmocka_unit_test(one_unit_alone),
        cmocka_unit_test(what_is_no_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
