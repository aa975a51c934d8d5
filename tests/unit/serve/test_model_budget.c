/* Models that have memory, and those that have to go: serve/router/model_budget.h. */
#include "serve/router/model_budget.h"
#include "support/test.h"

static uint64_t bytes;
static int32_t who;

static budget_model loaded(uint64_t n, bool idle, int64_t used)
{
    return (budget_model){.floor = 10, .want = n, .given = n, .idle = idle, .used = used};
}

/* For the last one of n. */
static budget_answer ask(const budget_model *m, int32_t n, uint64_t budget)
{
    return budget_ask(m, n, n - 1, (budget_limits){budget, 0}, &bytes, &who);
}

static const budget_model asks = {.floor = 40, .want = 100};

TEST(gives_what_is_wanted_if_it_is_left)
{
    budget_model m[] = {loaded(100, false, 1), asks};
    assert_int_equal(ask(m, 2, 200), BUDGET_GIVE);
    assert_int_equal(bytes, 100);
    assert_int_equal(ask(m, 2, UINT64_MAX), BUDGET_GIVE);
    assert_int_equal(bytes, 100);
}

TEST(evicts_the_one_that_was_used_longest_ago)
{
    budget_model m[] = {loaded(50, true, 7), loaded(50, true, 3), loaded(50, false, 1), asks};
    assert_int_equal(ask(m, 4, 150), BUDGET_EVICT);
    assert_int_equal(who, 1);
    m[1].leaving = true;
    assert_int_equal(ask(m, 4, 150), BUDGET_WAIT);
    m[1] = (budget_model){.floor = 10, .want = 50};
    assert_int_equal(ask(m, 4, 150), BUDGET_EVICT);
    assert_int_equal(who, 0);
}

TEST(streams_in_what_others_leave)
{
    budget_model m[] = {loaded(100, false, 1), asks};
    assert_int_equal(ask(m, 2, 160), BUDGET_GIVE);
    assert_int_equal(bytes, 60);
    assert_int_equal(ask(m, 2, 139), BUDGET_WAIT);
    assert_int_equal(ask(m, 2, 39), BUDGET_NEVER);
    m[0] = (budget_model){.floor = 10, .want = 50};
    assert_int_equal(ask(m, 2, 60), BUDGET_GIVE);
    assert_int_equal(bytes, 60);
}

TEST(no_more_are_loaded_than_may_be)
{
    budget_model m[] = {loaded(10, true, 7), loaded(10, false, 3), asks};
    assert_int_equal(budget_ask(m, 3, 2, (budget_limits){UINT64_MAX, 3}, &bytes, &who),
                     BUDGET_GIVE);
    assert_int_equal(budget_ask(m, 3, 2, (budget_limits){UINT64_MAX, 2}, &bytes, &who),
                     BUDGET_EVICT);
    assert_int_equal(who, 0);
    m[0].leaving = true;
    assert_int_equal(budget_ask(m, 3, 2, (budget_limits){1000, 2}, &bytes, &who), BUDGET_WAIT);
    m[0] = loaded(10, false, 7);
    assert_int_equal(budget_ask(m, 3, 2, (budget_limits){1000, 2}, &bytes, &who), BUDGET_WAIT);
    assert_int_equal(budget_ask(m, 3, 2, (budget_limits){30, 2}, &bytes, &who), BUDGET_NEVER);
}
