/* cmocka, with the headers that it wants before its own and those that most tests want; a test
 * without a table and a main(). */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Callbacks of tests have parameters that nobody reads. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* TEST(name) { ... } is one test of its file. They run in the order of their lines. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* One with a set-up and a tear-down of its own. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        register_test((struct CMUnitTest){#name, name, set_up, tear_down, NULL}, __FILE__,         \
                      __LINE__);                                                                   \
    }                                                                                              \
    static void name(void **state)

/* Runs before the first and after the last of its file. Where there is none, each test's temporary
 * folder is removed after it. */
#define TEST_GROUP(set_up, tear_down)                                                              \
    __attribute__((constructor)) static void add_group(void)                                       \
    {                                                                                              \
        register_group(__FILE__, set_up, tear_down);                                               \
    }

void register_test(struct CMUnitTest test, const char *file, int line);
void register_group(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Ends a test that cannot run here, or not all of it; ./test.sh shows and counts the reasons. */
#define NOT_RUN(...)                                                                               \
    do {                                                                                           \
        print_message("not run: " __VA_ARGS__);                                                    \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

/* Within so much of each other; NaN is not. */
#define assert_near(got, want, off) test_near((double)(got), (double)(want), (double)(off))
void test_near(double got, double want, double off);
