/* A CPU tier for whole programs: every engine of a test that asks for none computes with the one
 * that the environment variable DREY_TEST_CPU names. It may be any of emulated_tiers.h, so that a
 * text test runs on "amx (emulated)" as well. A machine without the tier skips the test (77).
 *
 * The linker lets calls of the library's own functions end here (--wrap); the library itself never
 * reads the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/emulated/emulated_tiers.h"

const kernel_table *__real_kernel_select_shape(const char *name, int32_t shape);
const kernel_table *__wrap_kernel_select_shape(const char *name, int32_t shape);
const kernel_table *__real_kernel_select(const char *name);
const kernel_table *__wrap_kernel_select(const char *name);
const char *const *__real_kernel_tiers(void);
const char *const *__wrap_kernel_tiers(void);
size_t __real_dot_scratch_bytes(int64_t k);
size_t __wrap_dot_scratch_bytes(int64_t k);

static const char *forced;        /* NULL: none, every call is the library's */
static const kernel_table *table; /* NULL: the library knows the tier */
static const char *tiers[] = {NULL, "ref", "float", NULL};

__attribute__((constructor)) static void read_environment(void)
{
    const char *name = getenv("DREY_TEST_CPU");
    if (!name)
        return;
    if (!__real_kernel_select(name))
        table = test_table(name);
    if (!table && !__real_kernel_select(name)) {
        printf("skipped: no tier \"%s\" here\n", name);
        exit(77);
    }
    tiers[0] = forced = name;
}

static bool is_forced(const char *name)
{
    return forced && (!name || strcmp(name, forced) == 0);
}

const kernel_table *__wrap_kernel_select_shape(const char *name, int32_t shape)
{
    if (!is_forced(name))
        return __real_kernel_select_shape(name, shape);
    return table ? table : __real_kernel_select_shape(forced, shape);
}

const kernel_table *__wrap_kernel_select(const char *name)
{
    if (!is_forced(name))
        return __real_kernel_select(name);
    return table ? table : __real_kernel_select(forced);
}

/* A test of all tiers then runs for this one, and for those that it is compared with. */
const char *const *__wrap_kernel_tiers(void)
{
    return forced ? tiers : __real_kernel_tiers();
}

size_t __wrap_dot_scratch_bytes(int64_t k)
{
    size_t bytes = __real_dot_scratch_bytes(k), least = table ? test_scratch_least() : 0;
    return bytes > least ? bytes : least;
}
