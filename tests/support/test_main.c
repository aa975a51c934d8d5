/* main() of every program whose tests are written as TEST. */
#include "support/temp_dir.h"
#include "support/test.h"

enum { MAX_TESTS = 64 };

static struct CMUnitTest tests[MAX_TESTS];
static int lines[MAX_TESTS];
static size_t n_tests;
static CMFixtureFunction fixtures[2];

void register_test(struct CMUnitTest test, int line)
{
    assert_true(n_tests < MAX_TESTS);
    size_t at = n_tests++;
    for (; at > 0 && lines[at - 1] > line; at--) { /* constructors run in any order */
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = test;
    lines[at] = line;
}

void register_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    fixtures[0] = set_up;
    fixtures[1] = tear_down;
}

void test_near(double got, double want, double off)
{
    if (!(fabs(got - want) <= off))
        fail_msg("%.9g instead of %.9g", got, want);
}

int main(void)
{
    assert_true(n_tests > 0);
    for (size_t i = 0; i < n_tests && !fixtures[0]; i++)
        if (!tests[i].teardown_func)
            tests[i].teardown_func = temp_dir_tear_down;
    return _cmocka_run_group_tests("tests", tests, n_tests, fixtures[0], fixtures[1]);
}
