/* A stand-in for cmocka where it is not installed (see CMakeLists.txt): the few calls that the
 * kernel tests make. The first failure ends the program. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest { /* the members of cmocka's, in their order */
    const char *name;
    void (*test_func)(void **state);
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};

#define print_message(...) printf(__VA_ARGS__)
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        exit(1);                                                                                   \
    } while (0)

#define assert_true(c)                                                                             \
    do {                                                                                           \
        if (!(c))                                                                                  \
            fail_msg("%s", #c);                                                                    \
    } while (0)
#define assert_false(c)              assert_true(!(c))
#define assert_non_null(p)           assert_true((p) != NULL)
#define assert_null(p)               assert_true((p) == NULL)
#define assert_int_equal(a, b)       assert_true((long long)(a) == (long long)(b))
#define assert_int_not_equal(a, b)   assert_true((long long)(a) != (long long)(b))
#define assert_string_equal(a, b)    assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

#define cmocka_set_test_filter(pattern) (void)(pattern) /* all run */

/* skip() returns from the test, as cmocka's does not return either. */
#define skip()                                                                                     \
    do {                                                                                           \
        return;                                                                                    \
    } while (0)

/* Runs a group without fixtures: no kernel test has one of its own. */
static inline int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests,
                                          size_t n, CMFixtureFunction setup,
                                          CMFixtureFunction teardown)
{
    (void)group, (void)setup, (void)teardown;
    for (size_t i = 0; i < n; i++) {
        void *state = NULL;
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].test_func(&state);
    }
    return 0;
}
